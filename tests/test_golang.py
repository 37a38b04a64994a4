"""Programs are built once per content, and a build that fails says what to do."""

from __future__ import annotations

import stat
import sys
from typing import TYPE_CHECKING

import pytest
from tests.golang import GoBuildError, build

if TYPE_CHECKING:
    from pathlib import Path

# Stands in for the Go tool: tells a version, copies nothing, "builds" one file, and counts.
FAKE_GO = """#!{python}
import pathlib, sys
if sys.argv[1] == "env":
    print("go0.0")
    sys.exit()
with open({log!r}, "a") as log:
    log.write("built\\n")
if pathlib.Path("broken").exists():
    sys.exit("main.go:1: syntax error")
pathlib.Path(sys.argv[sys.argv.index("-o") + 1], "ask").write_text("a program")
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module of one program, and a fake Go that builds it into a cache of its own."""
    tools = tmp_path / "tools"
    tools.mkdir()
    go = tools / "go"
    go.write_text(FAKE_GO.format(python=sys.executable, log=str(tmp_path / "log")))
    go.chmod(go.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source = tmp_path / "module" / "ask"
    source.mkdir(parents=True)
    (source / "main.go").write_text("package main")
    (source.parent / "go.mod").write_text("module ask")
    return source.parent


def builds(module: Path) -> int:
    return len((module.parent / "log").read_text().splitlines())


def test_the_same_content_is_built_once(module: Path) -> None:
    """A second build of unchanged sources finds the programs of the first."""
    first = build(module)
    second = build(module)

    assert first.path("ask").read_text() == "a program"
    assert first == second
    assert builds(module) == 1


def test_changed_sources_are_built_again(module: Path) -> None:
    """Programs are never older than the sources they stand for."""
    first = build(module)
    (module / "ask" / "main.go").write_text("package main // changed")
    second = build(module)

    assert first != second
    assert builds(module) == 2


def test_a_build_that_lost_the_race_uses_the_winner(
    module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes may build at once; the second to finish takes what is there."""
    winner = build(module)
    monkeypatch.setattr("pathlib.Path.exists", lambda path: path.name != winner.directory.name)

    assert build(module).directory == winner.directory
    assert builds(module) == 2


def test_a_failed_build_says_what_to_do(module: Path) -> None:
    """The compiler's words, then the needs, then the command to see it by hand."""
    (module / "broken").touch()

    with pytest.raises(GoBuildError, match=r"(?s)syntax error.*Go 1\.26.*cd .*go build"):
        build(module)


def test_without_go_the_advice_is_to_install_it(
    module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine without Go gets a sentence, not a traceback from a missing file."""
    monkeypatch.setenv("PATH", "")

    with pytest.raises(GoBuildError, match=r"install Go 1\.26"):
        build(module)
