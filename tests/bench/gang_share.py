"""
The share of the fitting gangs that kube-scheduler schedules, with its gang gates enabled.

    python -m tests.bench.gang_share [--cases N] [--from SEED]

The gangs are random small ones that fit (see `tests.placement.random_gangs`), one at a time on a
real control plane as native PodGroups. dryrack's search finds them all; `tests.bench.gangs` holds
it to that. Worlds with devices in use, or with a topology, are left out.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from random import Random
from typing import TYPE_CHECKING

from tests.bench import load
from tests.placement.random_gangs import HOSTNAME, built, fits, world
from tests.realcluster.controlplane import Options
from tests.realcluster.guard import throw_away

from dryrack.client.client import STRATEGIC_PATCH, Selection
from dryrack.client.endpoints import CLAIMS, CLASSES, NAMESPACES, NODES, POD_GROUPS, PODS, SLICES
from dryrack.client.errors import NotFoundError
from dryrack.kinds.decode import to_builtins

if TYPE_CHECKING:
    from pathlib import Path

    from tests.placement.random_gangs import World

    from dryrack.client.client import Client
    from dryrack.kinds.raw import Raw


CASES = 200
# A cycle is over within a second; what is refused is told by the condition of the group.
LOOKS = 40
PAUSE_SECONDS = 0.1
GATES = ("GenericWorkload", "GangScheduling")
OPTIONS = Options(
    feature_gates=dict.fromkeys(GATES, True),
    runtime_config={"scheduling.k8s.io/v1alpha2": True},
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.gang_share")
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--from", type=int, default=0, dest="first")
    given = parser.parse_args()
    with throw_away(OPTIONS) as bed:
        missed = asyncio.run(_missed(bed.plane.kubeconfig, given.cases, given.first))
    found = given.cases - len(missed)
    share = f"{100 * found / given.cases:.1f} %"
    sys.stdout.write(f"kube-scheduler finds {found} of {given.cases} gangs that fit, {share}\n")
    sys.stdout.write(f"seeds of those it misses: {missed[:20]}\n")
    return 0


async def _missed(kubeconfig: Path, cases: int, first: int) -> list[int]:
    missed = []
    seed = first
    done = 0
    async with load.talking_to(kubeconfig) as client:
        await client.create(CLASSES, {"metadata": {"name": "gpu"}})
        while done < cases:
            made = world(Random(seed))
            if not made.in_one_zone and not _is_used(made) and fits(made):
                done += 1
                if not await _is_found(client, made, seed):
                    missed.append(seed)
            seed += 1
    return missed


def _is_used(made: World) -> bool:
    return any(device.is_in_use for device in made.devices)


async def _is_found(client: Client, made: World, seed: int) -> bool:
    """Return whether as many pods as the gang needs are bound."""
    prefix = f"s{seed}-"
    namespace = f"gang-{seed}"
    await client.create(NAMESPACES, {"metadata": {"name": namespace}})
    nodes = [f"{prefix}{name}" for name in made.nodes]
    slices = [_renamed(each, prefix) for each in made.slices]
    for name, (cpu, zone) in made.nodes.items():
        await _make_node(client, f"{prefix}{name}", cpu, zone)
    for each in slices:
        await client.create(SLICES, each)
    await _make_gang(client, made, namespace)
    is_found = await _is_bound(client, namespace, made.minimum)
    for pod in (await client.list(PODS, Selection(namespace=namespace))).items:
        name = pod["metadata"]["name"]
        await client.delete(PODS, name, namespace=namespace, grace_seconds=0)
    for each in slices:
        await client.delete(SLICES, each["metadata"]["name"])
    for name in nodes:
        await client.delete(NODES, name)
    return is_found


def _renamed(each: Raw, prefix: str) -> Raw:
    """A slice of nodes and pools that no other world has."""
    spec = dict(each["spec"])
    spec["pool"] = {**spec["pool"], "name": f"{prefix}{spec['pool']['name']}"}
    if "nodeName" in spec:
        spec["nodeName"] = f"{prefix}{spec['nodeName']}"
    return {"metadata": {"name": f"{prefix}{each['metadata']['name']}"}, "spec": spec}


async def _make_node(client: Client, name: str, cpu: int, zone: str) -> None:
    await client.create(
        NODES, {"metadata": {"name": name, "labels": {"zone": zone, HOSTNAME: name}}}
    )
    there = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    status = {"capacity": there, "allocatable": there, "conditions": [ready]}
    await client.patch(
        NODES, name, {"status": status}, subresource="status", media_type=STRATEGIC_PATCH
    )


async def _make_gang(client: Client, made: World, namespace: str) -> None:
    _, gang, members = built(made)
    policy = {"gang": {"minCount": gang.min_count}}
    metadata = {"name": "gang", "namespace": namespace}
    await client.create(POD_GROUPS, {"metadata": metadata, "spec": {"schedulingPolicy": policy}})
    claims = {each.metadata.name: each for member in members for each in member.wanted}
    for name, claim in claims.items():
        about = {"name": name, "namespace": namespace}
        await client.create(CLAIMS, {"metadata": about, "spec": to_builtins(claim.spec)})
    for member in members:
        pod = to_builtins(member.pod)
        pod["metadata"]["namespace"] = namespace
        pod["spec"]["schedulingGroup"] = {"podGroupName": "gang"}
        pod["spec"]["resourceClaims"] = [
            {"name": each.metadata.name, "resourceClaimName": each.metadata.name}
            for each in member.wanted
        ]
        await client.create(PODS, pod)


async def _is_bound(client: Client, namespace: str, minimum: int) -> bool:
    for _ in range(LOOKS):
        pods = (await client.list(PODS, Selection(namespace=namespace))).items
        if sum(bool(pod["spec"].get("nodeName")) for pod in pods) >= minimum:
            return True
        if await _is_refused(client, namespace):
            return False
        await asyncio.sleep(PAUSE_SECONDS)
    return False


async def _is_refused(client: Client, namespace: str) -> bool:
    try:
        group = await client.get(POD_GROUPS, "gang", namespace)
    except NotFoundError:
        return False
    conditions = group.get("status", {}).get("conditions", ())
    return any(each["status"] == "False" for each in conditions)


if __name__ == "__main__":
    sys.exit(main())
