"""
Compare the journals of repeated runs of a scenario with one seed, and measure each run.

    python -m tests.bench.replay [--runs N] [NAME...]

Every tenth run is in a process of its own, with another order of sets and dictionaries. It fails if
a scenario does not hold, or has two hashes.
"""

from __future__ import annotations

import argparse
import logging
import os
import subprocess
import sys
import time

from dryrack.scenario import DEMOS, EmbeddedRun, load_packaged, run_in_virtual_time

RUNS = 100
SEED = 7
# A run of it takes as long as a hundred of the others.
LARGE = ("fleet",)
PROGRAM = f"""
import sys
from dryrack.scenario import EmbeddedRun, load_packaged, run_in_virtual_time
print(run_in_virtual_time(load_packaged(sys.argv[1]), EmbeddedRun(seed={SEED})).hash)
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.replay")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("names", nargs="*", default=DEMOS)
    given = parser.parse_args()
    # A scenario with a mistake fails in the same way in each run.
    logging.getLogger("dryrack").addHandler(logging.NullHandler())
    good = [_replayed(name, 3 if name in LARGE else given.runs) for name in given.names]
    return 0 if all(good) else 1


def _replayed(name: str, runs: int) -> bool:
    loaded = load_packaged(name)
    hashes: list[str] = []
    held = True
    seconds = 0.0
    for number in range(runs):
        if number % 10 == 9:
            hashes.append(_elsewhere(name, number))
            continue
        began = time.perf_counter()
        outcome = run_in_virtual_time(loaded, EmbeddedRun(seed=SEED))
        seconds += time.perf_counter() - began
        held = held and outcome.held
        hashes.append(outcome.hash)
    same = hashes.count(hashes[0])
    here = runs - runs // 10
    sys.stdout.write(
        f"{name}: {same} of {runs} runs have one journal, {seconds / here:.2f} s each"
        f"{'' if held else '; it does not hold'}\n"
    )
    sys.stdout.flush()
    return held and same == runs


def _elsewhere(name: str, number: int) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": str(number)}
    command = [sys.executable, "-c", PROGRAM, name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
