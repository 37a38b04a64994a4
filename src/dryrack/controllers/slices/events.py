"""
Events of the publisher: the reasons that there are, their texts, and the queue that they wait in.

Of all that is wrong, each has its line, its field and what would put it right. No event is written
twice: one about a source is about one version of it. The slices of a node are told of on the node;
those of the whole cluster on the source that asked for them.
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
from dryrack.hardware import SOURCE, SourceKind, broken_promises
from dryrack.hardware.config_formats import Rest
from dryrack.hardware.pool_plan import pool_of
from dryrack.kinds.validation.parts import shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from dryrack.controllers.slices.current_inventory import Verdict
    from dryrack.controllers.writes import EngineContext
    from dryrack.hardware import Assignment
    from dryrack.hardware.config_formats import Reading
    from dryrack.hardware.pool_plan import PoolId
    from dryrack.kinds.documents import Problem
    from dryrack.kinds.raw import Raw

_logger = logging.getLogger(__name__)

# What an event may say at most, in bytes.
MESSAGE_MAX = 1024

_REST_MAX = len("and 1000000 more")

# An event is for people; the rest of a long list is in the slices themselves.
_SHOWN = 4

_DROPPED = (
    "the API server dropped fields of these slices: enable the feature gates that the devices need"
)

# Whose event tells of the slices of a node; of others, it is the source that their label names.
THE_NODE = ""

WAITING_MAX = 512
LOOK_SECONDS = 0.1
PATIENCE_SECONDS = 1.0


class Reason(StrEnum):
    """Why there is an event."""

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
    """`1 device`, `2 devices`."""
    return f"1 {word}" if count == 1 else f"{count} {word}s"


def listed(problems: Sequence[Problem], *more: str) -> str:
    """
    One thing a line, as many as an event can hold; what `more` says comes last in any case.

    Tables show the first line only, and descriptions show them all.
    """
    told = [_said(each) for each in problems if not isinstance(each, Rest)]
    untold = sum(each.count for each in problems if isinstance(each, Rest))
    return fitted(told, *more, untold=untold)


def _said(problem: Problem) -> str:
    # An object that was never a file has no lines; its fields are found by their names.
    if problem.line:
        return str(problem)
    return f"{problem.message}; {problem.fix}" if problem.fix else problem.message


def fitted(parts: Sequence[str], *more: str, untold: int = 0, between: str = "\n") -> str:
    """
    The parts that have room, the first in any case; the rest is counted, with the `untold`.

    A first part that has no room loses its middle.
    """
    room = MESSAGE_MAX - _REST_MAX - sum(_size(each) + len(between) for each in more)
    kept: list[str] = []
    for part in parts:
        if kept and _size(part) > room:
            break
        kept.append(shortened(part, room - len(between)))
        room -= _size(kept[-1]) + len(between)
    left = len(parts) - len(kept) + untold
    return between.join([*kept, *([f"and {left} more"] if left else ()), *more])


def _size(text: str) -> int:
    return len(text.encode())


def report(obj: Raw, reason: Reason, message: str, once: str = "") -> Report:
    """An event on an object; those that say that all is well are no warnings."""
    is_normal = reason in (Reason.CONFIG_ACCEPTED, Reason.DEVICES_PUBLISHED)
    return Report(obj, "Normal" if is_normal else "Warning", reason, message, once)


def source_reports(obj: Raw, verdict: Verdict) -> Iterator[Report]:
    """What there is to say about the version of the object that was just read."""
    revision = verdict.revision
    if not verdict.is_valid:
        message = listed(verdict.problems, _in_force(verdict))
        yield report(obj, Reason.INVALID_CONFIG, message, revision)
        return
    reading = verdict.in_force
    assert reading is not None, "what is valid is in force"
    yield report(obj, Reason.CONFIG_ACCEPTED, f"in force: {_summary(reading)}", revision)
    # By itself: among many warnings about spelling it would be one of those that are only counted.
    for text in mismatches(reading):
        yield report(obj, Reason.CAPACITY_MISMATCH, text, f"{revision} {text}")
    if verdict.warnings:
        yield report(obj, Reason.CONFIG_WARNING, listed(verdict.warnings), revision)


def note_reports(obj: Raw, verdict: Verdict, notes: Iterable[str]) -> Iterator[Report]:
    """What came up when the devices were put into pools, and the document alone does not show."""
    known = mismatches(verdict.in_force) if verdict.in_force is not None else ()
    for text in (each for each in notes if each not in known):
        yield report(obj, Reason.DEVICES_LEFT_OUT, fitted([text]), f"{verdict.revision} {text}")


def mismatches(reading: Reading) -> tuple[str, ...]:
    """Where an overlay promises another number of devices than it has."""
    if reading.overlay is None:
        return ()
    return tuple(each.message for each in broken_promises(reading.overlay))


def _in_force(verdict: Verdict) -> str:
    if verdict.in_force is None:
        return "no valid version is known since the start: what is published for it stays as it is"
    return f"the last valid version stays in force: {_summary(verdict.in_force)}"


def _summary(reading: Reading) -> str:
    if reading.overlay is not None:
        return counted(_devices([reading.overlay.assignment]), "device")
    found = reading.assignments
    is_config = any(each.origin.kind is SourceKind.CONFIG for each in found)
    parts = counted(len(found), "pool" if is_config else "mapping")
    return f"{counted(_devices(found), 'device')} in {parts}"


def _devices(assignments: Iterable[Assignment]) -> int:
    return sum(len(batch.devices) for each in assignments for batch in each.batches)


def change_texts(
    changed: Iterable[PoolId], desired: Mapping[PoolId, Sequence[Raw]], observed: Iterable[Raw]
) -> dict[str, str]:
    """What has become of the pools that were written, by the object whose event says so."""
    slices = {pool: list(desired.get(pool, ())) for pool in changed}
    pools: dict[str, set[PoolId]] = {}
    for each in chain(*slices.values(), observed):
        pools.setdefault(_subject(each), set()).add(pool_of(each))
    texts = {
        subject: [_pool_text(pool, slices[pool]) for pool in slices if pool in pools[subject]]
        for subject in sorted(pools)
    }
    return {subject: _first_few(parts) for subject, parts in texts.items() if parts}


def drop_texts(slices: Sequence[Raw]) -> dict[str, str]:
    """Of which slices the server has not kept all, by the object whose event says so."""
    names: dict[str, list[str]] = {}
    for each in slices:
        names.setdefault(_subject(each), []).append(each["metadata"]["name"])
    return {subject: _first_few(names[subject], _DROPPED) for subject in sorted(names)}


def _subject(slice_: Raw) -> str:
    """Whose event tells of a slice: the node, or the label of the source that asked for it."""
    return THE_NODE if spec_of(slice_).get("nodeName") else labels_of(slice_).get(SOURCE, "")


def _pool_text(pool: PoolId, slices: Sequence[Raw]) -> str:
    name = f"{pool.driver}/{pool.name}"
    if not slices:
        return f"{name}: removed"
    devices = sum(len(each["spec"].get("devices", ())) for each in slices)
    return f"{name}: {counted(devices, 'device')} in {counted(len(slices), 'slice')}"


def _first_few(parts: Sequence[str], *more: str) -> str:
    return fitted(parts[:_SHOWN], *more, untold=max(len(parts) - _SHOWN, 0), between="; ")


class EventQueue:
    """
    Events about slices, written after the slices; `run` keeps it going.

    When a fleet comes up, an event for each node would be a third of all writes, and every slice
    would wait for the events of those before it. So events wait until there is nothing better to
    do, but not for ever. The oldest of more than a few hundred are dropped, and the log says how
    many.
    """

    def __init__(self, context: EngineContext, component: str, is_calm: Callable[[], bool]) -> None:
        self._clock = context.clock
        self._hands = WriteExecutor(context, component)
        self._is_calm = is_calm
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
                self._tell_dropped()
                self._posted.clear()
                await self._posted.wait()
            await self._calm()
            await self._hands.carry_out((self._waiting.popleft(),))

    def _tell_dropped(self) -> None:
        if self._dropped:
            _logger.warning(
                "dropped %d events about slices: more than %d were waiting to be written",
                self._dropped,
                WAITING_MAX,
            )
            self._dropped = 0

    async def _calm(self) -> None:
        since = self._clock.now()
        while not self._is_calm() and self._clock.now() - since < PATIENCE_SECONDS:
            await sleep(self._clock, LOOK_SECONDS)
