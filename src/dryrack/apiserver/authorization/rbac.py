"""
Role-based access control, as a function of the roles and bindings that are stored.

A policy is an index of bindings by subject. Deciding follows the bindings of the user and of each
group to their roles, cluster bindings first, and stops at the first rule that allows. Nothing is
ever denied: what no rule allows is not allowed. An aggregated role has the rules of all roles
that its selectors match, at any time; no controller copies them into it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import json

from dryrack.apiserver.authorization.attributes import Attributes
from dryrack.client.transport import User
from dryrack.kinds.decode import decode
from dryrack.kinds.meta import LabelSelector
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw
from dryrack.kinds.selectors import matches_labels

_ALL = "*"
# Members of this group may do anything, so that a broken policy can be repaired.
SUPERUSERS = "system:masters"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of a role."""

    verbs: tuple[str, ...]
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> "Rule":
        keys = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
        return cls(*(tuple(raw.get(key) or ()) for key in keys))

    def allows(self, asked: Attributes) -> bool:
        if not _has(self.verbs, asked.verb):
            return False
        if asked.is_path:
            return any(covers_path(path, asked.path) for path in self.paths)
        return (
            _has(self.groups, asked.group)
            and self._has_resource(asked)
            and (not self.names or asked.name in self.names)
        )

    def _has_resource(self, asked: Attributes) -> bool:
        if not asked.subresource:
            return _has(self.resources, asked.resource)
        wanted = (_ALL, f"{asked.resource}/{asked.subresource}", f"{_ALL}/{asked.subresource}")
        return any(each in self.resources for each in wanted)


def _has(allowed: Sequence[str], wanted: str) -> bool:
    return wanted in allowed or _ALL in allowed


def covers_path(pattern: str, path: str) -> bool:
    """Return whether a rule's path, which may end in a star, covers a path."""
    if pattern.endswith(_ALL):
        return path.startswith(pattern.rstrip(_ALL))
    return pattern == path


@dataclass(frozen=True, slots=True)
class Grant:
    """A role for a subject; `namespace` "" is everywhere."""

    namespace: str
    role_kind: str
    role: str
    description: str
    """The binding that grants the role, in the words of reviews."""


@dataclass(frozen=True, slots=True)
class Sources:
    """The objects of rbac.authorization.k8s.io, as stored."""

    roles: Sequence[Raw] = ()
    cluster_roles: Sequence[Raw] = ()
    bindings: Sequence[Raw] = ()
    cluster_bindings: Sequence[Raw] = ()


@dataclass(slots=True)
class Policy:
    """All roles and bindings, ready to decide."""

    grants: dict[tuple[str, str], list[Grant]] = field(default_factory=dict)
    roles: dict[tuple[str, str], tuple[Rule, ...]] = field(default_factory=dict)
    """By namespace and name; cluster roles under ""."""

    @classmethod
    def of(cls, sources: Sources) -> "Policy":
        policy = cls()
        for role in sources.roles:
            meta = role["metadata"]
            policy.roles[meta["namespace"], meta["name"]] = _rules(role)
        cluster_rules = _cluster_rules(sources.cluster_roles)
        for role, rules in zip(sources.cluster_roles, cluster_rules, strict=True):
            policy.roles["", role["metadata"]["name"]] = rules
        for binding in (*sources.cluster_bindings, *sources.bindings):
            namespace = binding["metadata"].get("namespace", "")
            reference = binding["roleRef"]
            for subject in get(binding, "subjects", ()):
                description = _describe_binding(binding, subject)
                grant = Grant(namespace, reference["kind"], reference["name"], description)
                policy.grants.setdefault(_subject(subject, namespace), []).append(grant)
        return policy

    def allows(self, asked: Attributes) -> bool:
        return SUPERUSERS in asked.user.groups or self._allowing_grant(asked) is not None

    def reason(self, asked: Attributes) -> str:
        """Return the reason of the decision, for reviews."""
        if SUPERUSERS in asked.user.groups:
            return ""
        grant = self._allowing_grant(asked)
        return f"RBAC: allowed by {grant.description}" if grant else ""

    def _allowing_grant(self, asked: Attributes) -> Grant | None:
        for grant in self._grants(asked.user, asked.namespace):
            if any(rule.allows(asked) for rule in self._rules_of_grant(grant)):
                return grant
        return None

    def rules(self, user: User, namespace: str) -> Iterator[Rule]:
        """Every rule for a user in a namespace; "" is what holds in the whole cluster."""
        for grant in self._grants(user, namespace):
            yield from self._rules_of_grant(grant)

    def _grants(self, user: User, namespace: str) -> Iterator[Grant]:
        """Those of the whole cluster first."""
        subjects = (("User", user.name), *(("Group", group) for group in user.groups))
        for where in ("", namespace) if namespace else ("",):
            for subject in subjects:
                found = self.grants.get(subject, ())
                yield from (grant for grant in found if grant.namespace == where)

    def _rules_of_grant(self, grant: Grant) -> tuple[Rule, ...]:
        place = grant.namespace if grant.role_kind == "Role" else ""
        return self.roles.get((place, grant.role), ())


