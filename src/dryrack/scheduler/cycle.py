"""
The cycle of the plain scheduler: one pod at a time is decided, many are written at once.

A decision is made on one state of the cluster, and its promises are in the books before the next
one begins. What it takes to come to one may be long: that is done in turns, between other work,
each of which begins with the cluster as it is (see `placement.decide`); for a long search the pod
steps aside (see `searches`). What cannot be placed waits until something changes that could help.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from dryrack.allocation import LiveAllocator, claim_name
from dryrack.client.client import STRATEGIC_PATCH
from dryrack.client.endpoints import PODS, TAINT_RULES
from dryrack.client.errors import ApiError, NotFoundError, TransportError
from dryrack.client.events import EventRecorder
from dryrack.client.informer import Informers, Name, name_of
from dryrack.client.timekeeping import sleep, timestamp
from dryrack.client.workqueue import WorkQueue
from dryrack.kinds.core import Pod
from dryrack.kinds.decode import decode
from dryrack.kinds.raw import Raw
from dryrack.placement import Occupant, Placed, Unfinished, Unplaced, decide
from dryrack.placement.demand import demand
from dryrack.placement.unsupported import backed_by_devices, may_preempt, unsupported
from dryrack.scheduler.binding import Binder, OvertakenError
from dryrack.scheduler.cluster_view import View
from dryrack.scheduler.demands import Demands, Waiting, demands
from dryrack.scheduler.searches import LongSearches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.base.ports import Chance
    from dryrack.client.client import Client
    from dryrack.client.timekeeping import Timekeeper

_Decision = tuple[Raw, Demands | Waiting, Placed | Unplaced | None]

_logger = logging.getLogger(__name__)

DEFAULT_NAME = "default-scheduler"
# What pods call the scheduler of a whole cluster.
NAMES = (DEFAULT_NAME, "dryrack", "kubenexus-scheduler")
# Writes in flight: enough to hide the time each of them waits, few enough to be undone quickly.
BINDINGS_MAX = 32
_ASK_AGAIN_SECONDS = 1.0
# What kube-scheduler writes at most, as the newer form of events allows no more.
_EVENT_MAX = 1024


class Scheduler:
    """An engine: built, then run until it is cancelled."""

    def __init__(
        self,
        client: Client,
        *,
        clock: Timekeeper,
        chance: Chance,
        informers: Informers | None = None,
        allocator: LiveAllocator | None = None,
        names: Sequence[str] = NAMES,
    ) -> None:
        """
        `informers` are somebody else's, who runs them; else it has its own.

        `allocator` hands devices out, if not as the reference release does. Pods with one of the
        `names` are scheduled, and told so in that name.
        """
        self._client = client
        self._clock = clock
        self._recorders = {name: EventRecorder(client, clock, chance, name) for name in names}
        self._binder = Binder(client, clock)
        self._own = None if informers else Informers(client, clock=clock, chance=chance)
        self._queue: WorkQueue[Name] = WorkQueue(clock)
        # Those whom any change could help, and those who wait for a claim, each by that claim.
        self._unplaced: dict[Name, None] = {}
        self._wanting: dict[str, dict[Name, None]] = {}
        self._wants: dict[Name, str] = {}
        self._in_hand: set[Name] = set()
        self._slots = asyncio.Semaphore(BINDINGS_MAX)
        self._deciding = asyncio.Lock()
        self._searches = LongSearches(self._queue.add)
        reading = informers or self._own
        assert reading is not None, "if nobody gave any, they are its own"
        self._view = View(reading, allocator or LiveAllocator(chance=chance), self)
        self._view.pods.listen(self._pod_changed)

    async def run(self) -> None:
        if await self._serves_taint_rules():
            self._view.follow_taint_rules()
        async with asyncio.TaskGroup() as group:
            if self._own is not None:
                group.create_task(self._own.run(), name="scheduler informers")
            for informer in self._view.reads:
                await informer.synced.wait()
            group.create_task(self._searches.run(), name="scheduler searches")
            await self._serve(group)

    async def _serves_taint_rules(self) -> bool:
        """Where they are no part of the API, no device has a taint by one."""
        try:
            await self._client.list(TAINT_RULES)
        except NotFoundError:
            return False
        except (ApiError, TransportError) as error:
            _logger.info("taint rules: %s; assumed to be served", error)
        return True

    async def _serve(self, group: asyncio.TaskGroup) -> None:
        while True:
            name = await self._queue.take()
            await self._slots.acquire()
            group.create_task(self._attempt(name), name=f"schedule {'/'.join(name)}")

    async def _attempt(self, name: Name) -> None:
        try:
            await self._schedule(name)
        except (ApiError, TransportError, OvertakenError) as error:
            _logger.info("pod %s: %s; decided anew", "/".join(name), error)
            self._queue.retry(name)
        else:
            self._queue.forget(name)
        finally:
            self._queue.done(name)
            self._slots.release()

    async def _schedule(self, name: Name) -> None:
        async with self._deciding:
            decision = await self._decision(name)
        if decision is None:
            return
        # Whatever stands in the books because of it does so before anything is awaited.
        raw, wanted, outcome = decision
        if isinstance(wanted, Waiting):
            # One that has yet to be made is told by a change of the pod.
            if wanted.claim:
                self._want(name, wanted.claim)
                await self._refuse(raw, wanted.message)
        elif isinstance(outcome, Placed):
            await self._carry_out(raw, wanted, outcome)
            await self._warn(raw, unsupported(wanted.pod, outcome.allocations))
        elif outcome is not None:
            self._unplaced[name] = None
            message = outcome.message
            if may_preempt(wanted.pod, self._view.priorities):
                message = f"{message.rstrip('.')}. preemption: not supported yet"
            await self._refuse(raw, message)

    async def _decision(self, name: Name) -> _Decision | None:
        """What is to become of the pod; nothing yet, if that takes a long search."""
        while True:
            raw = self._view.pods.get(*name)
            if raw is None or not self._is_ours(raw) or name in self._in_hand:
                return None
            wanted = demands(decode(raw, Pod), self._view)
            if isinstance(wanted, Waiting):
                return raw, wanted, None
            outcome = decide(
                wanted.pod,
                wanted.unallocated,
                wanted.allocated,
                self._view.cluster,
                searches_left=self._searches.left(name),
            )
            if not isinstance(outcome, Unfinished):
                self._searches.forget(name)
                return raw, wanted, outcome
            if outcome.search is not None:
                self._searches.wait(name, outcome.search)
                return None
            await asyncio.sleep(0)

    async def _carry_out(self, pod: Raw, wanted: Demands, placed: Placed) -> None:
        name = name_of(pod)
        names = [claim_name(claim) for claim in wanted.unallocated]
        given = dict(zip(names, placed.allocations, strict=True))
        occupant = Occupant.of(wanted.pod, amounts=placed.amounts)
        self._view.promise(name, placed.node, occupant, given)
        self._in_hand.add(name)
        claims = [known for claim in wanted.names if (known := self._view.known("/".join(claim)))]
        bound: Sequence[Raw | None] = [None] * len(claims)
        try:
            bound = await self._binder.bind(pod, placed.node, claims=claims, given=given)
        except BaseException:
            self._view.take_back(name)
            raise
        finally:
            self._in_hand.discard(name)
            for claim, written in zip(claims, bound, strict=True):
                await self._settle(claim, written)
        message = f"Successfully assigned {'/'.join(name)} to {placed.node}"
        await self._report(pod, "Scheduled", message, type="Normal")

    async def _settle(self, claim: Raw, written: Raw | None) -> None:
        """Learns what became of a claim; until that is known, it counts as promised."""
        current = written
        while written is None:
            try:
                current = await self._binder.now(claim)
            except (ApiError, TransportError):
                await sleep(self._clock, _ASK_AGAIN_SECONDS)
                continue
            break
        self._view.settle("/".join(name_of(claim)), current)

    async def _refuse(self, pod: Raw, message: str) -> None:
        if _told(pod) == message:
            return
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
            "lastTransitionTime": timestamp(self._clock.now()),
        }
        metadata = pod["metadata"]
        await self._client.patch(
            PODS,
            metadata["name"],
            {"metadata": {"uid": metadata["uid"]}, "status": {"conditions": [condition]}},
            namespace=metadata["namespace"],
            subresource="status",
            media_type=STRATEGIC_PATCH,
        )
        await self._report(pod, "FailedScheduling", message, type="Warning")
        known = decode(pod, Pod)
        backed = backed_by_devices(demand(known), self._view.classes())
        await self._warn(pod, (*unsupported(known), *backed))

    async def _warn(self, pod: Raw, what: Sequence[str]) -> None:
        """Says once what a pod asks for in vain: such an event has a name that can be had once."""
        for each in what:
            message = f"not honoured by this scheduler yet: {each}"
            await self._report(pod, "NotSupported", message, type="Warning", once=each)

    async def _report(
        self, pod: Raw, reason: str, message: str, *, type: str, once: str = ""
    ) -> None:
        regarding = {"apiVersion": "v1", "kind": "Pod", "metadata": pod["metadata"]}
        shown = _shortened(message)
        recorder = self._recorders[_scheduler_of(pod)]
        await recorder.record(regarding, reason, shown, type=type, once=once)

    def _is_ours(self, pod: Raw) -> bool:
        return _scheduler_of(pod) in self._recorders and _is_schedulable(pod)

    def _pod_changed(self, old: Raw | None, new: Raw | None) -> None:
        name = name_of(new or old or {})
        if new is None or not self._is_ours(new):
            self._unplaced.pop(name, None)
            self._searches.forget(name)
            self._want(name, "")
        elif old is None or _asks(old) != _asks(new):
            self._queue.add(name)

    def wake(self) -> None:
        """Something changed that could help those who wait."""
        for name in self._unplaced:
            self._queue.add(name)
        self._unplaced.clear()

    def wake_for(self, claim: str) -> None:
        """Something changed about a claim that somebody may wait for."""
        for name in self._wanting.pop(claim, ()):
            self._wants.pop(name, None)
            self._queue.add(name)

    def _want(self, name: Name, claim: str) -> None:
        """The pod waits for the claim, and for none that it waited for before; "" is no claim."""
        before = self._wants.pop(name, "")
        if before:
            self._wanting[before].pop(name, None)
            if not self._wanting[before]:
                del self._wanting[before]
        if claim:
            self._wants[name] = claim
            self._wanting.setdefault(claim, {})[name] = None


def _shortened(message: str) -> str:
    """An event has room for so much; the condition of the pod has it all."""
    return message if len(message) <= _EVENT_MAX else f"{message[: _EVENT_MAX - 4]} ..."


def _scheduler_of(pod: Raw) -> str:
    return str(pod["spec"].get("schedulerName", DEFAULT_NAME))


def _is_schedulable(pod: Raw) -> bool:
    spec = pod["spec"]
    is_placed = spec.get("nodeName") or "deletionTimestamp" in pod["metadata"]
    return not (is_placed or spec.get("schedulingGates"))


def _asks(pod: Raw) -> tuple[Any, ...]:
    """What about a pod decides where it goes; its other changes are our own refusals."""
    status = pod.get("status", {})
    return pod["spec"], pod["metadata"].get("labels"), status.get("resourceClaimStatuses")


def _told(pod: Raw) -> str:
    conditions = pod.get("status", {}).get("conditions", [])
    for condition in conditions:
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return str(condition.get("message", ""))
    return ""
