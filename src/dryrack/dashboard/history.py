"""
The history of the page: the latest changes, each with the previous rows.

A past state is computed from the present one by undoing changes, the latest first. So no row is
stored twice, and the oldest changes are dropped first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dryrack.base.errors import ContentError, DryrackError
from dryrack.base.limits import DASHBOARD_MOMENT_DEVICES_MAX, DASHBOARD_MOMENTS_MAX
from dryrack.client.timekeeping import micro_timestamp, seconds_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dryrack.dashboard.data.fleet import PoolKey, PoolRow
    from dryrack.dashboard.data.tracked import Changes, Tracked
    from dryrack.placement import GangKey

Document = dict[str, Any]
# Revisions are 64 bits; Python refuses to convert thousands of digits.
_REVISION_DIGITS_MAX = 19
# Maximum number of texts for one moment.
_TEXTS_MAX = 20
# The reason of the condition with which the scheduler preempts a pod.
_PREEMPTION = "PreemptionByScheduler"
# A device that comes into one of these states from another one has a fault.
_FAULTS = frozenset(
    ("conflict", "tainted", "unhealthy", "not ready", "no node", "incomplete", "withdrawn")
)


class TimeError(DryrackError):
    """The text is neither a revision nor a time."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A change at a revision and time, with the previous rows and texts about it."""

    revision: int
    time: str
    pools: Mapping[PoolKey, PoolRow | None] = field(default_factory=dict)
    nodes: Mapping[str, Document | None] = field(default_factory=dict)
    pods: Mapping[str, Document | None] = field(default_factory=dict)
    claims: Mapping[str, Document | None] = field(default_factory=dict)
    gangs: Mapping[GangKey, tuple[Document, ...] | None] = field(default_factory=dict)
    # The number of devices by state after the change.
    states: Mapping[str, int] = field(default_factory=dict)
    texts: tuple[Document, ...] = ()
    # The number of omitted texts.
    more: int = 0
    # The number of changes by the mark of the time axis.
    marks: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_listed(self) -> bool:
        """Return whether the timeline shows the moment: a message about a pod alone is none."""
        return bool(self.texts or self.pools or self.nodes or not (self.pods or self.claims))

    @property
    def size(self) -> int:
        """Return the number of rows, which is what the moment costs in memory."""
        devices = sum(len(row.devices) for row in self.pools.values() if row is not None)
        return devices + len(self.pods) + len(self.claims) + len(self.gangs)

    def document(self) -> Document:
        return {
            "revision": self.revision,
            "time": self.time,
            "states": dict(self.states),
            "changes": list(self.texts),
            "more": self.more,
            "marks": dict(self.marks),
        }


@dataclass(frozen=True, slots=True)
class PastState:
    """The rows at a past revision."""

    revision: int
    time: str
    pools: Mapping[PoolKey, PoolRow]
    nodes: Mapping[str, Document]
    pods: Mapping[str, Document]
    claims: Mapping[str, Document]
    gangs: Mapping[GangKey, tuple[Document, ...]]


class History:
    """Moments in order; the state before the first one is unknown."""

    def __init__(self) -> None:
        self._moments: deque[Moment] = deque()
        self._size = 0

    def begin(self, revision: int, time: str, states: Mapping[str, int]) -> None:
        """Start the history with a first moment."""
        self._moments.append(Moment(revision, time, states=states))

    def add(self, revision: int, time: str, changes: Changes, states: Mapping[str, int]) -> None:
        """Add a moment; changes of Events alone are not part of the history."""
        texts = list(_describe(changes))
        rows = (changes.pools, changes.nodes, changes.pods, changes.claims, changes.gangs)
        if not any(rows):
            return
        marks: Counter[str] = Counter()
        for each in texts:
            if each["mark"]:
                marks[each["mark"]] += each.get("count", 1)
        moment = Moment(
            revision,
            time,
            changes.pools.before,
            changes.nodes.before,
            changes.pods.before,
            changes.claims.before,
            changes.gangs.before,
            states,
            tuple(texts[:_TEXTS_MAX]),
            max(0, len(texts) - _TEXTS_MAX),
            marks,
        )
        self._moments.append(moment)
        self._size += moment.size
        while len(self._moments) > DASHBOARD_MOMENTS_MAX or (
            self._size > DASHBOARD_MOMENT_DEVICES_MAX
        ):
            self._size -= self._moments.popleft().size

    @property
    def oldest(self) -> str:
        """The time of the first moment; empty before it."""
        return self._moments[0].time if self._moments else ""

    def timeline(self, start: str = "", end: str = "") -> list[Document]:
        """Return the moments from one time to another, in order."""
        start, end = (_time(each) if each else "" for each in (start, end))
        return [
            each.document()
            for each in self._moments
            if each.is_listed and start <= each.time and (not end or each.time <= end)
        ]

    def pod_rows(self, tracked: Tracked) -> Iterator[tuple[str, Document]]:
        """Yield every known version of every pod, by "namespace/name", the latest first."""
        yield from tracked.pods.current.items()
        for moment in reversed(self._moments):
            yield from ((name, row) for name, row in moment.pods.items() if row is not None)

    def gang_rows(self, tracked: Tracked) -> Iterator[Document]:
        """Yield every known version of every gang, the latest first."""
        for rows in tracked.gangs.current.values():
            yield from rows
        for moment in reversed(self._moments):
            for before in moment.gangs.values():
                yield from before or ()

    def state_at(self, at: str, tracked: Tracked) -> PastState:
        """Return the rows at a revision or a time; raise `ContentError` if they are unknown."""
        moment = self._moment(at)
        past = PastState(
            moment.revision,
            moment.time,
            dict(tracked.fleet.pools.current),
            dict(tracked.nodes.current),
            dict(tracked.pods.current),
            dict(tracked.claims.current),
            dict(tracked.gangs.current),
        )
        for each in reversed(self._moments):
            if each.revision <= moment.revision:
                break
            for rows, before in (
                (past.pools, each.pools),
                (past.nodes, each.nodes),
                (past.pods, each.pods),
                (past.claims, each.claims),
                (past.gangs, each.gangs),
            ):
                _undo(rows, before)
        return past

    def _moment(self, at: str) -> Moment:
        """Return the last moment that is not later than a revision or a time."""
        if at.isascii() and at.isdigit():
            if len(at) > _REVISION_DIGITS_MAX:
                raise TimeError(
                    f"at {at[:_REVISION_DIGITS_MAX]}...: the revision has too many digits"
                )
            place = bisect_right(self._moments, int(at), key=lambda each: each.revision)
        else:
            place = bisect_right(self._moments, _time(at), key=lambda each: each.time)
        if not place:
            if not self._moments:
                raise ContentError(f"at {at!r}: the history is empty")
            oldest = self._moments[0].time
            raise ContentError(f"at {at!r}: the history begins later, at {oldest}")
        return self._moments[place - 1]


