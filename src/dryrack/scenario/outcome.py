"""The outcome of a scenario: a verdict for every step and expectation."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dryrack.scenario.replay.comparison import Fidelity
    from dryrack.scenario.replay.placements import PodPlacement


class Verdict(StrEnum):
    """The verdict of a step."""

    HELD = "held"
    FAILED = "failed"
    SKIPPED = "skipped"
    """It was not begun, because another had failed."""


@dataclass(frozen=True, slots=True)
class ExpectationOutcome:
    """An expectation, and what did not hold at the end."""

    expected: str
    lacking: tuple[str, ...]
    seconds: float
    """How long it took after the action of its step."""

    @property
    def held(self) -> bool:
        return not self.lacking

    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "expected": self.expected,
            "held": self.held,
            "seconds": round(self.seconds, 3),
        }
        return found | ({"lacking": list(self.lacking)} if self.lacking else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutcome:
    """The outcome of one step; times are those of the scenario."""

    id: str
    title: str
    verdict: Verdict
    began: float = 0.0
    ended: float = 0.0
    expectations: tuple[ExpectationOutcome, ...] = ()
    problem: str = ""
    """The error that prevented the step."""

    @property
    def failures(self) -> tuple[str, ...]:
        lacking = tuple(what for each in self.expectations for what in each.lacking)
        return (self.problem, *lacking) if self.problem else lacking

    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = {"id": self.id} if self.id else {}
        found |= {
            "title": self.title,
            "verdict": str(self.verdict),
            "began": round(self.began, 3),
            "ended": round(self.ended, 3),
            "expectations": [each.document() for each in self.expectations],
        }
        return found | ({"problem": self.problem} if self.problem else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of one run of a scenario."""

    name: str
    title: str
    seed: int
    steps: tuple[StepOutcome, ...]
    seconds: float
    """The duration, in the scenario's time."""
    writes: int = 0
    """The number of writes in the journal."""
    hash: str = ""
    """The hash of the journal; "" if the run was not reproducible."""
    problem: str = ""
    """Why the run did not end, or which invariant does not hold."""
    placements: tuple[PodPlacement, ...] = ()
    """The nodes and devices of its pods at the end."""
    fidelity: Fidelity | None = None
    """The comparison with the recording; None for a scenario that is no recording."""

    @property
    def held(self) -> bool:
        steps_held = all(each.verdict is Verdict.HELD for each in self.steps)
        return steps_held and not self.problem and not self.lost

    @property
    def lost(self) -> tuple[str, ...]:
        """Return the pods that had a node in the recording and have none now, with the reason."""
        return self.fidelity.lost if self.fidelity else ()

    @property
    def failures(self) -> tuple[str, ...]:
        steps = [f"{each.title}: {what}" for each in self.steps for what in each.failures]
        lost = [f"scheduled in the recording, not scheduled now: {each}" for each in self.lost]
        return (*steps, *lost, *([self.problem] if self.problem else ()))

    @property
    def waiting(self) -> tuple[str, ...]:
        """Return the pods without a node at the end, and why; one line for each gang."""
        found = {each.message: each.pod for each in reversed(self.placements) if each.message}
        return tuple(f"pod {pod} is pending: {message}" for message, pod in reversed(found.items()))

    def document(self) -> dict[str, Any]:
        """Return the outcome as plain data."""
        found: dict[str, Any] = {
            "name": self.name,
            "title": self.title,
            "seed": self.seed,
            "held": self.held,
            "seconds": round(self.seconds, 3),
            "steps": [each.document() for each in self.steps],
            "writes": self.writes,
            "pods": [each.document() for each in self.placements],
        }
        found |= {"recorded": self.fidelity.document()} if self.fidelity else {}
        found |= {"hash": self.hash} if self.hash else {}
        return found | ({"problem": self.problem} if self.problem else {})
