"""
From the documents in a cluster to the current inventory.

One ConfigMap, and all NodeOverlays and DRAConfigs if there are such kinds, are read whenever their
contents change; what is in force of each makes the current inventory. Events tell people of it,
and a DRAConfig shows in its status what came of it.

Promise: the inventory is unknown until every source is known, or known not to be there. After that
a source that cannot be read changes nothing, and one that is gone takes its devices with it.
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
    Verdict,
    contents_of,
    inventory_of,
    is_about_devices,
    judged,
    reader_of,
    source_of,
)
from dryrack.controllers.slices.events import Reason, fitted, listed, note_reports, source_reports
from dryrack.controllers.writes import NOTHING, Patch, Plan, Write
from dryrack.hardware import Source, SourceKind, source_label
from dryrack.hardware.config_formats import Reading
from dryrack.kinds.documents import Problem
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.controllers.slices import PublisherSettings
    from dryrack.controllers.slices.current_inventory import CurrentInventory, Verdict
    from dryrack.controllers.slices.published_counts import Published, PublishedCounts
    from dryrack.controllers.writes import EngineContext
    from dryrack.kinds.raw import Raw


_logger = logging.getLogger(__name__)


NAME = "dryrack-publisher"


# Counts change with every node; a status is for people, who read no faster than this.
STATUS_SECONDS = 1.0


# One mistake in a version can have a note for each of many nodes; these many become events.
NOTES_MAX = 5

_MORE_NOTES = (
    "dryrack writes no more events for this version; to see all of its devices that are not "
    "published, run: dryrack publish --dry-run"
)


class Task(Enum):
    """What is to be done that is about no one source."""

    REFRESH = "the current inventory"


# What a condition tells of what was left out; the rest is alike.
_NOTES_MAX = 5


class Condition(StrEnum):
    """What a DRAConfig tells of itself."""

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
    """Watches the documents; `run` keeps it going."""

    def __init__(
        self,
        context: EngineContext,
        options: PublisherSettings,
        *,
        current: CurrentInventory,
        counts: PublishedCounts,
    ) -> None:
        super().__init__(context, NAME, workers=1)
        self._options = options
        self._current = current
        self._counts = counts
        self._verdicts: dict[Source, Verdict] = {}
        self._told: dict[Source, set[str]] = {}
        selection = Selection(
            namespace=options.namespace, fields=f"metadata.name={options.config_map}"
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
                on_known=self._refresh_soon,
            )
            for kind, endpoint in (
                (SourceKind.OVERLAY, NODE_OVERLAYS),
                (SourceKind.CONFIG, DRA_CONFIGS),
            )
        }
        for each in self._kinds.values():
            context.informers.tend(each)
        counts.listen(self._on_published)

    @property
    def verdicts(self) -> Mapping[Source, Verdict]:
        """What is known of each source that there is."""
        return self._verdicts

    def asker(self, label: str) -> Raw | None:
        """The object that asked for the slices with that label, if it is there."""
        found = next((each for each in self._verdicts if source_label(each) == label), None)
        return None if found is None else self._object(found)

    def lacking(self) -> tuple[str, ...]:
        """What has to be known before anything is published."""
        kinds = [each.endpoint.resource for each in self._kinds.values() if not each.is_known]
        if not self._config_map.synced.is_set():
            kinds.append(self._config_map.endpoint.resource)
        return tuple(sorted(kinds))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(super().run(), name="sources")
            await self._config_map.synced.wait()
            self._refresh_soon()

    def _on_object(self, kind: SourceKind, old: Raw | None, new: Raw | None) -> None:
        obj = new if new is not None else old
        assert obj is not None, "an informer reports an object"
        self.queue.add(source_of(kind, obj))

    def _on_published(self, source: Source) -> None:
        if source in self._verdicts and source.kind is not SourceKind.CATALOGUE:
            self.queue.add_after(source, STATUS_SECONDS)

    def _refresh_soon(self) -> None:
        self.queue.add(Task.REFRESH)

    async def decide(self, key: Source | Task) -> Plan:
        if isinstance(key, Task):
            self._refresh()
            return NOTHING
        obj = self._object(key)
        if obj is None or not is_about_devices(key.kind, obj):
            self._forget(key)
            return NOTHING
        before = self._verdicts.get(key)
        verdict = self._judged(key, obj, before)
        writes: list[Write] = []
        if verdict is not before:
            self._take(key, verdict)
            writes += source_reports(obj, verdict)
        writes += self._notes(key, obj, verdict)
        return self._with_status(key, obj, verdict, writes)

    def _object(self, source: Source) -> Raw | None:
        if source.kind is SourceKind.CONFIG_MAP:
            return self._config_map.get(self._options.namespace, source.name)
        return self._kinds[source.kind].get(source.name)

    def _judged(self, source: Source, obj: Raw, before: Verdict | None) -> Verdict:
        if before is not None and before.contents == contents_of(source.kind, obj):
            return before
        if before is None and self._current.known.is_set():
            before = ABSENT
        reading = self._read(source, obj)
        return judged(before, reading, obj, kind=source.kind, now=self._clock.now())

    def _read(self, source: Source, obj: Raw) -> Reading:
        try:
            return reader_of(source.kind, self._options)(obj)
        except Exception:
            # One document that a reader cannot cope with must not keep all the others waiting.
            _logger.exception("%s %s: a bug; please report it", source.kind, source.name)
            what = "cannot be read because of a bug in dryrack"
            return Reading(problems=(Problem(source.name, 0, 0, what, "please report it"),))

    def _take(self, source: Source, verdict: Verdict) -> None:
        self._verdicts[source] = verdict
        self._told.pop(source, None)
        if verdict.is_valid:
            _logger.info("%s %s: in force", source.kind, source.name)
        else:
            what = listed(verdict.problems)
            _logger.warning("%s %s: not in force: %s", source.kind, source.name, what)
        self._changed()

    def _forget(self, source: Source) -> None:
        self._told.pop(source, None)
        if self._verdicts.pop(source, None) is not None:
            _logger.info("%s %s: gone", source.kind, source.name)
            self._changed()

    def _changed(self) -> None:
        """Refreshes the inventory now, or after all else that waits to be read."""
        if len(self.queue):
            self._refresh_soon()
        else:
            self._refresh()

    def _refresh(self) -> None:
        if not self._current.known.is_set() and not self._is_whole():
            return
        self._current.replace(inventory_of(self._verdicts, self._options.catalogue))

    def _is_whole(self) -> bool:
        """Whether all that there is has been read."""
        if self.lacking():
            return False
        there = [(SourceKind.CONFIG_MAP, obj) for obj in self._config_map.all()]
        there += [(kind, obj) for kind, each in self._kinds.items() for obj in each.all()]
        return all(
            source_of(kind, obj) in self._verdicts
            for kind, obj in there
            if is_about_devices(kind, obj)
        )

    def _notes(self, source: Source, obj: Raw, verdict: Verdict) -> list[Write]:
        told = self._told.setdefault(source, set())
        if _MORE_NOTES in told:
            return []
        new = [each for each in self._counts.notes_on(source) if each not in told]
        if len(told) + len(new) > NOTES_MAX:
            new = [*new[: NOTES_MAX - len(told)], _MORE_NOTES]
        told.update(new)
        return list(note_reports(obj, verdict, new))

    def _with_status(self, source: Source, obj: Raw, verdict: Verdict, writes: list[Write]) -> Plan:
        if source.kind is not SourceKind.CONFIG:
            return Plan(tuple(writes))
        is_settled = self._current.known.is_set() and self._counts.is_settled
        patch = status_patch(
            obj,
            verdict,
            published=self._counts.of(source),
            notes=self._counts.notes_on(source),
            is_settled=is_settled,
            now=self._clock.now(),
        )
        if patch is not None:
            writes.append(patch)
        again = None if is_settled or not verdict.is_valid else STATUS_SECONDS
        return Plan(tuple(writes), again)


def status_patch(
    obj: Raw,
    verdict: Verdict,
    *,
    published: Published,
    notes: Sequence[str],
    is_settled: bool,
    now: float,
) -> Patch | None:
    """The write that makes the status of a DRAConfig true, if it is not."""
    status = status_of(obj)
    new: Raw = {
        "conditions": get(status, "conditions", []),
        "resourceSliceCount": published.slices,
        "nodeCount": published.nodes,
    }
    for condition in (_validated(verdict), _ready(obj, verdict, notes, is_settled=is_settled)):
        whole = condition | {
            "observedGeneration": int(obj["metadata"].get("generation", 0)),
            "lastTransitionTime": timestamp(now),
        }
        new["conditions"] = with_condition(new["conditions"], whole)
    if all(status.get(key) == value for key, value in new.items()):
        return None
    identity = {"uid": uid_of(obj), "resourceVersion": obj["metadata"]["resourceVersion"]}
    return Patch(DRA_CONFIGS, name_of(obj), {"metadata": identity, "status": new}, "status")


def _validated(verdict: Verdict) -> Raw:
    if not verdict.is_valid:
        return _condition(
            Condition.VALIDATED, "False", Reason.INVALID_CONFIG, listed(verdict.problems)
        )
    return _condition(Condition.VALIDATED, "True", "Valid", listed(verdict.warnings))


def _ready(obj: Raw, verdict: Verdict, notes: Sequence[str], *, is_settled: bool) -> Raw:
    if not verdict.is_valid:
        kept = verdict.in_force is not None and verdict.valid_generation
        stays = f"; generation {verdict.valid_generation} stays in force" if kept else ""
        return _condition(
            Condition.READY, "False", "ValidationFailed", f"see {Condition.VALIDATED}{stays}"
        )
    if is_settled or _was_ready(obj):
        untold = max(len(notes) - _NOTES_MAX, 0)
        told = fitted(notes[:_NOTES_MAX], untold=untold)
        return _condition(Condition.READY, "True", "Published", told)
    return _condition(
        Condition.READY, "False", "Publishing", "dryrack has not checked all nodes yet"
    )


def _was_ready(obj: Raw) -> bool:
    """Nodes come and go all the time; that makes no version less published than it was."""
    known = condition_of(obj, Condition.READY) or {}
    generation = obj["metadata"].get("generation", 0)
    return known.get("status") == "True" and known.get("observedGeneration") == generation


def _condition(kind: str, status: str, reason: str, message: str) -> Raw:
    return {"type": kind, "status": status, "reason": reason, "message": message}
