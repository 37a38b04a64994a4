"""
Stand-in pods beside another provisioner, which creates no nodes for pods with claims.

dryrack's own provisioner with --ignore-dra-requests takes the part of Karpenter here;
`test_karpenter.py` has the same beside Karpenter itself.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.controllers.scenes import phase
from tests.provisioning.test_crashes import Mortal
from tests.provisioning.worlds import (
    catalogue,
    events,
    instance_type,
    names,
    pod,
    pool,
    settings,
    template,
)

from dryrack.client.client import Client
from dryrack.client.endpoints import (
    CLAIMS,
    NODE_CLAIMS,
    NODE_POOLS,
    NODES,
    PODS,
    SLICES,
    TEMPLATES,
)
from dryrack.client.timekeeping import VirtualClock, run_virtual
from dryrack.cluster.assembly import EngineOptions, assemble_engines
from dryrack.cluster.control_plane import ControlPlaneOptions, build_control_plane
from dryrack.cluster.engines import running_engines
from dryrack.cluster.initial_objects import add_device_classes, add_node_pools

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from dryrack.cluster.control_plane import ControlPlane
    from dryrack.cluster.engines import Wiring

STAND_INS = tuple(
    each
    for each in assemble_engines(EngineOptions(provisioner=settings(uses_karpenter=True)))
    if each.name == "provisioner"
)
# Creation and removal of a node take fewer writes; the last numbers crash nothing.
NUMBERS = range(1, 5)


@asynccontextmanager
async def beside_karpenter(clock: VirtualClock) -> AsyncIterator[ControlPlane]:
    """A cluster whose provisioner creates no nodes for pods with claims."""
    plane = build_control_plane(ControlPlaneOptions(clock=clock))
    options = EngineOptions(catalogue=catalogue(), provisioner=settings(ignores_claims=True))
    client = plane.client()
    await add_node_pools(client)
    await add_device_classes(client, catalogue().device_classes.values())
    for gpus in (1, 2, 4):
        await client.create(TEMPLATES, template(gpus))
    try:
        async with running_engines(assemble_engines(options), plane.wiring):
            await client.create(NODE_POOLS, pool())
            await clock.advance(2)
            yield plane
    finally:
        plane.expiry.stop()


def play(scene: Callable[[Client, VirtualClock], Awaitable[None]]) -> None:
    """Run a scene with stand-ins."""

    async def run() -> None:
        clock = VirtualClock()
        async with (
            beside_karpenter(clock) as plane,
            running_engines(STAND_INS, plane.wiring),
        ):
            await clock.advance(1)
            await scene(plane.client(), clock)

    run_virtual(run())


async def check_empty(client: Client) -> None:
    for endpoint in (PODS, NODE_CLAIMS, NODES, SLICES, CLAIMS):
        assert not await names(client, endpoint), endpoint.plural


def test_a_pod_with_a_claim_runs_and_leaves_nothing() -> None:
    """The Pod gets one node of the planned type; the stand-in is gone, and the node follows."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        await client.create(PODS, pod("train", gpus=4))
        await clock.advance(20)
        found = await client.get(PODS, "train", "default")
        assert phase(found) == "Running", found["status"]
        assert await names(client, PODS) == ["train"]
        (node,) = (await client.list(NODES)).items
        assert node["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "g5.12xlarge"
        own = [e for e in await events(client, "Nominated") if "stand-in" in e["message"]]
        assert own[0]["message"].startswith(
            "the pod should be scheduled on the node that Karpenter creates for the stand-in pod "
            "default/stand-in-"
        )
        await client.delete(PODS, "train", namespace="default")
        await clock.advance(120)
        await check_empty(client)

    play(scene)


def test_each_needed_node_is_created_once() -> None:
    """Pods of three sizes in two batches run, and no node is empty."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        for number in range(5):
            await client.create(PODS, pod(f"one-{number}", gpus=1, cpu="1"))
            await client.create(PODS, pod(f"two-{number}", gpus=2, cpu="1"))
        await clock.advance(1.7)
        for number in range(3):
            await client.create(PODS, pod(f"four-{number}", gpus=4))
        await clock.advance(60)
        pods = (await client.list(PODS)).items
        assert {phase(each) for each in pods} == {"Running"}
        assert len(pods) == 13
        used = {each["spec"]["nodeName"] for each in pods}
        assert sorted(used) == await names(client, NODES)

    play(scene)


def test_a_stand_in_goes_with_its_pod() -> None:
    """The stand-in of a Pod that is deleted while it waits is deleted, and no node stays."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        await client.create(PODS, pod("train", gpus=1))
        await clock.advance(1.5)
        before = await names(client, PODS)
        assert len(before) == 2
        await client.delete(PODS, "train", namespace="default")
        await clock.advance(0.1)
        assert not await names(client, PODS)
        await clock.advance(120)
        await check_empty(client)

    play(scene)


def test_a_pod_that_fits_on_no_type_gets_no_stand_in() -> None:
    """An event on the Pod states the reason for each NodePool; Pods without claims are left out."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        await client.patch(
            NODE_POOLS,
            "default",
            {"spec": {"template": {"spec": {"requirements": [instance_type("g5.xlarge")]}}}},
        )
        await client.create(PODS, pod("train", gpus=4))
        await clock.advance(20)
        assert await names(client, PODS) == ["train"]
        own = [e["message"] for e in await events(client, "FailedScheduling")]
        assert any(each.startswith("no node is created for the pod: NodePool") for each in own)

    play(scene)


def test_a_stand_in_asks_only_for_what_karpenter_understands() -> None:
    """The stand-in selects pool and type, tolerates the pool's taints, and takes a node alone."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
        patch = {"spec": {"template": {"spec": {"taints": [taint]}}}}
        await client.patch(NODE_POOLS, "default", patch)
        toleration = {"key": "gpu", "operator": "Exists"}
        selector = {"topology.kubernetes.io/zone": "test-zone-c"}
        made = pod("train", gpus=1, cpu="1", tolerations=[toleration], nodeSelector=selector)
        await client.create(PODS, made)
        await clock.advance(1.5)
        found = [e for e in (await client.list(PODS)).items if e["metadata"]["name"] != "train"]
        spec: dict[str, Any] = found[0]["spec"]
        assert spec["nodeSelector"] == {
            "karpenter.sh/nodepool": "default",
            "node.kubernetes.io/instance-type": "g4dn.xlarge",
            "topology.kubernetes.io/zone": "test-zone-c",
        }
        own = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
        assert own.items() <= spec["tolerations"][0].items()
        assert "resourceClaims" not in spec
        assert spec["containers"][0]["resources"] == {"requests": {"cpu": "1"}}
        await clock.advance(20)
        assert phase(await client.get(PODS, "train", "default")) == "Running"

    play(scene)


@pytest.mark.parametrize("arrives", [False, True])
@pytest.mark.parametrize("dies_at", NUMBERS)
def test_a_crash_at_any_write_leaks_nothing(dies_at: int, arrives: bool) -> None:
    """After a restart, the Pod runs on one node; when the Pod is deleted, no object remains."""

    async def run() -> None:
        clock = VirtualClock()
        async with beside_karpenter(clock) as plane:
            client = plane.client()
            mortal = Mortal(plane.transport, dies_at, arrives=arrives)

            def mortal_wiring(engine: str) -> Wiring:
                return replace(plane.wiring(engine), client=Client(mortal, agent=engine))

            async with running_engines(STAND_INS, mortal_wiring):
                await clock.advance(1)
                await client.create(PODS, pod("train", gpus=1))
                await clock.advance(10)
            async with running_engines(STAND_INS, plane.wiring):
                await clock.advance(30)
                assert phase(await client.get(PODS, "train", "default")) == "Running"
                assert await names(client, PODS) == ["train"]
                assert len(await names(client, NODES)) == 1
                await client.delete(PODS, "train", namespace="default")
                await clock.advance(120)
                await check_empty(client)

    run_virtual(run())


def test_stand_ins_go_with_their_pods_while_dryrack_is_down() -> None:
    """The garbage collector deletes the stand-in of a Pod that is deleted without dryrack."""

    async def run() -> None:
        clock = VirtualClock()
        async with beside_karpenter(clock) as plane:
            client = plane.client()
            async with running_engines(STAND_INS, plane.wiring):
                await clock.advance(1)
                await client.create(PODS, pod("train", gpus=1))
                await clock.advance(1.5)
            assert len(await names(client, PODS)) == 2
            await client.delete(PODS, "train", namespace="default")
            await clock.advance(120)
            await check_empty(client)

    run_virtual(run())
