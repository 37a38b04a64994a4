"""
Slurm's accounting, as `sacct` prints it:

    SLURM_TIME_FORMAT=standard sacct -a -X -P -o JobIDRaw,Submit,Start,End,State,Partition,NNodes,\
ReqTRES,AllocTRES

Trackable resources are those of the whole job; a worker has the part of one node. A job on several
nodes is a gang. Times have no zone: all are taken as those of one zone.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from dryrack.simulation.importers.native import WORKERS_MAX
from dryrack.simulation.importers.openb import CLASS
from dryrack.simulation.tables import Table
from dryrack.simulation.workload import Check, Job, ShapeKey, Shapes, Trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.simulation.tables import Row

_REQUIRED = ("Submit", "Start", "End", "State", "NNodes", "ReqTRES")
_KNOWN = (
    *_REQUIRED,
    *("JobID", "JobIDRaw", "JobName", "Eligible", "Partition", "Priority", "AllocTRES"),
    *("Timelimit", "ReqMem", "Account", "QOS", "Restarts", "User", "Elapsed", "NCPUS"),
)
_UNKNOWN = ("", "Unknown", "None", "N/A")
_AMOUNT_MAX = 1e15
# Slurm's units are powers of 1024.
_UNITS = {"K": "Ki", "M": "Mi", "G": "Gi", "T": "Ti", "P": "Pi"}


def read_jobs(lines: Sequence[str], source: str) -> Trace:
    """Read the output of sacct; raises `TraceError`."""
    check = Check("sacct")
    shapes = Shapes()
    jobs: list[Job] = []
    typed = False
    for row in Table(lines, source, required=_REQUIRED, known=_KNOWN, delimiter="|"):
        check.rows += 1
        name = row.text("JobIDRaw") or row.text("JobID", f"job-{row.line}")
        submitted = _time(row, "Submit")
        started, ended = _time(row, "Start"), _time(row, "End")
        state = row.text("State").split()[0] if row.text("State") else ""
        if "." in name:
            check.drop("the row is a step of a job")
        elif submitted is None:
            check.drop("the submission time is unknown")
        elif started is None and state not in ("PENDING", "RUNNING"):
            check.drop("the job ended before it started")
        elif started is not None and ended is not None and ended < started:
            check.drop("the end is before the start")
        else:
            tres = _tres(row)
            typed |= any(each.startswith("gres/gpu:") for each in tres)
            nodes = max(1, row.whole("NNodes", 1, most=WORKERS_MAX))
            duration = None
            if started is not None and ended is not None:
                duration = ended - started
            check.censored += duration is None
            shape = shapes.of(_shape_key(row, tres, nodes))
            gang = nodes if nodes > 1 else 0
            queue = row.text("Partition")
            jobs.append(Job(name, submitted, duration, shape, nodes, gang, queue=queue))
    if typed:
        check.notes.append("types of GPUs are ignored; each GPU is a device of the same class")
    first = min((job.arrival for job in jobs), default=0.0)
    ordered = sorted(
        (
            Job(j.name, j.arrival - first, j.duration, j.shape, j.workers, j.gang, queue=j.queue)
            for j in jobs
        ),
        key=lambda job: job.arrival,
    )
    check.jobs = len(ordered)
    return Trace(tuple(ordered), check)


def _time(row: Row, column: str) -> float | None:
    text = row.text(column)
    if text in _UNKNOWN:
        return None
    if text.isdecimal():
        return row.number(column)
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise row.error(column, f"{text!r} is not a time such as 2026-01-31T08:00:00") from None


def _tres(row: Row) -> dict[str, str]:
    """Return the resources that the job requested, or has if it requested none."""
    text = row.text("ReqTRES") or row.text("AllocTRES")
    pairs = [each.partition("=") for each in filter(None, text.split(","))]
    for name, equals, _ in pairs:
        if not equals:
            raise row.error("ReqTRES", f"{name!r} is not NAME=AMOUNT")
    return {name: value for name, _, value in pairs}


def _shape_key(row: Row, tres: dict[str, str], nodes: int) -> ShapeKey:
    """Return the requests on one node."""
    untyped = tres.get("gres/gpu")
    typed = [value for name, value in tres.items() if name.startswith("gres/gpu:")]
    try:
        # The untyped number is the sum of the typed ones.
        gpus = sum(map(int, [untyped] if untyped is not None else typed))
        cpu = float(tres.get("cpu", "0"))
        memory = tres.get("mem", "0")
        unit = memory[-1:] if memory[-1:] in _UNITS else ""
        amount = float(memory.removesuffix(unit) if unit else memory)
    except ValueError as error:
        raise row.error("ReqTRES", str(error)) from None
    if not (gpus >= 0 <= cpu < _AMOUNT_MAX and 0 <= amount < _AMOUNT_MAX):
        raise row.error("ReqTRES", "an amount is negative or too large")
    kibi = _UNITS.get(unit, "Mi")
    smaller = {"Ki": ("", 1024), "Mi": ("Ki", 1024), "Gi": ("Mi", 1024), "Ti": ("Gi", 1024)}
    if amount % nodes and kibi in smaller:
        kibi, factor = smaller[kibi]
        amount *= factor
    return ShapeKey(
        cpu=f"{round(1000 * cpu / nodes)}m",
        memory=f"{-(-int(amount) // nodes)}{kibi}" if amount else "",
        devices=((CLASS, -(-gpus // nodes)),) if gpus else (),
    )
