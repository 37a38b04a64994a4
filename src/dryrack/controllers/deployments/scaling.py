"""
Compute the sizes of a deployment's replica sets.

A rollout never has more pods than the wanted number plus the surge, and never fewer available pods
than the wanted number minus the allowed gap.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dryrack.base.numbers import read_int64
from dryrack.controllers.objects import annotations_of, spec_of, status_of, uid_of
from dryrack.controllers.workloads import replicas_of
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw
from dryrack.kinds.rules.int_or_percent import scaled_value

DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a rollout."""

    wanted: int
    surge: int
    unavailable: int

    @property
    def total_max(self) -> int:
        return self.wanted + self.surge

    @property
    def available_min(self) -> int:
        return self.wanted - self.unavailable


def limits_of(deployment: Raw) -> Limits:
    """Return the limits of a deployment's strategy."""
    spec = spec_of(deployment)
    wanted = replicas_of(deployment)
    strategy = get(spec, "strategy", {})
    if strategy.get("type") == "Recreate":
        return Limits(wanted, 0, wanted)
    rolling = get(strategy, "rollingUpdate", {})
    surge = scaled_value(rolling.get("maxSurge"), wanted, default="25%", rounds_up=True)
    gap = scaled_value(rolling.get("maxUnavailable"), wanted, default="25%", rounds_up=False)
    if surge == 0 and gap == 0:
        # With neither a surge nor a gap, no pod could be replaced.
        gap = 1
    return Limits(wanted, surge, min(gap, wanted))


def available_of(replica_set: Raw) -> int:
    return int(status_of(replica_set).get("availableReplicas") or 0)


def grow(new: Raw, every: Sequence[Raw], limits: Limits) -> int:
    """Return the size of the new replica set in the next step of a rolling update."""
    size = replicas_of(new)
    if size >= limits.wanted:
        return limits.wanted
    free = limits.total_max - sum(replicas_of(each) for each in every)
    return size + max(0, min(free, limits.wanted - size))


def shrink(new: Raw, old: Sequence[Raw], limits: Limits) -> Mapping[str, int]:
    """
    Return the sizes of the old replica sets in the next step of a rolling update, by UID.

    Pods that are not available are deleted first.
    """
    sizes = {uid_of(each): replicas_of(each) for each in old}
    total = sum(sizes.values()) + replicas_of(new)
    unavailable = replicas_of(new) - available_of(new)
    removable = total - limits.available_min - unavailable
    if removable <= 0:
        return sizes
    for each in old:
        count = min(removable, max(0, replicas_of(each) - available_of(each)))
        sizes[uid_of(each)] -= count
        removable -= count
    available = available_of(new) + sum(min(available_of(e), sizes[uid_of(e)]) for e in old)
    surplus = available - limits.available_min
    for each in old:
        count = max(0, min(surplus, sizes[uid_of(each)]))
        sizes[uid_of(each)] -= count
        surplus -= count
    return sizes


def is_resized(every: Sequence[Raw], wanted: int) -> bool:
    """Return True if the deployment was scaled since its replica sets were written."""
    return any(
        annotations_of(each).get(DESIRED_REPLICAS, str(wanted)) != str(wanted)
        for each in every
        if replicas_of(each) > 0
    )


def in_proportion(every: Sequence[Raw], limits: Limits) -> Mapping[str, int]:
    """
    Return the sizes after a deployment was scaled in the middle of a rollout, by UID.

    Each replica set has a share of the change; the biggest has the rest that rounding leaves.
    """
    active = [each for each in every if replicas_of(each) > 0]
    sizes = {uid_of(each): replicas_of(each) for each in every}
    if len(active) == 1:
        return sizes | {uid_of(active[0]): limits.wanted}
    allowed = limits.total_max if limits.wanted > 0 else 0
    change = allowed - sum(sizes.values())
    ordered = sorted(active, key=lambda each: -replicas_of(each))
    added = 0
    for each in ordered:
        share = _share(each, allowed, change - added)
        sizes[uid_of(each)] += share
        added += share
    if ordered:
        biggest = uid_of(ordered[0])
        sizes[biggest] = max(0, sizes[biggest] + change - added)
    return sizes


def _share(replica_set: Raw, allowed: int, left: int) -> int:
    size = replicas_of(replica_set)
    before = read_int64(annotations_of(replica_set).get(MAX_REPLICAS) or "") or allowed
    share = round(size * allowed / before) - size if before else -size
    return min(share, left) if left > 0 else max(share, left)
