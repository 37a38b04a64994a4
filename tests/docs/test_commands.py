"""The pages of the commands are complete, and their examples are valid calls."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests.docs.command_examples import EXAMPLES
from tests.docs.commands import FOLDER, PAGES, leaves, top

ROOT = Path(__file__).parents[2]
COMMANDS = {full: each for name, it in top().items() for full, each in leaves(name, it)}
# A call ends at a pipe, a redirection, or the end of a command substitution.
CALL = re.compile(r"dryrack ([^|>)]+)")


def test_every_command_has_examples() -> None:
    """No command is without examples, and no example is for a command that does not exist."""
    assert set(EXAMPLES) == set(COMMANDS)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_of_a_command_are_valid_calls(name: str) -> None:
    """The command accepts the arguments and options of its examples."""
    for example in EXAMPLES[name]:
        call = CALL.search(example.call)
        assert call is not None
        words = shlex.split(call[1].strip())
        depth = len(name.split())

        assert words[:depth] == name.split()
        COMMANDS[name].make_context(name, words[depth:])


def test_an_example_with_an_unknown_option_is_refused() -> None:
    """The check of the examples can fail."""
    with pytest.raises(Exception, match="No such option"):
        COMMANDS["allocate"].make_context("allocate", ["--unknown"])


def test_the_folder_has_a_page_for_each_command_and_no_other() -> None:
    """The page of a command that no longer exists is deleted."""
    assert {f"{FOLDER}/{path.name}" for path in (ROOT / FOLDER).iterdir()} == set(PAGES)
