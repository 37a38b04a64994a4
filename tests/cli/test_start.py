"""Each command loads only the packages that it needs."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.cli.command import EXAMPLES

_FLEET = str(EXAMPLES / "nodes.yaml")
_ENGINES = frozenset({"apiserver", "client", "controllers", "scheduler", "store"})
_SHOW = """
import contextlib, sys
from dryrack.cli.main import run
sys.argv = ["dryrack", *sys.argv[1:]]
with contextlib.suppress(SystemExit):
    run()
print(" ".join(sys.modules), file=sys.stderr)
"""


def packages_after(*words: str) -> set[str]:
    """Return the packages that a command has loaded, and aiohttp and asyncio if loaded."""
    done = subprocess.run(
        [sys.executable, "-c", _SHOW, *words], capture_output=True, text=True, check=True
    )
    loaded = done.stderr.splitlines()[-1].split()
    packages = {name.split(".")[1] for name in loaded if name.startswith("dryrack.")}
    return packages | ({"aiohttp", "asyncio"} & set(loaded))


@pytest.mark.parametrize("words", [("--version",), ("up", "--help")])
def test_who_asks_the_program_about_itself_waits_for_no_room(words: tuple[str, ...]) -> None:
    """The version and the help are answered at once."""
    assert packages_after(*words) == {"base", "cli"}


def test_lint_loads_what_judges_and_nothing_that_runs() -> None:
    """It is run on every save of a file."""
    assert packages_after("lint", _FLEET) == {
        "base",
        "cel",
        "cli",
        "extension",
        "hardware",
        "kinds",
        "linter",
    }


def test_allocate_decides_without_a_cluster() -> None:
    """Neither engines nor the way to a cluster are loaded for files."""
    assert not packages_after("allocate", _FLEET) & {*_ENGINES, "aiohttp", "asyncio"}
