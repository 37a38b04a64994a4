"""The documents are true where they use kubectl: their blocks are run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.console import follow, needs_kubectl
from tests.realcluster import programs
from tests.realcluster.releases import RELEASES

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/start.md")
# Whoever runs the tests has it installed.
INSTALL = "pip install .\n"
CONSOLES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if needs_kubectl(page)]


def blocks(page: str) -> list[str]:
    """The blocks that start a cluster and ask it something by kubectl."""
    found = re.findall(r"^```\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)
    plain = [each.removeprefix(INSTALL) for each in found]
    return [each for each in plain if each.startswith("dryrack up") and "\nkubectl" in each]


BLOCKS = [(page, number) for page in PAGES for number in range(len(blocks(page)))]


def run(script: str, home: Path) -> str:
    """What a shell prints that has both commands and nothing else to do."""
    kubectl = programs.kubernetes("kubectl", RELEASES["1.36"]).parent
    path = f"{Path(sys.executable).parent}:{kubectl}:{os.environ['PATH']}"
    own = {"DRYRACK_HOME": str(home), "KUBECONFIG": str(home / "default" / "kubeconfig")}
    try:
        done = subprocess.run(
            ["bash", "-ec", script],
            cwd=ROOT,
            env={**os.environ, **own, "PATH": path},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        down = [sys.executable, "-m", "dryrack", "down", "--all"]
        subprocess.run(down, env={**os.environ, **own}, capture_output=True, check=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(("page", "number"), BLOCKS)
def test_blocks_with_kubectl_can_be_followed(page: str, number: int, tmp_path: Path) -> None:
    """Every command succeeds, one after the other."""
    assert run(blocks(page)[number], tmp_path)


@pytest.mark.parametrize("page", CONSOLES, ids=lambda page: page.stem)
def test_consoles_with_kubectl_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    """Every command of the page, one after the other, in an empty folder."""
    kubectl = programs.kubernetes("kubectl", RELEASES["1.36"]).parent

    follow(page, tmp_path, kubectl)


def test_six_lines_lead_to_a_pod_with_a_device(tmp_path: Path) -> None:
    """The first thing that anybody tries: the pod runs, and a GPU is its own."""
    [block] = blocks("README.md")
    printed = run(block, tmp_path)

    assert len(f"{INSTALL}{block}".splitlines()) == 6
    assert re.search(r"^pod/one-h100 +1/1 +Running", printed, re.MULTILINE)
    assert re.search(r"^\S*/one-h100-gpu-\S+ +allocated,reserved", printed, re.MULTILINE)
