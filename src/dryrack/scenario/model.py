"""
The scenario file, as types: a fleet, objects, steps, and what is expected of each.

The JSON schema that editors complete by is made of these types, and so are their words. What a type
cannot say, as that an `after` names a step, is in `problems`.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from dryrack.kinds.releases import DEFAULT_RELEASE, RELEASES

API_VERSION = "dryrack.dev/v1alpha1"
KIND = "Scenario"
# What a scenario and an expectation have if they do not say.
LIMIT = "1h"
WITHIN = "30s"
PATCH_TYPES = ("merge", "strategic", "json")

_DURATION = {"pattern": r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"}
Count = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]


def _duration(what: str) -> Meta:
    return Meta(description=f"{what}, as in 30s or 1m30s", extra_json_schema=_DURATION)


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Base class of all parts of a scenario file."""


class NodeGroup(Part, frozen=True, kw_only=True):
    """A group of equal nodes; with a count, their names end in a number from 1 on."""

    name: Annotated[
        str,
        Meta(description="name of the node; with count, the prefix of node names such as PREFIX-1"),
    ]
    count: Annotated[
        Count | None, Meta(description="number of nodes; default: one node with exactly this name")
    ] = None
    profile: Annotated[
        str, Meta(description="instance type from the hardware catalog; see: dryrack hardware list")
    ] = ""
    labels: Annotated[dict[str, str], Meta(description="labels of the nodes")] = {}
    annotations: Annotated[dict[str, str], Meta(description="annotations of the nodes")] = {}
    taints: Annotated[
        tuple[Any, ...], Meta(description="taints of the nodes, in the form of spec.taints")
    ] = ()
    capacity: Annotated[
        dict[str, str], Meta(description="capacity and allocatable, as quantities")
    ] = {}

    @property
    def names(self) -> tuple[str, ...]:
        if self.count is None:
            return (self.name,)
        return tuple(f"{self.name}-{number}" for number in range(1, self.count + 1))


class Fleet(Part, frozen=True, kw_only=True):
    """The nodes and their devices."""

    nodes: Annotated[tuple[NodeGroup, ...], Meta(description="groups of nodes")] = ()
    devices: Annotated[
        tuple[str, ...],
        Meta(description="devices of every node, as for dryrack up --devices: fake:8, gpu:8, file"),
    ] = ()
    catalogue: Annotated[
        bool, Meta(description="true: nodes get the devices of their instance type")
    ] = False
    provisioner: Annotated[
        bool,
        Meta(description="true: NodePools create nodes for pods that fit on no node"),
    ] = False


class ScaleTo(Part, frozen=True, kw_only=True):
    """A workload and its new number of replicas."""

    object: Annotated[str, Meta(description="KIND/[NAMESPACE/]NAME of a workload")]
    replicas: Annotated[Count, Meta(description="number of replicas")]


class PatchOf(Part, frozen=True, kw_only=True):
    """A change of objects, as `kubectl patch` makes it."""

    object: Annotated[
        str, Meta(description="KIND/[NAMESPACE/]NAME with * patterns; all matching are patched")
    ]
    patch: Annotated[
        Any, Meta(description="the fields to change; for the type json, a list of operations")
    ]
    type: Annotated[
        str,
        Meta(
            description="patch type of the Kubernetes API; strategic only for built-in kinds",
            extra_json_schema={"enum": list(PATCH_TYPES)},
        ),
    ] = "merge"
    subresource: Annotated[
        str, Meta(description="subresource to patch, for example status; default: the object")
    ] = ""


class LogExpectation(Part, frozen=True, kw_only=True):
    """Text that the log of a container contains."""

    of: Annotated[str, Meta(description="Pod/[NAMESPACE/]NAME")]
    container: Annotated[str, Meta(description="name of the container; default: the first")] = ""
    has: Annotated[
        tuple[str, ...], Meta(description="patterns; each must match a part of at least one line")
    ] = ()


class EventExpectation(Part, frozen=True, kw_only=True):
    """An Event that must exist."""

    of: Annotated[str, Meta(description="KIND/[NAMESPACE/]NAME of the involved object")]
    reason: Annotated[str, Meta(description="pattern for the reason")] = "*"
    says: Annotated[str, Meta(description="text that the message contains")] = ""


