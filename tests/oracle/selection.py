"""
Which tests may be left out, and how that is said.

A test marked `real` compares with Kubernetes' own code and needs Go. It runs when it is
asked for by its marker; otherwise it is left out, and the run ends with one line that says
so, because a comparison that silently did not happen looks like one that succeeded. Where
`DRYRACK_REQUIRE_REAL=1` nothing is left out: without Go such a test fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.golang import go_command

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Selection:
    """The comparisons of a run, and those that this machine can make."""

    asked: bool
    required: bool
    possible: bool

    @property
    def runs(self) -> bool:
        return self.required or (self.asked and self.possible)


def selection(marker_expression: str, environment: Mapping[str, str]) -> Selection:
    """The selection of a run started with `-m marker_expression`."""
    # Cut apart so that "not(real)" and "(real)" read as the words they mean.
    words = marker_expression.replace("(", " ").replace(")", " ").split()
    mentioned = "real" in words
    refused = mentioned and words[max(0, words.index("real") - 1)] == "not"
    return Selection(
        asked=mentioned and not refused,
        required=environment.get("DRYRACK_REQUIRE_REAL") == "1" and not refused,
        possible=go_command(environment) is not None,
    )


def left_out_line(count: int) -> str:
    """The one line about tests that were left out; empty if there are none."""
    if count == 0:
        return ""
    tests = "1 test that compares" if count == 1 else f"{count} tests that compare"
    return f"left out: {tests} with Kubernetes' own code (need Go; run: make real)"
