"""
Kubernetes objects as traces: the recording of a cluster, and manifests that arrive at a rate.

A recording (`dryrack record`) has the nodes, the devices, and the times at which pods were created,
but not when they ended. Manifests have pods and workloads; each arrival is one of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import yaml

from dryrack.base.draws import Draws
from dryrack.base.durations import seconds_in
from dryrack.kinds.core import Node, Pod
from dryrack.kinds.decode import DecodeError, decode
from dryrack.kinds.documents import read
from dryrack.kinds.paths import get
from dryrack.kinds.resource import (
    DeviceClass,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from dryrack.placement import MINIMUM_LABELS
from dryrack.simulation.fleets import FleetSpec
from dryrack.simulation.importers.native import WORKERS_MAX
from dryrack.simulation.tables import TraceError
from dryrack.simulation.workload import NAMESPACE, Check, Job, Shape, Trace, claim_of, shape_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.kinds.raw import Raw

# The number of pods of a workload, and its template.
_WORKLOADS = {
    "Deployment": "replicas",
    "ReplicaSet": "replicas",
    "StatefulSet": "replicas",
    "Job": "parallelism",
}
_GROUP_LABELS = ("pod-group.scheduling.sigs.k8s.io/name", "scheduling.kubenexus.io/pod-group")


class Arrivals(NamedTuple):
    """The arrivals of manifests: so many each hour, how many in all, and how long pods run."""

    per_hour: float = 60.0
    number: int = 100
    # The mean, in seconds; None if pods never end.
    duration: float | None = None


class _Objects:
    """The objects of a file, as far as pods need them."""

    def __init__(self, source: str, documents: Sequence[Raw]) -> None:
        self.source = source
        self.pods: list[tuple[Raw, int]] = []
        self.templates: dict[tuple[str, str], ResourceClaimTemplate] = {}
        self.claims: dict[tuple[str, str], ResourceClaim] = {}
        self._shapes: dict[bytes, Shape] = {}
        for each in documents:
            self._add(each)

    def _add(self, each: Raw) -> None:
        kind = each.get("kind")
        if kind == "Pod":
            self.pods.append((each, 1))
        elif kind in _WORKLOADS:
            template = get(each, "spec.template", {})
            metadata = {**get(template, "metadata", {}), "name": _name(each)}
            metadata.setdefault("namespace", _namespace(each))
            number = self.whole(each, f"spec.{_WORKLOADS[kind]}", 1, most=WORKERS_MAX)
            pod = {"metadata": metadata, "spec": get(template, "spec", {})}
            if number:
                self.pods.append((pod, number))
        elif kind == "ResourceClaimTemplate":
            key = (_namespace(each), _name(each))
            self.templates[key] = self._decode(each, ResourceClaimTemplate)
        elif kind == "ResourceClaim":
            self.claims[_namespace(each), _name(each)] = self._decode(each, ResourceClaim)

    def whole(self, each: Raw, path: str, default: int, *, most: int, least: int = 0) -> int:
        """Return a whole number of an object."""
        number = get(each, path, default)
        if not isinstance(number, int) or not least <= number <= most:
            where = f"{self.source}: {each.get('kind', 'Pod')} {_name(each)}: {path}"
            raise TraceError(f"{where}: {number!r} is not a whole number from {least} to {most}")
        return number

    def priority(self, pod: Raw) -> int:
        """Return the priority of a pod."""
        return self.whole(pod, "spec.priority", 0, least=-(2**31), most=2**31 - 1)

    def _decode(self, each: Raw, kind: type[Any]) -> Any:
        try:
            return decode(each, kind)
        except DecodeError as error:
            raise TraceError(f"{self.source}: {each.get('kind')} {_name(each)}: {error}") from error

    def shape(self, document: Raw) -> Shape:
        """Return the shape of a pod with its claims."""
        pod: Pod = self._decode({"kind": "Pod", **document}, Pod)
        name = pod.metadata.name or pod.metadata.generate_name or "pod"
        namespace = pod.metadata.namespace or NAMESPACE
        specs = []
        for entry in pod.spec.resource_claims:
            if entry.resource_claim_template_name:
                template = self.templates.get((namespace, entry.resource_claim_template_name))
                found = None if template is None else template.spec.spec
            else:
                claim = self.claims.get((namespace, entry.resource_claim_name or ""))
                found = None if claim is None else claim.spec
            if found is None:
                wanted = entry.resource_claim_template_name or entry.resource_claim_name
                raise TraceError(
                    f"{self.source}: pod {namespace}/{name}: the file has no claim or template "
                    f"{wanted!r}; add it to the file"
                )
            specs.append(found)
        spec = msgspec.structs.replace(pod.spec, node_name="")
        labels = pod.metadata.labels
        key = msgspec.json.encode((spec, labels, specs), enc_hook=str)
        shape = self._shapes.get(key)
        if shape is None:
            name = f"{name}-{len(self._shapes) + 1}"
            metadata = msgspec.structs.replace(pod.metadata, name=name, namespace=NAMESPACE)
            claims = [
                decode(
                    {"metadata": {"name": claim_of(name, number), "namespace": NAMESPACE}},
                    ResourceClaim,
                )
                for number in range(len(specs))
            ]
            shape = self._shapes[key] = shape_of(
                name,
                msgspec.structs.replace(pod, metadata=metadata, spec=spec),
                [
                    msgspec.structs.replace(claim, spec=each)
                    for claim, each in zip(claims, specs, strict=True)
                ],
            )
            if min(shape.constraints.amounts.values(), default=0) < 0:
                raise TraceError(
                    f"{self.source}: pod {namespace}/{pod.metadata.name}: a request is negative"
                )
        return shape


def read_recording(lines: Sequence[str], source: str) -> Trace:
    """Read the pods of a recording; raises `TraceError`."""
    scenario = _read_scenario(lines, source)
    if "steps" not in scenario:
        raise TraceError(f"{source}: not a recording: it has no steps; write one: dryrack record")
    applied = [
        (_at(step, source), each)
        for step in _read_objects(scenario, "steps", source)
        for each in _read_objects(step, "apply", source)
        if each.get("kind") == "Pod"
    ]
    objects = _Objects(source, _read_objects(scenario, "objects", source))
    check = Check("recording", rows=len(applied), jobs=len(applied), censored=len(applied))
    check.notes.append("a recording has no ends of pods; they never end")
    jobs = []
    gangs: dict[str, list[Job]] = {}
    for number, (at, pod) in enumerate(applied):
        labels = get(pod, "metadata.labels", {})
        priority = objects.priority(pod)
        group = next((labels[each] for each in _GROUP_LABELS if each in labels), "")
        name = f"{_name(pod)}-{number}"
        queue = _namespace(pod)
        job = Job(name, at, None, objects.shape(pod), priority=priority, queue=queue)
        if group:
            gangs.setdefault(f"{queue}/{group}", []).append(job)
        else:
            jobs.append(job)
    for name, members in gangs.items():
        first = members[0]
        number = len(members)
        arrival = max(each.arrival for each in members)
        least = min(_minimum(first.shape) or number, number)
        # A gang of one is none.
        least = least if least > 1 else 0
        changed = {"name": name, "arrival": arrival, "workers": number, "gang": least}
        jobs.append(msgspec.structs.replace(first, **changed))
    return Trace(tuple(sorted(jobs, key=lambda job: job.arrival)), check)


def _minimum(shape: Shape) -> int:
    labels = shape.pod.metadata.labels
    texts = (labels[each] for each in MINIMUM_LABELS if each in labels)
    return next((int(each) for each in texts if each.isdigit()), 0)


def read_recorded_fleet(lines: Sequence[str], source: str) -> FleetSpec:
    """Read the nodes and devices of a recording; raises `TraceError`."""
    scenario = _read_scenario(lines, source)
    nodes = map(_recorded_node, _read_objects(scenario, "fleet.nodes", source))
    objects = _read_objects(scenario, "objects", source)
    fleet = objects_fleet([*nodes, *objects], source)
    if not fleet.nodes:
        raise TraceError(f"{source}: not a recording: it has no nodes; write one: dryrack record")
    return fleet


def _recorded_node(node: Raw) -> Raw:
    """Return the Node of an entry of a scenario's fleet."""
    amounts = get(node, "capacity", {})
    return {
        "kind": "Node",
        "metadata": {"name": get(node, "name", ""), "labels": get(node, "labels", {})},
        "spec": {"taints": get(node, "taints", [])},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def objects_fleet(documents: Sequence[Raw], source: str) -> FleetSpec:
    """Return the nodes, slices and classes among objects."""
    kinds: dict[str, type[Any]] = {
        "Node": Node,
        "ResourceSlice": ResourceSlice,
        "DeviceClass": DeviceClass,
    }
    found: dict[str, list[Any]] = {kind: [] for kind in kinds}
    for each in documents:
        kind = each.get("kind", "")
        try:
            if kind in kinds:
                found[kind].append(decode(each, kinds[kind]))
        except DecodeError as error:
            raise TraceError(f"{source}: {kind} {_name(each)}: {error}") from error
    return FleetSpec(
        source, tuple(found["Node"]), tuple(found["ResourceSlice"]), tuple(found["DeviceClass"])
    )


def read_manifests(lines: Sequence[str], source: str, arrivals: Arrivals) -> Trace:
    """Let the pods and workloads of manifests arrive at random times, at a rate."""
    reading = read("\n".join(lines), source)
    if reading.problems:
        raise TraceError("\n".join(map(str, reading.problems)))
    documents = [each.raw for each in reading.documents]
    objects = _Objects(source, documents)
    if not objects.pods:
        raise TraceError(f"{source}: no Pod and no workload; name a file with one")
    shapes = [(objects.shape(pod), number, pod) for pod, number in objects.pods]
    draws = Draws("manifests")
    check = Check("manifests", rows=len(shapes), jobs=arrivals.number)
    for each in documents:
        if each["kind"] not in _WORKLOADS and get(each, "spec.template.spec"):
            check.drop(f"a {each['kind']} does not arrive; only {', '.join(('Pod', *_WORKLOADS))}")
    now = 0.0
    jobs = []
    for number in range(arrivals.number):
        shape, workers, pod = draws.choice(shapes)
        duration = None if arrivals.duration is None else draws.exponential(arrivals.duration)
        priority = objects.priority(pod)
        name = f"{_name(pod)}-{number + 1}"
        gang = min(_minimum(shape), workers)
        gang = gang if gang > 1 else 0
        queue = _namespace(pod)
        jobs.append(Job(name, now, duration, shape, workers, gang, priority, queue))
        now += draws.exponential(3600 / arrivals.per_hour)
    check.censored = sum(job.duration is None for job in jobs)
    return Trace(tuple(jobs), check)


def _read_scenario(lines: Sequence[str], source: str) -> Raw:
    """Return the document of a recording."""
    try:
        document = yaml.load("\n".join(lines), Loader=_Loader)
    except yaml.YAMLError as error:
        raise TraceError(f"{source}: not YAML: {' '.join(str(error).split())}") from error
    return document if isinstance(document, dict) else {}


def _read_objects(parent: Raw, field: str, source: str) -> Sequence[Raw]:
    """Return the objects in a list."""
    found = get(parent, field, [])
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise TraceError(f"{source}: {field}: expected a list of objects")
    return found


_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _at(step: Raw, source: str) -> float:
    text = step.get("at") or 0
    seconds = float(text) if isinstance(text, int | float) else seconds_in(str(text))
    if seconds is None:
        raise TraceError(f"{source}: step at {text!r}: not a duration such as 1m30s")
    return seconds


def _name(each: Raw) -> str:
    return str(get(each, "metadata.name", ""))


def _namespace(each: Raw) -> str:
    return str(get(each, "metadata.namespace", "") or NAMESPACE)
