"""
Plans for random workloads, with HiGHS beside them, and for large workloads.

    python -m tests.bench.plan [--cases N] [--from SEED]

Each random workload has whole devices, shares, partitions, or constraints that bind. HiGHS solves
the integer programme of all configurations, which the decider gives. The first table compares the
costs with the optimum and with first-fit-decreasing; a plan or a bound that is wrong is printed
with its seed and makes the exit status 1. The second shows the time of large plans.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from statistics import mean, quantiles

from tests.planning.integer_programme import cheapest_by_highs
from tests.planning.workloads import (
    covering_of,
    empty_cluster,
    fits_together,
    large_case,
    random_case,
)

from dryrack.planning import plan
from dryrack.planning.columns import enumerate_all
from dryrack.planning.covering import maximal
from dryrack.planning.solving import solve_covering

CASES = 1_000
PODS_MAX = 40
LARGE_SEEDS = range(1, 7)
# HiGHS gets all configurations, up to so many questions to the decider.
_LOOKS_MAX = 20_000


@dataclass(frozen=True, slots=True)
class Measured:
    """One random workload: what its plan costs, in parts of the optimum, and its time."""

    first_fit: float
    bound: float
    seconds: float
    proof: str
    reach: str


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.plan")
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--from", type=int, default=0, dest="first")
    given = parser.parse_args()
    mistakes: list[str] = []
    measured: list[Measured] = []
    for seed in range(given.first, given.first + given.cases):
        one = _measure(seed, mistakes)
        if one is not None:
            measured.append(one)
    _print(measured)
    for mistake in mistakes:
        sys.stdout.write(f"MISTAKE {mistake}\n")
    sys.stdout.write("\n1,000 pods of ten kinds, five types\n")
    for seed in LARGE_SEEDS:
        case = large_case(seed)
        start = time.process_time()
        result = plan(case.workload, case.types, empty_cluster())
        seconds = time.process_time() - start
        above = float(result.cost / result.bound - 1) * 100
        sys.stdout.write(
            f"seed {seed}: {seconds:.2f} s of the processor, {len(result.nodes)} nodes, "
            f"{above:.2f} % above the bound\n"
        )
    return 1 if mistakes else 0


def _measure(seed: int, mistakes: list[str]) -> Measured | None:
    case = random_case(seed, pods_max=PODS_MAX)
    start = time.process_time()
    result = plan(case.workload, case.types, empty_cluster())
    seconds = time.process_time() - start
    case = case.without({each.pod for each in result.unplaceable})
    if not case.workload.members:
        return None
    for node in result.nodes:
        assert node.type is not None, "nothing exists in these cases"
        if not fits_together([pod.member for pod in node.pods], node.type):
            mistakes.append(f"seed {seed}: the decider refuses node {node.name}")
    with covering_of(case) as problem:
        solution = solve_covering(problem)
        every = enumerate_all(problem, _LOOKS_MAX)
        assert solution is not None, "each pod fits on a type"
        if every is None:
            return None
        best = cheapest_by_highs(problem, maximal(each for each in every if problem.fits(*each)))
    if float(result.bound) > best + 1e-6:
        mistakes.append(f"seed {seed}: the bound {result.bound} is above {best}")
    if result.is_optimal and abs(float(result.cost) - best) > 1e-6:
        mistakes.append(f"seed {seed}: the plan costs {float(result.cost)}, not {best}")
    if result.cost > solution.first_fit:
        mistakes.append(f"seed {seed}: first-fit-decreasing is cheaper")
    proof = "not proved" if not result.is_optimal else result.proof.partition(" (")[0]
    return Measured(
        float(solution.first_fit / Fraction(best)) - 1,
        1 - float(result.bound) / best,
        seconds,
        proof,
        result.reach.value,
    )


def _print(measured: list[Measured]) -> None:
    def line(name: str, values: list[float], unit: str, scale: float) -> str:
        high = quantiles(values, n=20)[18] if len(values) > 1 else values[0]
        numbers = (mean(values), high, max(values))
        mean_, p95, most = (f"{each * scale:.2f}{unit}" for each in numbers)
        return f"{name}: mean {mean_}, p95 {p95}, max {most}\n"

    sys.stdout.write(f"{len(measured)} random workloads with a plan, up to {PODS_MAX} pods\n")
    sys.stdout.write(
        line("first-fit-decreasing above HiGHS", [m.first_fit for m in measured], " %", 100)
    )
    sys.stdout.write(line("bound below HiGHS", [m.bound for m in measured], " %", 100))
    sys.stdout.write(line("time", [m.seconds for m in measured], " s", 1))
    sys.stdout.write(f"proofs: {dict(Counter(m.proof for m in measured))}\n")
    sys.stdout.write(f"placement: {dict(Counter(m.reach for m in measured))}\n")


if __name__ == "__main__":
    sys.exit(main())
