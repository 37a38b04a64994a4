"""Compare two runs, or a replay with its recording: the nodes and devices of pods."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dryrack.scenario.model import RecordedPod
    from dryrack.scenario.replay.placements import PodPlacement


# Times are whole seconds, so that one more or less says nothing.
_SECONDS_ALIKE = 1.0


class Difference(StrEnum):
    """The kind of a difference between two runs."""

    NOT_AT_ALL = "not at all"
    """It had a node in the first run alone."""
    NOW_PLACED = "now placed"
    """It has a node in the second run alone."""
    ELSEWHERE = "elsewhere"
    OTHER_DEVICES = "other devices"
    """On the same node."""
    LATER = "later"
    SOONER = "sooner"
    ABSENT = "absent"
    """There was no such pod in the second run."""
    NEW = "new"


@dataclass(frozen=True, slots=True)
class PodDifference:
    """One pod with another result in the second run."""

    pod: str
    what: tuple[Difference, ...]
    before: PodPlacement | None
    after: PodPlacement | None

    def document(self) -> dict[str, Any]:
        """Return the difference as plain data."""
        return {
            "pod": self.pod,
            "what": [str(each) for each in self.what],
            "before": self.before.document() if self.before else None,
            "after": self.after.document() if self.after else None,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """The pods with another result, and the number of all pods."""

    differences: tuple[PodDifference, ...]
    pods: int

    @property
    def counts(self) -> Mapping[Difference, int]:
        """Return the number of differences of each kind, the most serious first."""
        found = Counter(what for each in self.differences for what in each.what)
        return {what: found[what] for what in Difference if found[what]}

    def document(self) -> dict[str, Any]:
        """Return the comparison as plain data."""
        return {
            "pods": self.pods,
            "counts": {str(what): count for what, count in self.counts.items()},
            "differences": [each.document() for each in self.differences],
        }


def compare(before: Iterable[PodPlacement], after: Iterable[PodPlacement]) -> Comparison:
    """Compare the second run with the first; the most serious differences come first."""
    first = {each.pod: each for each in before}
    second = {each.pod: each for each in after}
    found = []
    for pod in sorted(first.keys() | second.keys()):
        what = tuple(_differences(first.get(pod), second.get(pod)))
        if what:
            found.append(PodDifference(pod, what, first.get(pod), second.get(pod)))
    order = list(Difference)
    found.sort(key=lambda each: (order.index(each.what[0]), each.pod))
    return Comparison(tuple(found), len(first.keys() | second.keys()))


def _differences(before: PodPlacement | None, after: PodPlacement | None) -> list[Difference]:
    if before is None or after is None:
        return [Difference.NEW if before is None else Difference.ABSENT]
    if not before.node or not after.node:
        if before.node:
            return [Difference.NOT_AT_ALL]
        return [Difference.NOW_PLACED] if after.node else []
    found = []
    if before.node != after.node:
        found.append(Difference.ELSEWHERE)
    elif before.devices != after.devices:
        found.append(Difference.OTHER_DEVICES)
    if after.waited - before.waited > _SECONDS_ALIKE:
        found.append(Difference.LATER)
    elif before.waited - after.waited > _SECONDS_ALIKE:
        found.append(Difference.SOONER)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Fidelity:
    """The result of comparing a replay with its recording; pods are named by namespace and name."""

    placed_then: int
    placed_now: int
    lost: tuple[str, ...] = ()
    """Pods that had a node in the recording and have none now, with the reason."""
    gained: tuple[str, ...] = ()
    """Pods that waited in the recording and have a node now."""
    moved: tuple[str, ...] = ()
    """Pods on another node, or with another number of devices, than in the recording."""

    @property
    def summary(self) -> str:
        """Return one line for people."""
        moved = f", {len(self.moved)} of them elsewhere or with other devices" if self.moved else ""
        return f"pods placed: {self.placed_then} in the recording, {self.placed_now} now{moved}"

    def document(self) -> dict[str, Any]:
        """Return the comparison as plain data."""
        return {
            "placedThen": self.placed_then,
            "placedNow": self.placed_now,
            "lost": list(self.lost),
            "gained": list(self.gained),
            "moved": list(self.moved),
        }


def fidelity_of(
    recorded: Iterable[RecordedPod], placements: Iterable[PodPlacement]
) -> Fidelity | None:
    """Compare the pods of a recording with a run; None if the scenario is no recording."""
    then = {each.pod: each for each in recorded}
    if not then:
        return None
    now = {each.pod: each for each in placements if each.pod in then}
    placed_now = {pod: each for pod, each in now.items() if each.node}
    lost = []
    gained = []
    moved = []
    for pod, before in sorted(then.items()):
        after = placed_now.get(pod)
        if before.node and after is None:
            lost.append(f"{pod}: {_reason(now.get(pod))}")
        elif after is not None and not before.node:
            gained.append(pod)
        elif after is not None and (after.node, len(after.devices)) != (
            before.node,
            before.devices,
        ):
            moved.append(pod)
    return Fidelity(
        placed_then=sum(bool(each.node) for each in then.values()),
        placed_now=len(placed_now),
        lost=tuple(lost),
        gained=tuple(gained),
        moved=tuple(moved),
    )


def _reason(placement: PodPlacement | None) -> str:
    if placement is None:
        return "the pod does not exist at the end of the replay"
    return placement.message or "no scheduler of the replay has tried the pod"
