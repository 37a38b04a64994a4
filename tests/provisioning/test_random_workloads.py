"""
Random workloads on random pools: all feasible pods run, each node is needed, and nothing leaks.

What a pod needs and what a type of nodes has are compared here by plain arithmetic, without the
code of the decider: a pod with a claim takes whole GPUs, and all pods take CPU.

A node is needed if its pods may not fit on the others. The scheduler does not follow the plan of
the provisioner: of the orders and places that it may choose, one that strands a pod is enough,
because the provisioner would have to create the node again.

`python -m tests.provisioning.test_random_workloads 1000` tries so many workloads.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from tests.controllers.scenes import phase
from tests.provisioning.worlds import (
    catalogue,
    deploy,
    events,
    instance_type,
    names,
    play,
    pool,
    template,
)

from dryrack.client.endpoints import (
    CLAIMS,
    DEPLOYMENTS,
    NODE_CLAIMS,
    NODE_POOLS,
    NODES,
    PODS,
    SLICES,
    TEMPLATES,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dryrack.client.client import Client
    from dryrack.client.timekeeping import VirtualClock
    from dryrack.kinds.raw import Raw

TYPES = ("g4dn.xlarge", "g5.xlarge", "g5.12xlarge", "p4d.24xlarge", "c-4x-amd64-linux")
GENERIC_CPUS = {"c-4x-amd64-linux": 4}


@dataclass(frozen=True, order=True)
class Need:
    """What a pod takes, in GPUs and thousandths of a CPU."""

    gpus: int
    cpu: int


def size_of(name: str) -> Need:
    """Return what a node of a type has."""
    if name in GENERIC_CPUS:
        return Need(0, GENERIC_CPUS[name] * 1000)
    machine = catalogue().instance_types[name]
    gpus = sum(
        len(each.slots) for each in machine.fittings if each.model.driver == "gpu.nvidia.com"
    )
    return Need(gpus, int(machine.size["cpu"]) * 1000)


def fits(needs: Iterable[Need], node: Need) -> bool:
    own = list(needs)
    return sum(e.gpus for e in own) <= node.gpus and sum(e.cpu for e in own) <= node.cpu


@cache
def always_fits(needs: tuple[Need, ...], free: tuple[Need, ...]) -> bool:
    """Return whether pods fit on nodes with so much free, whatever the scheduler does."""
    for need in set(needs):
        rest = list(needs)
        rest.remove(need)
        places = {each for each in free if fits([need], each)}
        if not places:
            return False
        for place in places:
            left = list(free)
            left.remove(place)
            left.append(Need(place.gpus - need.gpus, place.cpu - need.cpu))
            if not always_fits(tuple(rest), tuple(sorted(left))):
                return False
    return True


def free_on(size: Need, pods: Iterable[Need]) -> Need:
    own = list(pods)
    return Need(size.gpus - sum(e.gpus for e in own), size.cpu - sum(e.cpu for e in own))


@dataclass(frozen=True)
class Workload:
    pools: tuple[Raw, ...]
    deployments: tuple[tuple[str, int, Need], ...]
    types: tuple[str, ...]


def workload(seed: int) -> Workload:
    random = Random(seed)
    pools: list[Raw] = []
    offered: set[str] = set()
    for number in range(random.randint(1, 2)):
        types = random.sample(TYPES, random.randint(1, 4))
        offered |= set(types)
        weight: Any = {"weight": random.randint(1, 100)} if random.random() < 0.5 else {}
        pools.append(pool(f"pool-{number}", instance_type(*types), **weight))
    deployments = []
    for number in range(random.randint(1, 4)):
        need = Need(
            random.choice((0, 0, 1, 1, 2, 4, 8, 9)), random.choice((500, 1500, 3000, 90000))
        )
        deployments.append((f"app-{number}", random.randint(1, 4), need))
    return Workload(tuple(pools), tuple(deployments), tuple(sorted(offered)))


def check(seed: int) -> None:
    """Run a workload and check what becomes of it."""
    given = workload(seed)
    needs = {name: need for name, _, need in given.deployments}

    async def scene(client: Client, clock: VirtualClock) -> None:
        for gpus in {need.gpus for need in needs.values()} - {0}:
            await client.create(TEMPLATES, template(gpus))
        for each in given.pools:
            await client.create(NODE_POOLS, each)
        for name, replicas, need in given.deployments:
            made = deploy(name, replicas, cpu=f"{need.cpu}m", gpus=need.gpus)
            await client.create(DEPLOYMENTS, made)
        await clock.advance(600)
        nodes: dict[str, tuple[Need, list[Need]]] = {}
        for node in (await client.list(NODES)).items:
            kind = node["metadata"]["labels"]["node.kubernetes.io/instance-type"]
            nodes[node["metadata"]["name"]] = (size_of(kind), [])
        told = {
            each["involvedObject"]["name"]: each["message"]
            for each in await events(client, "FailedScheduling")
        }
        for pod in (await client.list(PODS)).items:
            need = needs[pod["metadata"]["labels"]["app"]]
            is_feasible = any(fits([need], size_of(each)) for each in given.types)
            name = pod["metadata"]["name"]
            assert (phase(pod) == "Running") == is_feasible, (seed, name, need)
            if is_feasible:
                nodes[pod["spec"]["nodeName"]][1].append(need)
            else:
                assert told[name].startswith("no node is created for the pod: NodePool"), told[name]
        for name, (size, own) in nodes.items():
            assert own, (seed, f"node {name} is empty")
            assert fits(own, size), (seed, f"node {name} has too much")
            others = [free_on(*each) for other, each in nodes.items() if other != name]
            is_spare = always_fits(tuple(sorted(own)), tuple(sorted(others)))
            assert not is_spare, (seed, f"node {name} is not needed")
        assert await names(client, NODE_CLAIMS) == sorted(nodes)
        for name in needs:
            await client.delete(DEPLOYMENTS, name, namespace="default", propagation="Foreground")
        await clock.advance(600)
        for endpoint in (PODS, CLAIMS, SLICES, NODES, NODE_CLAIMS):
            assert not await names(client, endpoint), (seed, endpoint.plural)

    play(scene)


@pytest.mark.parametrize("seed", range(6))
def test_every_node_is_needed_and_every_feasible_pod_runs(seed: int) -> None:
    """Without any node, the scheduler may strand a Pod; the infeasible Pods have an event."""
    check(seed)


if __name__ == "__main__":
    failed = []
    for number in range(int(sys.argv[1])):
        try:
            check(number)
        except AssertionError as error:
            failed.append(str(error))
        sys.stderr.write(f"\r{number + 1}, failed: {len(failed)}")
    sys.stderr.write("\n" + "\n".join(failed) + "\n")
