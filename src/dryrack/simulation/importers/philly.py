"""
Microsoft's Philly trace: `cluster_job_log` and `cluster_machine_list`.

The log has no requests. The GPUs of a job are those of its last attempt, and each machine of the
attempt is a worker. Jobs ask for no CPU and no memory.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from dryrack.simulation.importers.openb import CLASS, GPUS_MAX, gpu_fleet
from dryrack.simulation.tables import Table, TraceError
from dryrack.simulation.workload import Check, Job, ShapeKey, Shapes, Trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.simulation.fleets import FleetSpec

_MACHINE = "machineId"
_GPUS = "number of GPUs"
_MEMORY = "single GPU mem"


def read_jobs(lines: Sequence[str], source: str) -> Trace:
    """Read the log of jobs; raises `TraceError`."""
    try:
        document = json.loads("\n".join(lines))
    except ValueError as error:
        raise TraceError(f"{source}: not JSON: {error}") from error
    if not isinstance(document, list) or not all(isinstance(each, dict) for each in document):
        raise TraceError(f"{source}: expected a list of jobs")
    check = Check("philly", rows=len(document))
    shapes = Shapes()
    jobs: list[Job] = []
    for number, each in enumerate(document):
        job = _job(each, f"{source}: job {number + 1}", shapes, check)
        if job is not None:
            jobs.append(job)
    first = min((job.arrival for job in jobs), default=0.0)
    ordered = sorted(
        (
            Job(
                job.name,
                job.arrival - first,
                job.duration,
                job.shape,
                job.workers,
                job.gang,
                queue=job.queue,
            )
            for job in jobs
        ),
        key=lambda job: job.arrival,
    )
    check.jobs = len(ordered)
    return Trace(tuple(ordered), check)


def _job(each: dict[str, Any], where: str, shapes: Shapes, check: Check) -> Job | None:
    submitted = _time(each.get("submitted_time"), where)
    if submitted is None:
        check.drop("the submission time is unknown")
        return None
    gpus: Counter[int] = Counter()
    duration = None
    for attempt in _read_objects(each, "attempts", where):
        start, end = _time(attempt.get("start_time"), where), _time(attempt.get("end_time"), where)
        machines = _read_objects(attempt, "detail", f"{where}, attempt")
        if machines:
            gpus = Counter(len(_read_list(machine, "gpus", where)) for machine in machines)
        if start is not None and end is not None:
            duration = (duration or 0.0) + max(0.0, end - start)
    sizes = [size for size in gpus if size]
    if not sizes:
        check.drop("the job never had a GPU, so its request is unknown")
        return None
    if duration is None:
        check.censored += 1
    workers = sum(gpus[size] for size in sizes)
    # Machines of one job with different numbers of GPUs count as equal, rounded up.
    total = sum(size * gpus[size] for size in sizes)
    shape = shapes.of(ShapeKey(devices=((CLASS, -(-total // workers)),)))
    name = str(each.get("jobid") or where.rpartition(" ")[2])
    gang = workers if workers > 1 else 0
    return Job(name, submitted, duration, shape, workers, gang, queue=str(each.get("vc") or ""))


def _read_list(each: dict[str, Any], field: str, where: str) -> list[Any]:
    """Return the list in a field, which is empty if the field is unset."""
    value = each.get(field) or []
    if not isinstance(value, list):
        raise TraceError(f"{where}: {field} is not a list")
    return value


def _read_objects(each: dict[str, Any], field: str, where: str) -> list[dict[str, Any]]:
    """Return the objects in a list."""
    values = _read_list(each, field, where)
    if not all(isinstance(value, dict) for value in values):
        raise TraceError(f"{where}: {field} is not a list of objects")
    return values


def _time(text: object, where: str) -> float | None:
    if text in (None, "", "None"):
        return None
    try:
        return datetime.fromisoformat(str(text)).replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise TraceError(f"{where}: {text!r} is not a time such as 2017-10-07 01:02:03") from None


def read_machines(lines: Sequence[str], source: str) -> FleetSpec:
    """Read the list of machines; raises `TraceError`."""
    table = Table(lines, source, required=(_MACHINE, _GPUS), known=(_MACHINE, _GPUS, _MEMORY))
    return gpu_fleet(
        source,
        (
            (
                row.text(_MACHINE),
                {"cpu": "1000"},
                row.text(_MEMORY),
                row.whole(_GPUS, most=GPUS_MAX),
            )
            for row in table
        ),
    )
