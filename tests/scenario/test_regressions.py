"""
Bugs of other projects: each has a scenario that passes here and fails with a mutant of the bug.

The number of a scenario is that of the bug in `docs/internals/known-bugs.md`, which also describes
the bugs without a scenario.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.scenario.mutants import MUTANTS

from dryrack.scenario import EmbeddedRun, load_scenario, run_in_virtual_time

if TYPE_CHECKING:
    from dryrack.scenario import Outcome

REGRESSIONS = Path(__file__).parent / "regressions"


def run(name: str) -> Outcome:
    return run_in_virtual_time(load_scenario(REGRESSIONS / f"{name}.yaml"), EmbeddedRun())


def test_every_regression_has_a_mutant() -> None:
    """And every mutant has a scenario."""
    assert sorted(path.stem for path in REGRESSIONS.glob("*.yaml")) == sorted(MUTANTS)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_bug_does_not_occur(name: str) -> None:
    """The scenario passes."""
    assert run(name).failures == ()


@pytest.mark.parametrize("name", MUTANTS)
def test_a_bug_would_be_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the mutant, the scenario fails: by an invariant or by an expectation."""
    MUTANTS[name](monkeypatch)
    assert not run(name).held
