"""Nothing is left out without a word, and nothing that is required is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.oracle.selection import left_out_line, selection

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def with_go(tmp_path: Path) -> dict[str, str]:
    """An environment whose PATH has a program called go."""
    program = tmp_path / "go"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return {"PATH": str(tmp_path)}


NO_GO = {"PATH": "/nonexistent"}


@pytest.mark.parametrize("expression", ["real", "(real)", "real and not slow"])
def test_asked_for_by_its_marker_it_runs(expression: str, with_go: dict[str, str]) -> None:
    """A run that names the marker compares, if Go is there."""
    assert selection(expression, with_go).runs
    assert not selection(expression, NO_GO).runs


@pytest.mark.parametrize("expression", ["", "not real", "not (real)", "slow"])
def test_not_asked_for_it_is_left_out(expression: str, with_go: dict[str, str]) -> None:
    """A run that does not name the marker, or refuses it, does not compare."""
    assert not selection(expression, with_go).runs


@pytest.mark.parametrize("expression", ["", "real"])
def test_required_it_runs_and_fails_without_go(expression: str) -> None:
    """If the comparison is required, a missing Go is an error."""
    assert selection(expression, {**NO_GO, "DRYRACK_REQUIRE_REAL": "1"}).runs


def test_one_line_says_how_many_were_left_out() -> None:
    """The line names the number, the reason and the command; no tests, no line."""
    assert left_out_line(0) == ""
    assert left_out_line(6) == (
        "left out: 6 tests that compare with Kubernetes' own code (need Go; run: make real)"
    )
    assert left_out_line(1).startswith("left out: 1 test that compares ")
