"""
The scenario file, as types: a fleet, objects, steps, and what is expected of each.

The JSON schema that editors complete by is made of these types, and so are their words. What a type
cannot say, as that an `after` names a step, is in `problems`.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

API_VERSION = "dryrack.dev/v1alpha1"
KIND = "Scenario"
# What a scenario and an expectation have if they do not say.
LIMIT = "1h"
WITHIN = "30s"

_DURATION = {"pattern": r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"}
Count = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]


def _duration(what: str) -> Meta:
    return Meta(description=f"{what}, as in 30s or 1m30s", extra_json_schema=_DURATION)


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """What every part of a scenario file is."""


class NodeGroup(Part, frozen=True, kw_only=True):
    """Nodes that are alike; with a count they are numbered from 1."""

    name: Annotated[str, Meta(description="the node's name; with a count, what comes before -1")]
    count: Annotated[Count | None, Meta(description="how many; without it one, as it is named")] = (
        None
    )
    profile: Annotated[
        str, Meta(description="an instance type of the catalogue; see: dryrack hardware list")
    ] = ""
    labels: Annotated[dict[str, str], Meta(description="labels of the nodes")] = {}
    annotations: Annotated[dict[str, str], Meta(description="annotations of the nodes")] = {}
    taints: Annotated[tuple[Any, ...], Meta(description="taints, as in spec.taints")] = ()
    capacity: Annotated[
        dict[str, str], Meta(description="capacity and allocatable, as quantities")
    ] = {}

    @property
    def names(self) -> tuple[str, ...]:
        if self.count is None:
            return (self.name,)
        return tuple(f"{self.name}-{number}" for number in range(1, self.count + 1))


class Fleet(Part, frozen=True, kw_only=True):
    """The nodes, and what devices they have."""

    nodes: Annotated[tuple[NodeGroup, ...], Meta(description="groups of nodes")] = ()
    devices: Annotated[
        tuple[str, ...],
        Meta(description="what every node has, as --devices of dryrack up: fake:8, gpu:8, file"),
    ] = ()
    catalogue: Annotated[
        bool, Meta(description="whether nodes have the devices of their instance type")
    ] = False


class ScaleTo(Part, frozen=True, kw_only=True):
    """Another number of replicas."""

    object: Annotated[str, Meta(description="KIND/[NAMESPACE/]NAME of a workload")]
    replicas: Annotated[Count, Meta(description="how many")]


class LogExpectation(Part, frozen=True, kw_only=True):
    """What the log of a container has in it."""

    of: Annotated[str, Meta(description="Pod/[NAMESPACE/]NAME")]
    container: Annotated[str, Meta(description="which container; without it the first")] = ""
    has: Annotated[
        tuple[str, ...], Meta(description="patterns, each of which some line has in it")
    ] = ()


class EventExpectation(Part, frozen=True, kw_only=True):
    """An Event that was written."""

    of: Annotated[str, Meta(description="KIND/[NAMESPACE/]NAME that it is about")]
    reason: Annotated[str, Meta(description="its reason, a pattern")] = "*"
    says: Annotated[str, Meta(description="words of its message")] = ""


class Expectation(Part, frozen=True, kw_only=True):
    """What must come to be so: one of object, devices, published, log, event, gone."""

    object: Annotated[
        str, Meta(description="KIND/[NAMESPACE/]NAME with * patterns: all that match must fit")
    ] = ""
    fields: Annotated[
        dict[str, Any],
        Meta(description="by path, as status.conditions[type=Ready].status: a value or pattern"),
    ] = {}
    count: Annotated[
        Count | None, Meta(description="how many objects match; without it at least one")
    ] = None
    devices: Annotated[
        dict[str, tuple[str, ...]],
        Meta(description="by Pod/[NAMESPACE/]NAME: patterns of all devices that it has"),
    ] = {}
    published: Annotated[
        dict[str, Any],
        Meta(description="by node, or 'all nodes': devices by driver, or patterns of all of them"),
    ] = {}
    log: Annotated[LogExpectation | None, Meta(description="what a container has logged")] = None
    event: Annotated[EventExpectation | None, Meta(description="an Event that was written")] = None
    gone: Annotated[str, Meta(description="KIND/[NAMESPACE/]NAME that is there no more")] = ""
    within: Annotated[str, _duration("how soon it must be so")] = WITHIN
    lasting: Annotated[str, _duration("how long it must stay so")] = ""


class Step(Part, frozen=True, kw_only=True):
    """
    One thing that happens, and what must come of it.

    It begins at its time, or when another step has ended; else when the one before has.
    """

    id: Annotated[str, Meta(description="a name that other steps can follow")] = ""
    title: Annotated[str, Meta(description="what happens, for people")] = ""
    at: Annotated[str, _duration("when, from the beginning of the scenario")] = ""
    after: Annotated[str, Meta(description="the id of the step that it follows")] = ""
    delay: Annotated[str, _duration("how long after that step")] = ""
    apply: Annotated[
        tuple[Any, ...],
        Meta(
            description="files beside the scenario, objects, or {repeat: N, object: …} with $n in "
            "it, to apply"
        ),
    ] = ()
    delete: Annotated[
        tuple[Any, ...], Meta(description="files, objects or KIND/[NAMESPACE/]NAME, to delete")
    ] = ()
    evict: Annotated[
        tuple[str, ...],
        Meta(
            description="Pod/[NAMESPACE/]NAME, to evict; what a disruption budget refuses is asked "
            "for again for 30s"
        ),
    ] = ()
    scale: Annotated[ScaleTo | None, Meta(description="a workload to scale")] = None
    fail: Annotated[
        tuple[str, ...],
        Meta(description="faults that begin, as: node worker-1 ready=false for 30s"),
    ] = ()
    heal: Annotated[
        tuple[str, ...],
        Meta(description="faults that end: all, or of what, as: node worker-1"),
    ] = ()
    wait: Annotated[str, _duration("a time in which nothing is done")] = ""
    expect: Annotated[tuple[Expectation, ...], Meta(description="what must come of it")] = ()
    show: Annotated[
        tuple[Any, ...],
        Meta(
            description="what to show when it has: devices, claims, gangs, pods, slices, events, "
            "{log: Pod/…} or {object: KIND/…, fields: […]}"
        ),
    ] = ()


class RecordedPod(Part, frozen=True, kw_only=True):
    """Where a pod was when its cluster was recorded."""

    pod: Annotated[str, Meta(description="NAMESPACE/NAME")]
    node: Annotated[str, Meta(description="its node; without it the pod waited")] = ""
    devices: Annotated[Count, Meta(description="how many devices it had")] = 0


class Scenario(Part, frozen=True, kw_only=True):
    """A world, what happens to it, and what must come of it."""

    api_version: Annotated[str, Meta(extra_json_schema={"const": API_VERSION})] = API_VERSION
    kind: Annotated[str, Meta(extra_json_schema={"const": KIND})] = KIND
    metadata: Annotated[dict[str, Any], Meta(description="name and labels of your own")] = {}
    title: Annotated[str, Meta(description="what it shows, in one sentence")] = ""
    limit: Annotated[str, _duration("how long it may take, in its own time")] = LIMIT
    fleet: Annotated[Fleet, Meta(description="the nodes and their devices")] = Fleet()
    objects: Annotated[
        tuple[Any, ...], Meta(description="files beside the scenario, or objects, from the start")
    ] = ()
    steps: Annotated[tuple[Step, ...], Meta(description="what happens")] = ()
    faults: Annotated[
        tuple[str, ...],
        Meta(description="faults of the whole run, as: api conflicts=0.01 latency=20ms"),
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
