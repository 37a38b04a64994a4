"""An allocation does not depend on the order of Python's sets and hashes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = """
from random import Random
from hashlib import sha256
from tests.allocation.builders import allocator, node
from tests.allocation.entangled import entangled
from tests.allocation.generate import generate
from tests.oracle.verdicts import our_verdict
from dryrack.allocation import Allocated, AllocationError

digest = sha256()
for seed in range(60):
    digest.update(repr(our_verdict(generate(Random(seed)))).encode())
    slices, claims = entangled(Random(seed))
    try:
        outcome = allocator(slices).allocate(node(), claims)
        told = outcome.results if isinstance(outcome, Allocated) else outcome.reasons
    except AllocationError as error:
        told = error
    digest.update(repr(told).encode())
print(digest.hexdigest())
"""


def test_answers_do_not_depend_on_the_hash_seed() -> None:
    """Verdicts, devices and reasons of many problems, under three seeds of Python's hash."""
    digests = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "4294967295")
    }

    assert len(digests) == 1
