"""
Nobody grants what he does not have.

Whoever writes a role needs every permission that is in it, and whoever binds a role every one
that it gives, in the namespace where it is written; or the verbs `escalate` on the role and `bind`
on the role that is bound. Members of system:masters may do anything.
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
    """Raises a `StatusError` if a role or a binding grants more than its writer has."""
    if SUPERUSERS in write.user.groups or (old is not None and _is_only_collected(new, old)):
        return
    check = _Check(authorization, resource, new, write)
    if resource.plural in _ROLES:
        check.role(old)
    else:
        check.binding()


def _is_only_collected(new: Raw, old: Raw) -> bool:
    """Whether nothing but what a garbage collector writes has changed."""
    one, other = ({**each, "metadata": _own(each["metadata"])} for each in (new, old))
    return one == other and new["metadata"] != old["metadata"]


def _own(metadata: Raw) -> Raw:
    return {key: value for key, value in metadata.items() if key not in _COLLECTED}


class _Check:
    def __init__(self, authorization: Rbac, resource: Resource, new: Raw, write: Write) -> None:
        self._authorization = authorization
        self._resource = resource
        self._new = new
        self._write = write

    def role(self, old: Raw | None) -> None:
        # A role that is made has no name in the path.
        name = "" if old is None else old["metadata"]["name"]
        if self._authorization.allows(self._asked("escalate", self._resource.plural, name)):
            return
        self._must_have([Rule.of(each) for each in get(self._new, "rules", ())])
        gathers = self._new.get("aggregationRule") or (old or {}).get("aggregationRule")
        if gathers and list(self._missing(_EVERYTHING)):
            # It could gather anything, later.
            raise self._refusal("must have cluster-admin privileges to use the aggregationRule")

    def binding(self) -> None:
        reference = get(self._new, "roleRef", {})
        kind = reference.get("kind") or ""
        name = reference.get("name") or ""
        plural = {"Role": "roles", "ClusterRole": "clusterroles"}.get(kind, "")
        if plural and self._authorization.allows(self._asked("bind", plural, name)):
            return
        place = self._write.namespace if kind == "Role" else ""
        rules = self._authorization.policy.roles.get((place, name))
        if rules is None:
            # By the resource that is asked for; that is how the real server tells it.
            raise not_found(self._resource.as_resource, name)
        self._must_have(rules)

    def _asked(self, verb: str, plural: str, name: str) -> Attributes:
        return Attributes(
            self._write.user,
            verb,
            group=self._resource.group,
            resource=plural,
            namespace=self._write.namespace,
            name=name,
        )

    def _must_have(self, rules: Sequence[Rule]) -> None:
        missing = list(self._missing(rules))
        if not missing:
            return
        user = self._write.user
        groups = " ".join(quoted(group) for group in user.groups)
        lines = sorted({_described(rule) for rule in _compacted(missing)})
        raise self._refusal(
            f"user {quoted(user.name)} (groups=[{groups}]) is attempting to grant RBAC permissions "
            "not currently held:\n" + "\n".join(lines)
        )

    def _refusal(self, detail: str) -> Exception:
        name = self._new["metadata"].get("name") or ""
        return forbidden(self._resource.as_resource, name, detail)

    def _missing(self, rules: Sequence[Rule]) -> Iterator[Rule]:
        write = self._write
        owned = self._authorization.rules(write.user, write.namespace)
        for rule in rules:
            for part in _parts(rule):
                if not any(_covers(each, part) for each in owned):
                    yield part


def _parts(rule: Rule) -> Iterator[Rule]:
    """A rule as many that speak of one thing each."""
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


def _compacted(parts: Sequence[Rule]) -> Iterator[Rule]:
    """The verbs for one resource together."""
    verbs: dict[Rule, list[str]] = {}
    for part in parts:
        if part.paths:
            yield part
        else:
            verbs.setdefault(replace(part, verbs=()), []).extend(part.verbs)
    for part, found in verbs.items():
        yield replace(part, verbs=tuple(found))


def _described(rule: Rule) -> str:
    parts = (
        ("APIGroups", rule.groups),
        ("Resources", rule.resources),
        ("NonResourceURLs", rule.paths),
        ("ResourceNames", rule.names),
        ("Verbs", rule.verbs),
    )
    said = (f"{name}:[{' '.join(map(quoted, values))}]" for name, values in parts if values)
    return "{" + ", ".join(said) + "}"
