"""Random small traces and fleets, whose events are too far apart to change their order."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tests.simulation.made_up import NODES, text_of

from dryrack.placement import DEFAULT_PROFILE
from dryrack.simulation import Input, Settings, read_input_fleet, read_input_trace
from dryrack.simulation.engine import count_shapes
from dryrack.simulation.policies import Policy
from dryrack.simulation.timeline import Timeline
from dryrack.simulation.world import World

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from dryrack.kinds.resource import AllocationResult, DeviceRequestAllocationResult
    from dryrack.simulation import FleetSpec, Trace
    from dryrack.simulation.workload import Job, Shape
    from dryrack.simulation.world import PodKey, Standing

HEADER = "name,arrival,duration,workers,gang,min_workers,priority,cpu,memory,devices,share,selector"
# The longest back-off of a gang that was refused, and some more.
GAP_SECONDS = 11.0
# Claims are released a moment after pods end; the moments add up.
UNIT_SECONDS = 0.5
TOLERANCE_SECONDS = UNIT_SECONDS / 2
_MODELS = "AB"


class Start(NamedTuple):
    """The time, the node of a pod, and its devices with the amounts of their capacities."""

    seconds: float
    node: str
    devices: tuple[str, ...]


Starts = dict[str, list[Start]]


def start_of(seconds: float, node: str, allocations: Sequence[AllocationResult]) -> Start:
    """Return a start, as it is compared."""
    results = [each for allocation in allocations for each in allocation.devices.results]
    return Start(seconds, node, tuple(sorted(map(_device, results))))


def _device(result: DeviceRequestAllocationResult) -> str:
    amounts = sorted(f"{name}={amount}" for name, amount in result.consumed_capacity.items())
    return " ".join((result.request, result.pool, result.device, *amounts))


class RecordingWorld(World):
    """A world that records where pods start, and when something happens."""

    def __init__(self, spec: FleetSpec, trace: Trace) -> None:
        super().__init__(spec, count_shapes(trace.jobs), Settings().release)
        self.starts: Starts = {}
        self._jobs = trace.jobs
        self._started: dict[PodKey, float] = {}
        self.ends: set[float] = set()
        self.preemptions: set[float] = set()
        self.timeline: Timeline | None = None

    def add_pod(
        self,
        key: PodKey,
        shape: Shape,
        pod: str,
        *,
        node: str,
        allocations: Sequence[AllocationResult],
        priority: int,
        started: str,
    ) -> None:
        self._started[key] = float(started)
        self.starts.setdefault(pod, []).append(start_of(float(started), node, allocations))
        super().add_pod(
            key,
            shape,
            pod,
            node=node,
            allocations=allocations,
            priority=priority,
            started=started,
        )

    def remove_pod(self, key: PodKey) -> Standing:
        assert self.timeline is not None
        now = self.timeline._now
        self.ends.add(now)
        duration = self._jobs[key[0]].duration
        if duration is None or self._started.pop(key) + duration > now + TOLERANCE_SECONDS:
            self.preemptions.add(now)
        return super().remove_pod(key)


def random_fleet(random: Random) -> list[str]:
    """Return up to six nodes of different sizes."""
    rows = [NODES]
    for n in range(random.randint(1, 6)):
        gpus = random.choice((0, 1, 2, 4))
        rows.append(
            f"n{n},{random.choice((4000, 8000, 16_000))},65536,{gpus},{random.choice(_MODELS)}"
        )
    return rows


def random_trace(random: Random) -> list[str]:
    """Return up to 30 jobs; the kinds of jobs differ from trace to trace."""
    rows = [HEADER]
    priorities = random.choice(((0,), (0, 0, 5), (0, 5, 10)))
    gangs = random.choice((0.0, 0.3))
    shares = random.choice((0.0, 0.4))
    ends = random.choice((1.0, 0.9))
    arrival = 0.0
    for n in range(random.randint(3, 30)):
        arrival += GAP_SECONDS * random.randint(1, 6)
        duration = random.randint(20, 600) * UNIT_SECONDS if random.random() < ends else ""
        workers = random.choice((1, 1, 1, 2, 3))
        is_gang = workers > 1 and random.random() < gangs
        least = random.randint(2, workers) if is_gang and not duration else workers
        share = random.random() < shares
        gpus = random.choice((0, 1, 1)) if share else random.choice((0, 0, 1, 1, 2, 4, 5))
        milli = f"milli={random.choice((200, 400, 700))}" if share and gpus else ""
        model = random.choice(_MODELS) if gpus and random.random() < 0.2 else ""
        selector = f'"device.attributes[""gpu.dryrack.dev""].model == ""{model}"""' if model else ""
        cpu = random.choice((1, 2, 4, 8))
        devices = f"gpu:{gpus}" if gpus else ""
        fields = (
            *(f"j{n}", arrival, duration, workers, str(is_gang).lower(), least),
            *(
                max(priorities) if is_gang else random.choice(priorities),
                cpu,
                "1Gi",
                devices,
                milli,
                selector,
            ),
        )
        rows.append(",".join(map(str, fields)))
    return rows


def read(trace: Sequence[str], fleet: Sequence[str]) -> tuple[Trace, FleetSpec]:
    return (
        read_input_trace(Input("trace.csv", "dryrack", text_of(trace))),
        read_input_fleet(Input("nodes.csv", "list", text_of(fleet))),
    )


class Simulated(NamedTuple):
    """What a simulation of a trace did."""

    starts: Starts
    # The time of the last event.
    last: float
    # Whether events of different jobs happened at one time, whose order is a matter of chance.
    has_ties: bool


def simulated(trace: Trace, spec: FleetSpec) -> Simulated:
    world = RecordingWorld(spec, trace)
    timeline = Timeline(trace.jobs, world, Policy("kubernetes", DEFAULT_PROFILE), Settings())
    world.timeline = timeline
    timeline.run()
    arrivals = {job.arrival for job in trace.jobs}
    last = max((*world.ends, *arrivals))
    return Simulated(world.starts, last, _has_ties(trace, world, arrivals))


def _has_ties(trace: Trace, world: RecordingWorld, arrivals: set[float]) -> bool:
    """
    Return whether events coincide whose order is a matter of how long requests take.

    These are ends of pods that started at different times, or that one event let start one after
    the other; ends and arrivals; and other starts while victims of preemption leave.
    """
    ends: dict[float, set[object]] = {}
    begun: list[float] = []
    for job in trace.jobs:
        for name in map(job.pod, range(job.workers)):
            for start in world.starts.get(name, []):
                begun.append(start.seconds)
                if job.duration is not None:
                    is_alone = start.seconds not in arrivals and not job.gang
                    source = name if is_alone else (job.name, start.seconds)
                    ends.setdefault(start.seconds + job.duration, set()).add(source)
    return (
        any(len(sources) > 1 for sources in ends.values())
        or not arrivals.isdisjoint(ends)
        or any(begun.count(time) > 1 for time in world.preemptions)
    )


def agree(mine: Starts, theirs: Starts, job: Job) -> bool:
    """
    Return whether the pods of a job started at the same times on the same nodes and devices.

    The pods of a job are alike: which of them is which has no meaning.
    """
    ours, others = (
        sorted(
            (each for n in range(job.workers) for each in starts.get(job.pod(n), [])),
            key=lambda each: (round(each.seconds / UNIT_SECONDS), each[1:]),
        )
        for starts in (mine, theirs)
    )
    return len(ours) == len(others) and all(
        one[1:] == other[1:] and abs(one.seconds - other.seconds) < TOLERANCE_SECONDS
        for one, other in zip(ours, others, strict=True)
    )
