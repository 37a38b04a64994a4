"""
The trace format of dryrack, `dryrack.dev/trace/v1`: CSV with a header, or JSON lines.

All amounts are those of one worker, never the sum of a job.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from dryrack.base.text import hint
from dryrack.kinds.decode import DecodeError
from dryrack.kinds.quantity import Quantity, QuantityError
from dryrack.simulation.tables import Row, Table, TraceError
from dryrack.simulation.workload import Check, Job, ShapeKey, Shapes, Trace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

COLUMNS = (
    *("name", "arrival", "duration", "workers", "gang", "min_workers", "priority", "queue"),
    *("cpu", "memory", "devices", "share", "selector"),
)
_REQUIRED = ("arrival",)
# More Pods in one job are more likely a mistake.
WORKERS_MAX = 100_000
# The largest priority of a PriorityClass that users create.
PRIORITY_MAX = 10**9


def read_trace(lines: Sequence[str], source: str) -> Trace:
    """Read a trace; raises `TraceError`."""
    check = Check("dryrack")
    shapes = Shapes()
    jobs: list[Job] = []
    first = next((line for line in lines if line.strip()), "")
    rows = _json_rows(lines, source) if first.lstrip().startswith("{") else _rows(lines, source)
    names: dict[str, int] = {}
    for row in rows:
        check.rows += 1
        job = _job(row, shapes)
        if job.name in names:
            raise row.error("name", f"{job.name!r} is also the name in line {names[job.name]}")
        names[job.name] = row.line
        check.censored += job.duration is None
        jobs.append(job)
    check.jobs = len(jobs)
    return Trace(tuple(sorted(jobs, key=lambda job: job.arrival)), check)


def _rows(lines: Sequence[str], source: str) -> Iterator[Row]:
    return iter(Table(lines, source, required=_REQUIRED, known=COLUMNS))


def _json_rows(lines: Sequence[str], source: str) -> Iterator[Row]:
    table = Table([",".join(COLUMNS)], source, required=_REQUIRED, known=COLUMNS)
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            document = json.loads(line)
        except ValueError as error:
            raise TraceError(f"{source}:{number}: not JSON: {error}") from error
        if not isinstance(document, dict):
            raise TraceError(f"{source}:{number}: expected an object with the fields of a job")
        for name in document:
            if name not in COLUMNS:
                raise TraceError(
                    f"{source}:{number}: unknown field {name!r}; {hint(name, COLUMNS)}"
                )
        if "arrival" not in document:
            raise TraceError(f"{source}:{number}: the field 'arrival' is missing")
        values = {
            name: json.dumps(value) if isinstance(value, bool) else str(value)
            for name, value in document.items()
            if value is not None
        }
        yield Row(table, values, number)


def _job(row: Row, shapes: Shapes) -> Job:
    workers = row.whole("workers", 1, least=1, most=WORKERS_MAX)
    gang = row.text("gang", "false").lower()
    if gang not in ("true", "false"):
        raise row.error("gang", f"{gang!r} is neither true nor false")
    least = row.whole("min_workers", workers, least=1, most=workers)
    key = ShapeKey(
        cpu=row.quantity("cpu"),
        memory=row.quantity("memory"),
        devices=tuple(_devices(row)),
        share=tuple(_share(row)),
        selector=row.text("selector"),
    )
    try:
        shape = shapes.of(key)
    except DecodeError as error:
        raise row.error("devices or selector", str(error)) from error
    return Job(
        name=row.text("name", f"job-{row.line}"),
        arrival=row.number("arrival"),
        duration=row.optional("duration"),
        shape=shape,
        workers=workers,
        # A gang of one is none.
        gang=least if gang == "true" and least > 1 else 0,
        priority=row.whole("priority", 0, least=-PRIORITY_MAX, most=PRIORITY_MAX),
        queue=row.text("queue"),
    )


def _devices(row: Row) -> Iterator[tuple[str, int]]:
    for part in filter(None, row.text("devices").split(";")):
        name, colon, count = part.strip().rpartition(":")
        if not colon or not name or not count.isdigit() or not int(count):
            raise row.error("devices", f"{part!r} is not CLASS:COUNT, such as gpu.nvidia.com:1")
        yield name, int(count)


def _share(row: Row) -> Iterator[tuple[str, str]]:
    for part in filter(None, row.text("share").split(";")):
        name, equals, quantity = part.strip().partition("=")
        try:
            is_valid = bool(equals and name) and Quantity.parse(quantity).nanos > 0
        except QuantityError:
            is_valid = False
        if not is_valid:
            raise row.error("share", f"{part!r} is not CAPACITY=QUANTITY, such as memory=10Gi")
        yield name, quantity
