"""Quotas of namespaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.paths import get, spec_of
from dryrack.kinds.quota_usage.amounts import parse_amounts
from dryrack.kinds.rules import checks
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.rules.pods import resource_amounts as amounts
from dryrack.kinds.validation.problems import Token, invalid, required

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_STANDARD = {
    *_COMPUTE,
    *(f"{part}.{name}" for part in ("limits", "requests") for name in _COMPUTE),
    *("configmaps", "persistentvolumeclaims", "pods", "replicationcontrollers", "requests.storage"),
    *("resourcequotas", "secrets", "services", "services.loadbalancers", "services.nodeports"),
}
_PAGES = ("hugepages-", "requests.hugepages-")
_OF_PODS = {
    "pods",
    *(f"{part}{name}" for part in ("", "limits.", "requests.") for name in ("cpu", "memory")),
}
_OF_VOLUMES = {"persistentvolumeclaims", "requests.storage"}
# The resources to which each scope applies.
_SCOPES = {
    "BestEffort": {"pods"},
    "CrossNamespacePodAffinity": _OF_PODS,
    "NotBestEffort": _OF_PODS,
    "NotTerminating": _OF_PODS,
    "PriorityClass": _OF_PODS,
    "Terminating": _OF_PODS,
    "VolumeAttributesClass": _OF_VOLUMES,
}
_CHOOSING = ("PriorityClass", "VolumeAttributesClass")
_CONTRADICTIONS = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_ONLY_EXISTS = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
    "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
    "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)


class QuotaRules(KindRules):
    """ResourceQuota."""

    def __init__(self) -> None:
        super().__init__(namespaced=True, has_status=True)

    def problems(self, obj: Raw) -> Iterator[FieldProblem]:
        return quota_problems(spec_of(obj))


def quota_problems(spec: Raw) -> Iterator[FieldProblem]:
    """Yield the problems of the spec of a quota."""
    yield from _amounts("spec.hard", spec.get("hard"))
    names = sorted(get(spec, "hard", ()))
    scopes = get(spec, "scopes", [])
    for scope in scopes:
        if scope not in _SCOPES:
            yield invalid("spec.scopes", scopes, "unsupported scope")
        for _ in _out_of_scope(scope, names):
            yield invalid("spec.scopes", scopes, "unsupported scope applied to resource")
    if any(pair <= set(scopes) for pair in _CONTRADICTIONS):
        yield invalid("spec.scopes", scopes, "conflicting scopes")
    if spec.get("scopeSelector") is not None:
        yield from _selector(spec, names)


def _out_of_scope(scope: str, names: Sequence[str]) -> Iterator[str]:
    """Yield the resources to which a scope does not apply."""
    known = _SCOPES.get(scope)
    for name in names:
        if known is not None and _is_standard(name) and name not in known:
            yield name


def _is_standard(name: str) -> bool:
    return name in _STANDARD or name.startswith(_PAGES)


def _amounts(at: str, given: Raw | None) -> Iterator[FieldProblem]:
    for name, amount in sorted(parse_amounts(given).items()):
        path = f"{at}[{name}]"
        yield from amounts.resource_name(path, name)
        if "/" not in name and not _is_standard(name):
            yield invalid(path, Token(name), "must be a standard resource for quota")
        yield from checks.quantity_problems(path, name, amount)


def _selector(spec: Raw, names: Sequence[str]) -> Iterator[FieldProblem]:
    at = "spec.scopeSelector.matchExpressions"
    selector = spec["scopeSelector"]
    given = get(selector, "matchExpressions", ())
    for each in given:
        scope = each.get("scopeName") or ""
        if scope not in _SCOPES:
            yield invalid(f"{at}.scopeName", Token(scope), "unsupported scope")
        for _ in _out_of_scope(scope, names):
            yield invalid(at, selector, "unsupported scope applied to resource")
        operator = each.get("operator") or ""
        values = get(each, "values", [])
        if scope in _SCOPES and scope not in _CHOOSING and operator != "Exists":
            yield invalid(f"{at}.operator", Token(operator), _ONLY_EXISTS)
        if operator in ("In", "NotIn"):
            if not values:
                detail = "must be at least one value when `operator` is 'In' or 'NotIn'"
                yield required(f"{at}.values", f"{detail} for scope selector")
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist'"
                yield invalid(f"{at}.values", values, f"{detail} for scope selector")
        else:
            yield invalid(f"{at}.operator", Token(operator), "not a valid selector operator")
    seen = {each.get("scopeName") for each in given}
    if any(pair <= seen for pair in _CONTRADICTIONS):
        yield invalid(at, spec.get("scopes"), "conflicting scopes")
