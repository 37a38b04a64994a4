"""Violations of invariants, as values: which, of what, and how."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Invariant(StrEnum):
    """What must be so."""

    ONE_HOLDER = "no device is given twice"
    COUNTERS = "no counter is overdrawn"
    CAPACITY = "no capacity is overdrawn"
    AS_REQUESTED = "claims get what they ask for"
    ON_OFFER = "what is given is on offer"
    NO_LEAK = "nothing is leaked"
    PREPARED = "what runs is prepared"
    WHOLE_GANGS = "no gang is half bound"
    COMPLETE_POOLS = "pools are complete"
    BUDGETS = "budgets allow what pods say"
    VOLUMES = "claims of storage have their volumes"
    NO_STARVATION = "no pod waits in vain"


@dataclass(frozen=True, slots=True, order=True)
class Violation:
    """An invariant that does not hold, of what, and how."""

    invariant: Invariant
    subject: str
    message: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.subject}: {self.message}"
