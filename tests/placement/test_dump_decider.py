"""
`allocate` on the dump of a cluster and the scheduler of that cluster agree on every pod.

A random cluster runs without its scheduler, so that pods wait. What it stores is given to a
what-if, and then the scheduler starts on it. Quotas, limit ranges, priorities, disruption budgets,
affinity and gangs count in both.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import TYPE_CHECKING

import pytest
from tests.allocation.builders import Counting

from dryrack.client.endpoints import (
    CLAIMS,
    CLASSES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    PRIORITY_CLASSES,
    QUOTAS,
    SLICES,
    TEMPLATES,
    Endpoint,
)
from dryrack.client.errors import ForbiddenError, InvalidError
from dryrack.client.timekeeping import VirtualClock, run_virtual
from dryrack.cluster.assembly import EngineOptions, assemble_engines
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import embedded
from dryrack.cluster.engines import running_engines
from dryrack.kinds.documents import unwritten
from dryrack.placement import Settings, World, what_if_files
from dryrack.placement.whatif.manifests import manifests

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dryrack.client.client import Client
    from dryrack.kinds.raw import Raw
    from dryrack.placement import WhatIf


# The last six have each shown a difference that the first ones do not.
SEEDS = (*range(16), 24, 186, 1076, 1371, 5092, 6026)
DRIVER = "gpu.example.com"
GANG = "pod-group.scheduling.sigs.k8s.io"
APPS = "ab"
LIMIT_RANGES = Endpoint("", "v1", "limitranges", "LimitRange")
KINDS = (
    *(NODES, SLICES, CLASSES, TEMPLATES, PRIORITY_CLASSES, QUOTAS, LIMIT_RANGES),
    *(POD_DISRUPTION_BUDGETS, CLAIMS, PODS),
)
SETTLED_SECONDS = 90


@dataclass(frozen=True)
class Case:
    """Objects in the order of their creation: a fleet, pods that run, and pods that wait."""

    fleet: list[tuple[Endpoint, Raw]]
    running: list[Raw]
    waiting: list[Raw]


@dataclass
class Fate:
    """The outcome for the pods of a case."""

    # The node of each pod that has one, and the devices of its claims.
    nodes: dict[str, str] = field(default_factory=dict)
    devices: dict[str, tuple[str, ...]] = field(default_factory=dict)
    # Pods that wait, that made way, and that the API server did not create.
    waiting: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)


def case(chance: Random) -> Case:
    fleet = [*_nodes(chance), *_policies(chance)]
    running = [_pod(chance, f"run-{number}") for number in range(chance.randint(1, 4))]
    waiting = [_pod(chance, f"new-{number}") for number in range(chance.randint(1, 5))]
    if chance.random() < 0.6:
        size = chance.randint(2, 3)
        template = _pod(chance, "member")
        waiting += [_member(template, number, size) for number in range(size)]
    chance.shuffle(waiting)
    return Case(fleet, running, waiting)


def _nodes(chance: Random) -> Iterable[tuple[Endpoint, Raw]]:
    for name in [f"n{number}" for number in range(chance.randint(2, 4))]:
        labels = {"zone": chance.choice("xy"), "kubernetes.io/hostname": name}
        yield (
            NODES,
            {
                "metadata": {
                    "name": name,
                    "labels": labels,
                    "annotations": {"kwok.x-k8s.io/node": ""},
                },
                "status": {"allocatable": {"cpu": chance.choice("248"), "pods": "10"}},
            },
        )
        devices = [{"name": f"gpu-{number}"} for number in range(chance.randint(0, 3))]
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": devices}
        yield SLICES, {"metadata": {"name": name}, "spec": spec}


def _policies(chance: Random) -> Iterable[tuple[Endpoint, Raw]]:
    yield CLASSES, {"metadata": {"name": "gpu"}, "spec": {}}
    for name, count in (("one", 1), ("two", 2)):
        request = {"name": "r", "exactly": {"deviceClassName": "gpu", "count": count}}
        spec = {"spec": {"devices": {"requests": [request]}}}
        yield TEMPLATES, {"metadata": {"name": name, "namespace": "default"}, "spec": spec}
    for name, value in (("high", 1000), ("low", 10)):
        yield PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value}
    yield (
        PRIORITY_CLASSES,
        {"metadata": {"name": "patient"}, "value": 500, "preemptionPolicy": "Never"},
    )
    own = {"name": "own", "namespace": "default"}
    if chance.random() < 0.5:
        hard = {
            "gpu.deviceclass.resource.k8s.io/devices": str(chance.randint(2, 6)),
            "pods": str(chance.randint(4, 9)),
            "requests.cpu": str(chance.randint(4, 12)),
        }
        chosen = chance.sample(sorted(hard), chance.randint(1, 3))
        yield QUOTAS, {"metadata": own, "spec": {"hard": {name: hard[name] for name in chosen}}}
    if chance.random() < 0.5:
        limit: Raw = {
            "type": "Container",
            "default": {"cpu": "2"},
            "defaultRequest": {"cpu": chance.choice(("1", "2"))},
            "max": {"cpu": "3"},
        }
        yield LIMIT_RANGES, {"metadata": own, "spec": {"limits": [limit]}}
    if chance.random() < 0.5:
        budget: Raw = {
            "minAvailable": chance.randint(1, 2),
            "selector": {"matchLabels": {"app": chance.choice(APPS)}},
        }
        yield POD_DISRUPTION_BUDGETS, {"metadata": own, "spec": budget}


def _pod(chance: Random, name: str) -> Raw:
    spec: Raw = {"containers": [{"name": "c", "image": "i"}]}
    cpu = chance.choice(("", "1", "2", "4"))
    if cpu:
        part = chance.choice(("requests", "limits"))
        spec["containers"][0]["resources"] = {part: {"cpu": cpu}}
    template = chance.choice(("", "one", "one", "two"))
    if template:
        spec["resourceClaims"] = [{"name": "g", "resourceClaimTemplateName": template}]
    priority = chance.choice(("", "", "low", "high", "high", "patient"))
    if priority:
        spec["priorityClassName"] = priority
    rule = chance.choice(("", "", "podAffinity", "podAntiAffinity"))
    if rule:
        term = {
            "topologyKey": chance.choice(("zone", "kubernetes.io/hostname")),
            "labelSelector": {"matchLabels": {"app": chance.choice(APPS)}},
        }
        spec["affinity"] = {rule: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    labels = {"app": chance.choice(APPS)}
    return {"metadata": {"name": name, "namespace": "default", "labels": labels}, "spec": spec}


def _member(template: Raw, number: int, size: int) -> Raw:
    labels = {**template["metadata"]["labels"], f"{GANG}/name": "g"}
    labels[f"{GANG}/min-available"] = str(size)
    metadata = {**template["metadata"], "name": f"member-{number}", "labels": labels}
    return {"metadata": metadata, "spec": template["spec"]}


def of_files(dump: Iterable[Raw]) -> WhatIf:
    found = manifests(unwritten(each, "dump") for each in dump)
    assert not found.problems
    world = World.of([each.object for each in found.objects])
    return what_if_files(world, lambda: Settings(chance=Counting()))


@dataclass(frozen=True)
class Seen:
    """A cluster before and after its scheduler starts, and what a what-if says of both dumps."""

    before: Fate
    outcome: WhatIf
    after: Fate
    outcome_after: WhatIf


@cache
def cluster_of(seed: int) -> Seen:
    """Run the cluster of a seed, once for all tests."""
    made = case(Random(seed))

    async def run() -> Seen:
        clock = VirtualClock()
        options = ControlPlaneOptions(clock=clock)
        scheduler = assemble_engines(EngineOptions(only=("scheduler",)))
        async with embedded(options, without=("scheduler",)) as cluster:
            client = cluster.client
            refused = set()
            for endpoint, raw in made.fleet:
                await _create(client, endpoint, raw)
            await clock.advance(SETTLED_SECONDS)
            async with running_engines(scheduler, cluster.plane.wiring):
                for pod in made.running:
                    refused |= await _create_pod(client, pod)
                    await clock.advance(5)
            for pod in made.waiting:
                refused |= await _create_pod(client, pod)
                await clock.advance(2)
            await clock.advance(SETTLED_SECONDS)
            before = await _fate(client)
            outcome = of_files(await _dump(client))
            async with running_engines(scheduler, cluster.plane.wiring):
                await clock.advance(SETTLED_SECONDS)
            after = await _fate(client)
            after.refused = refused
            after.gone = (before.nodes.keys() | before.waiting) - (
                after.nodes.keys() | after.waiting
            )
            return Seen(before, outcome, after, of_files(await _dump(client)))

    return run_virtual(run())


async def _create(client: Client, endpoint: Endpoint, raw: Raw) -> None:
    made = await client.create(endpoint, raw)
    if endpoint is NODES:
        status = {**made["status"], **raw["status"]}
        await client.update(NODES, {**made, "status": status}, subresource="status")


async def _create_pod(client: Client, pod: Raw) -> set[str]:
    try:
        await client.create(PODS, pod)
    except (ForbiddenError, InvalidError):
        return {pod["metadata"]["name"]}
    return set()


async def _dump(client: Client) -> list[Raw]:
    return [each for kind in KINDS for each in await _listed(client, kind)]


async def _listed(client: Client, kind: Endpoint) -> list[Raw]:
    items = (await client.list(kind)).items
    return [{"apiVersion": kind.api_version, "kind": kind.kind, **each} for each in items]


async def _fate(client: Client) -> Fate:
    fate = Fate()
    claims = {each["metadata"]["name"]: each for each in (await client.list(CLAIMS)).items}
    for pod in (await client.list(PODS)).items:
        name = pod["metadata"]["name"]
        where = pod["spec"].get("nodeName", "")
        if not where:
            fate.waiting.add(name)
            continue
        fate.nodes[name] = where
        for each in pod["status"].get("resourceClaimStatuses", ()):
            results = claims[each["resourceClaimName"]]["status"]["allocation"]["devices"]
            fate.devices[name] = tuple(f"{e['pool']}/{e['device']}" for e in results["results"])
    return fate


def bare(name: str) -> str:
    return name.partition("/")[2]


def decided_at_once(outcome: WhatIf) -> dict[str, str]:
    """
    Return the nodes of pods, in the order of the decisions up to the first preemption.

    On a cluster victims are there for a while, and the next pods are decided beside them.
    """
    if not outcome.preemptions:
        return {bare(name): node for name, node in outcome.nodes.items()}
    by = outcome.preemptions[0].by
    gangs = [list(each.nodes) for each in outcome.gangs if each.gang == by]
    own = gangs[0] if gangs else [by.removeprefix("pod ")]
    names = list(outcome.nodes)
    # A pod that is decided later can preempt the gang again.
    last = max((names.index(name) for name in own if name in names), default=-1)
    return {bare(name): outcome.nodes[name] for name in names[: last + 1]}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_dump_of_a_cluster_is_decided_as_its_scheduler_decides(seed: int) -> None:
    """Nodes, victims and pending pods are the same."""
    seen = cluster_of(seed)
    placed = decided_at_once(seen.outcome)
    after = seen.after
    came = {name: node for name, node in after.nodes.items() if name not in seen.before.nodes}

    assert not seen.outcome.rejected
    assert placed.items() <= came.items()
    if seen.outcome.preemptions:
        assert set(map(bare, seen.outcome.preemptions[0].victims)) <= after.gone
    else:
        assert placed == came
        assert not after.gone
        assert seen.before.waiting - placed.keys() == after.waiting


@pytest.mark.parametrize("seed", SEEDS)
def test_what_a_scheduler_leaves_waiting_waits_in_its_dump(seed: int) -> None:
    """When nothing happens any more, a what-if places no pod either, and none makes way."""
    seen = cluster_of(seed)

    assert not seen.outcome_after.nodes
    assert not seen.outcome_after.preemptions


@pytest.mark.parametrize("seed", SEEDS)
def test_files_are_admitted_as_an_api_server_admits_them(seed: int) -> None:
    """Pods that a server refuses are refused in files, in the order of their creation."""
    made = case(Random(seed))
    seen = cluster_of(seed)
    there = seen.before.nodes.keys() | seen.before.waiting | seen.after.refused
    if not there >= {each["metadata"]["name"] for each in (*made.running, *made.waiting)}:
        pytest.skip("a pod made way while pods were created, and its quota became free")
    kinds = [
        (endpoint.api_version, endpoint.kind, raw)
        for endpoint, raw in (*made.fleet, *((PODS, pod) for pod in (*made.running, *made.waiting)))
    ]
    outcome = of_files({"apiVersion": v, "kind": k, **raw} for v, k, raw in kinds)

    assert {bare(name) for name in outcome.rejected} == seen.after.refused
