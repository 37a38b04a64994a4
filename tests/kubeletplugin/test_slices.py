"""The devices of a node, as the API shows them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.client.planes import site

from dryrack.client.endpoints import NODES, SLICES
from dryrack.client.timekeeping import settle
from dryrack.kubeletplugin import SlicePublisher, node_slices
from dryrack.kubeletplugin.kinds.fake import DRIVER, FakeKind

if TYPE_CHECKING:
    import pytest
    from tests.client.planes import Site

    from dryrack.kinds.raw import Raw


def test_a_node_has_one_pool_however_many_slices_it_takes() -> None:
    """300 devices are three slices that agree about count and generation."""
    slices = node_slices(FakeKind(300), "node-1")

    assert [len(each.spec.devices) for each in slices] == [128, 128, 44]
    assert {each.spec.pool.name for each in slices} == {"node-1"}
    assert {each.spec.pool.resource_slice_count for each in slices} == {3}
    assert {each.spec.node_name for each in slices} == {"node-1"}


def test_slices_that_somebody_deletes_come_back() -> None:
    """A kubelet that starts deletes those of its node, and the plugin writes them again."""

    async def scenario() -> tuple[list[Raw], list[Raw], list[Raw]]:
        world = site()
        node = await world.client.create(NODES, {"metadata": {"name": "node-1"}})
        publisher = SlicePublisher(
            world.client, FakeKind(), "node-1", clock=world.clock, chance=world.chance
        )
        async with asyncio.TaskGroup() as group:
            running = group.create_task(publisher.run(), name="publisher")
            await settle()
            first = list((await world.client.list(SLICES)).items)
            await world.client.delete(SLICES, first[0]["metadata"]["name"])
            await settle()
            second = list((await world.client.list(SLICES)).items)
            running.cancel()
        await publisher.remove()
        assert first[0]["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]
        return first, second, list((await world.client.list(SLICES)).items)

    first, second, last = asyncio.run(scenario())

    assert [len(each["spec"]["devices"]) for each in first] == [8]
    assert first[0]["spec"]["driver"] == DRIVER
    assert first[0]["spec"] == second[0]["spec"]
    assert first[0]["metadata"]["uid"] != second[0]["metadata"]["uid"]
    assert last == []


def test_two_publishers_for_one_node_hold_back(caplog: pytest.LogCaptureFixture) -> None:
    """Two programs that publish for one driver and node write ever more rarely, and log why."""

    async def scenario() -> tuple[int, int]:
        world = site()
        await world.client.create(NODES, {"metadata": {"name": "node-1"}})
        publishers = [
            SlicePublisher(
                world.client, FakeKind(count), "node-1", clock=world.clock, chance=world.chance
            )
            for count in (8, 2)
        ]
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(each.run(), name="publisher") for each in publishers]
            await settle()
            at_once = writes(world)
            await world.clock.advance(600)
            later = writes(world)
            for each in running:
                each.cancel()
        return at_once, later

    at_once, later = asyncio.run(scenario())

    assert at_once < 12
    assert 10 < later - at_once < 60
    message = (
        f"slices of driver {DRIVER} on node node-1 are repeatedly changed by another program; "
    )
    assert sum(each.message.startswith(message) for each in caplog.records) == 2


def writes(world: Site) -> int:
    return sum(each.method == "PUT" for each in world.road.asked)
