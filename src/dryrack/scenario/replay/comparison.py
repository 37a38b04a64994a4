"""Compare two runs: pods on other nodes, pods that waited longer, pods without a node."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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
