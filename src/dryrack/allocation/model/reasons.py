"""
Reasons for a missing allocation: values with stable codes, from the checks of the search.

A reason is about one request and mostly about one device. Codes are for programs and never
change; messages are for people. Reasons cost nothing until they are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
