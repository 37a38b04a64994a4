"""
Which quotas count an object, and its usage.

A quota names resources; each kind of object is counted by some of the names. `usage_of` returns the
usage of one object; `matches` checks the scopes of a quota.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.kinds.paths import get, spec_of
from dryrack.kinds.quantity import Format, Quantity
from dryrack.kinds.quota_usage.amounts import (
    NOTHING,
    ONE,
    Amounts,
    add_amounts,
    format_amounts,
    parse_amounts,
    select_amounts,
)
from dryrack.kinds.quota_usage.claims import (
    CLAIMS,
    NO_CONTEXT,
    ClaimContext,
    claim_names,
    claim_usage,
    may_count_claims,
)
from dryrack.kinds.quota_usage.pods import missing_resources, pod_names, pod_usage
from dryrack.kinds.quota_usage.scopes import matches_scopes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from dryrack.kinds.raw import Raw

PODS = "pods"
SERVICES = "services"
VOLUME_CLAIMS = "persistentvolumeclaims"
IGNORED = frozenset(("bindings", "componentstatuses", "events", "events.events.k8s.io"))
_BY_STORAGE = ".storageclass.storage.k8s.io/"
_STORAGE = ("persistentvolumeclaims", "requests.storage")
_ALIASED = ("configmaps", "replicationcontrollers", "resourcequotas", "secrets")
_SPECIAL = (PODS, SERVICES, VOLUME_CLAIMS, CLAIMS)


def resources_of(names: Iterable[str]) -> list[str]:
    """Return the kinds that a quota of these names counts, with any DeviceClasses."""
    every = list(names)
    kinds = [kind for kind in _SPECIAL if kind != CLAIMS and names_of(kind, every)]
    kinds += [CLAIMS] if may_count_claims(every) else []
    kinds += [name for name in every if name in _ALIASED]
    kinds += [name.removeprefix("count/") for name in every if name.startswith("count/")]
    return sorted({each for each in kinds if each not in IGNORED})


def names_of(resource: str, names: list[str], context: ClaimContext = NO_CONTEXT) -> list[str]:
    """Return the names that objects of a kind are counted by."""
    match resource:
        case "pods":
            return pod_names(names)
        case "services":
            known = ("services", "services.nodeports", "services.loadbalancers")
            return [name for name in names if name in (*known, "count/services")]
        case "persistentvolumeclaims":
            return [name for name in names if _is_of_volumes(name)]
        case "resourceclaims.resource.k8s.io":
            return claim_names(names, context.classes)
        case _:
            alias = (resource,) if resource in _ALIASED else ()
            return [name for name in names if name in (f"count/{resource}", *alias)]


def _is_of_volumes(name: str) -> bool:
    ends = tuple(f"{_BY_STORAGE}{each}" for each in _STORAGE)
    return name in (*_STORAGE, f"count/{VOLUME_CLAIMS}") or name.endswith(ends)


def hard_of(quota: Raw) -> dict[str, Any]:
    """Return the limits in the status, for which the usage is known."""
    hard: dict[str, Any] = get(quota, "status.hard", {})
    return hard


def matches(quota: Raw, resource: str, obj: Raw, context: ClaimContext = NO_CONTEXT) -> bool:
    """Return whether a quota counts an object."""
    names = names_of(resource, list(hard_of(quota)), context)
    return bool(names) and matches_scopes(quota, resource, obj)


def complaint(resource: str, names: list[str], obj: Raw) -> str:
    """Return the message about fields that an object needs to be counted, or ""."""
    return missing_resources(names, spec_of(obj)) if resource == PODS else ""


def usage_of(
    resource: str, obj: Raw, *, is_over: bool = False, context: ClaimContext = NO_CONTEXT
) -> Amounts:
    """Return the usage of an object; `is_over`: a pod has ended, or should have."""
    match resource:
        case "pods":
            return pod_usage(obj, is_over=is_over)
        case "services":
            return _service(spec_of(obj))
        case "persistentvolumeclaims":
            return _volume(obj)
        case "resourceclaims.resource.k8s.io":
            return claim_usage(obj, context)
        case _:
            counted = {f"count/{resource}": ONE}
            return counted | ({resource: ONE} if resource in _ALIASED else {})


def _service(spec: Raw) -> Amounts:
    ports = get(spec, "ports", ())
    kind = spec.get("type")
    opened = 0
    if kind in ("LoadBalancer", "NodePort"):
        chosen = kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False
        opened = sum(1 for port in ports if port.get("nodePort") or not chosen)
    return {
        "count/services": ONE,
        "services": ONE,
        "services.nodeports": _whole(opened),
        "services.loadbalancers": _whole(1 if kind == "LoadBalancer" else 0),
    }


def _volume(claim: Raw) -> Amounts:
    spec = spec_of(claim)
    annotations = get(claim["metadata"], "annotations", {})
    used = {"persistentvolumeclaims": ONE, f"count/{VOLUME_CLAIMS}": ONE}
    storage = get(spec, "resources.requests.storage")
    if storage is not None:
        used["requests.storage"] = Quantity.from_json(storage)
    kind = annotations.get("volume.beta.kubernetes.io/storage-class", spec.get("storageClassName"))
    if kind:
        used |= {f"{kind}{_BY_STORAGE}{name}": used[name] for name in _STORAGE if name in used}
    return used


def _whole(count: int) -> Quantity:
    return Quantity.of(count * 10**9, Format.DECIMAL_SI)


def count_usage(
    quota: Raw, objects: Callable[[str], Iterable[Raw]], context: ClaimContext
) -> Amounts:
    """Return what the objects of a namespace use of a quota; `objects` are those of a kind."""
    hard: Mapping[str, Any] = get(quota, "spec.hard", {})
    names = list(hard)
    names_by_resource = {
        resource: names_of(resource, names, context) for resource in resources_of(names)
    }
    # Claims are charged for the implicit resource of a class that does not exist, too.
    every = {name for each in names_by_resource.values() for name in each}
    used: Amounts = {}
    for resource, own in names_by_resource.items():
        if not own:
            continue
        total: Amounts = dict.fromkeys(own, NOTHING)
        for obj in objects(resource):
            if matches_scopes(quota, resource, obj):
                over = resource == PODS and context.is_over(obj)
                use = usage_of(resource, obj, is_over=over, context=context)
                total = add_amounts(total, select_amounts(use, every))
        used = add_amounts(used, total)
    return used


def charge(quota: Raw, more: Amounts) -> Amounts | str | None:
    """Return the usage of a quota with these amounts added, or the error if it exceeds a limit."""
    hard = parse_amounts(hard_of(quota))
    used = parse_amounts(get(quota, "status.used"))
    asked = select_amounts({name: amount for name, amount in more.items() if amount.sign}, hard)
    if not asked:
        return None
    after = add_amounts(used, asked)
    over = [name for name in asked if after[name] > hard[name]]
    if not over:
        return after
    parts = (("requested", asked), ("used", used), ("limited", hard))
    amounts = ", ".join(
        f"{what}: {format_amounts(select_amounts(each, over))}" for what, each in parts
    )
    return f"exceeded quota: {quota['metadata']['name']}, {amounts}"
