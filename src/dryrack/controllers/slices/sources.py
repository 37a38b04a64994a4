"""
Read the sources in a cluster into the current inventory.

One ConfigMap, and all NodeOverlays and DRAConfigs if these kinds are served, are read whenever
their contents change. The last valid version of each makes the current inventory. Events and the
status of DRAConfigs report the result.

Promise: the inventory is unknown until every source is read, or known not to exist. After that, a
source that cannot be read changes nothing, and a deleted source takes its devices with it.
"""

from __future__ import annotations

import asyncio
import logging
from enum import Enum, StrEnum
from functools import partial
from typing import TYPE_CHECKING

from dryrack.client.client import Selection
from dryrack.client.endpoints import CONFIG_MAPS, DRA_CONFIGS, NODE_OVERLAYS
from dryrack.client.informer import name_of
from dryrack.client.optional_kind import OptionalKind
from dryrack.client.timekeeping import timestamp
from dryrack.controllers.objects import condition_of, status_of, uid_of, with_condition
from dryrack.controllers.reconciler import Reconciler
from dryrack.controllers.slices.current_inventory import (
    ABSENT,
    SourceStatus,
    assess_source,
    contents_of,
    inventory_of,
    is_about_devices,
    reader_of,
    source_of,
)
from dryrack.controllers.slices.desired import SHARED
from dryrack.controllers.slices.events import Reason, fitted, listed, note_reports, source_reports
from dryrack.controllers.writes import NOTHING, Patch, Plan, Write
from dryrack.hardware import Source, SourceKind, source_label
from dryrack.hardware.config_formats import Reading
from dryrack.kinds.documents import Problem
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.controllers.slices import PublisherSettings
    from dryrack.controllers.slices.current_inventory import CurrentInventory
    from dryrack.controllers.slices.published_counts import Published, PublishedCounts
    from dryrack.controllers.writes import EngineContext
    from dryrack.kinds.raw import Raw

_logger = logging.getLogger(__name__)

NAME = "dryrack-publisher"

# Counts change with every node; people read a status no faster than this.
STATUS_SECONDS = 1.0

# One mistake can cause a note for each of many nodes. This many notes on a version become events.
NOTES_MAX = 5
_MORE_NOTES = (
    "dryrack writes no more events for this version; to see all of its devices that are not "
    "published, run: dryrack publish --dry-run"
)


class Task(Enum):
    """A task that concerns all sources."""

    REFRESH = "the current inventory"


class Condition(StrEnum):
    """The types of a DRAConfig's conditions."""

    VALIDATED = "ValidationSucceeded"
    READY = "Ready"


CONDITIONS: Mapping[Condition, str] = {
    Condition.VALIDATED: (
        "`True` (`Valid`) if dryrack can read the DRAConfig, `False` (`InvalidConfig`) otherwise; "
        "the message lists each problem or warning with its field and a fix"
    ),
    Condition.READY: (
        "`True` (`Published`) after dryrack has checked all nodes for this generation; `False` "
        "before that (`Publishing`) or if it is not valid (`ValidationFailed`); the message lists "
        "the devices that are not published"
    ),
}


