"""The result of a simulation, as programs read it."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence


class Point(msgspec.Struct, rename="camel", omit_defaults=True):
    """The state at one moment; ratios are percentages of the fleet's devices."""

    # In an experiment without times: the demand so far. Otherwise the time in seconds.
    arrived: int | None = None
    time: float | None = None
    allocated: float = 0.0
    fragmented: float = 0.0
    waiting: int = 0


class Waits(msgspec.Struct, rename="camel"):
    """Waiting times of pods that ran, in seconds."""

    count: int = 0
    mean: float = 0.0
    p50: float = 0.0
    p95: float = 0.0
    p99: float = 0.0
    max: float = 0.0

    @staticmethod
    def of(values: Sequence[float]) -> Waits:
        if not values:
            return Waits()
        ordered = sorted(values)

        def at(percent: int) -> float:
            # The nearest rank: the least value that so many percent of the values do not exceed.
            return round_to(ordered[-(-percent * len(ordered) // 100) - 1])

        mean = sum(ordered) / len(ordered)
        return Waits(len(ordered), round_to(mean), at(50), at(95), at(99), round_to(ordered[-1]))


class WaitsBy(msgspec.Struct, rename="camel"):
    """Waiting times of all pods, and by queue and by number of devices of the job."""

    all: Waits = msgspec.field(default_factory=Waits)
    by_queue: dict[str, Waits] = {}
    by_devices: dict[str, Waits] = {}


class Utilisation(msgspec.Struct, rename="camel"):
    """The part of the devices that is allocated, as in `allocation_ratio`, and by model."""

    mean: float = 0.0
    by_model: dict[str, float] = {}


class Reason(msgspec.Struct, rename="camel"):
    """The reason for which pods never ran, with an example."""

    reason: str
    count: int
    example: str


class Cost(msgspec.Struct, rename="camel"):
    """The price of the nodes for the time that they were there."""

    total: float
    # The part for devices that no pod had.
    idle: float
    currency: str


class Run(msgspec.Struct, rename="camel"):
    """One simulation."""

    policy: str
    seed: int
    ties: str
    fleet: str
    # Pods that arrived, that got a node, and that never did.
    pods: int = 0
    placed: int = 0
    failed: int = 0
    # The part of the devices that is allocated, from 0 to 1: in an experiment without times at its
    # end, otherwise the mean from the first to the last arrival.
    allocation_ratio: float = 0.0
    # The part of the devices that typical pods cannot use, from 0 to 1, likewise.
    fragmentation: float = 0.0
    curve: list[Point] = []
    waits: WaitsBy = msgspec.field(default_factory=WaitsBy)
    utilisation: Utilisation = msgspec.field(default_factory=Utilisation)
    unplaced: list[Reason] = []
    preemptions: int = 0
    # Pods that ended because their device or node failed or was removed.
    interrupted: int = 0
    gang_delay: Waits = msgspec.field(default_factory=Waits)
    # Seconds from the first arrival to the last event.
    duration: float = 0.0
    cost: Cost | None = None
    # Jain's index over queues of the part of the time since the arrival in which their pods ran;
    # each pod counts by its devices. None with fewer than two queues.
    fairness: float | None = None


class Summary(msgspec.Struct, rename="camel"):
    """The allocation ratios of all seeds of a policy on a fleet."""

    policy: str
    fleet: str
    runs: int
    mean: float
    sd: float
    min: float
    max: float


def summarize(runs: Sequence[Run]) -> list[Summary]:
    """Return a summary for each policy and fleet, in the order of the runs."""
    groups: dict[tuple[str, str], list[float]] = {}
    for run in runs:
        groups.setdefault((run.policy, run.fleet), []).append(run.allocation_ratio)
    summaries = []
    for (policy, fleet), values in groups.items():
        mean = sum(values) / len(values)
        spread = sum((value - mean) ** 2 for value in values)
        sd = sqrt(spread / (len(values) - 1)) if len(values) > 1 else 0.0
        summaries.append(
            Summary(
                policy,
                fleet,
                len(values),
                round_to(mean, 6),
                round_to(sd, 6),
                min(values),
                max(values),
            )
        )
    return summaries


def round_to(value: float, places: int = 3) -> float:
    """Return a number with few places, as documents have it."""
    return round(float(value), places)
