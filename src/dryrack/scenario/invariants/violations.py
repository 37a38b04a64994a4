"""Violations of invariants: the invariant, the object, what is wrong, and the fix."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Invariant(StrEnum):
    """An invariant that scenarios and `dryrack check` check."""

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

    @property
    def slug(self) -> str:
        """The name for options and reports, such as `one-holder`."""
        return self.name.lower().replace("_", "-")


@dataclass(frozen=True, slots=True, order=True)
class Violation:
    """An invariant that does not hold for an object, and how to correct it."""

    invariant: Invariant
    subject: str
    message: str
    fix: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.invariant}: {self.subject}: {self.message}"
