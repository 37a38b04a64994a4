"""
Keeps the slices of all nodes as the inventory wants them.

Every node is a key of its own, and the pools of the whole cluster are one more: what goes wrong
with one touches no other. A change of a node, a slice or the inventory is looked at when it is
heard of; every now and then everything is looked at, in case something was not heard of. Looking
again at what is known to be right costs next to nothing.

Nothing is deleted on partial knowledge: not before the current inventory is known and both caches
are whole, and not because a node is missing in a cache, before the server says that it is gone. A
slice is ours if its label says so, whatever made it; no other is ever touched.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from dryrack.client.client import EVERYTHING, Selection
from dryrack.client.endpoints import NODES, SLICES
from dryrack.client.errors import (
    ApiError,
    ConflictError,
    NotFoundError,
    TooManyRequestsError,
    TransportError,
)
from dryrack.client.informer import name_of
from dryrack.client.timekeeping import sleep
from dryrack.controllers.objects import annotations_of
from dryrack.controllers.reconciler import Reconciler
from dryrack.controllers.slices.desired import (
    AS_IT_IS,
    GONE,
    NOTHING,
    SHARED,
    DesiredSlices,
    DroppedFields,
    NodeFilter,
    SharedMatches,
    is_ours,
    key_of,
    relevant_fields,
)
from dryrack.controllers.slices.events import EventQueue, Reason, change_texts, drop_texts, report
from dryrack.controllers.slices.key_state import (
    NEW,
    Differs,
    Ended,
    Failed,
    Matches,
    Tell,
    is_cached,
    is_forgettable,
    step,
)
from dryrack.controllers.writes import Create, Plan, Update
from dryrack.hardware import MANAGED_BY, MANAGER, NO_FAULTS, SourceKind, faults_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from dryrack.client.client import Listing
    from dryrack.client.endpoints import Endpoint
    from dryrack.client.informer import Name
    from dryrack.controllers.slices import PublisherSettings
    from dryrack.controllers.slices.current_inventory import CurrentInventory
    from dryrack.controllers.slices.desired import Desired
    from dryrack.controllers.slices.key_state import Event, KeyState, Seen
    from dryrack.controllers.slices.published_counts import PublishedCounts
    from dryrack.controllers.writes import EngineContext
    from dryrack.hardware import NodeFaults
    from dryrack.kinds.raw import Raw


NAME = "resourceslice"

# Writes wait for answers most of their time, and a fleet comes up all at once.
WORKERS = 16

# How many keys are looked at again without letting other work have a turn: some milliseconds.
KEYS_AT_ONCE = 500


_logger = logging.getLogger(__name__)


# A watch in good health is milliseconds behind; a second is enough for a bad one.
GRACE_SECONDS = 1.0

# Of all time, one part in so many may be spent on reading.
SHARE = 50


OURS = Selection(labels=f"{MANAGED_BY}={MANAGER}")


def _keys(slice_: Raw) -> Iterable[str]:
    return (key_of(slice_),) if is_ours(slice_) else ()


def _revisions(slices: Iterable[Raw]) -> dict[Name, str]:
    return {name_of(each): each["metadata"]["resourceVersion"] for each in slices}


class Publishing(Reconciler[str]):
    """The engine that writes slices; `run` keeps it going."""

    def __init__(
        self,
        context: EngineContext,
        options: PublisherSettings,
        *,
        current: CurrentInventory,
        counts: PublishedCounts,
        asker: Callable[[str], Raw | None],
    ) -> None:
        """`asker` knows the object that asked for the slices with a label."""
        super().__init__(context, NAME, workers=WORKERS)
        self._resync_seconds = options.resync_seconds
        self._node_filter = NodeFilter(options)
        self._current = current
        self._counts = counts
        self._asker = asker
        self._desired_slices: DesiredSlices | None = None
        self._matches = SharedMatches()
        self._dropped = DroppedFields()
        self._states: dict[str, KeyState] = {}
        self._open: set[str] = set()
        self._failing: dict[str, str] = {}
        self._events = EventQueue(context, NAME, lambda: not len(self.queue))
        self._tally: Counter[str] = Counter()
        self._nodes = self.watch(NODES, self._on_node)
        self._slices = self.watch(SLICES, self._on_slice)
        self._by_key = self._slices.index("own slices by node", _keys)
        current.listen(self._on_inventory)
        counts.settles_when(lambda: self.is_idle)

    @property
    def is_idle(self) -> bool:
        """Whether all that was heard of has been seen to, and with success."""
        is_known = self._desired_slices is not None
        return is_known and not self._open and self.queue.is_idle

    @property
    def failing(self) -> Mapping[str, str]:
        """The nodes that could not be brought to what is desired, and why; "" for shared pools."""
        return self._failing

    def unsettled(self) -> tuple[str, ...]:
        """The nodes of which it is not certain that all is as desired; "" for shared pools."""
        return tuple(key for key in self._all_keys() if not self._is_settled(key))

    async def run(self) -> None:
        await self._current.known.wait()
        async with asyncio.TaskGroup() as group:
            group.create_task(super().run(), name="slices loop")
            group.create_task(self._resync(), name="slices resync")
            verifying = keep_verified(self._context, self._resync_seconds)
            group.create_task(verifying, name="slices verification")
            group.create_task(self._events.run(), name="slices events")

    def _on_node(self, old: Raw | None, new: Raw | None) -> None:
        if relevant_fields(old) == relevant_fields(new):
            return
        node = new if new is not None else old
        assert node is not None, "an informer reports an object"
        name = node["metadata"]["name"]
        self._match_shared(name, new)
        self.queue.add(name)

    def _on_slice(self, old: Raw | None, new: Raw | None) -> None:
        for each in (old, new):
            if each is not None and is_ours(each):
                self.queue.add(key_of(each))
        if new is None and old is not None:
            self._dropped.forget(old["metadata"]["name"])

    def _on_inventory(self) -> None:
        inventory = self._current.inventory
        assert inventory is not None, "the callback runs when the inventory exists"
        self._desired_slices = DesiredSlices(inventory)
        self._matches = SharedMatches()
        for node in self._nodes.objects.values() if self._desired_slices.has_shared else ():
            self._match_shared(node["metadata"]["name"], node)
        for key in self._all_keys():
            self.queue.add(key)

    def _match_shared(self, name: str, node: Raw | None) -> None:
        """Counts what a node matches of the whole cluster's."""
        if self._desired_slices is None or not self._desired_slices.has_shared:
            return
        is_meant = node is not None and self._node_filter.matches(node)
        matched = self._desired_slices.matched_by(node) if node is not None and is_meant else ()
        if self._matches.replace(name, matched):
            self.queue.add(SHARED)

    def _all_keys(self) -> list[str]:
        nodes = {name.name for name in self._nodes.objects}
        owners = {key_of(each) for each in self._slices.objects.values() if is_ours(each)}
        return sorted({SHARED} | nodes | owners)

    def _seen(self, key: str) -> Seen:
        node = self._nodes.get("", key)
        matched = self._matches.matched if key == SHARED else ()
        known = self._desired_slices, matched, relevant_fields(node), self._faults(node)
        return *known, *self._by_key.get(key)

    def _faults(self, node: Raw | None) -> NodeFaults:
        """What is wrong with a node now."""
        return NO_FAULTS if node is None else faults_of(annotations_of(node), self._clock.now())

    def _is_settled(self, key: str) -> bool:
        return self._states.get(key, NEW).settled == self._seen(key)

    def _step(self, key: str, event: Event) -> Plan:
        """Tells the key's state machine; events are posted, and its plan is the answer."""
        state, effects = step(self._states.get(key, NEW), event)
        self._states[key] = state
        (self._open.add if state.is_open else self._open.discard)(key)
        self._failing.pop(key, None)
        if state.failure:
            self._failing[key] = state.failure
        plan = Plan()
        for effect in effects:
            match effect:
                case Plan():
                    plan = effect
                case Tell(reason, texts):
                    self._tell(key, reason, texts)
        return plan

    async def decide(self, key: str) -> Plan:
        plan = await self._decided(key)
        expiry = self._faults(self._nodes.get("", key)).next_expiry
        if expiry is None:
            return plan
        left = max(0.0, expiry - self._clock.now())
        again = left if plan.again_seconds is None else min(left, plan.again_seconds)
        return replace(plan, again_seconds=again)

    async def _decided(self, key: str) -> Plan:
        seen = self._seen(key)
        if self._states.get(key, NEW).settled == seen:
            return Plan()
        cached = self._by_key.get(key)
        observed = await self._observed(key, cached)
        desired = await self._desired(key, observed)
        if desired is None:
            return Plan()
        if desired is AS_IT_IS:
            return self._step(key, Matches(seen, _revisions(cached) == _revisions(observed)))
        assert self._desired_slices is not None, "keys are decided when the inventory is known"
        plans = self._desired_slices.plans(desired, observed)
        if plans:
            texts = change_texts(plans, desired.pools, observed)
            return self._step(key, Differs(plans, texts, self._clock.now()))
        self._counts.enter(key, desired.row)
        is_same = _revisions(cached) == _revisions(observed)
        return self._step(key, Matches(None if desired is GONE else seen, is_same))

    async def _observed(self, key: str, cached: Sequence[Raw]) -> Sequence[Raw]:
        """The slices of a key, with what the server knows better than the cache."""
        state = self._states.get(key, NEW)
        if not state.is_doubtful:
            return cached
        slices = {name_of(each): each for each in cached}
        for name in sorted(state.unconfirmed):
            slices.pop(name, None)
            selection = Selection(fields=f"metadata.name={name.name}")
            items = (await self._client.list(SLICES, selection)).items
            slices.update((name_of(each), each) for each in items if is_ours(each))
        return tuple(slices[name] for name in sorted(slices))

    async def _desired(self, key: str, observed: Sequence[Raw]) -> Desired | None:
        """What is desired of a key; None if that cannot be told now."""
        assert self._desired_slices is not None, "keys are decided when the inventory is known"
        if key == SHARED:
            return self._dropped.adapted(self._desired_slices.shared(self._matches.matched))
        node = self._nodes.get("", key)
        if node is None:
            return None if observed and await self._exists(key) else GONE
        if not self._node_filter.matches(node):
            return NOTHING
        faults = self._faults(node)
        if faults.is_driver_gone:
            return AS_IT_IS
        return self._dropped.adapted(self._desired_slices.on(node, faults))

    async def _exists(self, name: str) -> bool:
        try:
            await self._client.get(NODES, name)
        except NotFoundError:
            return False
        return True

    def on_success(self, key: str, plan: Plan, stored: Sequence[Raw | None]) -> None:
        """Looks at what the server has made of what was sent."""
        self._step(key, Ended(is_cached(plan.writes, self._slices.objects)))
        if not plan.writes:
            return
        counts = Counter(type(write).__name__.lower() for write in plan.writes)
        self._tally.update(counts)
        _logger.info("slices written", extra={"node": key, **counts})
        dropped = [
            obj
            for write, obj in zip(plan.writes, stored, strict=True)
            if isinstance(write, Create | Update)
            and obj is not None
            and self._dropped.learn(write.object, obj)
        ]
        if dropped:
            names = [each["metadata"]["name"] for each in dropped]
            _logger.warning("fields dropped by the server", extra={"slices": names})
            self._tell(key, Reason.DEVICES_INCOMPLETE, drop_texts(dropped))
            self.queue.add(key)

    def on_failure(self, key: str, error: Exception) -> None:
        """Remembers it, and tells people of what does not get better by itself."""
        is_refusal = isinstance(error, ApiError) and 400 <= error.code < 500
        passes = isinstance(error, ConflictError | TooManyRequestsError | NotFoundError)
        text = str(error) or type(error).__name__
        self._step(key, Failed(text, is_lasting=is_refusal and not passes))

    def _tell(self, key: str, reason: Reason, texts: Mapping[str, str]) -> None:
        for subject, text in texts.items():
            obj = self._asker(subject) if key == SHARED else self._nodes.get("", key)
            if obj is not None:
                self._events.post(report(obj, reason, text))

    async def _resync(self) -> None:
        """The safety net: whatever is not known to be right is looked at."""
        while True:
            await sleep(self._clock, self._resync_seconds)
            await self._look_again()
            self._tidy()
            self._sum_up()

    async def _look_again(self) -> None:
        for number, key in enumerate(self._all_keys()):
            if not self._is_settled(key):
                self.queue.add(key)
            # A big fleet takes a while, and a new node should not have to wait for it.
            if number % KEYS_AT_ONCE == KEYS_AT_ONCE - 1:
                await asyncio.sleep(0)

    def _tidy(self) -> None:
        now = self._clock.now()
        for key in [key for key, state in self._states.items() if is_forgettable(state, now)]:
            del self._states[key]

    def _sum_up(self) -> None:
        """One line about all that was done, if anything was."""
        failing = len(self._failing)
        if not self._tally and not failing:
            return
        slices = sum(map(self._counts.slices_of, SourceKind))
        totals = {"nodes": self._counts.nodes, "slices": slices}
        extra = totals | {"failing": failing, **self._tally}
        _logger.info("slices kept", extra=extra)
        self._tally.clear()


