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


def modules_after(*words: str) -> set[str]:
    """Return the modules that a command has loaded."""
    done = subprocess.run(
        [sys.executable, "-c", _SHOW, *words], capture_output=True, text=True, check=True
    )
    return set(done.stderr.splitlines()[-1].split())


def packages_of(loaded: set[str]) -> set[str]:
    """Return the packages of dryrack in these modules, and aiohttp and asyncio if loaded."""
    packages = {name.split(".")[1] for name in loaded if name.startswith("dryrack.")}
    return packages | ({"aiohttp", "asyncio"} & loaded)


@pytest.mark.parametrize("words", [("--version",), ("up", "--help")])
def test_the_version_and_the_help_load_only_options(words: tuple[str, ...]) -> None:
    """The help names the releases of Kubernetes, and needs none of their tables."""
    loaded = modules_after(*words)

    assert packages_of(loaded) == {"base", "cli", "kinds"}
    assert {name for name in loaded if name.startswith("dryrack.kinds")} == {
        "dryrack.kinds",
        "dryrack.kinds.releases",
        "dryrack.kinds.releases.release",
    }


def test_lint_loads_no_engine() -> None:
    """An editor runs it each time that it saves a file."""
    assert packages_of(modules_after("lint", _FLEET)) == {
        "base",
        "cel",
        "cli",
        "extension",
        "hardware",
        "kinds",
        "linter",
    }


def test_allocate_decides_without_a_cluster() -> None:
    """For files, it loads neither engines nor the client of a cluster."""
    assert not packages_of(modules_after("allocate", _FLEET)) & {*_ENGINES, "aiohttp", "asyncio"}
