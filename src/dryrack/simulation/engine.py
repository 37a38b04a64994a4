"""
A simulation: what the decider does with a trace on a fleet, event by event.

`simulate` is a function: the same trace, fleet, policy and seed give the same run. Time is the time
of the events. Each decision is one of the decider that also the scheduler uses.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from dryrack.kinds.releases import DEFAULT_RELEASE, Release
from dryrack.placement import Placed, TieRule
from dryrack.simulation.inflation import inflate
from dryrack.simulation.measures import Failures
from dryrack.simulation.policies import Workload, policy_named
from dryrack.simulation.results import Point, Run, Utilisation, round_to
from dryrack.simulation.timeline import Timeline
from dryrack.simulation.world import World

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.placement import Plugin
    from dryrack.simulation.failures import Change
    from dryrack.simulation.fleets import FleetSpec
    from dryrack.simulation.policies import Policy
    from dryrack.simulation.workload import Job, Shape, Trace

# Pods of one node have a small demand: a curve has one point for each percent of the fleet.
_PERCENT = 100


class Settings(msgspec.Struct, frozen=True):
    """The conditions of a run, besides the trace, the fleet and the policy."""

    seed: int = 42
    # Repeat pods without times until they ask for so many times the devices of the fleet.
    inflate: float | None = None
    ties: TieRule | None = None
    release: Release = DEFAULT_RELEASE
    # Whether pods that do not fit wait, and whether they may preempt pods of lower priority.
    retry: bool = True
    preempt: bool = True
    # Seconds after which the run stops.
    until: float | None = None
    # The mean time in seconds until a device or a node fails, and until it is repaired.
    device_mtbf: float | None = None
    device_repair: float | None = None
    node_mtbf: float | None = None
    node_repair: float | None = None
    # Failures and repairs at given times.
    changes: tuple[Change, ...] = ()


def simulate(
    trace: Trace,
    spec: FleetSpec,
    policy: str,
    settings: Settings,
    *,
    plugins: Mapping[str, Plugin] | None = None,
) -> Run:
    """Run the trace on the fleet; raises `PolicyError`."""
    counts = count_shapes(trace.jobs)
    world = World(spec, counts, settings.release)
    workload = Workload(world.fleet, counts)
    chosen = policy_named(policy, workload, settings.seed, ties=settings.ties, plugins=plugins)
    run = Run(policy, settings.seed, chosen.profile.ties.rule.value, spec.name)
    if settings.inflate is not None:
        run_experiment(trace, world, chosen, settings, run)
        return run
    timeline = Timeline(trace.jobs, world, chosen, settings)
    failures = timeline.run()
    timeline.measures.fill(run, spec.currency)
    run.failed = failures.number
    run.unplaced = failures.reasons()
    return run


def count_shapes(jobs: Sequence[Job]) -> Sequence[tuple[Shape, int]]:
    """Return the shapes of the pods, and how many pods have each."""
    counts: Counter[Shape] = Counter()
    for job in jobs:
        counts[job.shape] += job.workers
    return list(counts.items())


class Bins:
    """The mean of each percent of the demand, as in the published experiment."""

    def __init__(self) -> None:
        self._sums: dict[int, list[float]] = {}

    def add(self, arrived: float, allocated: float, fragmented: float) -> None:
        """Add the state after an arrival; all are percentages."""
        sums = self._sums.setdefault(round(arrived), [0, 0.0, 0.0])
        sums[0] += 1
        # The published results are means of numbers with two places.
        sums[1] += round(allocated, 2)
        sums[2] += fragmented

    def points(self) -> list[Point]:
        """Return the means, in the order of the demand."""
        return [
            Point(
                arrived=percent,
                allocated=round_to(allocated / number),
                fragmented=round_to(fragmented / number),
            )
            for percent, (number, allocated, fragmented) in sorted(self._sums.items())
        ]


def run_experiment(
    trace: Trace, world: World, policy: Policy, settings: Settings, run: Run
) -> None:
    """Let pods arrive one by one; none ends, and none is tried again."""
    capacity = world.devices or 1
    demands = {shape: world.demand(shape) for shape, _ in count_shapes(trace.jobs)}
    pods = [(job, worker) for job in trace.jobs for worker in range(job.workers)]
    target = (settings.inflate or 0) * capacity
    singles = [msgspec.structs.replace(job, name=job.pod(n), workers=1) for job, n in pods]
    order = inflate(singles, lambda job: demands[job.shape], target, settings.seed)
    bins = Bins()
    failures = Failures()
    arrived = 0
    for number, job in enumerate(order):
        arrived += demands[job.shape][0]
        outcome = world.decide(job.shape, policy)
        if isinstance(outcome, Placed):
            world.add_pod(
                (number, 0),
                job.shape,
                f"{job.name}-{number}",
                node=outcome.node,
                allocations=outcome.allocations,
                priority=0,
                started="",
            )
        else:
            failures.add(job.name, outcome.message)
        bins.add(
            _PERCENT * arrived / capacity,
            _PERCENT * world.in_use / capacity,
            _PERCENT * world.fragmented / capacity,
        )
    run.pods = len(order)
    run.failed = failures.number
    run.placed = run.pods - run.failed
    run.unplaced = failures.reasons()
    run.curve = bins.points()
    # As published: the mean over the arrivals of the last percent that was aimed at.
    percent = round(_PERCENT * (settings.inflate or 0))
    last = next((each for each in run.curve if each.arrived == percent), None)
    last = last or (run.curve[-1] if run.curve else Point())
    run.allocation_ratio = round_to(last.allocated / _PERCENT, 6)
    run.fragmentation = round_to(last.fragmented / _PERCENT, 6)
    by_model = {
        model: round_to(world.allocated.get(model, 0) / milli, 6)
        for model, milli in sorted(world.capacity.items())
        if milli
    }
    run.utilisation = Utilisation(run.allocation_ratio, by_model)
