"""
Events of the publisher: their reasons and texts, and the queue in which they wait.

The text of a problem has its line, its field and a fix. No event is written twice: an event about a
source is about one version of it. Events about the slices of a node are on the Node; events about
the slices of the whole cluster are on the source that they are from.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING

from dryrack.client.timekeeping import sleep
from dryrack.controllers.objects import labels_of, spec_of
from dryrack.controllers.writes import Report, WriteExecutor
from dryrack.hardware import SOURCE, SourceKind, find_capacity_mismatches
from dryrack.hardware.config_formats import Rest
from dryrack.hardware.pool_plan import pool_of
from dryrack.kinds.validation.parts import shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from dryrack.controllers.slices.current_inventory import SourceStatus
    from dryrack.controllers.writes import EngineContext
    from dryrack.hardware import Assignment
    from dryrack.hardware.config_formats import Reading
    from dryrack.hardware.pool_plan import PoolId
    from dryrack.kinds.documents import Problem
    from dryrack.kinds.raw import Raw

_logger = logging.getLogger(__name__)

# The API limits the message of an event, in bytes.
MESSAGE_MAX = 1024
_REST_MAX = len("and 1000000 more")

# An event lists this many parts; the rest is in the slices themselves.
_SHOWN = 4
_DROPPED = "the API server dropped fields of these slices: enable"
_UNKNOWN_GATES = "the feature gates that the devices need"

# The subject of events about the slices of a node. Others have the label of their source.
THE_NODE = ""
WAITING_MAX = 512
LOOK_SECONDS = 0.1
PATIENCE_SECONDS = 1.0


class Reason(StrEnum):
    """The reason of an event."""

    CONFIG_ACCEPTED = "ConfigAccepted"
    CONFIG_WARNING = "ConfigWarning"
    INVALID_CONFIG = "InvalidConfig"
    CAPACITY_MISMATCH = "CapacityMismatch"
    DEVICES_LEFT_OUT = "DevicesLeftOut"
    DEVICES_PUBLISHED = "DevicesPublished"
    DEVICES_REFUSED = "DevicesRefused"
    DEVICES_INCOMPLETE = "DevicesIncomplete"


EVENTS: Mapping[Reason, str] = {
    Reason.CONFIG_ACCEPTED: "on a source: dryrack uses this version",
    Reason.CONFIG_WARNING: (
        "on a source: dryrack uses this version, but the API does not accept all of it as written; "
        "the message lists each such field with its line and a fix"
    ),
    Reason.CAPACITY_MISMATCH: (
        "on a NodeOverlay: its capacity differs from the number of devices in its slices"
    ),
    Reason.INVALID_CONFIG: (
        "on a source: dryrack cannot read this version and keeps the last valid one; the message "
        "lists each problem with its line, its field and a fix"
    ),
    Reason.DEVICES_LEFT_OUT: (
        "on a source: devices are not published because other devices have the same name, or "
        "because their pool lacks what they need"
    ),
    Reason.DEVICES_PUBLISHED: (
        "on a node: its slices changed; on a source: the slices changed that it publishes for the "
        "whole cluster"
    ),
    Reason.DEVICES_REFUSED: (
        "on a node or a source: the API server rejects a slice; the existing slices stay"
    ),
    Reason.DEVICES_INCOMPLETE: (
        "on a node or a source: the API server dropped fields of a slice, because feature "
        "gates are disabled"
    ),
}


def counted(count: int, word: str) -> str:
    """Return a count with its noun: `1 device`, `2 devices`."""
    return f"1 {word}" if count == 1 else f"{count} {word}s"


def listed(problems: Sequence[Problem], *more: str) -> str:
    """
    Return one problem per line, as many as fit into an event; the lines of `more` always come last.

    Tables show the first line only, and descriptions show all lines.
    """
    texts = [_problem_text(each) for each in problems if not isinstance(each, Rest)]
    omitted = sum(each.count for each in problems if isinstance(each, Rest))
    return fitted(texts, *more, omitted=omitted)


def _problem_text(problem: Problem) -> str:
    # An object in a cluster has no lines; its message names the field.
    if problem.line:
        return str(problem)
    return f"{problem.message}; {problem.fix}" if problem.fix else problem.message


def fitted(parts: Sequence[str], *more: str, omitted: int = 0, between: str = "\n") -> str:
    """
    Return the parts that fit into an event; the rest is counted, together with `omitted`.

    The first part is always included; if it does not fit, its middle is cut.
    """
    free = MESSAGE_MAX - _REST_MAX - sum(len(each.encode()) + len(between) for each in more)
    fitting: list[str] = []
    for part in parts:
        if fitting and len(part.encode()) > free:
            break
        fitting.append(shortened(part, free - len(between)))
        free -= len(fitting[-1].encode()) + len(between)
    left = len(parts) - len(fitting) + omitted
    return between.join([*fitting, *([f"and {left} more"] if left else ()), *more])


def report(obj: Raw, reason: Reason, message: str, once: str = "") -> Report:
    """Return an event on an object; events without a problem are of type Normal."""
    is_normal = reason in (Reason.CONFIG_ACCEPTED, Reason.DEVICES_PUBLISHED)
    return Report(obj, "Normal" if is_normal else "Warning", reason, message, once)


def source_reports(obj: Raw, status: SourceStatus) -> Iterator[Report]:
    """Yield the events about a version of a source that was just read."""
    revision = status.revision
    reading = status.in_force
    if not status.is_valid:
        stays = "no valid version is known since the start: what is published for it stays as it is"
        if reading is not None:
            stays = f"the last valid version stays in force: {_summary(reading)}"
        yield report(obj, Reason.INVALID_CONFIG, listed(status.problems, stays), revision)
        return
    assert reading is not None, "what is valid is in force"
    yield report(obj, Reason.CONFIG_ACCEPTED, f"in force: {_summary(reading)}", revision)
    # An event of its own: among many warnings about spelling it could be one that is only counted.
    for text in mismatches(reading):
        yield report(obj, Reason.CAPACITY_MISMATCH, text, f"{revision} {text}")
    if status.warnings:
        yield report(obj, Reason.CONFIG_WARNING, listed(status.warnings), revision)


def note_reports(obj: Raw, status: SourceStatus, notes: Iterable[str]) -> Iterator[Report]:
    """Yield events for notes that pooling the devices caused, which the document does not show."""
    known = mismatches(status.in_force) if status.in_force is not None else ()
    for text in (each for each in notes if each not in known):
        yield report(obj, Reason.DEVICES_LEFT_OUT, fitted([text]), f"{status.revision} {text}")


def mismatches(reading: Reading) -> tuple[str, ...]:
    """Return a text for each capacity of an overlay that differs from its number of devices."""
    if reading.overlay is None:
        return ()
    return tuple(each.message for each in find_capacity_mismatches(reading.overlay))


def _summary(reading: Reading) -> str:
    if reading.overlay is not None:
        return counted(_devices([reading.overlay.assignment]), "device")
    assignments = reading.assignments
    is_config = any(each.origin.kind is SourceKind.CONFIG for each in assignments)
    parts = counted(len(assignments), "pool" if is_config else "mapping")
    return f"{counted(_devices(assignments), 'device')} in {parts}"


def _devices(assignments: Iterable[Assignment]) -> int:
    return sum(len(batch.devices) for each in assignments for batch in each.batches)


def change_texts(
    changed: Iterable[PoolId], desired: Mapping[PoolId, Sequence[Raw]], observed: Iterable[Raw]
) -> dict[str, str]:
    """Return the texts about pools that were written, by the subject of the event."""
    slices = {pool: list(desired.get(pool, ())) for pool in changed}
    pools: dict[str, set[PoolId]] = {}
    for each in chain(*slices.values(), observed):
        pools.setdefault(_subject(each), set()).add(pool_of(each))
    texts = {
        subject: [_pool_text(pool, slices[pool]) for pool in slices if pool in pools[subject]]
        for subject in sorted(pools)
    }
    return {subject: _first_parts(parts) for subject, parts in texts.items() if parts}


def drop_texts(slices: Sequence[Raw], gates: Collection[str] = ()) -> dict[str, str]:
    """
    Return the texts about slices with dropped fields, by the subject of the event.

    `gates` are the feature gates of the dropped fields.
    """
    many = "s" if len(gates) > 1 else ""
    named = f"the feature gate{many} {', '.join(gates)}" if gates else _UNKNOWN_GATES
    names: dict[str, list[str]] = {}
    for each in slices:
        names.setdefault(_subject(each), []).append(each["metadata"]["name"])
    return {
        subject: _first_parts(names[subject], f"{_DROPPED} {named}") for subject in sorted(names)
    }


def _subject(slice_: Raw) -> str:
    """Return `THE_NODE` for a slice of a node, and the label of the source for others."""
    return THE_NODE if spec_of(slice_).get("nodeName") else labels_of(slice_).get(SOURCE, "")


def _pool_text(pool: PoolId, slices: Sequence[Raw]) -> str:
    name = f"{pool.driver}/{pool.name}"
    if not slices:
        return f"{name}: removed"
    devices = sum(len(each["spec"].get("devices", ())) for each in slices)
    return f"{name}: {counted(devices, 'device')} in {counted(len(slices), 'slice')}"


def _first_parts(parts: Sequence[str], *more: str) -> str:
    omitted = max(len(parts) - _SHOWN, 0)
    return fitted(parts[:_SHOWN], *more, omitted=omitted, between="; ")


class EventQueue:
    """
    Events about slices, which are written after the slices.

    When many nodes come up, an event for each would be a third of all writes, and every slice
    would wait for the events of those before it. So events wait until the publisher is idle, but
    not longer than `PATIENCE_SECONDS`. Only the newest `WAITING_MAX` are kept, and the log shows
    how many were dropped.
    """

    def __init__(self, context: EngineContext, component: str, is_idle: Callable[[], bool]) -> None:
        self._clock = context.clock
        self._executor = WriteExecutor(context, component)
        self._is_idle = is_idle
        self._waiting: deque[Report] = deque(maxlen=WAITING_MAX)
        self._dropped = 0
        self._posted = asyncio.Event()

    def post(self, report: Report) -> None:
        self._dropped += len(self._waiting) == WAITING_MAX
        self._waiting.append(report)
        self._posted.set()

    async def run(self) -> None:
        while True:
            while not self._waiting:
                if self._dropped:
                    _logger.warning(
                        "dropped %d events about slices: more than %d were waiting to be written",
                        self._dropped,
                        WAITING_MAX,
                    )
                    self._dropped = 0
                self._posted.clear()
                await self._posted.wait()
            since = self._clock.now()
            while not self._is_idle() and self._clock.now() - since < PATIENCE_SECONDS:
                await sleep(self._clock, LOOK_SECONDS)
            await self._executor.carry_out((self._waiting.popleft(),))
