"""
Count the known bugs that random worlds find, each planted by its mutant.

    python -m tests.scenario.regression_worlds --seeds 10 --faults 20
"""

from __future__ import annotations

import argparse
import sys

import pytest
from tests.scenario.mutants import MUTANTS

from dryrack.scenario.fuzzing.fuzzing import run_seed


def find_failure(name: str, seeds: int, faults: int) -> str:
    """Return the first seed whose world fails, and how; "" if none does."""
    for seed in range(seeds):
        with pytest.MonkeyPatch.context() as patch:
            MUTANTS[name](patch)
            problem = run_seed(seed, faults).problem
        if problem:
            return f"seed {seed}: {problem.splitlines()[0]}"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--faults", type=int, default=20)
    parser.add_argument("mutants", nargs="*", default=[*MUTANTS])
    asked = parser.parse_args()
    missed = []
    for name in asked.mutants:
        failure = find_failure(name, asked.seeds, asked.faults)
        missed += [] if failure else [name]
        sys.stdout.write(f"{name}: {failure or 'not found'}\n")
        sys.stdout.flush()
    count = len(asked.mutants)
    sys.stdout.write(f"{count - len(missed)} of {count} mutants found\n")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
