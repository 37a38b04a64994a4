"""Measures of a run: means over time, waiting times, and pods that never ran."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from dryrack.simulation.results import Cost, Point, Reason, Utilisation, Waits, WaitsBy, round_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.simulation.results import Run
    from dryrack.simulation.workload import Job
    from dryrack.simulation.world import PodKey, World

# More points than this do not help a reader of a curve.
_POINTS_MAX = 200
_PERCENT = 100
_HOUR = 3600.0


class Failures:
    """Pods that never ran, counted by the message of the decider."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._examples: dict[str, str] = {}

    def add(self, pod: str, message: str, number: int = 1) -> None:
        """Count pods that never ran."""
        # What follows the counts is about one node.
        reason = message.partition(". Node ")[0]
        self._counts[reason] += number
        self._examples.setdefault(reason, f"{pod}: {message}")

    @property
    def number(self) -> int:
        return self._counts.total()

    def reasons(self) -> list[Reason]:
        """Return the most frequent reasons first."""
        ordered = sorted(self._counts.items(), key=lambda each: (-each[1], each[0]))
        return [Reason(reason, count, self._examples[reason]) for reason, count in ordered]


class Measures:
    """Sums over time, which the timeline feeds event by event."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._began: float | None = None
        self._now = 0.0
        # Thousandths of devices times seconds, by model.
        self._allocated: dict[str, float] = {}
        self._capacity: dict[str, float] = {}
        self._fragmented = 0.0
        self._cost = 0.0
        self._used_cost = 0.0
        # After the last arrival the fleet runs empty, which says nothing about a policy.
        self._is_over = False
        self._curve: list[tuple[float, float, float, int]] = []
        self._waits: list[float] = []
        self._by_queue: dict[str, list[float]] = {}
        self._by_devices: dict[int, list[float]] = {}
        self._gang_delays: list[float] = []
        self._ran: set[PodKey] = set()
        self._gangs: set[int] = set()
        self.pods = 0
        self.preemptions = 0
        self.interrupted = 0
        # By queue: the device time in which its pods ran, and in which they waited.
        self._ran_for: dict[str, float] = {}
        self._waited_for: dict[str, float] = {}

    def advance(self, time: float, waiting: int) -> None:
        """Add the time since the last event, in which nothing changed."""
        if self._began is None:
            self._began = self._now = time
        elapsed = time - self._now
        world = self._world
        if elapsed > 0 and not self._is_over:
            for model, milli in world.capacity.items():
                self._capacity[model] = self._capacity.get(model, 0.0) + milli * elapsed
            for model, milli in world.allocated.items():
                self._allocated[model] = self._allocated.get(model, 0.0) + milli * elapsed
            self._fragmented += world.fragmented * elapsed
        if elapsed > 0:
            self._cost += world.price * elapsed / _HOUR
            self._used_cost += world.used_price * elapsed / _HOUR
            self._curve.append((self._now, *self._state(), waiting))
        self._now = time

    def end_arrivals(self) -> None:
        """Note the last arrival: means over time end here, unless all arrive at one time."""
        self._is_over = bool(self._capacity)

    def wait(self, job: Job, since: float, until: float, milli: int) -> None:
        """Count the time in which pods waited that request so much of all their devices."""
        waited = self._waited_for.get(job.queue, 0.0)
        self._waited_for[job.queue] = waited + milli * (until - since)

    def start(self, key: PodKey, job: Job, now: float) -> None:
        """Record how long a pod waited until its first start."""
        if key in self._ran:
            return
        self._ran.add(key)
        wait = now - job.arrival
        self._waits.append(wait)
        self._by_queue.setdefault(job.queue, []).append(wait)
        self._by_devices.setdefault(job.workers * job.shape.devices, []).append(wait)

    def start_gang(self, number: int, job: Job, now: float) -> None:
        """Record how long a gang waited until its first start."""
        if number not in self._gangs:
            self._gangs.add(number)
            self._gang_delays.append(now - job.arrival)

    def stop(self, job: Job, started: float, now: float, milli: int) -> None:
        """Count the time in which a pod ran with so much of all its devices."""
        ran = self._ran_for.get(job.queue, 0.0)
        self._ran_for[job.queue] = ran + milli * (now - started)

    def has_run(self, key: PodKey) -> bool:
        return key in self._ran

    def fill(self, run: Run, currency: str) -> None:
        """Write the measures into a run."""
        run.pods = self.pods
        run.placed = len(self._ran)
        allocated, capacity, fragmented = self._allocated, self._capacity, self._fragmented
        if not capacity:
            # No time passes if all pods arrive at once and never end.
            world = self._world
            allocated, fragmented = dict(world.allocated), world.fragmented
            capacity = dict(world.capacity)
        all_devices = sum(capacity.values()) or 1.0
        run.allocation_ratio = round_to(sum(allocated.values()) / all_devices, 6)
        run.fragmentation = round_to(fragmented / all_devices, 6)
        by_model = {
            model: round_to(allocated.get(model, 0.0) / total, 6)
            for model, total in sorted(capacity.items())
            if total
        }
        run.utilisation = Utilisation(run.allocation_ratio, by_model)
        run.curve = self._points()
        run.waits = WaitsBy(
            Waits.of(self._waits),
            {queue: Waits.of(each) for queue, each in sorted(self._by_queue.items())},
            {str(number): Waits.of(each) for number, each in sorted(self._by_devices.items())},
        )
        run.gang_delay = Waits.of(self._gang_delays)
        run.preemptions = self.preemptions
        run.interrupted = self.interrupted
        run.duration = round_to(self._now - (self._began or 0.0))
        run.fairness = _fairness(self._ran_for, self._waited_for)
        if self._cost:
            idle = self._cost - self._used_cost
            run.cost = Cost(round_to(self._cost, 2), round_to(idle, 2), currency)

    def _points(self) -> list[Point]:
        """Return the means in equal parts of the time, and the most pods that waited in each."""
        curve = self._curve
        if not curve:
            return [self._point(self._now, *self._state(), 0)]
        first, last = curve[0][0], self._now
        width = (last - first) / _POINTS_MAX
        points = []
        index = 0
        for step in range(_POINTS_MAX):
            begin, end = first + width * step, first + width * (step + 1)
            allocated = fragmented = 0.0
            most = 0
            while True:
                start, in_use, unusable, waiting = curve[index]
                stop = curve[index + 1][0] if index + 1 < len(curve) else end
                part = min(stop, end) - max(start, begin)
                if part > 0:
                    allocated += in_use * part
                    fragmented += unusable * part
                    most = max(most, waiting)
                if stop >= end:
                    break
                index += 1
            points.append(self._point(begin, allocated / width, fragmented / width, most))
        return points

    def _state(self) -> tuple[float, float]:
        """Return the percentages of the devices that are allocated and fragmented now."""
        world = self._world
        capacity = world.devices or 1
        return _PERCENT * world.in_use / capacity, _PERCENT * world.fragmented / capacity

    @staticmethod
    def _point(time: float, allocated: float, fragmented: float, waiting: int) -> Point:
        return Point(
            time=round_to(time),
            allocated=round_to(allocated),
            fragmented=round_to(fragmented),
            waiting=waiting,
        )


def _fairness(ran: dict[str, float], waited: dict[str, float]) -> float | None:
    """Return Jain's index over queues: the part of the time that their pods ran."""
    totals = {queue: ran.get(queue, 0.0) + waited.get(queue, 0.0) for queue in {*ran, *waited}}
    shares: Sequence[float] = [
        ran.get(queue, 0.0) / total for queue, total in sorted(totals.items()) if total
    ]
    squares = sum(share * share for share in shares)
    if len(shares) < 2 or not squares:
        return None
    return round_to(sum(shares) ** 2 / (len(shares) * squares), 4)
