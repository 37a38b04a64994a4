"""Requests and limits of pods, and their usage of quotas."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from dryrack.kinds.paths import get, spec_of
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.quota_usage.amounts import NOTHING, ONE, Amounts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dryrack.kinds.raw import Raw

# Integers (billionths) are faster to add.
_Amount = TypeVar("_Amount", int, Quantity)

SHARED = ("cpu", "memory")
PAGES = "hugepages-"
CLASS_RESOURCE = "deviceclass.resource.kubernetes.io/"
_COMPUTE = ("cpu", "memory", "ephemeral-storage")


def sum_requests(spec: Raw, name: str) -> Quantity | None:
    """Return the request of all containers together; None if no container has one."""
    return _together(spec, name, "requests")


def totals(spec: Raw, part: str) -> Amounts:
    """Return the requests or limits of a pod: its own, or else those of its containers."""
    containers = [*get(spec, "containers", ()), *get(spec, "initContainers", ())]
    given = [get(each, "resources", {}).get(part) or {} for each in containers]
    amounts = {name: _together(spec, name, part) or NOTHING for each in given for name in each}
    whole = get(spec, "resources", {}).get(part) or {}
    for name, amount in whole.items():
        if name in SHARED or name.startswith(PAGES):
            amounts[name] = Quantity.from_json(amount)
    return dict(sorted(amounts.items()))


def with_overhead(spec: Raw, amounts: Amounts, part: str) -> Amounts:
    """Return the amounts with the overhead of the pod, which raises only existing limits."""
    made = dict(amounts)
    for name, amount in get(spec, "overhead", {}).items():
        if name in made or part == "requests":
            made[name] = made.get(name, NOTHING) + Quantity.from_json(amount)
    return made


def _together(spec: Raw, name: str, part: str) -> Quantity | None:
    """Return the need of all containers together; None if no container has an amount."""
    regular = [_amount(each, name, part) for each in get(spec, "containers", ())]
    first = [
        (_amount(each, name, part), each.get("restartPolicy") == "Always")
        for each in get(spec, "initContainers", ())
    ]
    if not any(each is not None for each in (*regular, *(amount for amount, _ in first))):
        return None
    starting = [(amount or NOTHING, stays) for amount, stays in first]
    return sum_needs(starting, [amount or NOTHING for amount in regular], nothing=NOTHING)


def sum_needs(
    first: Iterable[tuple[_Amount, bool]], regular: Iterable[_Amount], *, nothing: _Amount
) -> _Amount:
    """
    Return the need of a pod: containers that run together add up.

    Init containers run one by one, beside earlier sidecars. The result is the larger of the needs
    of starting and of running.
    """
    staying = starting = nothing
    for amount, stays in first:
        together = staying + amount
        starting = max(starting, together)
        staying = together if stays else staying
    running = staying
    for amount in regular:
        running = running + amount
    return max(running, starting)


def _amount(container: Raw, name: str, part: str) -> Quantity | None:
    amounts = get(container, "resources", {}).get(part) or {}
    return Quantity.from_json(amounts[name]) if name in amounts else None


def is_over(pod: Raw, now: float) -> bool:
    """Return whether a pod has ended, or should have: a lost node must not hold up the others."""
    if get(pod, "status.phase") in ("Succeeded", "Failed"):
        return True
    meta = pod["metadata"]
    deleted = meta.get("deletionTimestamp")
    grace = meta.get("deletionGracePeriodSeconds")
    if deleted is None or grace is None:
        return False
    return now > datetime.fromisoformat(deleted).timestamp() + int(grace)


def pod_usage(pod: Raw, *, is_over: bool) -> Amounts:
    """Return the usage of a pod; a pod that has ended only counts as an object."""
    if is_over:
        return {"count/pods": ONE}
    spec = spec_of(pod)
    parts = {part: with_overhead(spec, totals(spec, part), part) for part in ("requests", "limits")}
    return {"count/pods": ONE, **compute_usage(parts["requests"], parts["limits"])}


def compute_usage(requests: Amounts, limits: Amounts) -> Amounts:
    """Return requests and limits by their names in quotas."""
    used: Amounts = {"pods": ONE}
    for name, amount in requests.items():
        if name in _COMPUTE or name.startswith(PAGES):
            used[name] = used[f"requests.{name}"] = amount
        elif is_extended(name):
            used[f"requests.{name}"] = amount
    used |= {f"limits.{name}": limits[name] for name in _COMPUTE if name in limits}
    return used


def is_extended(name: str) -> bool:
    """Return whether Kubernetes does not define the resource itself."""
    if name.startswith(CLASS_RESOURCE):
        return True
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")


def pod_names(names: list[str]) -> list[str]:
    """Return the names in a quota that count pods."""
    counted = {"count/pods", "pods", *_COMPUTE}
    counted |= {f"{part}.{name}" for part in ("limits", "requests") for name in _COMPUTE}
    return [
        name
        for name in names
        if name in counted or name.startswith((PAGES, f"requests.{PAGES}")) or _is_requested(name)
    ]


def _is_requested(name: str) -> bool:
    return name.startswith("requests.") and is_extended(name.removeprefix("requests."))


def missing_resources(names: list[str], spec: Raw) -> str:
    """Return the message about resources that containers must specify, or ""."""
    if any(get(spec, "resources", {}).get(part) for part in ("limits", "requests")):
        return ""
    wanted = [name for name in sorted(names) if name.removeprefix("requests.") in SHARED]
    wanted += [name for name in sorted(names) if name in ("limits.cpu", "limits.memory")]
    silent: dict[str, list[str]] = {}
    for container in (*get(spec, "containers", ()), *get(spec, "initContainers", ())):
        resources = get(container, "resources", {})
        usage = compute_usage(get(resources, "requests", {}), get(resources, "limits", {}))
        for name in wanted:
            if name not in usage:
                silent.setdefault(name, []).append(container.get("name") or "")
    shown = (f"{name} for: {','.join(sorted(set(silent[name])))}" for name in sorted(silent))
    return f"must specify {'; '.join(shown)}" if silent else ""
