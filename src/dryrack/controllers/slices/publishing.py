"""
Keep the slices of all nodes as the inventory wants them.

Every node is a key of its own, and the pools of the whole cluster are one more, so a failure of one
key affects no other. A key is decided when its node, its slices or the inventory change. At an
interval, all keys that are not known to be right are decided again, in case a change was missed.

Nothing is deleted on partial knowledge: not before the inventory is known and both caches are
complete, and not because a node is missing in a cache, before the server confirms that it does not
exist. The label of a slice decides whether it is ours; no other slice is ever changed.

A publisher with a shard decides only the keys of its shard. Shard 0 has the pools of the whole
cluster, so it matches the nodes of all shards, and counts the slices that other shards write.
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
from dryrack.controllers.objects import annotations_of, labels_of
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
from dryrack.controllers.slices.events import (
    EventQueue,
    Reason,
    change_texts,
    drop_texts,
    report,
)
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
from dryrack.hardware import MANAGED_BY, MANAGER, NO_FAULTS, SOURCE, SourceKind, faults_of

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
from dryrack.kinds.releases import find_dropped

NAME = "resourceslice"
# Writes wait for answers most of their time, and all nodes of a big cluster come up at once.
WORKERS = 16
# How many keys are checked again before other work has a turn: some milliseconds.
KEYS_AT_ONCE = 500

_logger = logging.getLogger(__name__)


class Publishing(Reconciler[str]):
    """The engine that writes slices; a key is the name of a node, or `SHARED`."""

    def __init__(
        self,
        context: EngineContext,
        settings: PublisherSettings,
        *,
        current: CurrentInventory,
        counts: PublishedCounts,
        source_object: Callable[[str], Raw | None],
    ) -> None:
        """`source_object` returns the object of the source with a label."""
        super().__init__(context, NAME, workers=WORKERS)
        self._resync_seconds = settings.resync_seconds
        self._node_filter = NodeFilter(settings)
        self._shard = settings.shard
        self._current = current
        self._counts = counts
        self._source_object = source_object
        self._desired_slices: DesiredSlices | None = None
        self._matches = SharedMatches()
        self._dropped = DroppedFields()
        self._states: dict[str, KeyState] = {}
        self._open: set[str] = set()
        self._failing: dict[str, str] = {}
        self._events = EventQueue(context, NAME, lambda: not len(self.queue))
        self._tally: Counter[str] = Counter()
        self._nodes = self.watch(NODES, self._on_node)
        self._by_key = context.informers.of(SLICES).index(
            "own slices by node", lambda each: (key_of(each),) if is_ours(each) else ()
        )
        self._slices = self.watch(SLICES, self._on_slice)
        current.listen(self._on_inventory)
        counts.is_settled = lambda: self.is_idle

    @property
    def is_idle(self) -> bool:
        """True if all known changes are written successfully."""
        is_known = self._desired_slices is not None
        return is_known and not self._open and self.queue.is_idle

    @property
    def failing(self) -> Mapping[str, str]:
        """The keys whose slices could not be written, with the error."""
        return self._failing

    def unsettled(self) -> tuple[str, ...]:
        """Return the keys whose slices are not known to be as desired."""
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
        if self._shard.owns(name):
            self.queue.add(name)

    def _on_slice(self, old: Raw | None, new: Raw | None) -> None:
        for key in {key_of(each) for each in (old, new) if each is not None and is_ours(each)}:
            if self._shard.owns(key):
                self.queue.add(key)
            elif self._shard.owns(SHARED):
                labels = (labels_of(each).get(SOURCE, "") for each in self._by_key.get(key))
                self._counts.set_elsewhere(key, Counter(labels))
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
        """Count the pools of the whole cluster that a node matches, on the shard that has them."""
        if self._desired_slices is None or not self._desired_slices.has_shared:
            return
        if not self._shard.owns(SHARED):
            return
        matched: tuple[int, ...] = ()
        if node is not None and self._node_filter.matches(node):
            matched = self._desired_slices.matched_by(node)
        if self._matches.replace(name, matched):
            self.queue.add(SHARED)

    def _all_keys(self) -> list[str]:
        nodes = {name.name for name in self._nodes.objects}
        owners = {key_of(each) for each in self._slices.objects.values() if is_ours(each)}
        return sorted(filter(self._shard.owns, {SHARED} | nodes | owners))

    def _seen(self, key: str) -> Seen:
        """Return everything that the decision about a key depends on."""
        node = self._nodes.get("", key)
        matched = self._matches.matched if key == SHARED else ()
        known = self._desired_slices, matched, relevant_fields(node), self._faults(node)
        return *known, *self._by_key.get(key)

    def _faults(self, node: Raw | None) -> NodeFaults:
        return NO_FAULTS if node is None else faults_of(annotations_of(node), self._clock.now())

    def _is_settled(self, key: str) -> bool:
        return self._states.get(key, NEW).settled == self._seen(key)

    async def decide(self, key: str) -> Plan:
        plan = await self._plan(key)
        expiry = self._faults(self._nodes.get("", key)).next_expiry
        if expiry is None:
            return plan
        left = max(0.0, expiry - self._clock.now())
        again = left if plan.again_seconds is None else min(left, plan.again_seconds)
        return replace(plan, again_seconds=again)

    async def _plan(self, key: str) -> Plan:
        seen = self._seen(key)
        state = self._states.get(key, NEW)
        if state.settled == seen:
            return Plan()
        cached = self._by_key.get(key)
        observed = await self._confirm(state, cached) if state.is_doubtful else cached
        desired = await self._desired(key, observed)
        if desired is None:
            return Plan()
        is_confirmed = _revisions(cached) == _revisions(observed)
        if desired is AS_IT_IS:
            return self._step(key, Matches(seen, is_confirmed))
        assert self._desired_slices is not None, "keys are decided when the inventory is known"
        plans = self._desired_slices.plans(desired, observed)
        if plans:
            texts = change_texts(plans, desired.pools, observed)
            return self._step(key, Differs(plans, texts, self._clock.now()))
        self._counts.set_row(key, desired.row)
        return self._step(key, Matches(None if desired is GONE else seen, is_confirmed))

    async def _confirm(self, state: KeyState, cached: Sequence[Raw]) -> Sequence[Raw]:
        """Return the cached slices of a key, with the server's answer for unconfirmed ones."""
        slices = {name_of(each): each for each in cached}
        for name in sorted(state.unconfirmed):
            slices.pop(name, None)
            selection = Selection(fields=f"metadata.name={name.name}")
            items = (await self._client.list(SLICES, selection)).items
            slices.update((name_of(each), each) for each in items if is_ours(each))
        return tuple(slices[name] for name in sorted(slices))

    async def _desired(self, key: str, observed: Sequence[Raw]) -> Desired | None:
        """Return what is desired for a key, or None if the cache lacks its node."""
        assert self._desired_slices is not None, "keys are decided when the inventory is known"
        if key == SHARED:
            return self._dropped.adapt(self._desired_slices.shared(self._matches.matched))
        node = self._nodes.get("", key)
        if node is None:
            try:
                if observed:
                    await self._client.get(NODES, key)
                    return None
            except NotFoundError:
                pass
            return GONE
        if not self._node_filter.matches(node):
            return NOTHING
        faults = self._faults(node)
        if faults.is_driver_gone:
            return AS_IT_IS
        return self._dropped.adapt(self._desired_slices.on(node, faults))

    def _step(self, key: str, event: Event) -> Plan:
        """Pass an event to the state of a key; write the events and return the plan."""
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
                    self._report(key, reason, texts)
        return plan

    def on_success(self, key: str, plan: Plan, stored: Sequence[Raw | None]) -> None:
        """Compare the stored slices with those that were sent."""
        self._step(key, Ended(is_cached(plan.writes, self._slices.objects)))
        if not plan.writes:
            return
        counts = Counter(type(write).__name__.lower() for write in plan.writes)
        self._tally.update(counts)
        _logger.info("slices written", extra={"node": key, **counts})
        dropped = [
            (obj, find_dropped(write.object, obj))
            for write, obj in zip(plan.writes, stored, strict=True)
            if isinstance(write, Create | Update)
            and obj is not None
            and self._dropped.learn(write.object, obj)
        ]
        if dropped:
            names = [each["metadata"]["name"] for each, _ in dropped]
            gates = sorted({gate for _, gates in dropped for gate in gates})
            extra = {"slices": names, "gates": gates}
            _logger.warning("fields dropped by the server", extra=extra)
            texts = drop_texts([each for each, _ in dropped], gates)
            self._report(key, Reason.DEVICES_INCOMPLETE, texts)
            self.queue.add(key)

    def on_failure(self, key: str, error: Exception) -> None:
        """Record the failure; an event reports one that a retry does not solve."""
        is_refusal = isinstance(error, ApiError) and 400 <= error.code < 500
        passes = isinstance(error, ConflictError | TooManyRequestsError | NotFoundError)
        text = str(error) or type(error).__name__
        self._step(key, Failed(text, is_lasting=is_refusal and not passes))

    def _report(self, key: str, reason: Reason, texts: Mapping[str, str]) -> None:
        for subject, text in texts.items():
            obj = self._source_object(subject) if key == SHARED else self._nodes.get("", key)
            if obj is not None:
                self._events.post(report(obj, reason, text))

    async def _resync(self) -> None:
        """Decide again every key that is not known to be right, and log a summary."""
        while True:
            await sleep(self._clock, self._resync_seconds)
            for number, key in enumerate(self._all_keys()):
                if not self._is_settled(key):
                    self.queue.add(key)
                # With many nodes this takes a while; a new node should not wait for it.
                if number % KEYS_AT_ONCE == KEYS_AT_ONCE - 1:
                    await asyncio.sleep(0)
            now = self._clock.now()
            for key in [key for key, state in self._states.items() if is_forgettable(state, now)]:
                del self._states[key]
            if self._tally or self._failing:
                slices = sum(map(self._counts.slices_of, SourceKind))
                totals = {"nodes": self._counts.nodes, "slices": slices}
                extra = totals | {"failing": len(self._failing), **self._tally}
                _logger.info("slices kept", extra=extra)
                self._tally.clear()