def _subject(subject: Mapping[str, str], namespace: str) -> tuple[str, str]:
    """Return the kind and name of a subject; a service account is a user."""
    if subject["kind"] == "ServiceAccount":
        where = subject.get("namespace") or namespace
        return "User", f"system:serviceaccount:{where}:{subject['name']}"
    return subject["kind"], subject["name"]


def _describe_binding(binding: Raw, subject: Mapping[str, str]) -> str:
    meta = binding["metadata"]
    reference = binding["roleRef"]
    namespace = meta.get("namespace", "")
    name = subject["name"]
    if subject["kind"] == "ServiceAccount":
        name = f"{name}/{subject.get('namespace') or namespace}"
    kind = "RoleBinding" if namespace else "ClusterRoleBinding"
    shown = f"{meta['name']}/{namespace}" if namespace else meta["name"]
    role = f'{reference["kind"]} "{reference["name"]}"'
    return f'{kind} "{shown}" of {role} to {subject["kind"]} "{name}"'


def _rules(role: Raw) -> tuple[Rule, ...]:
    return tuple(Rule.of(each) for each in get(role, "rules", ()))


def _cluster_rules(roles: Sequence[Raw]) -> Iterator[tuple[Rule, ...]]:
    """
    Yield the rules of each cluster role: its own or, if it is aggregated, those that it selects.

    Aggregated roles may select each other, in circles too. A set of roles is a number with one bit
    for each, and a closure over these numbers follows every selection once: walking along all
    paths would take factorial time.
    """
    reached = _selected_roles(roles)
    for middle in reached:
        for number in reached:
            if reached[number] >> middle & 1:
                reached[number] |= reached[middle]
    own = [() if number in reached else _rules(role) for number, role in enumerate(roles)]
    gathered: dict[int, tuple[Rule, ...]] = {}
    for number in range(len(roles)):
        if number not in reached:
            yield own[number]
            continue
        mask = reached[number]
        if mask not in gathered:
            rules = (rule for index, each in enumerate(own) if mask >> index & 1 for rule in each)
            gathered[mask] = tuple(dict.fromkeys(rules))
        yield gathered[mask]


def _selected_roles(roles: Sequence[Raw]) -> dict[int, int]:
    """Return the roles that each aggregated role selects; equal selectors are asked once."""
    selections: dict[bytes, int] = {}
    selected: dict[int, int] = {}
    for number, role in enumerate(roles):
        aggregation = role.get("aggregationRule")
        if aggregation:
            selected[number] = 0
            for selector in get(aggregation, "clusterRoleSelectors", ()):
                key = json.encode(selector, order="deterministic")
                if key not in selections:
                    selections[key] = _selection(decode(selector, LabelSelector), roles)
                selected[number] |= selections[key]
    return selected


def _selection(selector: LabelSelector, roles: Sequence[Raw]) -> int:
    """Return the roles that a selector matches, as a number with one bit for each."""
    matches = (matches_labels(selector, get(each["metadata"], "labels", {})) for each in roles)
    return sum(1 << number for number, is_match in enumerate(matches) if is_match)
