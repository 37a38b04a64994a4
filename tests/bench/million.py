"""
The long comparison: a million generated cases of each kind, on all cores.

The cases are cut into pieces; each has an oracle of its own, and the first differences that it
finds come back as text. Any piece can be run again alone: a case is made by its number.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from tests.allocation.generate import cases
from tests.cel.generate import generate
from tests.cel.shrink import shrunk
from tests.cel.test_oracle_cel import differences
from tests.oracle.differential import DIFFERENCES_MAX, compare, report
from tests.oracle.oracles import allocator_oracle, cel_oracle

if TYPE_CHECKING:
    from collections.abc import Callable

PIECE_CASES = 2000
# Otherwise most of the time would go into cases on which Kubernetes does not end at all.
TIMEOUT_SECONDS = 0.1
# The stream of `make bench`, apart from the one that every change is tested on.
SEED = 1_000_003

Piece: TypeAlias = "Callable[[int, int], Found]"


@dataclass(frozen=True, slots=True)
class Found:
    """What a piece came to."""

    compared: int
    differences: tuple[str, ...]


def allocator_piece(start: int, count: int) -> Found:
    """Allocator cases `start` to `start + count`."""
    with allocator_oracle() as oracle:
        quick = {"timeoutSeconds": TIMEOUT_SECONDS}
        asked = ({**case, **quick} for case in cases(SEED, count, start=start))
        tally = compare(oracle, asked)
        return Found(tally.compared, tuple(report(oracle, one) for one in tally.differences))


def cel_piece(start: int, count: int) -> Found:
    """Selectors `start` to `start + count`."""
    generated = [generate(f"bench-{number}") for number in range(start, start + count)]
    with cel_oracle() as oracle:
        few = islice(differences(oracle, generated), DIFFERENCES_MAX)
        found = [str(shrunk(one, difference, oracle)) for one, difference in few]
    return Found(count, tuple(found))


def million(what: str, piece: Piece, count: int) -> Found:
    """Compares `count` cases; progress goes to standard error."""
    starts = range(0, count, PIECE_CASES)
    compared = 0
    found: list[str] = []
    with _progress() as progress, ProcessPoolExecutor(os.cpu_count()) as pool:
        task = progress.add_task(what, total=count)
        pieces = [pool.submit(piece, s, min(PIECE_CASES, count - s)) for s in starts]
        for done in as_completed(pieces):
            compared += done.result().compared
            found += done.result().differences
            progress.advance(task, PIECE_CASES)
    return Found(compared, tuple(found))


def _progress() -> Progress:
    # Where nobody watches, a bar would only fill a log.
    console = Console(file=sys.stderr)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(
        *columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal
    )
