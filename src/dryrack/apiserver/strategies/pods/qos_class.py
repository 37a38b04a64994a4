"""The class of a pod's quality of service, which follows from what its containers ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.paths import get
from dryrack.kinds.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.kinds.raw import Raw

_COMPUTE = ("cpu", "memory")


def quality(spec: Raw) -> str:
    """Guaranteed, Burstable or BestEffort."""
    resources = _resources_of(spec)
    requests = [_positive(each.get("requests")) for each in resources]
    limits = [_positive(each.get("limits")) for each in resources]
    if not any(requests) and not any(limits):
        return "BestEffort"
    is_limited = all(set(each) == set(_COMPUTE) for each in limits)
    return "Guaranteed" if is_limited and _sums(requests) == _sums(limits) else "Burstable"


def _resources_of(spec: Raw) -> Sequence[Raw]:
    """Return the resources of the pod as a whole, or else those of each container."""
    if spec.get("resources"):
        return [spec["resources"]]
    containers = [*get(spec, "containers", ()), *get(spec, "initContainers", ())]
    return [get(each, "resources", {}) for each in containers]


def _positive(amounts: Raw | None) -> dict[str, Quantity]:
    found = {
        name: Quantity.from_json((amounts or {})[name])
        for name in _COMPUTE
        if name in (amounts or {})
    }
    return {name: amount for name, amount in found.items() if amount.sign > 0}


def _sums(amounts: list[dict[str, Quantity]]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for each in amounts:
        for name, amount in each.items():
            sums[name] = sums.get(name, 0) + amount.nanos
    return sums
