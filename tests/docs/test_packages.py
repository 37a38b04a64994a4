"""The packages that guides show work: their entry points are found, and their tests pass."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.docs.console import files

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
NAMES = ("scheduler-plugins.md", "device-kinds.md")


@pytest.mark.parametrize("name", NAMES)
def test_packages_of_guides_pass_their_tests(name: str, tmp_path: Path) -> None:
    """A folder with the metadata of the package stands for its installation."""
    shown = files(GUIDES / name)
    for file, text in shown.items():
        (tmp_path / file).write_text(text)
    project = tomllib.loads(shown["pyproject.toml"])["project"]
    metadata = tmp_path / f"{project['name']}-{project['version']}.dist-info"
    metadata.mkdir()
    [(group, entries)] = project["entry-points"].items()
    lines = [f"[{group}]", *(f"{key} = {value}" for key, value in entries.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    (metadata / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
