"""The pages of the examples are true: their commands are run by a shell, with kubectl."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs import console
from tests.examples import expectations
from tests.realcluster import programs
from tests.realcluster.releases import DEFAULT_RELEASE, RELEASES

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", expectations.names())
def test_the_commands_of_a_page_print_what_it_shows(name: str, tmp_path: Path) -> None:
    """One after the other, on the control plane that the first of them starts."""
    kubectl = programs.kubernetes("kubectl", RELEASES[DEFAULT_RELEASE]).parent
    own = {
        "DRYRACK_HOME": str(tmp_path),
        "KUBECONFIG": str(tmp_path / "default" / "kubeconfig"),
        "PATH": f"{Path(sys.executable).parent}:{kubectl}:{os.environ['PATH']}",
    }
    try:
        for each in console.examples(expectations.ROOT / name / "README.md"):
            done = shell(each.command, own)
            assert done.returncode == 0, f"{each.command}: {done.stdout}{done.stderr}"
            fits = each.output is None or console.fits(each.output, done.stdout)
            assert fits, f"{each.command}: {done.stdout}"
    finally:
        assert shell("dryrack down", own).returncode == 0


def shell(command: str, own: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command],
        cwd=ROOT,
        env={**os.environ, **own},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
