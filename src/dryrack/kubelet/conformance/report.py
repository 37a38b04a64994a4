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
        return found
