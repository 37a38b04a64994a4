"""The scenarios that come with dryrack: every one holds, and says what it shows."""

from __future__ import annotations

import json

import pytest

from dryrack.scenario import (
    DEMOS,
    SCHEMA,
    EmbeddedRun,
    LoadedScenario,
    load_packaged,
    packaged_names,
    run_in_virtual_time,
)
from dryrack.scenario.model import schema

NAMES = packaged_names()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.timeout(180)
def test_every_packaged_scenario_holds(name: str) -> None:
    """On a fresh control plane in this process, in virtual time."""
    assert run_in_virtual_time(load_packaged(name), EmbeddedRun()).failures == ()


@pytest.mark.parametrize("name", NAMES)
def test_every_packaged_scenario_says_what_it_shows(name: str) -> None:
    """A title for it and for each step, and something that each must come to."""
    loaded: LoadedScenario = load_packaged(name)

    assert loaded.scenario.title
    assert all(step.title for step in loaded.scenario.steps)
    assert any(step.expect for step in loaded.scenario.steps)


def test_the_demo_is_what_was_promised() -> None:
    """The seeds' scenarios, and a fleet."""
    assert set(DEMOS) <= set(NAMES)
    assert len(DEMOS) == 15


def test_the_published_schema_is_that_of_the_types() -> None:
    """To write it anew: python -m tests.scenario.schema_file."""
    assert json.loads(SCHEMA.read_text()) == schema()
