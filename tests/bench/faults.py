"""
Random worlds with faults: every invariant at every write, and at rest.

    python -m tests.bench.faults --seeds 1000 --faults 200
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from dryrack.scenario import fuzz

PROGRESS_WORLDS = 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    began = time.monotonic()
    worlds = 0
    writes = 0
    broken = 0
    seeds = range(asked.first, asked.first + asked.seeds)
    for each in fuzz(seeds, asked.faults, jobs=asked.jobs):
        worlds = worlds + 1
        writes = writes + each.writes
        if each.problem:
            broken += 1
            file = Path(f"seed-{each.seed}.yaml")
            file.write_text(each.scenario)
            sys.stderr.write(f"seed {each.seed}, step {each.step}: {file}\n{each.problem}\n")
        if worlds % PROGRESS_WORLDS == 0:
            sys.stderr.write(f"bench: {worlds} of {len(seeds)} worlds, {broken} broke\n")
    seconds = time.monotonic() - began
    sys.stdout.write(
        f"{worlds} worlds with {asked.faults} faults each, {writes} writes, "
        f"in {seconds:.0f} s: {broken} broke\n"
    )
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
