"""
Random small gangs, held against trying everything, and what gangs cost on a large cluster.

    python -m tests.bench.gangs [--cases N] [--from SEED]

Ends with 1 if a gang that fits was not found, or one was placed that does not. Gangs that were left
undecided are counted and named.
"""

from __future__ import annotations

import argparse
import sys
import time
from random import Random

from tests.placement.gang_worlds import claim, cluster, devices, gang, member, node, pool
from tests.placement.random_gangs import built, fits, is_sound, world

from dryrack.placement import GangPlaced, place_gang_now

CASES = 10_000
NODES = 10_000


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def compare(seeds: range) -> bool:
    """Return whether the search and the brute force agree on all gangs."""
    wrong = []
    undecided = []
    feasible = 0
    seconds = 0.0
    for seed in seeds:
        made = world(Random(seed))
        here, wanted, members = built(made)
        began = time.perf_counter()
        outcome = place_gang_now(wanted, members, here)
        seconds += time.perf_counter() - began
        truth = fits(made)
        found = isinstance(outcome, GangPlaced)
        feasible += truth
        if not isinstance(outcome, GangPlaced) and outcome.undecided:
            undecided.append(seed)
        elif found != truth or (
            isinstance(outcome, GangPlaced) and not is_sound(made, outcome.placements)
        ):
            wrong.append(seed)
    say(f"{len(seeds)} gangs, {feasible} of them feasible: {len(wrong)} wrong {wrong[:5]}")
    say(f"{len(undecided)} undecided {undecided[:5]}, {1000 * seconds / len(seeds):.1f} ms each")
    return not wrong


def cost() -> None:
    """Measure the cost to schedule and to refuse a gang of eight on a large cluster."""
    names = [f"n{i:05}" for i in range(NODES)]
    slices = [pool(name, devices(*(f"d{i}" for i in range(8)))) for name in names]
    for free, what in ((NODES, "all nodes free"), (7, "seven devices left")):
        here = cluster([node(name) for name in names], slices if free == NODES else [])
        for name in names[:free] if free < NODES else ():
            here.allocator.put_slice(pool(name, devices("d0")))  # type: ignore[attr-defined]
        for turn in ("first", "then"):
            members = [member(f"{turn}{i}", claim(f"{turn}{i}")) for i in range(8)]
            began = time.perf_counter()
            outcome = place_gang_now(gang(members), members, here)
            spent = 1000 * (time.perf_counter() - began)
            placed = "placed" if isinstance(outcome, GangPlaced) else "refused"
            say(f"{NODES} nodes, {what}, {turn}: gang of 8 {placed} in {spent:.1f} ms")


def main() -> int:
    arguments = argparse.ArgumentParser(description="Gangs against brute force")
    arguments.add_argument("--cases", type=int, default=CASES)
    arguments.add_argument("--from", type=int, default=0, dest="first")
    said = arguments.parse_args()
    agree = compare(range(said.first, said.first + said.cases)) if said.cases else True
    cost()
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
