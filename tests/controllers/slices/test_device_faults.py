"""Faults of devices that the publisher has made: its slices show them, and they end."""

from __future__ import annotations

import asyncio

from tests.client.planes import CountedChance
from tests.controllers.slices.test_resourceslice import (
    GPU_CONFIGURATION,
    KWOK,
    TYPE,
    Karpenter,
    play,
)

from dryrack.client.endpoints import NODES
from dryrack.client.timekeeping import settle
from dryrack.cluster.publish_once import publish_once
from dryrack.cluster.publish_snapshot import read_world
from dryrack.controllers.slices import PublisherSettings
from dryrack.controllers.slices.dry_run import compute_dry_run
from dryrack.hardware import add_expiry, device_annotation, node_annotation


async def annotate(at: Karpenter, **annotations: str | None) -> None:
    patch = {"metadata": {"annotations": annotations}}
    await at.client.patch(NODES, "kwok-node", patch)
    await settle(600)


async def taints(at: Karpenter) -> dict[str, list[str]]:
    """The keys of the taints of each device."""
    return {
        device["name"]: [taint["key"] for taint in device.get("taints", ())]
        for each in await at.slices_for_node("kwok-node")
        for device in each["spec"]["devices"]
    }


def test_a_lost_device_leaves_and_comes_back() -> None:
    """And an unhealthy one has a taint for as long as it is so; then nothing more is written."""

    async def scene(at: Karpenter) -> None:
        await at.configure(GPU_CONFIGURATION)
        await at.node("kwok-node", annotations=KWOK, labels=TYPE)
        before = await taints(at)
        first, *rest = before
        await annotate(at, **{device_annotation(first): add_expiry("lost", at.clock.now() + 20)})
        assert await taints(at) == {name: [] for name in rest}

        await at.clock.advance(19)
        assert first not in await taints(at)
        await at.clock.advance(2)
        assert await taints(at) == before

        await annotate(at, **{device_annotation(first): "unhealthy"})
        assert await taints(at) == before | {first: ["dryrack.dev/unhealthy"]}
        await at.clock.advance(10)
        [stored] = await at.slices_for_node("kwok-node")
        await at.clock.advance(600)
        assert await at.slices_for_node("kwok-node") == [stored]
        await annotate(at, **{device_annotation(first): None})
        assert await taints(at) == before

    play(scene)


def test_slices_of_a_driver_that_is_gone_are_stale() -> None:
    """Changes of devices are not published until the driver is back."""

    async def scene(at: Karpenter) -> None:
        await at.configure(GPU_CONFIGURATION)
        await at.node("kwok-node", annotations=KWOK, labels=TYPE)
        before = await taints(at)
        first = next(iter(before))
        await annotate(at, **{node_annotation("driver"): "gone", device_annotation(first): "lost"})
        await at.clock.advance(120)
        assert await taints(at) == before

        await annotate(at, **{node_annotation("driver"): None})
        assert first not in await taints(at)

    play(scene)


def test_a_survey_and_a_publisher_that_ends_go_by_faults_as_well() -> None:
    """Nothing is to be written where the slices show the faults, or where the driver is gone."""

    async def writes(at: Karpenter) -> int:
        world = await read_world(at.client, PublisherSettings())
        changes = compute_dry_run(world, PublisherSettings(), now=at.clock.now()).changes
        return sum(len(each.writes) for each in changes)

    async def scene(at: Karpenter) -> None:
        await at.configure(GPU_CONFIGURATION)
        await at.node("kwok-node", annotations=KWOK, labels=TYPE)
        first = next(iter(await taints(at)))
        lost = {device_annotation(first): add_expiry("lost", at.clock.now() + 20)}
        await annotate(at, **lost)
        assert await writes(at) == 0
        await annotate(at, **{node_annotation("driver"): "gone", device_annotation(first): None})
        assert await writes(at) == 0
        async with asyncio.TaskGroup() as group:
            once = group.create_task(
                publish_once(
                    at.client, PublisherSettings(), clock=at.clock, chance=CountedChance()
                ),
                name="once",
            )
            await at.clock.advance(5)
        assert once.result().failing == {}
        await annotate(at, **{node_annotation("driver"): None})
        assert await writes(at) == 0

    play(scene)
