"""
Alibaba's trace of spot GPUs, v2026: `job_info_df.csv` and `node_info_df.csv`.

The trace does not say whether the workers of a job run together; each is placed by itself. Nodes
have no memory, and jobs ask for none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.simulation.importers.native import WORKERS_MAX
from dryrack.simulation.importers.openb import CLASS, DRIVER, GPUS_MAX, gpu_fleet
from dryrack.simulation.tables import Table
from dryrack.simulation.workload import MILLI, Check, Job, ShapeKey, Shapes, Trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.simulation.fleets import FleetSpec

_JOB_COLUMNS = (
    *("job_name", "organization", "gpu_model", "cpu_request", "gpu_request", "worker_num"),
    *("submit_time", "duration", "job_type"),
)
_NODE_COLUMNS = ("gpu_model", "gpu_capacity_num", "cpu_num", "node_name")
_PRIORITY = {"HP": 100, "Spot": 0}
_WHOLE = 1000


def read_jobs(lines: Sequence[str], source: str) -> Trace:
    """Read the jobs; raises `TraceError`."""
    check = Check("spot2026")
    shapes = Shapes()
    jobs = []
    for row in Table(lines, source, required=_JOB_COLUMNS, known=("", *_JOB_COLUMNS)):
        check.rows += 1
        workers = row.whole("worker_num", 1, most=WORKERS_MAX)
        gpus = row.number("gpu_request", 0)
        if not workers:
            check.drop("the job has no workers")
            continue
        if gpus > 1 and gpus % 1:
            check.drop("the job requests a part of a GPU in addition to whole ones")
            continue
        kind = row.text("job_type")
        if kind not in _PRIORITY:
            raise row.error("job_type", f"{kind!r} is neither HP nor Spot")
        count, shared = (int(gpus), False) if gpus >= 1 else (1 if gpus else 0, gpus > 0)
        model = row.text("gpu_model")
        selector = f'device.attributes["{DRIVER}"].model == "{model}"'
        key = ShapeKey(
            cpu=f"{round(_WHOLE * row.number('cpu_request', 0))}m",
            devices=((CLASS, count),) if count else (),
            share=((MILLI, str(round(_WHOLE * gpus))),) if shared else (),
            selector=selector if model and count else "",
        )
        jobs.append(
            Job(
                name=row.text("job_name", f"job-{row.line}"),
                arrival=row.number("submit_time"),
                duration=row.optional("duration"),
                shape=shapes.of(key),
                workers=workers,
                priority=_PRIORITY[kind],
                queue=row.text("organization"),
            )
        )
    check.jobs = len(jobs)
    check.censored = sum(job.duration is None for job in jobs)
    check.notes.append("the trace does not record which jobs are gangs; none is treated as one")
    return Trace(tuple(sorted(jobs, key=lambda job: job.arrival)), check)


def read_nodes(lines: Sequence[str], source: str) -> FleetSpec:
    """Read the nodes; raises `TraceError`."""
    table = Table(lines, source, required=_NODE_COLUMNS, known=("", *_NODE_COLUMNS))
    return gpu_fleet(
        source,
        (
            (
                row.text("node_name", f"node-{row.line}"),
                {"cpu": f"{round(_WHOLE * row.number('cpu_num'))}m"},
                row.text("gpu_model"),
                row.whole("gpu_capacity_num", 0, most=GPUS_MAX),
            )
            for row in table
        ),
    )
