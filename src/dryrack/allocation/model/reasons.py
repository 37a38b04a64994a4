"""
Reasons for a missing allocation: values with stable codes, from the checks of the search.

A reason is about one request and mostly about one device. Codes are for programs and never
change; messages are for people. Reasons cost nothing until they are read. Summaries have each fact
once, for all devices of which it is true; the nearest causes come first.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dryrack.kinds.quantity import Quantity


class Code(IntEnum):
    """The cause that keeps a device from a request, or a request from being satisfied."""

    # 0 to 2 are taken by the table of `problem`.
    CLASS_SELECTOR = 3
    REQUEST_SELECTOR = 4
    IN_USE = 5
    NODE = 6
    GATE_OFF = 7
    CAPACITY_ABSENT = 8
    CAPACITY_POLICY = 9
    CAPACITY_SHORT = 10
    COUNTER_SHORT = 11
    TAINTED = 12
    CONSTRAINT = 13
    POOL_INCOMPLETE = 14
    POOL_INVALID = 15
    TOO_MANY_RESULTS = 16
    NOT_ENOUGH = 17
    NO_DEVICES = 18
    SELECTOR_ERROR = 19
    COMBINATION = 20
    OTHER_CLAIM = 21
    ERROR = 22
    NOT_FOUND = 23
    UNDECIDED = 24
    GANG = 25
    ADMISSION = 26
    PREEMPTED = 27
    INCOMPATIBLE = 28

    @property
    def text(self) -> str:
        """The code as programs read it."""
        return self.name.lower().replace("_", "-")


# Reasons that depend on other claims, as texts for a number of devices.
TAKEN = {
    Code.IN_USE: "in use",
    Code.CAPACITY_SHORT: "short of capacity",
    Code.COUNTER_SHORT: "short of counters",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One cause, mostly of one device."""

    claim: str
    request: str
    # "driver/pool/device", or "driver/pool" for a pool, or empty for the request as a whole.
    device: str
    code: Code
    # The state, for example "in use by claim x".
    fact: str
    # The change that would help.
    remedy: str
    # How many devices the request lacks, where that is the reason.
    lacking: int = 0
    # How far the device is from what selectors require: the sum over unmet conditions.
    distance: float = 0.0
    # How much of the capacity that is short a request can still have.
    left: Quantity | None = None

    @property
    def message(self) -> str:
        return f"{self.fact}; {self.remedy}" if self.remedy else self.fact


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
    Code.INCOMPATIBLE,
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