class Sources(Reconciler["Source | Task"]):
    """Watches the sources and keeps the current inventory."""

    def __init__(
        self,
        context: EngineContext,
        settings: PublisherSettings,
        *,
        current: CurrentInventory,
        counts: PublishedCounts,
    ) -> None:
        super().__init__(context, NAME, workers=1)
        self._settings = settings
        self._current = current
        self._counts = counts
        self._statuses: dict[Source, SourceStatus] = {}
        self._reported_notes: dict[Source, set[str]] = {}
        selection = Selection(
            namespace=settings.namespace, fields=f"metadata.name={settings.config_map}"
        )
        self._config_map = context.informers.of(CONFIG_MAPS, selection)
        self._config_map.listen(partial(self._on_object, SourceKind.CONFIG_MAP))
        self._kinds = {
            kind: OptionalKind(
                context.client,
                endpoint,
                clock=context.clock,
                informers=context.informers,
                on_object=partial(self._on_object, kind),
                on_known=lambda: self.queue.add(Task.REFRESH),
            )
            for kind, endpoint in (
                (SourceKind.OVERLAY, NODE_OVERLAYS),
                (SourceKind.CONFIG, DRA_CONFIGS),
            )
        }
        for each in self._kinds.values():
            context.informers.add_cache(each)
        counts.listen(self._on_published)

    @property
    def statuses(self) -> Mapping[Source, SourceStatus]:
        """The status of each source that exists."""
        return self._statuses

    def object_with_label(self, label: str) -> Raw | None:
        """Return the object of the source with a label, if it exists."""
        source = next((each for each in self._statuses if source_label(each) == label), None)
        return None if source is None else self._object(source)

    def lacking(self) -> tuple[str, ...]:
        """Return the resources that have to be listed before anything is published."""
        kinds = [each.endpoint.resource for each in self._kinds.values() if not each.is_known]
        if not self._config_map.synced.is_set():
            kinds.append(self._config_map.endpoint.resource)
        return tuple(sorted(kinds))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(super().run(), name="sources")
            await self._config_map.synced.wait()
            self.queue.add(Task.REFRESH)

    def _on_object(self, kind: SourceKind, old: Raw | None, new: Raw | None) -> None:
        obj = new if new is not None else old
        assert obj is not None, "an informer reports an object"
        self.queue.add(source_of(kind, obj))

    def _on_published(self, source: Source | None) -> None:
        if source is None:
            for each in self._statuses:
                if each.kind is SourceKind.CONFIG:
                    self.queue.add_after(each, STATUS_SECONDS)
        elif source in self._statuses and source.kind is not SourceKind.CATALOGUE:
            self.queue.add_after(source, STATUS_SECONDS)

    async def decide(self, key: Source | Task) -> Plan:
        if isinstance(key, Task):
            self._refresh()
            return NOTHING
        obj = self._object(key)
        if obj is None or not is_about_devices(key.kind, obj):
            self._reported_notes.pop(key, None)
            if self._statuses.pop(key, None) is not None:
                _logger.info("%s %s: gone", key.kind, key.name)
                self._refresh_when_read()
            return NOTHING
        status = self._statuses.get(key)
        writes: list[Write] = []
        if status is None or status.contents != contents_of(key.kind, obj):
            status = self._read(key, obj)
            writes += source_reports(obj, status)
        if not self._settings.shard.owns(SHARED):
            # All shards read the sources; the shard of the whole cluster reports on them.
            return NOTHING
        writes += self._note_reports(key, obj, status)
        if key.kind is not SourceKind.CONFIG:
            return Plan(tuple(writes))
        is_settled = self._current.known.is_set() and self._counts.is_settled()
        patch = status_patch(
            obj,
            status,
            published=self._counts.of(key),
            notes=self._counts.notes_on(key),
            is_settled=is_settled,
            now=self._clock.now(),
        )
        if patch is not None:
            writes.append(patch)
        return Plan(tuple(writes), None if is_settled or not status.is_valid else STATUS_SECONDS)

    def _object(self, source: Source) -> Raw | None:
        if source.kind is SourceKind.CONFIG_MAP:
            return self._config_map.get(self._settings.namespace, source.name)
        return self._kinds[source.kind].get(source.name)

    def _read(self, source: Source, obj: Raw) -> SourceStatus:
        """Read the contents of a source, and refresh the inventory."""
        before = self._statuses.get(source)
        if before is None and self._current.known.is_set():
            before = ABSENT
        try:
            reading = reader_of(source.kind, self._settings)(obj)
        except Exception:
            # One document that a reader cannot cope with must not keep all others waiting.
            _logger.exception("%s %s: a bug; please report it", source.kind, source.name)
            message = "cannot be read because of a bug in dryrack"
            problem = Problem(source.name, 0, 0, message, "please report it")
            reading = Reading(problems=(problem,))
        status = assess_source(before, reading, obj, kind=source.kind, now=self._clock.now())
        self._statuses[source] = status
        self._reported_notes.pop(source, None)
        if status.is_valid:
            _logger.info("%s %s: in force", source.kind, source.name)
        else:
            problems = listed(status.problems)
            _logger.warning("%s %s: not in force: %s", source.kind, source.name, problems)
        self._refresh_when_read()
        return status

    def _refresh_when_read(self) -> None:
        """Refresh the inventory now, or after the sources that are still in the queue."""
        if len(self.queue):
            self.queue.add(Task.REFRESH)
        else:
            self._refresh()

    def _refresh(self) -> None:
        if self._current.known.is_set() or self._is_everything_read():
            self._current.replace(inventory_of(self._statuses, self._settings.catalogue))

    def _is_everything_read(self) -> bool:
        if self.lacking():
            return False
        objects = [(SourceKind.CONFIG_MAP, obj) for obj in self._config_map.all()]
        objects += [(kind, obj) for kind, each in self._kinds.items() for obj in each.all()]
        return all(
            source_of(kind, obj) in self._statuses
            for kind, obj in objects
            if is_about_devices(kind, obj)
        )

    def _note_reports(self, source: Source, obj: Raw, status: SourceStatus) -> list[Write]:
        """Return events for notes that have none yet, as many as a version may have."""
        reported = self._reported_notes.setdefault(source, set())
        if _MORE_NOTES in reported:
            return []
        new = [each for each in self._counts.notes_on(source) if each not in reported]
        if len(reported) + len(new) > NOTES_MAX:
            new = [*new[: NOTES_MAX - len(reported)], _MORE_NOTES]
        reported.update(new)
        return list(note_reports(obj, status, new))


