"""
Prints how we do beside Kubernetes' own code, on the same cases, in one run.

    python -m tests.bench [--cases N] [--from K] [--only allocator|selectors] [--jobs J]

First the times, as ratios; then N generated cases (a million unless said otherwise, 0 for
none), half of them for the allocator and half of them selectors, decided by both sides. Ends
with 1 if any case was decided differently; cases on which we give up are named. `--from` goes on
where a comparison was stopped, without the times; `--only` compares one half.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from tests.bench.expressions import EXPRESSIONS, HOSTILE
from tests.bench.million import allocator_piece, cel_piece, million
from tests.bench.scenes import adversarial, typical
from tests.bench.timing import (
    TIMEOUT_SECONDS,
    Row,
    adversarial_row,
    cel_row,
    hostile_row,
    typical_row,
)
from tests.golang import GoBuildError
from tests.oracle.oracles import allocator_oracle, cel_oracle

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CASES = 1_000_000
# The first few are read; the rest mostly repeat them.
SHOWN_MAX = 5
KINDS = {"allocator": allocator_piece, "selectors": cel_piece}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument("--cases", type=int, default=CASES, metavar="N", help="cases to compare")
    parser.add_argument(
        "--from", type=int, metavar="K", dest="start", help="the first of each kind"
    )
    parser.add_argument("--only", choices=KINDS, help="compare one kind of cases")
    parser.add_argument("--jobs", type=int, metavar="J", help="processes; one per core")
    wanted = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 140)
    partly = wanted.start is not None or wanted.only is not None
    different = 0 if partly else _measure(console)
    for kind in [wanted.only] if wanted.only else KINDS:
        cases = range(wanted.start or 0, wanted.cases // len(KINDS))
        different += _compare(console, kind, cases, wanted.jobs)
    return 1 if different else 0


def _measure(console: Console) -> int:
    """Prints all times; how many of the timed cases were decided differently."""
    rows = [*_times(console)]
    missed = [row.name for row in rows if not row.met]
    console.print("Times are what the thread used of the processor, the best of several runs.")
    console.print(f"{len(rows) - len(missed)} of {len(rows)} goals met")
    for row in rows:
        if not row.same:
            console.print(f"decided differently: {row.name}")
    return sum(not row.same for row in rows)


def _times(console: Console) -> Iterator[Row]:
    with allocator_oracle() as oracle:
        ordinary = (typical_row(oracle, scene) for scene in typical())
        yield from _table(console, "Typical: 500 devices", ordinary)
        hard = (adversarial_row(oracle, scene) for scene in adversarial())
        yield from _table(console, "Adversarial", hard)
    with cel_oracle() as oracle_of_cel:
        matches = (cel_row(oracle_of_cel, name, case) for name, case in EXPRESSIONS.items())
        yield from _table(console, "One evaluation of a selector", matches)
        attacks = (hostile_row(oracle_of_cel, name, case) for name, case in HOSTILE.items())
        yield from _table(console, "Hostile selectors, from text to answer", attacks)


def _table(console: Console, title: str, rows: Iterable[Row]) -> list[Row]:
    table = Table(title=title, title_justify="left", box=None)
    table.add_column("case")
    for heading in ("dryrack", "Kubernetes", "ratio"):
        table.add_column(heading, justify="right")
    table.add_column("goal")
    table.add_column("met")
    kept = []
    for row in rows:
        kept.append(row)
        times = (_time(row.ours), _time(row.theirs))
        table.add_row(row.name, *times, row.ratio, row.goal, "yes" if row.met else "no")
    console.print(table)
    console.print()
    return kept


def _time(nanos: int | None) -> str:
    if nanos is None:
        return f"gave up after {TIMEOUT_SECONDS:g} s"
    if nanos < 10_000:
        return f"{nanos} ns"
    return f"{nanos / 1e3:.0f} µs" if nanos < 10_000_000 else f"{nanos / 1e6:.0f} ms"


def _compare(console: Console, kind: str, cases: range, jobs: int | None) -> int:
    if not cases:
        return 0
    found = million(kind, KINDS[kind], cases, jobs=jobs)
    console.print(f"{kind}: {found.compared} cases compared, {len(found.differences)} differ")
    if found.undecided:
        console.print(f"{len(found.undecided)} not decided: {', '.join(found.undecided)}")
    for one in found.differences[:SHOWN_MAX]:
        console.print(one, markup=False, highlight=False, soft_wrap=True)
    return len(found.differences)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except GoBuildError as error:
        sys.exit(str(error))
