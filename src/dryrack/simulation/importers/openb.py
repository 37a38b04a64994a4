"""
Alibaba's GPU trace v2023 ("openb"): lists of nodes and of pods.

A pod asks for whole GPUs, or for thousandths of one GPU. `gpu_spec` names models, any of which is
acceptable. Some lists have neither models nor times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.core import Node
from dryrack.kinds.decode import decode
from dryrack.kinds.resource import DeviceClass, ResourceSlice
from dryrack.simulation.fleets import ANY_GPU, FleetSpec
from dryrack.simulation.tables import Table, TraceError
from dryrack.simulation.workload import MILLI, Check, Job, ShapeKey, Shapes, Trace

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.simulation.tables import Row

DRIVER = "gpu.dryrack.dev"
CLASS = ANY_GPU
_WHOLE = 1000
# The devices of a ResourceSlice.
GPUS_MAX = 128
# Far above the number of pods on a node: in the published experiment it never binds.
_PODS = "1001"
_POD_COLUMNS = [
    "name",
    "cpu_milli",
    "memory_mib",
    "num_gpu",
    "gpu_milli",
    "gpu_spec",
    "qos",
    "pod_phase",
    "creation_time",
    "deletion_time",
    "scheduled_time",
]
_NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")


def read_pods(lines: Sequence[str], source: str) -> Trace:
    """Read a list of pods; raises `TraceError`."""
    table = Table(lines, source, required=_POD_COLUMNS[:5], known=_POD_COLUMNS)
    check = Check("openb")
    shapes = Shapes()
    jobs = []
    rows = list(table)
    last = max((row.number("deletion_time", 0) for row in rows), default=0)
    for row in rows:
        arrival = row.number("creation_time", 0)
        started = row.optional("scheduled_time")
        ended = row.optional("deletion_time")
        duration = None
        if ended is not None:
            # The time from creation to scheduling is a wait, which a simulation decides anew.
            duration = ended - (arrival if started is None else started)
            if duration < 0:
                check.drop("the pod ends before it starts")
                continue
        if ended is None or ended >= last:
            check.censored += 1
            duration = None if ended is None else duration
        shape = shapes.of(_shape_key(row))
        jobs.append(Job(row.text("name"), arrival, duration, shape, queue=row.text("qos")))
    check.rows, check.jobs = len(rows), len(jobs)
    first = min((each.arrival for each in jobs), default=0.0)
    if first:
        jobs = [_shifted(each, first) for each in jobs]
    if all(each.duration is None for each in jobs):
        check.notes.append("the list has no times; all pods arrive at 0 and never end")
    # The order of the file decides between pods that arrive at one time.
    return Trace(tuple(sorted(jobs, key=lambda job: job.arrival)), check)


def _shifted(job: Job, by: float) -> Job:
    return Job(job.name, job.arrival - by, job.duration, job.shape, queue=job.queue)


def _shape_key(row: Row) -> ShapeKey:
    count = row.whole("num_gpu")
    milli = row.whole("gpu_milli")
    if milli > _WHOLE or (count > 1 and milli != _WHOLE) or (count == 1 and not milli):
        raise row.error("gpu_milli", f"{count} GPUs of {milli} thousandths; only one can be shared")
    models = sorted({each for each in row.text("gpu_spec").split("|") if each})
    names = ", ".join(f'"{each}"' for each in models)
    shared = count == 1 and milli < _WHOLE
    return ShapeKey(
        cpu=f"{row.whole('cpu_milli')}m",
        memory=f"{row.whole('memory_mib')}Mi",
        devices=((CLASS, count),) if count else (),
        share=((MILLI, str(milli)),) if shared else (),
        selector=f'device.attributes["{DRIVER}"].model in [{names}]' if models and count else "",
    )


def read_nodes(lines: Sequence[str], source: str) -> FleetSpec:
    """Read a list of nodes; raises `TraceError`."""
    table = Table(lines, source, required=_NODE_COLUMNS, known=_NODE_COLUMNS)
    return gpu_fleet(
        source,
        (
            (
                row.text("sn"),
                {"cpu": f"{row.whole('cpu_milli')}m", "memory": f"{row.whole('memory_mib')}Mi"},
                row.text("model"),
                row.whole("gpu", 0, most=GPUS_MAX),
            )
            for row in table
        ),
    )


def gpu_fleet(source: str, rows: Iterable[tuple[str, Mapping[str, str], str, int]]) -> FleetSpec:
    """Return nodes with GPUs that can be shared: name, amounts, model, and number of GPUs."""
    nodes: dict[str, Node] = {}
    slices = []
    for name, amounts, model, gpus in rows:
        if not name or name in nodes:
            problem = f"two nodes have the name {name!r}" if name else "a node has no name"
            raise TraceError(f"{source}: {problem}; each node needs a different name")
        resources = {"memory": "1Pi", **amounts, "pods": _PODS}
        status = {"capacity": resources, "allocatable": resources}
        labels = {"kubernetes.io/hostname": name}
        metadata = {"name": name, "labels": labels}
        nodes[name] = decode({"metadata": metadata, "status": status}, Node)
        if gpus:
            slices.append(_slice(name, model, gpus))
    spec = {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]}
    device_class = decode({"metadata": {"name": CLASS}, "spec": spec}, DeviceClass)
    return FleetSpec(source, tuple(nodes.values()), tuple(slices), (device_class,))


def _slice(node: str, model: str, gpus: int) -> ResourceSlice:
    devices: list[Raw] = [
        {
            "name": f"gpu-{number}",
            "attributes": {"index": {"int": number}, "model": {"string": model}},
            "capacity": {MILLI: {"value": str(_WHOLE)}},
            "allowMultipleAllocations": True,
        }
        for number in range(gpus)
    ]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": pool, "nodeName": node, "devices": devices}
    return decode({"metadata": {"name": f"{node}-gpus"}, "spec": spec}, ResourceSlice)
