"""Who is who, and who may do what: accounts, roles and their bindings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.strategies.checks import selector_problems
from dryrack.apiserver.strategies.copies import each, filled, forgetting, within
from dryrack.apiserver.strategies.validated_as_new import WholeStrategy
from dryrack.kinds.validation.meta import Naming
from dryrack.kinds.validation.names import checked, path_segment, path_segment_prefix, subdomain
from dryrack.kinds.validation.problems import invalid, not_supported, required

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

RBAC = "rbac.authorization.k8s.io"
_NAMING = Naming(path_segment, path_segment_prefix)


class ServiceAccountStrategy(WholeStrategy):
    """Of the secrets only the names are kept."""

    def __init__(self) -> None:
        super().__init__(namespaced=True)

    def prepare_create(self, obj: Raw, write: Write) -> Raw:
        return each(obj, "secrets", _name_only)

    def prepare_update(self, obj: Raw, old: Raw, write: Write) -> Raw:
        return each(obj, "secrets", _name_only)


def _name_only(secret: Raw) -> Raw:
    return {"name": secret["name"]} if secret.get("name") else {}


class RoleStrategy(WholeStrategy):
    """Roles, of a namespace or of the cluster."""

    creates_on_update = True

    def __init__(self, *, namespaced: bool) -> None:
        super().__init__(namespaced=namespaced, naming=_NAMING)

    def to_storage(self, obj: Raw) -> Raw:
        return forgetting(obj, "rules")

    def problems(self, obj: Raw, write: Write) -> Sequence[FieldProblem]:
        return [
            *(
                problem
                for position, rule in enumerate(obj.get("rules") or ())
                for problem in self._rule(f"rules[{position}]", rule)
            ),
            *_aggregation(obj.get("aggregationRule")),
        ]

    def _rule(self, at: str, rule: Raw) -> Iterator[FieldProblem]:
        if not rule.get("verbs"):
            yield required(f"{at}.verbs", "verbs must contain at least one value")
        urls = rule.get("nonResourceURLs") or []
        if not urls:
            yield from _of_resources(at, rule)
            return
        if self.namespaced:
            detail = "namespaced rules cannot apply to non-resource URLs"
            yield invalid(f"{at}.nonResourceURLs", urls, detail)
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            detail = "rules cannot apply to both regular resources and non-resource URLs"
            yield invalid(f"{at}.nonResourceURLs", urls, detail)


def _aggregation(rule: Raw | None) -> Iterator[FieldProblem]:
    if rule is None:
        return
    at, selectors = "aggregationRule.clusterRoleSelectors", rule.get("clusterRoleSelectors") or ()
    if not selectors:
        detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        yield required(at, detail)
    for position, selector in enumerate(selectors):
        found = list(selector_problems(f"{at}[{position}]", selector))
        yield from found
        if found:
            yield invalid(f"{at}[{position}]", None, "invalid label selector.")


def _of_resources(at: str, rule: Raw) -> Iterator[FieldProblem]:
    if not rule.get("apiGroups"):
        yield required(f"{at}.apiGroups", "resource rules must supply at least one api group")
    if not rule.get("resources"):
        yield required(f"{at}.resources", "resource rules must supply at least one resource")


class RoleBindingStrategy(WholeStrategy):
    """Roles given to people, groups and accounts; which role is fixed."""

    creates_on_update = True

    def __init__(self, *, namespaced: bool) -> None:
        super().__init__(namespaced=namespaced, naming=_NAMING)

    def default(self, obj: Raw, write: Write) -> Raw:
        made = within(obj, "roleRef", lambda role: filled(role, {"apiGroup": RBAC}))
        return each(made, "subjects", _subject)

    def problems(self, obj: Raw, write: Write) -> Sequence[FieldProblem]:
        subjects = enumerate(obj.get("subjects") or ())
        return [
            *self._role(obj.get("roleRef") or {}),
            *(
                problem
                for position, subject in subjects
                for problem in self._subject(f"subjects[{position}]", subject)
            ),
        ]

    def changes(self, obj: Raw, old: Raw) -> Iterator[FieldProblem]:
        if obj.get("roleRef") != old.get("roleRef"):
            role = obj.get("roleRef") or {}
            names = {"APIGroup": "apiGroup", "Kind": "kind", "Name": "name"}
            shown = {name: role.get(key) or "" for name, key in names.items()}
            yield invalid("roleRef", shown, "cannot change roleRef")

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
        kind, group = subject.get("kind") or "", subject.get("apiGroup") or ""
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
    return filled(subject, {"apiGroup": RBAC}) if named else subject
