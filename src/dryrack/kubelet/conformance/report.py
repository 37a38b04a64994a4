"""The result of a requirement."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Outcome(StrEnum):
    """The result of a requirement."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


class NotMetError(Exception):
    """The driver does not meet the requirement: what was sent, and what came."""

    def __init__(self, sent: str, got: str) -> None:
        super().__init__(f"{sent}: {got}")
        self.sent = sent
        self.got = got
        # The steps of a sequence that fails, and the number of the step that failed.
        self.steps: tuple[str, ...] = ()
        self.step = 0


class SkippedError(Exception):
    """The requirement does not apply to the driver; the text says why."""


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a requirement for a driver."""

    name: str
    # The sentence of the contract.
    contract: str
    outcome: Outcome
    sent: str = ""
    got: str = ""
    # Why the requirement was skipped.
    reason: str = ""
    seconds: float = 0.0
    # The smallest sequence of calls and faults that fails.
    steps: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the result as programs read it."""
        found: dict[str, Any] = {
            "requirement": self.name,
            "contract": self.contract,
            "outcome": str(self.outcome),
            "seconds": round(self.seconds, 3),
        }
        for key in ("sent", "got", "reason"):
            if getattr(self, key):
                found[key] = getattr(self, key)
        if self.steps:
            found["steps"] = list(self.steps)
        return found
