"""Print the results of `dryrack simulate`: tables and curves, JSON, or CSV."""

from __future__ import annotations

import csv
import sys
from typing import TYPE_CHECKING

from dryrack.base.escaping import json_text
from dryrack.cli.output import many, print_line, print_table, say, shown
from dryrack.cli.simulate.options import SimulateFormat
from dryrack.simulation import FailedRun, Run, document, shard_document, summarize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.simulation import Check, Cost

_BLOCKS = " ▁▂▃▄▅▆▇█"
_WIDTH = 50
# The JSON output has all of them.
_REASONS_MAX = 3
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


def print_shard(place: tuple[int, int], results: Sequence[Run | FailedRun]) -> None:
    """Print the results of one shard, for `--merge`."""
    print_line(json_text(shard_document(place, results), indent=2))


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
    lines = [f"{check.format}: {many(check.rows, 'row')}, {many(check.jobs, 'job')}"]
    lines += [f"{many(number, 'row')} left out: {why}" for why, number in check.dropped.items()]
    if check.censored:
        jobs = many(check.censored, "job")
        end = "they never end" if check.endless else "they end with the trace"
        if 0 < check.endless < check.censored:
            end = f"{check.endless} never end, the others end with the trace"
        lines.append(f"{jobs} without a known end: {end}")
    for fleet, ratio in check.peak_demand.items():
        lines.append(
            f"greatest demand at one time: {check.peak_devices:g} devices, {100 * ratio:.1f} % of "
            f"{fleet}"
        )
    lines += check.notes
    for line in lines:
        say(shown(line))


def _print_tables(runs: Sequence[Run]) -> None:
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.policy, run.fleet), []).append(run)
    is_timed = any(run.duration for run in runs)
    columns = ["POLICY", "FLEET", "TIES", "RUNS", "ALLOCATED", "SD", "FRAGMENTED", "NEVER RAN"]
    columns += ["WAIT MEAN", "WAIT P95", "PREEMPTED"] if is_timed else []
    has_cost = any(run.cost for run in runs)
    columns += ["COST", "IDLE"] if has_cost else []
    rows = []
    for summary, group in zip(summarize(runs), groups.values(), strict=True):
        number = len(group)
        row = [summary.policy, summary.fleet, group[0].ties, str(number)]
        row += [f"{100 * summary.mean:.2f} %", f"{100 * summary.sd:.2f}"]
        row.append(f"{100 * sum(run.fragmentation for run in group) / number:.2f} %")
        row.append(f"{sum(run.failed for run in group) / number:g} of {group[0].pods}")
        if is_timed:
            row.append(_time(sum(run.waits.all.mean for run in group) / number))
            row.append(_time(sum(run.waits.all.p95 for run in group) / number))
            row.append(f"{sum(run.preemptions for run in group) / number:g}")
        costs = [run.cost for run in group if run.cost]
        if has_cost:
            row.append(_money(sum(each.total for each in costs) / number, costs))
            row.append(_money(sum(each.idle for each in costs) / number, costs))
        rows.append(row)
    print_table(columns, rows)
    for group in groups.values():
        _print_details(group[0], is_only=len(groups) == 1)


def _print_details(run: Run, *, is_only: bool) -> None:
    """Print the curve of a run, its waits by queue, and why pods never ran."""
    print_line()
    print_line(shown(f"{run.policy} on {run.fleet}, seed {run.seed}"))
    curve = [point.allocated for point in run.curve]
    at = "at the end" if run.curve and run.curve[-1].arrived is not None else "at most"
    value = curve[-1] if at == "at the end" else max(curve, default=0.0)
    print_line(f"  allocated   {_sparkline(curve)}  {at} {value:.1f} %")
    if any(point.waiting for point in run.curve):
        waiting = [float(point.waiting) for point in run.curve]
        print_line(f"  waiting     {_sparkline(waiting, max(waiting))}  at most {max(waiting):g}")
    by_model = run.utilisation.by_model
    if len(by_model) > 1 or is_only:
        parts = (f"{model} {100 * ratio:.1f} %" for model, ratio in by_model.items())
        print_line(shown(f"  by model    {', '.join(parts)}"))
    queues = run.waits.by_queue
    if len(queues) > 1:
        parts = (f"{name or '-'} {_time(each.mean)}" for name, each in queues.items())
        print_line(shown(f"  mean wait   {', '.join(parts)}"))
    for reason in run.unplaced[:_REASONS_MAX]:
        print_line(shown(f"  {many(reason.count, 'pod')} never ran: {reason.example}"))
    more = len(run.unplaced) - _REASONS_MAX
    if more > 0:
        print_line(f"  and {many(more, 'other reason')}; see them with -o json")


def _sparkline(values: Sequence[float], top: float = 100.0) -> str:
    """Return a curve of block characters."""
    if not values or not top:
        return ""
    width = min(_WIDTH, len(values))
    picked = [values[len(values) * place // width] for place in range(width)]
    last = len(_BLOCKS) - 1
    return "".join(_BLOCKS[max(0, min(last, round(last * each / top)))] for each in picked)


def _time(seconds: float) -> str:
    """Return a time in the largest unit that suits it."""
    for unit, size in (("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{seconds / size:.1f}{unit}"
    return f"{seconds:.1f}s"


def _money(amount: float, costs: Sequence[Cost]) -> str:
    return f"{amount:.2f} {costs[0].currency}" if costs else "-"
