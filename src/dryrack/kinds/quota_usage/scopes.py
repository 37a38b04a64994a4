"""The scopes of quotas, which restrict the objects that a quota counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.paths import get, spec_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.raw import Raw

_PODS = "pods"
_VOLUMES = "persistentvolumeclaims"
_TERMS = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def selectors_of(quota: Raw) -> list[Raw]:
    """Return the scopes of a quota from both of its fields, as selector requirements."""
    spec = spec_of(quota)
    plain = [{"scopeName": scope, "operator": "Exists"} for scope in get(spec, "scopes", ())]
    return [*plain, *get(spec, "scopeSelector.matchExpressions", ())]


def matches_scopes(quota: Raw, resource: str, obj: Raw) -> bool:
    """Return whether an object is in all scopes of a quota."""
    return all(_matches(each, resource, obj) for each in selectors_of(quota))


def _matches(selector: Raw, resource: str, obj: Raw) -> bool:
    scope = selector.get("scopeName")
    if resource == _VOLUMES and scope == "VolumeAttributesClass":
        return _matches_value(selector, get(obj, "spec.volumeAttributesClassName") or "")
    return resource == _PODS and _matches_pod(selector, obj)


def _matches_pod(selector: Raw, pod: Raw) -> bool:
    spec = spec_of(pod)
    match selector.get("scopeName"):
        case "Terminating":
            return is_terminating(pod)
        case "NotTerminating":
            return not is_terminating(pod)
        case "BestEffort":
            return _is_best_effort(pod)
        case "NotBestEffort":
            return not _is_best_effort(pod)
        case "PriorityClass":
            return _matches_value(selector, spec.get("priorityClassName") or "")
        case "CrossNamespacePodAffinity":
            return any(
                term.get("namespaces") or term.get("namespaceSelector") is not None
                for term in _affinity_terms(spec)
            )
        case _:
            return False


def is_terminating(pod: Raw) -> bool:
    deadline = get(pod, "spec.activeDeadlineSeconds")
    return deadline is not None and deadline >= 0


def _is_best_effort(pod: Raw) -> bool:
    return bool(get(pod, "status.qosClass") == "BestEffort")


def _matches_value(selector: Raw, value: str) -> bool:
    values = get(selector, "values", ())
    match selector.get("operator"):
        case "In":
            return bool(value) and value in values
        case "NotIn":
            return value not in values
        case "DoesNotExist":
            return not value
        case _:
            return bool(value)


def _affinity_terms(spec: Raw) -> Iterator[Raw]:
    affinity = get(spec, "affinity", {})
    for kind in ("podAffinity", "podAntiAffinity"):
        for when in _TERMS:
            for term in (affinity.get(kind) or {}).get(when) or ():
                yield term.get("podAffinityTerm") or term
