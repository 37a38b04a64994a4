"""Roles and role bindings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.paths import get
from dryrack.kinds.rules.checks import selector_problems
from dryrack.kinds.rules.json_edit import map_items, set_defaults, update_at
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.validation.meta import Naming
from dryrack.kinds.validation.names import checked, path_segment, path_segment_prefix, subdomain
from dryrack.kinds.validation.problems import invalid, not_supported, required

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

RBAC = "rbac.authorization.k8s.io"
_NAMING = Naming(path_segment, path_segment_prefix)


class RoleRules(KindRules):
    """Roles, of a namespace or of the cluster."""

    def __init__(self, *, namespaced: bool) -> None:
        super().__init__(namespaced=namespaced, naming=_NAMING)

    def problems(self, obj: Raw) -> Iterator[FieldProblem]:
        for position, rule in enumerate(get(obj, "rules", ())):
            yield from self._rule(f"rules[{position}]", rule)
        if obj.get("aggregationRule") is None:
            return
        at = "aggregationRule.clusterRoleSelectors"
        selectors = get(obj, at, ())
        if not selectors:
            detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
            yield required(at, detail)
        for position, selector in enumerate(selectors):
            problems = list(selector_problems(f"{at}[{position}]", selector))
            yield from problems
            if problems:
                yield invalid(f"{at}[{position}]", None, "invalid label selector.")

    def _rule(self, at: str, rule: Raw) -> Iterator[FieldProblem]:
        if not rule.get("verbs"):
            yield required(f"{at}.verbs", "verbs must contain at least one value")
        urls = get(rule, "nonResourceURLs", [])
        if not urls:
            if not rule.get("apiGroups"):
                yield required(
                    f"{at}.apiGroups", "resource rules must supply at least one api group"
                )
            if not rule.get("resources"):
                yield required(
                    f"{at}.resources", "resource rules must supply at least one resource"
                )
            return
        if self.namespaced:
            detail = "namespaced rules cannot apply to non-resource URLs"
            yield invalid(f"{at}.nonResourceURLs", urls, detail)
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            detail = "rules cannot apply to both regular resources and non-resource URLs"
            yield invalid(f"{at}.nonResourceURLs", urls, detail)


class RoleBindingRules(KindRules):
    """Bindings of roles to users, groups and service accounts."""

    def __init__(self, *, namespaced: bool) -> None:
        super().__init__(namespaced=namespaced, naming=_NAMING)

    def default(self, obj: Raw) -> Raw:
        made = update_at(obj, "roleRef", lambda role: set_defaults(role, {"apiGroup": RBAC}))
        return map_items(made, "subjects", _subject)

    def problems(self, obj: Raw) -> Iterator[FieldProblem]:
        yield from self._role(get(obj, "roleRef", {}))
        for position, subject in enumerate(get(obj, "subjects", ())):
            yield from self._subject(f"subjects[{position}]", subject)

    def _role(self, role: Raw) -> Iterator[FieldProblem]:
        if role.get("apiGroup") != RBAC:
            yield not_supported("roleRef.apiGroup", role.get("apiGroup") or "", (RBAC,))
        kinds = ("Role", "ClusterRole") if self.namespaced else ("ClusterRole",)
        if role.get("kind") not in kinds:
            yield not_supported("roleRef.kind", role.get("kind") or "", kinds)
        name = role.get("name") or ""
        yield from (
            checked("roleRef.name", name, path_segment) if name else (required("roleRef.name"),)
        )

    def _subject(self, at: str, subject: Raw) -> Iterator[FieldProblem]:
        kind = subject.get("kind") or ""
        group = subject.get("apiGroup") or ""
        if not subject.get("name"):
            yield required(f"{at}.name")
        if kind == "ServiceAccount":
            yield from checked(f"{at}.name", subject.get("name") or "x", subdomain)
            if group:
                yield not_supported(f"{at}.apiGroup", group, ("",))
            if not self.namespaced and not subject.get("namespace"):
                yield required(f"{at}.namespace")
        elif kind not in ("User", "Group"):
            yield not_supported(f"{at}.kind", kind, ("ServiceAccount", "User", "Group"))
        elif group != RBAC:
            yield not_supported(f"{at}.apiGroup", group, (RBAC,))


def _subject(subject: Raw) -> Raw:
    named = subject.get("kind") in ("User", "Group")
    return set_defaults(subject, {"apiGroup": RBAC}) if named else subject
