"""Violations of invariants, as values: which, of what, and how."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Invariant(StrEnum):
    """An invariant that every scenario checks."""

    ONE_HOLDER = "no device is allocated twice"
    COUNTERS = "no counter is exceeded"
    CAPACITY = "no capacity is exceeded"
    AS_REQUESTED = "allocations match the requests"
    ON_OFFER = "allocated devices are published"
    NO_LEAK = "nothing is leaked"
    PREPARED = "devices of running pods are prepared"
    WHOLE_GANGS = "no gang is partly bound"
    COMPLETE_POOLS = "pools are complete"
    BUDGETS = "disruption budgets match their pods"
    VOLUMES = "volume claims are bound"
    NO_STARVATION = "no schedulable pod stays pending"


@dataclass(frozen=True, slots=True, order=True)
class Violation:
    """An invariant that does not hold, of what, and how."""

    invariant: Invariant
    subject: str
    message: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.subject}: {self.message}"