# The Ready condition lists this many notes.
_CONDITION_NOTES_MAX = 5


def status_patch(
    obj: Raw,
    source: SourceStatus,
    *,
    published: Published,
    notes: Sequence[str],
    is_settled: bool,
    now: float,
) -> Patch | None:
    """Return the patch that updates the status of a DRAConfig, or None if it is up to date."""
    status = status_of(obj)
    new: Raw = {
        "conditions": get(status, "conditions", []),
        "resourceSliceCount": published.slices,
        "nodeCount": published.nodes,
    }
    if source.is_valid:
        validated = _condition(Condition.VALIDATED, "True", "Valid", listed(source.warnings))
    else:
        validated = _condition(
            Condition.VALIDATED, "False", Reason.INVALID_CONFIG, listed(source.problems)
        )
    for condition in (validated, _ready(obj, source, notes, is_settled=is_settled)):
        whole = condition | {
            "observedGeneration": int(obj["metadata"].get("generation", 0)),
            "lastTransitionTime": timestamp(now),
        }
        new["conditions"] = with_condition(new["conditions"], whole)
    if all(status.get(key) == value for key, value in new.items()):
        return None
    identity = {"uid": uid_of(obj), "resourceVersion": obj["metadata"]["resourceVersion"]}
    return Patch(DRA_CONFIGS, name_of(obj), {"metadata": identity, "status": new}, "status")


def _ready(obj: Raw, source: SourceStatus, notes: Sequence[str], *, is_settled: bool) -> Raw:
    if not source.is_valid:
        has_older = source.in_force is not None and source.valid_generation
        stays = f"; generation {source.valid_generation} stays in force" if has_older else ""
        message = f"see {Condition.VALIDATED}{stays}"
        return _condition(Condition.READY, "False", "ValidationFailed", message)
    # Nodes come and go all the time; that does not make a version less published than before.
    known = condition_of(obj, Condition.READY) or {}
    generation = obj["metadata"].get("generation", 0)
    was_ready = known.get("status") == "True" and known.get("observedGeneration") == generation
    if is_settled or was_ready:
        omitted = max(len(notes) - _CONDITION_NOTES_MAX, 0)
        message = fitted(notes[:_CONDITION_NOTES_MAX], omitted=omitted)
        return _condition(Condition.READY, "True", "Published", message)
    message = "dryrack has not checked all nodes yet"
    return _condition(Condition.READY, "False", "Publishing", message)


def _condition(kind: str, status: str, reason: str, message: str) -> Raw:
    return {"type": kind, "status": status, "reason": reason, "message": message}
