"""
How many pods each replica set of a deployment gets.

Pure arithmetic: a rollout never has more than the wanted number plus the surge, and never makes
available pods fewer than the wanted number less the allowed gap.
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
    """What a rollout has to keep."""

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
    """The strategy of a deployment in numbers."""
    spec = spec_of(deployment)
    wanted = replicas_of(deployment)
    strategy = get(spec, "strategy", {})
    if strategy.get("type") == "Recreate":
        return Limits(wanted, 0, wanted)
    rolling = get(strategy, "rollingUpdate", {})
    surge = scaled_value(rolling.get("maxSurge"), wanted, default="25%", rounds_up=True)
    gap = scaled_value(rolling.get("maxUnavailable"), wanted, default="25%", rounds_up=False)
    if surge == 0 and gap == 0:
        # Neither one more nor one less: nothing could ever move.
        gap = 1
    return Limits(wanted, surge, min(gap, wanted))


def available_of(replica_set: Raw) -> int:
    return int(status_of(replica_set).get("availableReplicas") or 0)


def grown(new: Raw, every: Sequence[Raw], limits: Limits) -> int:
    """The size of the new replica set in the next step of a rolling update."""
    size = replicas_of(new)
    if size >= limits.wanted:
        return limits.wanted
    room = limits.total_max - sum(replicas_of(each) for each in every)
    return size + max(0, min(room, limits.wanted - size))


def shrunk(new: Raw, old: Sequence[Raw], limits: Limits) -> Mapping[str, int]:
    """
    The sizes of the old replica sets in the next step of a rolling update, by uid.

    Pods that are not available go first: nobody misses them.
    """
    sizes = {uid_of(each): replicas_of(each) for each in old}
    total = sum(sizes.values()) + replicas_of(new)
    not_yet = replicas_of(new) - available_of(new)
    room = total - limits.available_min - not_yet
    if room <= 0:
        return sizes
    for each in old:
        gone = min(room, max(0, replicas_of(each) - available_of(each)))
        sizes[uid_of(each)] -= gone
        room -= gone
    available = available_of(new) + sum(min(available_of(e), sizes[uid_of(e)]) for e in old)
    surplus = available - limits.available_min
    for each in old:
        gone = max(0, min(surplus, sizes[uid_of(each)]))
        sizes[uid_of(each)] -= gone
        surplus -= gone
    return sizes


def is_resized(every: Sequence[Raw], wanted: int) -> bool:
    """Whether somebody has scaled the deployment since its replica sets were written."""
    return any(
        annotations_of(each).get(DESIRED_REPLICAS, str(wanted)) != str(wanted)
        for each in every
        if replicas_of(each) > 0
    )


def in_proportion(every: Sequence[Raw], limits: Limits) -> Mapping[str, int]:
    """
    The sizes after a deployment was scaled in the middle of a rollout, by uid.

    Each replica set gets or gives its share of the change; the biggest takes what rounding leaves.
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
