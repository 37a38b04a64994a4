"""
A trace with times: pods arrive, wait, run, end, are preempted, and lose their devices.

Events are handled in the order of their times. At one time, pods end before devices are repaired,
then devices and nodes fail, then pods arrive. A pod that does not fit waits; it is tried again when
an event could help it: pods with equal requests that came first, and pods of higher priority, come
before it. When something leaves a node, only pods that this node may take are tried: all other
nodes have refused them, and nothing has changed there in their favour.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from dryrack.base.errors import DryrackError
from dryrack.placement import (
    STARVATION_SECONDS,
    Dialect,
    DisruptionGroup,
    Gang,
    GangKey,
    GangPlaced,
    NoPreemption,
    Placed,
    Preemptor,
    Simulation,
    node_check,
    place_gang_now,
    place_on,
    preempt_anywhere,
    preempt_for_pod,
)
from dryrack.simulation.failures import FailureSource
from dryrack.simulation.measures import Failures, Measures
from dryrack.simulation.workload import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from dryrack.kinds.resource import AllocationResult
    from dryrack.placement import Member, NodeState, Preemption
    from dryrack.simulation.engine import Settings
    from dryrack.simulation.failures import Change
    from dryrack.simulation.policies import Policy
    from dryrack.simulation.workload import Job, Shape
    from dryrack.simulation.world import PodKey, Standing, World

# The order of events at one time.
_END, _REPAIR, _FAILURE, _ARRIVAL = range(4)
# Instead of the number of a pod: the whole gang.
_GANG = -1
# More interruptions for each job than this mean that the run makes no progress.
_INTERRUPTIONS_MAX = 100


class SimulationError(DryrackError):
    """A simulation cannot end."""


class _Waiting(NamedTuple):
    """A pod, or a whole gang, in the order in which it is tried."""

    negative_priority: int
    since: float
    number: int
    job: int
    worker: int


class _Running(msgspec.Struct, gc=False):
    """A pod on a node: since when, and the number of its end among the events."""

    started: float
    end: int


# Waiting pods of equal requests and priority, and their place in the scheduler's queue.
_Kind = tuple["Shape", int, int]
_Rank = tuple[bool, _Waiting]


class Timeline:
    """The run of a trace; `run` is called once."""

    def __init__(
        self, jobs: Sequence[Job], world: World, policy: Policy, settings: Settings
    ) -> None:
        self._jobs = jobs
        self._world = world
        self._policy = policy
        self._profile = policy.profile
        self._settings = settings
        self.measures = Measures(world)
        self._now = 0.0
        self._count = 0
        self._events: list[tuple[float, int, int, PodKey | Change]] = []
        # Pods that wait by shape and priority; gangs by themselves.
        self._waiting: dict[_Kind, deque[_Waiting]] = {}
        self._pods_waiting = 0
        # Victims of preemption that have left their nodes, and whose devices are not free yet.
        self._leaving: list[Standing] = []
        # Whether pods were interrupted, which may fit on other nodes at once.
        self._has_interrupted = False
        self._running: dict[PodKey, _Running] = {}
        # The number of pods that run and will end.
        self._ends = 0
        # The number of repairs to come.
        self._repairs = 0
        # The pods of a gang that run, and when they end.
        self._gangs: dict[int, set[PodKey]] = {}
        self._gang_ends: dict[int, float | None] = {}
        # Members that waited when their gang ended.
        self._forgotten: list[_Waiting] = []
        self._checks: dict[Shape, Callable[[NodeState], bool]] = {}
        self._failures = FailureSource(world, settings)

    def run(self) -> Failures:
        """Handle all events; return the pods that never ran."""
        for change in self._failures.first():
            self._push(change.time, _FAILURE, change)
        arrivals = iter(enumerate(self._jobs))
        arrival = next(arrivals, None)
        until = self._settings.until
        while True:
            at = None if arrival is None else arrival[1].arrival
            if self._events and (at is None or self._events[0][0] <= at):
                time, kind, number, subject = heapq.heappop(self._events)
            elif arrival is not None:
                time, kind, number, subject = arrival[1].arrival, _ARRIVAL, 0, (arrival[0], 0)
            else:
                break
            if until is not None and time > until:
                self._now = until
                break
            if isinstance(subject, tuple):
                self._advance(time)
                if kind == _ARRIVAL:
                    self._arrive(subject[0])
                    arrival = next(arrivals, None)
                    if arrival is None:
                        self.measures.end_arrivals()
                    if self._has_interrupted:
                        self._retry(None)
                else:
                    self._end_all(time, number, subject)
            elif subject.is_repair or subject.node or arrival is not None or self._may_end():
                # Random failures go on for as long as pods arrive or end.
                self._advance(time)
                self._change(subject)
        self._measure_rest()
        return self._never_ran()

    def _may_end(self) -> bool:
        """Return whether pods run and will end, or wait and may start after a repair."""
        return self._ends > 0 or bool(self._waiting and self._repairs)

    def _advance(self, time: float) -> None:
        self.measures.advance(time, self._pods_waiting)
        self._now = time

    def _queue_up(self, entry: _Waiting) -> None:
        self._waiting.setdefault(self._kind(entry), deque()).append(entry)
        self._pods_waiting += self._number(entry)

    def _number(self, entry: _Waiting) -> int:
        """Return the number of pods that wait."""
        return self._jobs[entry.job].workers if entry.worker == _GANG else 1

    def _push(self, time: float, kind: int, subject: PodKey | Change) -> int:
        self._count += 1
        heapq.heappush(self._events, (time, kind, self._count, subject))
        return self._count

    # Arrivals and ends.

    def _arrive(self, number: int) -> None:
        job = self._jobs[number]
        self.measures.pods += job.workers
        workers = (_GANG,) if job.gang else range(job.workers)
        for worker in workers:
            self._enter(number, worker)

    def _enter(self, number: int, worker: int) -> None:
        """Place a pod or a gang, or let it wait."""
        job = self._jobs[number]
        self._count += 1
        entry = _Waiting(-job.priority, self._now, self._count, number, worker)
        kind = self._kind(entry)
        if kind in self._waiting or not self._try(entry):
            self._queue_up(entry)

    def _kind(self, entry: _Waiting) -> _Kind:
        job = self._jobs[entry.job]
        # Gangs of different sizes are refused for different reasons.
        return job.shape, job.priority, _GANG - entry.job if entry.worker == _GANG else 0

    def _try(self, entry: _Waiting) -> bool:
        if entry.worker == _GANG:
            return self._try_gang(entry)
        job = self._jobs[entry.job]
        world, shape = self._world, job.shape
        outcome = world.decide(shape, self._policy)
        if isinstance(outcome, Placed):
            self._start(entry, outcome.node, outcome.allocations)
            return True
        if not self._has_lower(job.priority) or outcome.is_error:
            return False
        member = shape.member(job.pod(entry.worker), job.priority)
        found = preempt_for_pod(member, world.cluster, self._preemptor(job), self._profile)
        if isinstance(found, NoPreemption):
            return False
        preemption, placed = found
        stopped = self._preempt(preemption)
        # The pod is tried when the victims have left, and their devices are free after that.
        pod, claims = member.pod, shape.claims
        early = place_on(placed.node, pod, claims, (), world.cluster, profile=self._profile)
        if isinstance(early, Placed):
            placed = early
            self._leaving += stopped
        else:
            self._free_devices(stopped)
        self._start(entry, placed.node, placed.allocations)
        return True

    def _start(self, entry: _Waiting, node: str, allocations: Sequence[AllocationResult]) -> None:
        """Start a pod on its node."""
        job = self._jobs[entry.job]
        key = (entry.job, entry.worker)
        self._world.add_pod(
            key,
            job.shape,
            job.pod(entry.worker),
            node=node,
            allocations=allocations,
            priority=job.priority,
            started=f"{self._now:020.6f}",
        )
        ends = None if job.duration is None else self._now + job.duration
        if job.gang:
            ends = self._gang_ends[entry.job]
            self._gangs.setdefault(entry.job, set()).add(key)
        number = -1 if ends is None else self._push(ends, _END, key)
        self._running[key] = _Running(self._now, number)
        self.measures.wait(job, entry.since, self._now, self._world.demand(job.shape)[0])
        self._ends += number >= 0
        self.measures.start(key, job, self._now)

    def _is_end(self, key: PodKey, number: int) -> bool:
        running = self._running.get(key)
        return running is not None and running.end == number

    def _end_all(self, time: float, number: int, subject: PodKey | Change) -> None:
        """
        End all pods that end at this time, then try the pods that wait for their nodes.

        As in a cluster, the CPU of a pod is free when it ends, and its devices are free after that,
        when a controller releases its claims.
        """
        ended: list[Standing] = []
        while True:
            assert isinstance(subject, tuple), "pods have two numbers"
            if self._is_end(subject, number):
                ended.append(self._end(subject))
            if not self._events or self._events[0][:2] != (time, _END):
                break
            _, _, number, subject = heapq.heappop(self._events)
        nodes = list(dict.fromkeys(each.node for each in ended))
        self._retry(nodes)
        self._free_devices(ended)
        if any(each.claims for each in ended):
            self._retry(nodes)

    def _end(self, key: PodKey) -> Standing:
        """End a pod, which has its devices until they are freed."""
        if self._jobs[key[0]].gang:
            members = self._gangs.get(key[0], set())
            members.discard(key)
            if not members:
                self._gangs.pop(key[0], None)
                self._forgotten += self._forget_members(key[0])
        return self._stop(key)

    def _stop(self, key: PodKey) -> Standing:
        running = self._running.pop(key)
        self._ends -= running.end >= 0
        standing = self._world.remove_pod(key)
        self.measures.stop(self._jobs[key[0]], running.started, self._now, standing.milli)
        return standing

    def _measure_rest(self) -> None:
        """Count the time of the pods that still run or wait at the end."""
        now = self._now
        self.measures.advance(now, self._pods_waiting)
        for key, running in self._running.items():
            milli = self._world.get_standing(key).milli
            self.measures.stop(self._jobs[key[0]], running.started, now, milli)
        for line in self._waiting.values():
            for entry in line:
                job = self._jobs[entry.job]
                milli = self._number(entry) * self._world.demand(job.shape)[0]
                self.measures.wait(job, entry.since, now, milli)

    def _forget_members(self, number: int) -> list[_Waiting]:
        """Drop and return the members of a gang that wait although the gang has ended."""
        forgotten: list[_Waiting] = []
        for kind, line in list(self._waiting.items()):
            left = deque(each for each in line if each.job != number or each.worker == _GANG)
            if len(left) < len(line):
                forgotten += (each for each in line if each.job == number)
                self._pods_waiting -= len(line) - len(left)
                if left:
                    self._waiting[kind] = left
                else:
                    del self._waiting[kind]
        return forgotten

    # Waiting pods.

    def _retry(self, nodes: Iterable[str] | None) -> None:
        """Try the pods that wait, after an event that could help on these nodes; None is all."""
        self._has_interrupted = False
        if not self._waiting or not self._settings.retry:
            self._free_left()
            return
        states = None
        if nodes is not None:
            states = [state for name in nodes if (state := self._world.fleet.get(name))]
            if not states:
                return
        heads = self._heads()
        while heads or self._leaving:
            if not heads:
                self._free_left()
                states = None
                heads = self._heads()
                continue
            _, kind = heapq.heappop(heads)
            line = self._waiting[kind]
            if not self._may_fit(line[0], states) or not self._try(line[0]):
                continue
            self._pods_waiting -= self._number(line.popleft())
            if not line:
                del self._waiting[kind]
            if self._has_interrupted:
                # The victims of a preemption wait, too, and may fit on any node.
                self._has_interrupted = False
                states = None
                heads = self._heads()
            elif line:
                heapq.heappush(heads, (self._rank(line[0]), kind))

    def _heads(self) -> list[tuple[_Rank, _Kind]]:
        """Return a heap of the first pods of all lines, in the order of the scheduler's queue."""
        heads = [(self._rank(line[0]), kind) for kind, line in self._waiting.items()]
        heapq.heapify(heads)
        return heads

    def _rank(self, entry: _Waiting) -> _Rank:
        starves = entry.worker == _GANG and self._now - entry.since >= STARVATION_SECONDS
        return not starves, entry

    def _may_fit(self, entry: _Waiting, states: Sequence[NodeState] | None) -> bool:
        """Return whether a pod may fit after a change of these nodes; None is all."""
        job = self._jobs[entry.job]
        shape = job.shape
        may_preempt = self._has_lower(job.priority)
        if entry.worker == _GANG and not may_preempt:
            needed = job.gang * self._world.demand(shape)[0]
            if needed > self._world.devices - self._world.in_use:
                return False
        if states is None or shape.depends_on_pods:
            return True
        check = self._checks.get(shape)
        if check is None:
            check = node_check(shape.constraints, self._world.fleet, self._profile)
            self._checks[shape] = check
        if any(map(check, states)):
            return True
        return may_preempt and self._may_preempt_on(states, job.priority, check)

    def _may_preempt_on(
        self, states: Sequence[NodeState], priority: int, check: Callable[[NodeState], bool]
    ) -> bool:
        """Return whether one of the nodes takes a pod if it has no pods of lower priority."""
        with Simulation(self._world.cluster) as simulation:
            for state in states:
                for key, occupant in list(state.occupants.items()):
                    if occupant.priority < priority:
                        simulation.remove_pod(key)
            return any(map(check, states))

    # Gangs.

    def _try_gang(self, entry: _Waiting) -> bool:
        job = self._jobs[entry.job]
        members = [job.shape.member(job.pod(n), job.priority) for n in range(job.workers)]
        gang = self._gang(job, members)
        cluster = self._world.cluster
        outcome = place_gang_now(gang, members, cluster, profile=self._profile)
        if not isinstance(outcome, GangPlaced):
            if not self._has_lower(job.priority):
                return False

            def fits() -> bool:
                placed = place_gang_now(gang, members, cluster, profile=self._profile)
                return isinstance(placed, GangPlaced)

            found = preempt_anywhere(cluster, self._preemptor(job), fits)
            if isinstance(found, NoPreemption):
                return False
            stopped = self._preempt(found)
            outcome = place_gang_now(gang, members, cluster, profile=self._profile)
            self._leaving += stopped
            if not isinstance(outcome, GangPlaced):
                self._free_left()
                outcome = place_gang_now(gang, members, cluster, profile=self._profile)
            assert isinstance(outcome, GangPlaced), "the gang fits without the victims"
        self._gang_ends[entry.job] = None if job.duration is None else self._now + job.duration
        self.measures.start_gang(entry.job, job, self._now)
        placed_by_name = {each.member.pod.metadata.name: each for each in outcome.placements}
        for worker in range(job.workers):
            placed = placed_by_name.get(job.pod(worker))
            member = entry._replace(worker=worker)
            if placed is not None:
                self._start(member, placed.node, tuple(placed.given.values()))
            elif self._kind(member) in self._waiting or not self._try(member):
                self._queue_up(member)
        return True

    @staticmethod
    def _gang(job: Job, members: Sequence[Member]) -> Gang:
        key = GangKey(Dialect.LABELS, NAMESPACE, job.name)
        return Gang(key=key, min_count=job.gang, members=tuple(each.pod for each in members))

    # Preemption and failures.

    def _has_lower(self, priority: int) -> bool:
        if not self._settings.preempt:
            return False
        return any(
            number and each < priority for each, number in self._world.fleet.priorities.items()
        )

    def _preemptor(self, job: Job) -> Preemptor:
        return Preemptor(job.priority, group_of=self._group_of)

    def _group_of(self, key: Hashable) -> DisruptionGroup | None:
        assert isinstance(key, tuple), "pods have two numbers"
        job = self._jobs[key[0]]
        if not job.gang:
            return None
        return DisruptionGroup(key[0], sorted(self._gangs.get(key[0], ())), job.gang)

    def _preempt(self, preemption: Preemption) -> Sequence[Standing]:
        """Stop the victims; return them, whose devices have to be freed."""
        self.measures.preemptions += len(preemption.victims)
        return self._interrupt([each.key for each in preemption.victims])

    def _free_left(self) -> None:
        """Free the devices of victims that have left their nodes."""
        stopped, self._leaving = self._leaving, []
        self._free_devices(stopped)

    def _free_devices(self, stopped: Iterable[Standing]) -> None:
        for each in stopped:
            self._world.free_devices(each)

    def _interrupt(self, keys: Iterable[Hashable]) -> Sequence[Standing]:
        """
        Stop pods, and those that cannot run without them; they start anew later.

        Return them; their devices have to be freed.
        """
        all_stopped: list[Standing] = []
        again: dict[tuple[int, int], None] = {}
        for key in keys:
            assert isinstance(key, tuple), "pods have two numbers"
            if key not in self._running:
                continue
            job = self._jobs[key[0]]
            stopped = [key]
            if job.gang:
                running = self._gangs[key[0]]
                if len(running) <= job.gang:
                    stopped = sorted(running)
                    self._gangs.pop(key[0])
                    self._forget_members(key[0])
                    again[key[0], _GANG] = None
                else:
                    running.discard(key)
                    again[key] = None
            else:
                again[key] = None
            all_stopped += map(self._stop, stopped)
        for number, worker in sorted(again):
            self._count += 1
            job = self._jobs[number]
            entry = _Waiting(-job.priority, self._now, self._count, number, worker)
            self._queue_up(entry)
            self._has_interrupted = True
        return all_stopped

    def _change(self, change: Change) -> None:
        """Let a device or a node fail, or come back."""
        self._repairs -= change.is_repair and bool(change.series)
        keys = self._failures.holders(change)
        self.measures.interrupted += len(keys)
        if self.measures.interrupted > _INTERRUPTIONS_MAX * (len(self._jobs) + 1):
            raise SimulationError(
                "pods are interrupted faster than they end; increase the mean time between "
                "failures, or set --until"
            )
        stopped = self._interrupt(keys)
        self._free_devices(stopped)
        freed = {each.node for each in stopped}
        helped = self._failures.apply(change)
        for following in self._failures.after(change, self._now):
            kind = _REPAIR if following.is_repair else _FAILURE
            self._repairs += following.is_repair
            self._push(following.time, kind, following)
        self._retry(None if self._has_interrupted else sorted({*freed, *helped}))

    def _never_ran(self) -> Failures:
        """Return the pods that still wait and never ran, with what the decider says now."""
        failures = Failures()
        for (shape, _, _), line in self._waiting.items():
            message = ""
            for entry in line:
                job = self._jobs[entry.job]
                workers = range(job.workers) if entry.worker == _GANG else (entry.worker,)
                new = [each for each in workers if not self.measures.has_run((entry.job, each))]
                if not new:
                    continue
                if not message:
                    message = self._message(entry, shape)
                failures.add(job.pod(new[0]), message, len(new))
        for entry in self._forgotten:
            if not self.measures.has_run((entry.job, entry.worker)):
                pod = self._jobs[entry.job].pod(entry.worker)
                failures.add(pod, "its gang ended before the pod had a node")
        return failures

    def _message(self, entry: _Waiting, shape: Shape) -> str:
        if entry.worker == _GANG:
            job = self._jobs[entry.job]
            members = [shape.member(job.pod(n), job.priority) for n in range(job.workers)]
            gang = self._gang(job, members)
            outcome = place_gang_now(gang, members, self._world.cluster, profile=self._profile)
            return "" if isinstance(outcome, GangPlaced) else outcome.message
        decision = self._world.decide(shape, self._policy)
        return "it arrived last" if isinstance(decision, Placed) else decision.message
