"""
A workload: jobs with their arrivals and durations, and the shapes of their pods.

A trace has many pods and few shapes. All pods of a shape have the same requests, so that the
requirements are parsed once, and the decider remembers its answers for all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from dryrack.allocation import WHOLE
from dryrack.kinds.core import Pod
from dryrack.kinds.decode import decode
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.resource import ResourceClaim
from dryrack.placement import Member, PodConstraints

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.kinds.core import Affinity
    from dryrack.kinds.raw import Raw

NAMESPACE = "default"
# The capacity of devices that are shared in thousandths.
MILLI = "milli"
# The CPU request in thousandths, the share of a device, the devices, and the selector.
Kind = tuple[int, str, str, str]


class ShapeKey(NamedTuple):
    """The requests of one worker, as a trace has them."""

    # Kubernetes quantities; empty for none.
    cpu: str = ""
    memory: str = ""
    # Device classes with the number of devices.
    devices: tuple[tuple[str, int], ...] = ()
    # For shares of devices: the amount of each capacity.
    share: tuple[tuple[str, str], ...] = ()
    # A CEL expression over `device`.
    selector: str = ""


class Shape(msgspec.Struct, frozen=True, eq=False):
    """Pods with equal requests."""

    name: str
    constraints: PodConstraints
    # The number of devices.
    devices: int
    # Equal for pods whose requests differ in nothing but memory.
    kind: Kind

    # The devices in thousandths, where a share of a device is stated in these.
    demand: int

    @property
    def pod(self) -> Pod:
        return self.constraints.pod

    @property
    def claims(self) -> Sequence[ResourceClaim]:
        return self.constraints.wanted

    @property
    def cpu(self) -> int:
        """Return the CPU request, in thousandths."""
        return self.constraints.amounts.get("cpu", 0) // 10**6

    @property
    def affinity(self) -> Affinity | None:
        """Return the affinity of its pods to other pods, if they have any."""
        affinity = self.pod.spec.affinity
        if affinity is None or not (affinity.pod_affinity or affinity.pod_anti_affinity):
            return None
        return affinity

    @property
    def depends_on_pods(self) -> bool:
        """Return whether the nodes that take a pod depend on the pods of other nodes."""
        return self.affinity is not None or bool(self.pod.spec.topology_spread_constraints)

    def member(self, pod: str, priority: int) -> Member:
        """Return a pod of this shape, with claims of its own."""
        spec = msgspec.structs.replace(self.pod.spec, priority=priority)
        metadata = msgspec.structs.replace(self.pod.metadata, name=pod)
        claims = tuple(
            msgspec.structs.replace(
                claim,
                metadata=msgspec.structs.replace(claim.metadata, name=claim_of(pod, number)),
            )
            for number, claim in enumerate(self.claims)
        )
        return Member(msgspec.structs.replace(self.pod, metadata=metadata, spec=spec), claims)


def claim_of(pod: str, number: int) -> str:
    """Return the name of a claim of the pod."""
    return f"{pod}-{number}"


def shape_of(
    name: str, pod: Pod, claims: Sequence[ResourceClaim] = (), key: ShapeKey | None = None
) -> Shape:
    """Return the shape of pods that look like this one; `key` are the requests, if a trace has."""
    requests = [request for claim in claims for request in claim.spec.devices.requests]
    devices = sum(
        (each.exactly.count or 1) if each.exactly else each.first_available[0].count or 1
        for each in requests
        if each.exactly or each.first_available
    )
    constraints = PodConstraints.of(pod, tuple(claims))
    cpu = constraints.amounts.get("cpu", 0) // 10**6
    kind = (cpu, "", name, "")
    if key is not None:
        share = ",".join(f"{amount:>12}" for _, amount in key.share)
        kind = (cpu, share, ",".join(f"{each}:{n}" for each, n in key.devices), key.selector)
    milli = dict(key.share).get(MILLI) if key is not None else None
    demand = devices * (WHOLE if milli is None else Quantity.parse(milli).value())
    return Shape(name, constraints, devices, kind, demand)


class Shapes:
    """The shapes of a trace, each made once."""

    def __init__(self) -> None:
        self._known: dict[ShapeKey, Shape] = {}

    def __len__(self) -> int:
        return len(self._known)

    def of(self, key: ShapeKey) -> Shape:
        """Return the shape with these requests; raises `DecodeError` for an invalid quantity."""
        shape = self._known.get(key)
        if shape is None:
            shape = self._known[key] = _make_shape(f"shape-{len(self._known) + 1}", key)
        return shape


def _make_shape(name: str, key: ShapeKey) -> Shape:
    requests: Raw = {}
    if key.cpu:
        requests["cpu"] = key.cpu
    if key.memory:
        requests["memory"] = key.memory
    container = {"name": "worker", "image": "worker", "resources": {"requests": requests}}
    spec: Raw = {"containers": [container]}
    claims = []
    if key.devices:
        spec["resourceClaims"] = [{"name": "devices", "resourceClaimName": claim_of(name, 0)}]
        claims = [decode(_claim(claim_of(name, 0), key), ResourceClaim)]
    metadata = {"name": name, "namespace": NAMESPACE}
    return shape_of(name, decode({"metadata": metadata, "spec": spec}, Pod), claims, key)


def _claim(name: str, key: ShapeKey) -> Raw:
    requests = []
    for number, (device_class, count) in enumerate(key.devices):
        exactly: Raw = {
            "deviceClassName": device_class,
            "allocationMode": "ExactCount",
            "count": count,
        }
        if key.selector:
            exactly["selectors"] = [{"cel": {"expression": key.selector}}]
        if key.share:
            exactly["capacity"] = {"requests": dict(key.share)}
        requests.append({"name": f"devices-{number}", "exactly": exactly})
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"metadata": metadata, "spec": {"devices": {"requests": requests}}}


class Job(msgspec.Struct, frozen=True, gc=False):
    """Pods that arrive together."""

    name: str
    # Seconds since the start of the trace.
    arrival: float
    # Seconds; None if its pods never end.
    duration: float | None
    shape: Shape
    workers: int = 1
    # The number of pods that must run together; 0 if each pod can run alone.
    gang: int = 0
    priority: int = 0
    queue: str = ""

    def pod(self, worker: int) -> str:
        """Return the name of one of its pods."""
        return self.name if self.workers == 1 else f"{self.name}-{worker}"


class Check(msgspec.Struct, rename="camel"):
    """Facts that the reader of a result has to know about the trace."""

    format: str
    rows: int = 0
    jobs: int = 0
    # Rows that are left out, by the reason.
    dropped: dict[str, int] = {}
    # Jobs of which the end is unknown, and those whose pods never end in a simulation.
    censored: int = 0
    endless: int = 0
    # The greatest number of devices requested at one time, as far as ends are known, and how many
    # times the devices of the fleet that is.
    peak_devices: float = 0.0
    peak_demand: dict[str, float] = {}
    notes: list[str] = []

    def drop(self, reason: str) -> None:
        """Count a row that is left out."""
        self.dropped[reason] = self.dropped.get(reason, 0) + 1


class Trace(msgspec.Struct, frozen=True):
    """The jobs in the order of their arrivals, and the check of the file they come from."""

    jobs: tuple[Job, ...]
    check: Check
