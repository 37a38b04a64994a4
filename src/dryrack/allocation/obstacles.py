"""
Summaries of reasons: each fact once, for all devices of which it is true.

The nearest causes come first. Events and explanations use the same sentences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.allocation.model.reasons import TAKEN, Code

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dryrack.allocation.model.reasons import Reason

# A reason that holds for many devices names this many of them.
_DEVICES_NAMED_MAX = 3
# In brief: what the request lacks, and the nearest causes.
_BRIEF_MAX = 3

# A device that nearly fits comes before one of another class.
_NEARNESS = (
    Code.NOT_ENOUGH,
    Code.NO_DEVICES,
    Code.TOO_MANY_RESULTS,
    Code.POOL_INCOMPLETE,
    Code.POOL_INVALID,
    Code.COMBINATION,
    Code.CONSTRAINT,
    Code.TAINTED,
    Code.IN_USE,
    Code.COUNTER_SHORT,
    Code.CAPACITY_SHORT,
    Code.CAPACITY_POLICY,
    Code.CAPACITY_ABSENT,
    Code.GATE_OFF,
    Code.SELECTOR_ERROR,
    Code.REQUEST_SELECTOR,
    Code.NODE,
    Code.CLASS_SELECTOR,
    Code.OTHER_CLAIM,
    Code.GANG,
    Code.ERROR,
    Code.NOT_FOUND,
    Code.ADMISSION,
    Code.PREEMPTED,
    Code.UNDECIDED,
)

# Codes of a node that has devices of the kind, but too few available ones.
_NEAR = (Code.NOT_ENOUGH, Code.TOO_MANY_RESULTS, Code.POOL_INCOMPLETE, Code.POOL_INVALID)


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One reason and all devices it holds for."""

    request: str
    code: Code
    fact: str
    remedy: str
    devices: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The fact, and the devices of which it is true."""
        request = f"request {self.request}: " if self.request else ""
        more = len(self.devices) - _DEVICES_NAMED_MAX
        named = ", ".join(self.devices[:_DEVICES_NAMED_MAX])
        devices = f"{named} and {more} more: " if more > 0 else f"{named}: " if named else ""
        return f"{request}{devices}{self.fact}"

    @property
    def message(self) -> str:
        """The sentence, and the change that would help."""
        return f"{self.sentence}; {self.remedy}" if self.remedy else self.sentence


def fold(reasons: Sequence[Reason]) -> tuple[Obstacle, ...]:
    """Return reasons that say the same, once; the nearest cause and the nearest device first."""
    together: dict[tuple[str, Code, str, str], list[str]] = {}
    distances: dict[tuple[str, Code, str, str], float] = {}
    for reason in reasons:
        key = (reason.request, reason.code, reason.fact, reason.remedy)
        together.setdefault(key, []).extend([reason.device] if reason.device else [])
        distances.setdefault(key, reason.distance)
    ordered = sorted(together, key=lambda key: (_NEARNESS.index(key[1]), distances[key]))
    return tuple(Obstacle(*key, devices=tuple(together[key])) for key in ordered)


def has_some(reasons: Iterable[Reason]) -> bool:
    """Return whether the node has devices of a requested kind, even if too few."""
    return any(each.code in _NEAR for each in reasons)


def brief(reasons: Sequence[Reason]) -> tuple[Obstacle, ...]:
    """
    Return the nearest causes for the request that got stuck, in a few sentences of `fold`.

    Devices of other claims are counted in the first sentence; named, they would change the text
    with each claim that comes or goes. So are devices that the class does not select.
    """
    stuck = [(each.claim, each.request.partition("/")[0]) for each in reasons]
    folded = fold([each for each, name in zip(reasons, stuck, strict=True) if name == stuck[0]])
    left_out = (*TAKEN, Code.CLASS_SELECTOR)
    return tuple(each for each in folded if each.code not in left_out)[:_BRIEF_MAX]
