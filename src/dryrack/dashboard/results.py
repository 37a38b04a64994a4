"""
The results of `dryrack simulate` and `dryrack plan`, read from the JSON that they print.

The pods of a plan are put on a control plane without engines, on nodes of the hardware catalog, so
that all views show the plan as they show a cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from dryrack.base.errors import DryrackError
from dryrack.base.text import hint
from dryrack.client.timekeeping import timestamp
from dryrack.cluster import (
    ControlPlaneOptions,
    SystemChance,
    SystemClock,
    build_control_plane,
    virtual_node,
)
from dryrack.dashboard.live import Live
from dryrack.hardware import Inventory, Matcher, slices_of
from dryrack.hardware.catalogue import Catalogue
from dryrack.kinds.core import Node
from dryrack.kinds.decode import decode, to_builtins
from dryrack.planning import ZONE
from dryrack.simulation import Run
from dryrack.store import Key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dryrack.kinds.raw import Raw

Document = dict[str, Any]
_READY = {"type": "Ready", "status": "True", "reason": "Planned"}
# The model of devices of which only those in the plan are known.
_ONLY_USED = "existing node: only devices that the plan uses"
_RESOURCES = {"Pod": "pods", "ResourceClaim": "resourceclaims.resource.k8s.io"}


class ResultError(DryrackError):
    """A file is not the result of a simulation or of a plan."""


class PlannedDevice(msgspec.Struct, forbid_unknown_fields=False):
    driver: str
    pool: str
    device: str


class PlannedNode(msgspec.Struct, rename="camel"):
    """A node of a plan; `node` is the name of one that exists, `name` that of a new one."""

    pods: list[str]
    devices: list[PlannedDevice]
    left: dict[str, str | int]
    instance_type: str = ""
    zone: str = ""
    name: str = ""
    node: str = ""


class Change(msgspec.Struct):
    change: str
    saves: float
    nodes: int


class LeftOver(msgspec.Struct):
    pod: str
    why: str


class PriceSource(msgspec.Struct):
    date: str
    source: str


class Plan(msgspec.Struct, rename="camel", kw_only=True):
    """The output of `dryrack plan -o json`."""

    nodes: list[PlannedNode]
    existing: list[PlannedNode]
    cost: float | None
    currency: str
    objective: str
    bound: float
    optimal: bool
    proof: str
    placement: str
    unplaceable: list[LeftOver]
    one_fewer: Change | None
    prices: PriceSource | None
    objects: list[dict[str, Any]]
    node_labels: dict[str, str]


class _Sweep(msgspec.Struct):
    """The output of `dryrack simulate -o json`; a run that failed has an error."""

    runs: list[dict[str, Any]]


def read_runs(files: Mapping[str, bytes]) -> list[Document]:
    """Return the runs of simulations; raise `ResultError` if a file has something else."""
    runs: list[Document] = []
    for name, content in files.items():
        fix = "name a file with the output of: dryrack simulate ... -o json"
        try:
            sweep = msgspec.json.decode(content, type=_Sweep)
            found = [msgspec.convert(each, Run) for each in sweep.runs if "error" not in each]
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ResultError(f"{name}: not the result of a simulation: {error}; {fix}") from None
        if not found:
            raise ResultError(f"{name}: no run of this simulation ended; {fix}")
        for each in found:
            document: Document = msgspec.to_builtins(each)
            # Points leave out zeros.
            document["curve"] = [_point(point) for point in document["curve"]]
            runs.append({"file": name if len(files) > 1 else "", **document})
    return runs


def _point(point: Mapping[str, Any]) -> Document:
    """Return a point with all its fields; `at` is its time, or the demand so far."""
    return {
        "at": point.get("time", point.get("arrived", 0)),
        "isTime": "arrived" not in point,
        "allocated": point.get("allocated", 0.0),
        "fragmented": point.get("fragmented", 0.0),
        "waiting": point.get("waiting", 0),
    }


def read_plan(content: bytes, name: str) -> Plan:
    """Return a plan; raise `ResultError` if the file has something else."""
    try:
        return msgspec.json.decode(content, type=Plan)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        fix = "name a file with the output of: dryrack plan ... -o json"
        raise ResultError(f"{name}: not a plan: {error}; {fix}") from None


def plan_document(plan: Plan) -> Document:
    """Return what the page shows about a plan, besides its objects."""
    document: Document = msgspec.to_builtins(plan)
    del document["objects"], document["nodeLabels"]
    return document


def live_of_results(plan: Plan | None, catalogue: Catalogue) -> Live:
    """Return the state of a cluster that has the nodes and the pods of a plan."""
    clock = SystemClock()
    plane = build_control_plane(ControlPlaneOptions(clock=clock))
    created = timestamp(clock.now())
    objects = _objects(plan, catalogue) if plan is not None else ()
    for number, (resource, raw) in enumerate(objects):
        metadata = raw["metadata"]
        if not metadata.get("uid"):
            metadata["uid"] = f"00000000-0000-4000-8000-{number:012x}"
        metadata.setdefault("creationTimestamp", created)
        key = Key(resource, metadata.get("namespace", ""), metadata["name"])
        plane.store.put(key, raw, expected=None)
    return Live(plane.client("dryrack-dashboard"), clock=clock, chance=SystemChance())


def _objects(plan: Plan, catalogue: Catalogue) -> Iterator[tuple[str, Raw]]:
    """Yield the objects of a plan, with the resources of their keys."""
    for each in catalogue.device_classes.values():
        yield "deviceclasses.resource.k8s.io", to_builtins(each)
    for node in plan.nodes:
        yield from _new_node(node, plan, catalogue)
    for node in plan.existing:
        yield from _existing_node(node)
    for raw in plan.objects:
        resource = _RESOURCES.get(str(raw.get("kind")))
        metadata = raw.get("metadata")
        if resource is None or not isinstance(metadata, dict) or "name" not in metadata:
            raise ResultError("objects of the plan: must be Pods and ResourceClaims with names")
        if resource == "pods":
            raw.setdefault("status", {}).setdefault("phase", "Pending")
        yield resource, raw
    for left_over in plan.unplaceable:
        namespace, _, name = left_over.pod.partition("/")
        yield "pods", _pending_pod(namespace, name, left_over.why)


def _new_node(planned: PlannedNode, plan: Plan, catalogue: Catalogue) -> Iterator[tuple[str, Raw]]:
    machine = catalogue.instance_types.get(planned.instance_type)
    if machine is None:
        near = hint(planned.instance_type, catalogue.instance_types)
        raise ResultError(
            f"node {planned.name} of the plan: the hardware catalog has no instance type "
            f"{planned.instance_type!r}; {near}; for your own types, add --catalogue-file FILE"
        )
    raw = virtual_node(planned.name, machine)
    raw["metadata"]["labels"] |= plan.node_labels | ({ZONE: planned.zone} if planned.zone else {})
    raw["status"]["conditions"] = [_READY]
    yield "nodes", raw
    types = Catalogue(instance_types={machine.name: machine})
    matcher = Matcher(Inventory(instance_types=types.assignments()))
    slices = [each for p in matcher.pools_of(decode(raw, Node)).pools for each in slices_of(p)]
    there = {
        (each.spec.driver, each.spec.pool.name, device.name)
        for each in slices
        for device in each.spec.devices
    }
    for used in planned.devices:
        if (used.driver, used.pool, used.device) not in there:
            raise ResultError(
                f"node {planned.name} of the plan: {machine.name} has no device "
                f"{used.driver}/{used.device} in the hardware catalog; add the file that the plan "
                "was made with: --catalogue-file FILE"
            )
    for number, each in enumerate(slices):
        document = to_builtins(each)
        document["metadata"] = {**document.get("metadata", {}), "name": f"{planned.name}-{number}"}
        yield "resourceslices.resource.k8s.io", document


def _existing_node(planned: PlannedNode) -> Iterator[tuple[str, Raw]]:
    """Yield a node of which only the devices of the plan are known."""
    raw = virtual_node(planned.node)
    raw["status"]["conditions"] = [_READY]
    yield "nodes", raw
    pools: dict[tuple[str, str], list[str]] = {}
    for each in planned.devices:
        pools.setdefault((each.driver, each.pool), []).append(each.device)
    for number, ((driver, pool), names) in enumerate(pools.items()):
        attributes = {"model": {"string": _ONLY_USED}}
        spec = {
            "driver": driver,
            "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1},
            "nodeName": planned.node,
            "devices": [{"name": name, "attributes": attributes} for name in dict.fromkeys(names)],
        }
        metadata = {"name": f"{planned.node}-{number}"}
        document = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice"}
        yield "resourceslices.resource.k8s.io", document | {"metadata": metadata, "spec": spec}


def _pending_pod(namespace: str, name: str, why: str) -> Raw:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": why,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"containers": [{"name": "planned", "image": "planned"}]},
        "status": {"phase": "Pending", "conditions": [condition]},
    }
