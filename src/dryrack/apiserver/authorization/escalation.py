"""
RBAC escalation check: a writer grants only permissions that the writer has.

The writer of a role needs every permission in it, and the writer of a binding every permission
of the role, in the same namespace; or the verb `escalate` on the role, or `bind` on the bound role.
Members of system:masters may do anything.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dryrack.apiserver.answer.status import forbidden, not_found
from dryrack.apiserver.authorization import Rbac
from dryrack.apiserver.authorization.attributes import Attributes
from dryrack.apiserver.authorization.rbac import SUPERUSERS, Rule, covers_path
from dryrack.apiserver.registry import Resource
from dryrack.apiserver.strategy import Write
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw
from dryrack.kinds.text.quoting import quoted

_ALL = "*"
_EVERYTHING = (
    Rule((_ALL,), groups=(_ALL,), resources=(_ALL,)),
    Rule((_ALL,), paths=(_ALL,)),
)
_ROLES = ("roles", "clusterroles")
_COLLECTED = ("ownerReferences", "finalizers", "managedFields", "resourceVersion", "generation")


def confirm_no_escalation(
    authorization: Rbac, resource: Resource, new: Raw, *, old: Raw | None, write: Write
) -> None:
    """Raise a `StatusError` if a role or a binding grants more than its writer has."""
    if SUPERUSERS in write.user.groups or (old is not None and _is_only_collected(new, old)):
        return
    check = _EscalationCheck(authorization, resource, new, write)
    if resource.plural in _ROLES:
        check.check_role(old)
    else:
        check.check_binding()


def _is_only_collected(new: Raw, old: Raw) -> bool:
    """Return whether only fields changed that a garbage collector writes."""
    one, other = ({**each, "metadata": _own(each["metadata"])} for each in (new, old))
    return one == other and new["metadata"] != old["metadata"]


def _own(metadata: Raw) -> Raw:
    return {key: value for key, value in metadata.items() if key not in _COLLECTED}


class _EscalationCheck:
    def __init__(self, authorization: Rbac, resource: Resource, new: Raw, write: Write) -> None:
        self._authorization = authorization
        self._resource = resource
        self._new = new
        self._write = write

    def check_role(self, old: Raw | None) -> None:
        # The path of a create has no name.
        name = "" if old is None else old["metadata"]["name"]
        if self._authorization.allows(self._attributes("escalate", self._resource.plural, name)):
            return
        self._require([Rule.of(each) for each in get(self._new, "rules", ())])
        gathers = self._new.get("aggregationRule") or (old or {}).get("aggregationRule")
        if gathers and list(self._missing_rules(_EVERYTHING)):
            # An aggregation rule may select any permission later.
            raise self._refusal("must have cluster-admin privileges to use the aggregationRule")

    def check_binding(self) -> None:
        reference = get(self._new, "roleRef", {})
        kind = reference.get("kind") or ""
        name = reference.get("name") or ""
        plural = {"Role": "roles", "ClusterRole": "clusterroles"}.get(kind, "")
        if plural and self._authorization.allows(self._attributes("bind", plural, name)):
            return
        place = self._write.namespace if kind == "Role" else ""
        rules = self._authorization.policy.roles.get((place, name))
        if rules is None:
            # The real server names the resource of the request, not that of the role.
            raise not_found(self._resource.as_resource, name)
        self._require(rules)

    def _attributes(self, verb: str, plural: str, name: str) -> Attributes:
        return Attributes(
            self._write.user,
            verb,
            group=self._resource.group,
            resource=plural,
            namespace=self._write.namespace,
            name=name,
        )

    def _require(self, rules: Sequence[Rule]) -> None:
        missing = list(self._missing_rules(rules))
        if not missing:
            return
        user = self._write.user
        groups = " ".join(quoted(group) for group in user.groups)
        lines = sorted({_describe(rule) for rule in _join_verbs(missing)})
        raise self._refusal(
            f"user {quoted(user.name)} (groups=[{groups}]) is attempting to grant RBAC permissions "
            "not currently held:\n" + "\n".join(lines)
        )

    def _refusal(self, detail: str) -> Exception:
        name = self._new["metadata"].get("name") or ""
        return forbidden(self._resource.as_resource, name, detail)

    def _missing_rules(self, rules: Sequence[Rule]) -> Iterator[Rule]:
        write = self._write
        owned = self._authorization.rules(write.user, write.namespace)
        for rule in rules:
            for part in _parts(rule):
                if not any(_covers(each, part) for each in owned):
                    yield part


def _parts(rule: Rule) -> Iterator[Rule]:
    """Split a rule into rules for one verb and one resource or path each."""
    for group in rule.groups:
        for resource in rule.resources:
            for verb in rule.verbs:
                part = Rule((verb,), (group,), (resource,))
                yield from (replace(part, names=(name,)) for name in rule.names)
                if not rule.names:
                    yield part
    for path in rule.paths:
        for verb in rule.verbs:
            yield Rule((verb,), paths=(path,))


def _covers(owned: Rule, part: Rule) -> bool:
    return (
        (_ALL in owned.verbs or set(part.verbs) <= set(owned.verbs))
        and (_ALL in owned.groups or set(part.groups) <= set(owned.groups))
        and all(_has_resource(owned, each) for each in part.resources)
        and (not owned.names or (bool(part.names) and set(part.names) <= set(owned.names)))
        and all(any(covers_path(own, path) for own in owned.paths) for path in part.paths)
    )


def _has_resource(owned: Rule, resource: str) -> bool:
    _, slash, part = resource.partition("/")
    wanted = (_ALL, resource, f"{_ALL}/{part}") if slash else (_ALL, resource)
    return any(each in owned.resources for each in wanted)


def _join_verbs(parts: Sequence[Rule]) -> Iterator[Rule]:
    """Join the verbs for one resource."""
    verbs: dict[Rule, list[str]] = {}
    for part in parts:
        if part.paths:
            yield part
        else:
            verbs.setdefault(replace(part, verbs=()), []).extend(part.verbs)
    for part, found in verbs.items():
        yield replace(part, verbs=tuple(found))


def _describe(rule: Rule) -> str:
    parts = (
        ("APIGroups", rule.groups),
        ("Resources", rule.resources),
        ("NonResourceURLs", rule.paths),
        ("ResourceNames", rule.names),
        ("Verbs", rule.verbs),
    )
    said = (f"{name}:[{' '.join(map(quoted, values))}]" for name, values in parts if values)
    return "{" + ", ".join(said) + "}"
