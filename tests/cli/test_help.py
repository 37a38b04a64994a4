"""The help of the commands."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
import typer

from dryrack.base.version import __version__
from dryrack.cli.main import app
from dryrack.cli.virtual.options import ENGINES
from dryrack.cluster.assembly import assemble_engines

COMMANDS = [
    *("", "allocate", "explain", "lint", "up", "down", "publish", "hardware", "demo"),
    *("devices", "claims", "gangs", "fault", "fault device", "fault node", "fault clear"),
    *("examples", "examples list", "examples show", "examples copy"),
]


def output_of(*words: str, **environment: str) -> str:
    """Return the output of a command on 80 columns."""
    plain = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    done = subprocess.run(
        [sys.executable, "-m", "dryrack", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**plain, "COLUMNS": "80", **environment},
    )
    return done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_on_eighty_columns(command: str) -> None:
    """No line is longer, and no word is cut."""
    lines = output_of(*command.split(), "--help").splitlines()

    assert max(map(len, lines)) <= 80
    assert [line for line in lines if "…" in line] == []


@pytest.mark.parametrize("command", ["up", "publish"])
def test_many_options_are_shown_in_groups(command: str) -> None:
    """No option of a command that has a screenful of them is left over."""
    group: Any = typer.main.get_command(app)
    parameters = group.commands[command].params
    options = [each for each in parameters if each.param_type_name == "option"]
    options = [each for each in options if each.name != "help"]

    assert [each.name for each in options if not each.rich_help_panel] == []


def test_the_engines_that_can_be_left_out_are_named() -> None:
    """In the order in which they start; the text is fixed so that help need not load them."""
    names = [name for family in assemble_engines() for name in family.engines]

    assert ENGINES.split(", ") == names


@pytest.mark.parametrize("words", [("--help",), ("up", "--help"), ()])
def test_who_wants_no_colours_gets_plain_letters(words: tuple[str, ...]) -> None:
    """A terminal gets escapes; with NO_COLOR it gets none, not even for bold text."""
    assert "\x1b" in output_of(*words, FORCE_COLOR="1")
    assert "\x1b" not in output_of(*words, FORCE_COLOR="1", NO_COLOR="1")


def test_the_version_is_an_option_too() -> None:
    """People try that first."""
    assert output_of("--version") == output_of("version") == f"dryrack {__version__}\n"


@pytest.mark.parametrize("words", [("devices",), ("fault", "device"), ("up",), ()])
def test_help_fits_into_a_narrow_ascii_terminal(words: tuple[str, ...]) -> None:
    """The help shows each option in full, and has no letters as numbers."""
    narrow = {"COLUMNS": "40", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    done = subprocess.run(
        [sys.executable, "-m", "dryrack", *words, "--help"],
        env={**os.environ, **narrow},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "\\u" not in done.stdout
    assert "--kubeconfig " in done.stdout or not words
