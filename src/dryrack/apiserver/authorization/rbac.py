"""
Role-based access control, as a function of the roles and bindings that are stored.

A policy is an index of bindings by subject. Deciding follows the bindings of the user and of each
group to their roles, cluster bindings first, and stops at the first rule that allows. Nothing is
ever denied: what no rule allows is not allowed. An aggregated role has the rules of all roles
that its selectors match, at any time, without somebody copying them into it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dryrack.apiserver.authorization.attributes import Attributes
from dryrack.client.transport import User
from dryrack.kinds.decode import decode
from dryrack.kinds.meta import LabelSelector
from dryrack.kinds.raw import Raw
from dryrack.kinds.selectors import matches_labels

_ALL = "*"
# Whoever is in this group may do anything, whatever is stored: the way back in.
SUPERUSERS = "system:masters"


@dataclass(frozen=True, slots=True)
class Rule:
    """What a role allows."""

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
    """Whether a path of a rule, which may end in a star, is that path or leads to it."""
    if pattern.endswith(_ALL):
        return path.startswith(pattern.rstrip(_ALL))
    return pattern == path


@dataclass(frozen=True, slots=True)
class Grant:
    """A role for a subject; `namespace` "" is everywhere."""

    namespace: str
    role_kind: str
    role: str
    story: str
    """Which binding it comes from, as reviews tell it."""


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
        for role in sources.cluster_roles:
            policy.roles["", role["metadata"]["name"]] = _aggregated(role, sources.cluster_roles)
        for binding in (*sources.cluster_bindings, *sources.bindings):
            policy._bind(binding)
        return policy

    def _bind(self, binding: Raw) -> None:
        namespace = binding["metadata"].get("namespace", "")
        reference = binding["roleRef"]
        for subject in binding.get("subjects") or ():
            story = _story(binding, subject)
            grant = Grant(namespace, reference["kind"], reference["name"], story)
            self.grants.setdefault(_subject(subject, namespace), []).append(grant)

    def allows(self, asked: Attributes) -> bool:
        return SUPERUSERS in asked.user.groups or self._allowing(asked) is not None

    def reason(self, asked: Attributes) -> str:
        """What a review tells about the decision."""
        if SUPERUSERS in asked.user.groups:
            return ""
        grant = self._allowing(asked)
        return f"RBAC: allowed by {grant.story}" if grant else ""

    def _allowing(self, asked: Attributes) -> Grant | None:
        for grant in self._grants(asked.user, asked.namespace):
            if any(rule.allows(asked) for rule in self._granted(grant)):
                return grant
        return None

    def rules(self, user: User, namespace: str) -> Iterator[Rule]:
        """Every rule for a user in a namespace; "" is what holds in the whole cluster."""
        for grant in self._grants(user, namespace):
            yield from self._granted(grant)

    def _grants(self, user: User, namespace: str) -> Iterator[Grant]:
        """Those of the whole cluster first."""
        subjects = (("User", user.name), *(("Group", group) for group in user.groups))
        for where in ("", namespace) if namespace else ("",):
            for subject in subjects:
                found = self.grants.get(subject, ())
                yield from (grant for grant in found if grant.namespace == where)

    def _granted(self, grant: Grant) -> tuple[Rule, ...]:
        place = grant.namespace if grant.role_kind == "Role" else ""
        return self.roles.get((place, grant.role), ())


def _subject(subject: Mapping[str, str], namespace: str) -> tuple[str, str]:
    """An account is a user by its long name."""
    if subject["kind"] == "ServiceAccount":
        where = subject.get("namespace") or namespace
        return "User", f"system:serviceaccount:{where}:{subject['name']}"
    return subject["kind"], subject["name"]


def _story(binding: Raw, subject: Mapping[str, str]) -> str:
    meta, reference = binding["metadata"], binding["roleRef"]
    namespace, name = meta.get("namespace", ""), subject["name"]
    if subject["kind"] == "ServiceAccount":
        name = f"{name}/{subject.get('namespace') or namespace}"
    kind = "RoleBinding" if namespace else "ClusterRoleBinding"
    shown = f"{meta['name']}/{namespace}" if namespace else meta["name"]
    role = f'{reference["kind"]} "{reference["name"]}"'
    return f'{kind} "{shown}" of {role} to {subject["kind"]} "{name}"'


def _rules(role: Raw) -> tuple[Rule, ...]:
    return tuple(Rule.of(each) for each in role.get("rules") or ())


def _aggregated(
    role: Raw, all_roles: Sequence[Raw], within: frozenset[str] = frozenset()
) -> tuple[Rule, ...]:
    """A role's own rules or, of an aggregated one, those of the roles that it selects."""
    aggregation = role.get("aggregationRule")
    if not aggregation:
        return _rules(role)
    # Two roles may select each other; each adds its rules once.
    around = within | {role["metadata"]["name"]}
    selectors = [
        decode(each, LabelSelector) for each in aggregation.get("clusterRoleSelectors") or ()
    ]
    chosen = (each for each in all_roles if each["metadata"]["name"] not in around)
    selected = (each for each in chosen if _is_selected(each, selectors))
    return tuple(rule for each in selected for rule in _aggregated(each, all_roles, around))


def _is_selected(role: Raw, selectors: Sequence[LabelSelector]) -> bool:
    labels = role["metadata"].get("labels") or {}
    return any(matches_labels(selector, labels) for selector in selectors)