async def keep_verified(context: EngineContext, every_seconds: float) -> None:
    """Verifies the caches of nodes and slices until it is cancelled."""
    pause = every_seconds
    while True:
        await sleep(context.clock, pause)
        began = context.clock.now()
        try:
            await _verify(context, NODES, EVERYTHING)
            await _verify(context, SLICES, OURS)
        except (ApiError, TransportError) as error:
            _logger.info("caches not verified: %s", error)
        pause = max(every_seconds, SHARE * (context.clock.now() - began - 2 * GRACE_SECONDS))


async def _verify(context: EngineContext, endpoint: Endpoint, selection: Selection) -> None:
    listing = await context.client.list_metadata(endpoint, selection)
    objects = context.informers.of(endpoint).objects
    suspects = list(missed(objects, listing, selection))
    if not suspects:
        return
    await sleep(context.clock, GRACE_SECONDS)
    lost = [name for name, before in suspects if objects.get(name) is before]
    if lost:
        shown = lost[0].name
        _logger.warning("a watch of %s lost events", endpoint.resource, extra={"first": shown})
        context.informers.refresh(endpoint)


def missed(
    objects: Mapping[Name, Raw], listing: Listing, selection: Selection = EVERYTHING
) -> Iterator[tuple[Name, Raw | None]]:
    """Names of which a listing knows more than the cache, and what the cache has of them."""
    listed = {name_of(item): item for item in listing.items}
    for name, item in listed.items():
        cached = objects.get(name)
        if cached is None or _revision(cached) < _revision(item):
            yield name, cached
    for name, cached in objects.items():
        is_meant = selection is EVERYTHING or is_ours(cached)
        if is_meant and name not in listed and _revision(cached) <= int(listing.revision):
            yield name, cached


def _revision(obj: Raw) -> int:
    return int(obj["metadata"]["resourceVersion"])