def _revisions(slices: Iterable[Raw]) -> dict[Name, str]:
    return {name_of(each): each["metadata"]["resourceVersion"] for each in slices}


# A healthy watch is milliseconds behind; a second is enough for a slow one.
GRACE_SECONDS = 1.0
# Listing all objects may take one part in so many of all time.
SHARE = 50
OURS = Selection(labels=f"{MANAGED_BY}={MANAGER}")


async def keep_verified(context: EngineContext, every_seconds: float) -> None:
    """
    Verify the caches of nodes and slices at an interval, until it is cancelled.

    A watch that lost an event looks like one without changes. So the names and revisions of all
    objects are listed and compared with the cache. An object that still differs a moment later was
    lost, and the cache is filled again. The interval grows with the time that a listing takes.
    """
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
        extra = {"first": lost[0].name}
        _logger.warning("a watch of %s lost events", endpoint.resource, extra=extra)
        context.informers.refresh(endpoint)


def missed(
    objects: Mapping[Name, Raw], listing: Listing, selection: Selection = EVERYTHING
) -> Iterator[tuple[Name, Raw | None]]:
    """Yield the objects for which a listing is newer than the cache, with the cached object."""
    listed = {name_of(item): item for item in listing.items}
    for name, item in listed.items():
        cached = objects.get(name)
        if cached is None or _revision(cached) < _revision(item):
            yield name, cached
    for name, cached in objects.items():
        is_selected = selection is EVERYTHING or is_ours(cached)
        if is_selected and name not in listed and _revision(cached) <= int(listing.revision):
            yield name, cached


def _revision(obj: Raw) -> int:
    return int(obj["metadata"]["resourceVersion"])
