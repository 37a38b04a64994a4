"""The files of the project agree with each other: license, changelog, package, and workflows."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import yaml

from dryrack.base.version import __version__

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
# Of the text that the Apache Software Foundation publishes as LICENSE-2.0.txt.
APACHE_2 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"


def test_the_license_is_verbatim() -> None:
    """A license with other words would be another license."""
    assert hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest() == APACHE_2


def test_the_changelog_has_this_version() -> None:
    """A version without a section would be released without notes."""
    assert f"\n## {__version__} (" in (ROOT / "CHANGELOG.md").read_text()


def test_every_fragment_has_a_known_type() -> None:
    """towncrier leaves out a fragment with another name."""
    types = [each["directory"] for each in PROJECT["tool"]["towncrier"]["type"]]
    known = re.compile(rf"[a-z0-9-]+\.({'|'.join(types)})\.md|README\.md|template\.md\.jinja")
    names = [path.name for path in (ROOT / "changelog.d").iterdir()]

    assert [name for name in names if not known.fullmatch(name)] == []


def test_towncrier_writes_a_release(tmp_path: Path) -> None:
    """A section with a heading for each type, and an entry for each line of a fragment."""
    (tmp_path / "changelog.d").mkdir()
    for name in ("pyproject.toml", "CHANGELOG.md", "changelog.d/template.md.jinja"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    (tmp_path / "changelog.d" / "a.added.md").write_text("`dryrack a` is new.\n")
    (tmp_path / "changelog.d" / "b.fixed.md").write_text("`dryrack b` works.\n")
    (tmp_path / "changelog.d" / "c.fixed.md").write_text("`dryrack c` works.\n`d` works.\n")
    build = [sys.executable, "-m", "towncrier", "build", "--keep", "--version", "9.9.9"]
    subprocess.run([*build, "--date", "2030-01-01"], cwd=tmp_path, check=True, capture_output=True)

    assert (
        "below this line -->\n\n"
        "## 9.9.9 (2030-01-01)\n\n"
        "### Added\n\n- `dryrack a` is new.\n\n"
        "### Fixed\n\n- `dryrack b` works.\n- `dryrack c` works.\n- `d` works.\n\n"
        f"## {__version__} ("
    ) in (tmp_path / "CHANGELOG.md").read_text()


def test_ci_runs_every_python_that_the_package_names() -> None:
    """The classifiers, the matrix of the workflow, and requires-python name the same versions."""
    prefix = "Programming Language :: Python :: 3."
    named = [
        f"3.{each.removeprefix(prefix)}"
        for each in PROJECT["project"]["classifiers"]
        if each.startswith(prefix)
    ]
    ci = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())

    assert ci["jobs"]["test"]["strategy"]["matrix"]["python"] == named
    assert PROJECT["project"]["requires-python"] == f">={named[0]}"


def test_actions_are_pinned_by_commit() -> None:
    """A tag of an action can move; a commit cannot."""
    used = [
        name
        for path in WORKFLOWS
        for name in re.findall(r"uses: (.*)", path.read_text())
        if name != "./"
    ]

    assert len(used) > 5
    assert [name for name in used if not re.fullmatch(r"\S+@[0-9a-f]{40} # v[\d.]+", name)] == []


def test_the_notice_names_files_that_exist() -> None:
    """A source of a file that was moved would be credited to nothing."""
    lines = re.findall(r"^  (?=\S+/)(.+)$", (ROOT / "NOTICE").read_text(), re.MULTILINE)
    folder = ""
    missing = []
    for name in (name for line in lines for name in line.split(", ")):
        # A name without a folder is in the folder of the name before it.
        path = name if "/" in name else f"{folder}/{name}"
        folder = path.rpartition("/")[0]
        missing += [] if list(ROOT.glob(path)) else [path]

    assert len(lines) > 10
    assert missing == []
