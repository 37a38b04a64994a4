"""Print the results of `dryrack simulate`: tables and curves, JSON, or CSV."""

from __future__ import annotations

import csv
import sys
from typing import TYPE_CHECKING

from dryrack.base.escaping import json_text
from dryrack.cli.output import many, print_line, print_table, say
from dryrack.cli.simulate.options import SimulateFormat
from dryrack.simulation import FailedRun, Run, document, summarize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.simulation import Check

_CSV_COLUMNS = (
    *("policy", "fleet", "seed", "ties", "pods", "placed", "failed", "allocationRatio"),
    *("fragmentation", "waitMean", "waitP95", "preemptions", "cost"),
)


def print_results(check: Check, results: Sequence[Run | FailedRun], output: SimulateFormat) -> None:
    """Print the results in the order of the experiments."""
    for each in results:
        if isinstance(each, FailedRun):
            say(f"error: policy {each.policy}, seed {each.seed}, {each.fleet}: {each.error}")
    runs = [each for each in results if isinstance(each, Run)]
    if output is SimulateFormat.JSON:
        print_line(json_text(document(check, results), indent=2))
        return
    if output is SimulateFormat.CSV:
        _print_csv(runs)
        return
    _print_check(check)
    if runs:
        _print_tables(runs)


def _print_csv(runs: Sequence[Run]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(_CSV_COLUMNS)
    for run in runs:
        waits = run.waits.all
        cost = "" if run.cost is None else run.cost.total
        writer.writerow(
            (
                *(run.policy, run.fleet, run.seed, run.ties, run.pods, run.placed, run.failed),
                *(run.allocation_ratio, run.fragmentation, waits.mean, waits.p95),
                *(run.preemptions, cost),
            )
        )


def _print_check(check: Check) -> None:
    lines = [f"trace: {many(check.rows, 'row')}, {many(check.jobs, 'job')}"]
    lines += [f"{many(number, 'row')} left out: {why}" for why, number in check.dropped.items()]
    if check.censored:
        lines.append(f"{many(check.censored, 'job')} without a known end; their pods never end")
    lines += check.notes
    for line in lines:
        say(line)


def _print_tables(runs: Sequence[Run]) -> None:
    summaries = summarize(runs)
    first = {(run.policy, run.fleet): run for run in reversed(runs)}
    rows = []
    for each in summaries:
        run = first[each.policy, each.fleet]
        rows.append(
            (
                each.policy,
                each.fleet,
                str(each.runs),
                f"{100 * each.mean:.2f} %",
                f"{100 * each.sd:.2f}",
                f"{100 * run.fragmentation:.2f} %",
                f"{run.placed} of {run.pods}",
                run.ties,
            )
        )
    print_table(
        ("POLICY", "FLEET", "RUNS", "ALLOCATED", "SD", "FRAGMENTED", "PODS PLACED", "TIES"), rows
    )