def _time(text: str) -> str:
    """Return a time in the format of moments, which sorts by time."""
    try:
        return micro_timestamp(seconds_of(text))
    except (ValueError, OverflowError, OSError):
        raise TimeError(
            f"{text!r}: must be a revision, or a time, for example 2027-01-15T08:00:00Z"
        ) from None


def _undo(rows: Any, before: Mapping[Any, Any]) -> None:
    for key, row in before.items():
        if row is None:
            rows.pop(key, None)
        else:
            rows[key] = row


def _describe(changes: Changes) -> Iterator[Document]:
    """Yield the changes as texts with their marks: pods and nodes first, then devices."""
    for name, pod in changes.pods.after.items():
        for what, mark in _pod_changes(changes.pods.before[name], pod):
            yield {"kind": "pod", "name": name, "what": what, "mark": mark}
    for place, node in changes.nodes.after.items():
        what = _node_change(changes.nodes.before[place], node)
        if what:
            mark = "fault" if what == "not ready" else ""
            yield {"kind": "node", "name": place, "what": what, "mark": mark}
    counts: Counter[tuple[str, str, str]] = Counter()
    for key, row in changes.pools.after.items():
        counts.update(_device_changes(changes.pools.before[key], row))
    for (model, was, now), count in sorted(counts.items()):
        mark = "fault" if now in _FAULTS and was not in (*_FAULTS, "none") else ""
        what = f"{was} → {now}"
        yield {"kind": "devices", "name": model, "what": what, "count": count, "mark": mark}


def _pod_changes(old: Document | None, new: Document | None) -> Iterator[tuple[str, str]]:
    """Yield what happened to a pod, each with its mark on the time axis."""
    if new is None:
        yield "deleted", ""
        return
    if old is None:
        yield "created", "created"
    if new["node"] and not (old and old["node"]):
        yield f"bound to {new['node']}", "bound"
    elif old is not None and old["phase"] != new["phase"]:
        yield f"{old['phase']} → {new['phase']}", "failed" if new["phase"] == "Failed" else ""
    if old is not None and new["disruption"] and not old["disruption"]:
        is_preempted = new["disruption"] == _PREEMPTION
        yield (
            ("preempted" if is_preempted else f"evicted: {new['disruption']}"),
            ("preempted" if is_preempted else "evicted"),
        )


def _node_change(old: Document | None, new: Document | None) -> str:
    if old is None or new is None:
        return "created" if old is None else "deleted"
    if old["ready"] != new["ready"]:
        return "ready" if new["ready"] else "not ready"
    if old["cordoned"] != new["cordoned"]:
        return "cordoned" if new["cordoned"] else "uncordoned"
    return ""


def _device_changes(old: PoolRow | None, new: PoolRow | None) -> Iterator[tuple[str, str, str]]:
    before = {each.name: each for each in old.devices} if old is not None else {}
    after = {each.name: each for each in new.devices} if new is not None else {}
    for name in {**before, **after}:
        was = before.get(name)
        now = after.get(name)
        # A withdrawn device has no row after the change.
        device = was or now
        assert device is not None, "the device is in one of the pools"
        states = (was.state if was else "none", now.state if now else "none")
        if states[0] != states[1]:
            yield device.model, *states
