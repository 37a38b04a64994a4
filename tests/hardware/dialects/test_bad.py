"""
Configurations that cannot be used, and their problems.

Each file in `bad` is wrong in one way; the text beside it is everything that is said about it,
problem by problem, with the line and what to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.hardware.dialects.examples import BAD, config, read

from dryrack.hardware.config_formats import read_config, read_dra_config, read_overlay
from dryrack.hardware.config_formats.report import SHOWN_MAX

if TYPE_CHECKING:
    from pathlib import Path

FILES = sorted(BAD.glob("*.yaml"))

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{after}: &{after} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, after in zip("abcdefghi", "bcdefghij", strict=True)
)


@pytest.mark.timeout(10)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_everything_that_is_wrong_is_told(path: Path) -> None:
    """All problems of a file, each with its line and what would put it right; nothing is used."""
    reading = read(path)

    told = "".join(f"{problem}\n" for problem in reading.problems)

    assert told == path.with_suffix(".txt").read_text()
    assert reading.problems
    assert all(problem.fix for problem in reading.problems)
    assert all(problem.line > 0 for problem in reading.problems)
    assert not reading.assignments
    assert reading.overlay is None


def test_there_are_many_ways_to_be_wrong() -> None:
    """The collection stays a collection."""
    assert len(FILES) >= 40


@pytest.mark.timeout(2)
@pytest.mark.parametrize(
    "text",
    [
        config("- {name: gpu}\n" * 150_000),
        f"driver: gpu.example.com\n{BOMB}mappings: *j\n",
        config(f"- name: gpu-0\n  attributes: {{x: {'[' * 100_000}\n"),
        "driver: gpu.example.com\nmappings:\n" + "- {}\n" * 20_000,
        config("- {name: gpu, count: 1000000000}\n"),
        config("- {name: " + "a" * 200_000 + "!}\n"),
        config(f"- {{name: gpu-0, attributes: {{m: {{version: 1.2.3-{'a.' * 99_999}_}}}}}}\n"),
    ],
    ids=["2 MB", "aliases", "brackets", "mappings", "count", "name", "version"],
)
def test_hostile_text_ends_at_once(text: str) -> None:
    """Texts that would take long to read, or fill the memory, are refused with short messages."""
    reading = read_config(text, file="config.yaml")

    assert reading.problems
    assert len(reading.problems) <= SHOWN_MAX + 1
    assert all(len(str(problem)) < 1000 for problem in reading.problems)


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing yet\n", "---\n", "null\n"])
def test_an_empty_text_is_told_and_is_no_mistake(text: str) -> None:
    """An empty configuration defines no devices; a warning says so."""
    reading = read_config(text, file="config.yaml")

    assert not reading.problems
    assert not reading.assignments
    (warning,) = reading.warnings
    assert warning.message == "the configuration is empty: no devices are published from it"
    assert (warning.line, warning.fix) == (1, "add driver and mappings")


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"spec": None},
        {"spec": []},
        {"spec": "x"},
        {"spec": {"pools": 5}},
        {"spec": {"pools": [None]}},
        {"metadata": 5, "spec": {"driver": [], "pools": [{"resourceSlices": [[]]}]}},
    ],
)
def test_an_object_of_any_shape_is_answered(raw: dict[str, object]) -> None:
    """For any object there are problems, and no exception."""
    assert read_dra_config(raw).problems


@pytest.mark.parametrize("spec", [None, {}, [], "x", {"resourceSlices": []}])
def test_an_overlay_without_slices_says_nothing(spec: object) -> None:
    """Overlays are about prices too; one without slices is neither used nor refused."""
    reading = read_overlay({"kind": "NodeOverlay", "spec": spec})

    assert reading.overlay is None
    assert not reading.problems


def test_of_very_many_problems_the_first_are_told() -> None:
    """Only the first problems are shown; the last line has the number of the others."""
    text = "driver: gpu.example.com\nmappings:\n" + "- {}\n" * 500

    problems = read_config(text, file="config.yaml").problems

    assert len(problems) == SHOWN_MAX + 1
    assert problems[-1].message == "and 800 more problems"
