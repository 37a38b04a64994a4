"""The same file and seed give the same journal, byte for byte."""

from __future__ import annotations

import os
import subprocess
import sys

from dryrack.scenario import EmbeddedRun, load_packaged, run_in_virtual_time

SCENARIO = "karpenter-gpu"
PROGRAM = f"""
from dryrack.scenario import EmbeddedRun, load_packaged, run_in_virtual_time
print(run_in_virtual_time(load_packaged({SCENARIO!r}), EmbeddedRun(seed=5)).hash)
"""


def hash_of(seed: int, name: str = SCENARIO) -> str:
    return run_in_virtual_time(load_packaged(name), EmbeddedRun(seed=seed)).hash


def test_a_seed_decides_the_journal() -> None:
    """Run after run in one process; another seed gives another journal."""
    first = hash_of(5)

    assert {hash_of(5) for _ in range(4)} == {first}
    assert hash_of(6) != first


def test_another_process_has_the_same_journal() -> None:
    """Whatever order its sets and dictionaries come in."""
    environment = {**os.environ, "PYTHONHASHSEED": "77"}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)

    assert done.stdout.strip() == hash_of(5)


def test_the_lines_of_a_journal_can_be_heard() -> None:
    """Steps and writes, each with the scenario's time."""
    lines: list[str] = []
    run_in_virtual_time(load_packaged("fake-2"), EmbeddedRun(journal_line=lines.append))

    assert "0.000000 step 0 Both containers have the same one" in lines
    assert any(" create pods test2/pod0 " in line for line in lines)
