"""A run, told as it goes: steps with their verdicts, and the tables that they show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.cli.output import paint, print_line, shown
from dryrack.scenario import Verdict

if TYPE_CHECKING:
    from dryrack.scenario import Exhibit, LoadedScenario, Outcome, Step, StepOutcome

_MARKS = {Verdict.HELD: ("✓", "green"), Verdict.FAILED: ("✗", "bold red")}


class Narrator:
    """Prints a run as it goes."""

    def __init__(self, loaded: LoadedScenario) -> None:
        print_line(paint(f"== {loaded.scenario.title or loaded.name}", "bold"))

    def began(self, step: Step, at: float) -> None:
        """A step begins."""

    def shown(self, exhibit: Exhibit) -> None:
        """A step shows something."""

    def ended(self, outcome: StepOutcome) -> None:
        mark, style = _MARKS[outcome.verdict]
        took = outcome.ended - outcome.began
        print_line(f"{paint(mark, style)} {shown(outcome.title)} ({took:.1f} s)")
        for failure in outcome.failures:
            print_line(paint(f"    {shown(failure)}", "red"))


def print_verdict(outcome: Outcome) -> None:
    """The last line of a run."""
    word, style = ("holds", "bold green") if outcome.held else ("does not hold", "bold red")
    print_line(paint(f"{outcome.name} {word}", style) + f" after {outcome.seconds:.1f} s")