class Expectation(Part, frozen=True, kw_only=True):
    """An expected state of one subject: object, devices, published, log, event or gone."""

    object: Annotated[
        str,
        Meta(description="KIND/[NAMESPACE/]NAME with * patterns; all matching objects must fit"),
    ] = ""
    fields: Annotated[
        dict[str, Any],
        Meta(
            description="value or pattern by path, for example status.conditions[type=Ready].status"
        ),
    ] = {}
    count: Annotated[
        Count | None, Meta(description="number of objects that match; default: at least one")
    ] = None
    devices: Annotated[
        dict[str, tuple[str, ...]],
        Meta(description="by Pod/[NAMESPACE/]NAME: one pattern for each allocated device"),
    ] = {}
    published: Annotated[
        dict[str, Any],
        Meta(
            description="by node, or 'all nodes': device counts by driver, or a pattern per device"
        ),
    ] = {}
    log: Annotated[LogExpectation | None, Meta(description="text in the log of a container")] = None
    event: Annotated[EventExpectation | None, Meta(description="an Event that exists")] = None
    gone: Annotated[str, Meta(description="KIND/[NAMESPACE/]NAME that must not exist")] = ""
    within: Annotated[str, _duration("deadline")] = WITHIN
    lasting: Annotated[str, _duration("how long the state must hold")] = ""


class Step(Part, frozen=True, kw_only=True):
    """
    One action and its expected results.

    A step starts at its time, or after the step in `after`. Default: after the previous step.
    """

    id: Annotated[str, Meta(description="name of the step, for the field after of other steps")] = (
        ""
    )
    title: Annotated[str, Meta(description="description for the reader")] = ""
    at: Annotated[str, _duration("start time, counted from the start of the scenario")] = ""
    after: Annotated[str, Meta(description="id of the step after which this step starts")] = ""
    delay: Annotated[str, _duration("time between that step and this one")] = ""
    apply: Annotated[
        tuple[Any, ...],
        Meta(
            description="to apply: files in the folder of the scenario, objects, or "
            "{repeat: N, object: …} with $n in the name"
        ),
    ] = ()
    delete: Annotated[
        tuple[Any, ...], Meta(description="to delete: files, objects or KIND/[NAMESPACE/]NAME")
    ] = ()
    evict: Annotated[
        tuple[str, ...],
        Meta(
            description="to evict: Pod/[NAMESPACE/]NAME; if a disruption budget refuses an "
            "eviction, dryrack retries for 30s"
        ),
    ] = ()
    scale: Annotated[ScaleTo | None, Meta(description="workload to scale")] = None
    patch: Annotated[
        PatchOf | None, Meta(description="objects to patch, or their status subresource")
    ] = None
    fail: Annotated[
        tuple[str, ...],
        Meta(description="faults that start, for example: node worker-1 ready=false for 30s"),
    ] = ()
    heal: Annotated[
        tuple[str, ...],
        Meta(description="faults that end: all, or a target such as: node worker-1"),
    ] = ()
    wait: Annotated[str, _duration("time in which the step does nothing")] = ""
    expect: Annotated[tuple[Expectation, ...], Meta(description="expected results")] = ()
    show: Annotated[
        tuple[Any, ...],
        Meta(
            description="what to print at the end: devices, claims, gangs, pods, slices, events, "
            "{log: Pod/…} or {object: KIND/…, fields: […]}"
        ),
    ] = ()


class RecordedPod(Part, frozen=True, kw_only=True):
    """The place of a pod when its cluster was recorded."""

    pod: Annotated[str, Meta(description="NAMESPACE/NAME")]
    node: Annotated[str, Meta(description="node of the pod; default: the pod was pending")] = ""
    devices: Annotated[Count, Meta(description="number of devices of the pod")] = 0


class Scenario(Part, frozen=True, kw_only=True):
    """A cluster, the steps that change it, and the expected results."""

    api_version: Annotated[str, Meta(extra_json_schema={"const": API_VERSION})] = API_VERSION
    kind: Annotated[str, Meta(extra_json_schema={"const": KIND})] = KIND
    metadata: Annotated[dict[str, Any], Meta(description="name and labels")] = {}
    title: Annotated[str, Meta(description="purpose in one sentence")] = ""
    limit: Annotated[str, _duration("maximum duration in virtual time")] = LIMIT
    fleet: Annotated[Fleet, Meta(description="the nodes and their devices")] = Fleet()
    release: Annotated[
        str, Meta(description=f"Kubernetes release: {RELEASES}; default: {DEFAULT_RELEASE.value}")
    ] = ""
    objects: Annotated[
        tuple[Any, ...],
        Meta(
            description="files in the folder of the scenario, or objects, that exist from the start"
        ),
    ] = ()
    steps: Annotated[tuple[Step, ...], Meta(description="steps of the scenario")] = ()
    faults: Annotated[
        tuple[str, ...],
        Meta(description="faults of the whole run, for example: api conflicts=0.01 latency=20ms"),
    ] = ()
    recorded: Annotated[
        tuple[RecordedPod, ...],
        Meta(
            description="where pods were when dryrack record wrote the file; a run fails if one of "
            "them has no node at its end"
        ),
    ] = ()


def schema() -> dict[str, Any]:
    """The JSON schema of a scenario file."""
    made = msgspec.json.schema(Scenario)
    made["title"] = "dryrack scenario"
    made = {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}
    # As a reader of the file has it: defaults that are tuples become lists.
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(made))
    return found
