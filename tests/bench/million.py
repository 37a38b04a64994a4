"""
The long comparison: a million generated cases, on all cores.

The cases are cut into pieces; each has an oracle of its own, and the first differences that it
finds come back as text, and with them the names of cases on which we give up. A case is
made by its number alone, so a comparison that was stopped goes on from the number that it last
printed.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from tests.allocation.generate import cases
from tests.cel.compare import differences
from tests.cel.generate import generate
from tests.cel.shrink import shrunk
from tests.oracle.differential import DIFFERENCES_MAX, compare, report
from tests.oracle.oracles import allocator_oracle, cel_oracle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Executor

PIECE_CASES = 2000
# A line for each piece would be too much to read.
PIECES_A_LINE = 10
# Otherwise most of the time would go into cases on which Kubernetes does not end at all.
TIMEOUT_SECONDS = 0.1
# The stream of `make bench`, apart from the one that every change is tested on.
SEED = 1_000_003

Piece: TypeAlias = "Callable[[int, int], Found]"


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a piece."""

    compared: int
    differences: tuple[str, ...]
    # The names of cases on which we give up.
    undecided: tuple[str, ...] = ()


def allocator_piece(start: int, count: int) -> Found:
    """Allocator cases `start` to `start + count`."""
    with allocator_oracle() as oracle:
        quick = {"timeoutSeconds": TIMEOUT_SECONDS}
        asked = ({**case, **quick} for case in cases(SEED, count, start=start))
        tally = compare(oracle, asked)
        differing = tuple(report(oracle, one) for one in tally.differences)
        return Found(tally.compared, differing, tuple(tally.undecided))


def cel_piece(start: int, count: int) -> Found:
    """Selectors `start` to `start + count`."""
    generated = [generate(f"bench-{number}") for number in range(start, start + count)]
    with cel_oracle() as oracle:
        few = islice(differences(oracle, generated), DIFFERENCES_MAX)
        found = [str(shrunk(one, difference, oracle)) for one, difference in few]
    return Found(count, tuple(found))


def million(what: str, piece: Piece, cases: range, *, jobs: int | None = None) -> Found:
    """Compares the cases with these numbers; says on standard error how far it has come."""
    compared = 0
    found = list[str]()
    undecided = list[str]()
    jobs = jobs or os.cpu_count() or 1
    with ProcessPoolExecutor(jobs) as pool:
        for done, result in enumerate(_in_order(pool, piece, cases), start=1):
            compared += result.compared
            found += result.differences
            undecided += result.undecided
            sys.stderr.writelines(f"{one}\n" for one in result.differences)
            reached = min(cases.start + done * PIECE_CASES, cases.stop)
            if done % PIECES_A_LINE == 0 or reached == cases.stop:
                state = f"{what}: up to {reached} of {cases.stop}, {len(found)} differ\n"
                sys.stderr.write(state)
    return Found(compared, tuple(found), tuple(undecided))


def _in_order(pool: Executor, piece: Piece, cases: range) -> Iterator[Found]:
    """Yield the result of each piece, in order."""
    starts = range(cases.start, cases.stop, PIECE_CASES)
    pieces = [pool.submit(piece, s, min(PIECE_CASES, cases.stop - s)) for s in starts]
    for done in pieces:
        yield done.result()
