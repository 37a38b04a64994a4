"""Java programs are built once per content, and a build that fails says what to do."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from tests.maven import MavenBuildError, build, missing_tools

if TYPE_CHECKING:
    from pathlib import Path

# Stands in for the JDK and Maven: tells a version, "builds" one class, and counts.
FAKE_TOOL = """#!{python}
import pathlib, sys
if sys.argv[1] == "--version":
    print("java 0")
    sys.exit()
with open({log!r}, "a") as log:
    log.write("built\\n")
if pathlib.Path("broken").exists():
    sys.exit("ClientTrial.java:1: syntax error")
(directory,) = (each.partition("=")[2] for each in sys.argv if each.startswith("-DbuildD"))
pathlib.Path(directory, "classes").mkdir(parents=True)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of one class, and fake tools that build it into a cache of its own."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("java", "javac", "mvn"):
        tool = tools / name
        tool.write_text(FAKE_TOOL.format(python=sys.executable, log=str(tmp_path / "log")))
        tool.chmod(0o700)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source = tmp_path / "project" / "src"
    source.mkdir(parents=True)
    (source / "Trial.java").write_text("class Trial {}")
    (source.parent / "pom.xml").write_text("<project/>")
    return source.parent


def builds(project: Path) -> int:
    return len((project.parent / "log").read_text().splitlines())


def test_the_same_java_program_is_built_once(project: Path) -> None:
    """A second build of unchanged sources finds the first; changed sources are built again."""
    first = build(project)
    assert build(project) == first
    assert (first.directory / "classes").is_dir()
    assert builds(project) == 1
    (project / "src" / "Trial.java").write_text("class Trial { /* changed */ }")
    assert build(project) != first
    assert builds(project) == 2


def test_a_java_build_that_fails_says_what_to_do(project: Path) -> None:
    """The message has the compiler's words and the command to try by hand."""
    (project / "broken").touch()
    with pytest.raises(MavenBuildError, match=r"syntax error\n.*Maven.*by hand: cd .* && mvn "):
        build(project)


def test_missing_tools_are_named(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a JDK nothing is built, and the error names what to install."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert missing_tools() == ["java", "javac", "mvn"]
    with pytest.raises(MavenBuildError, match="java, javac, mvn: not on the PATH; install a JDK"):
        build(project)
