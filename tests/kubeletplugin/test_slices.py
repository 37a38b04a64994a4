"""The devices of a node, as the API shows them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tests.client.planes import site

from dryrack.client.endpoints import NODES, SLICES
from dryrack.client.timekeeping import settle
from dryrack.kinds.decode import to_builtins
from dryrack.kubeletplugin import SlicePublisher, node_slices
from dryrack.kubeletplugin.kinds.fake import DRIVER, FakeKind
from dryrack.kubeletplugin.slices import plan

if TYPE_CHECKING:
    import pytest

    from dryrack.client.client import Client

Raw = dict[str, Any]


def test_a_node_has_one_pool_however_many_slices_it_takes() -> None:
    """300 devices are three slices that agree about count and generation."""
    slices = node_slices(FakeKind(300), "node-1")

    assert [len(each.spec.devices) for each in slices] == [128, 128, 44]
    assert {each.spec.pool.name for each in slices} == {"node-1"}
    assert {each.spec.pool.resource_slice_count for each in slices} == {3}
    assert {each.spec.node_name for each in slices} == {"node-1"}


def test_a_change_is_a_new_generation_of_all_slices() -> None:
    """Nothing is written where all is well; otherwise no old slice counts any more."""
    old = [to_builtins(each) for each in node_slices(FakeKind(200), "node-1")]
    for each in old:
        each["metadata"]["resourceVersion"] = "7"
    writes, obsolete = plan(node_slices(FakeKind(3), "node-1"), old)

    assert plan(node_slices(FakeKind(200), "node-1"), old) == ([], [])
    assert [each["spec"]["pool"]["generation"] for each in writes] == [2]
    assert [each["metadata"]["resourceVersion"] for each in writes] == ["7"]
    assert obsolete == old[1:]


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


def test_who_is_undone_again_and_again_holds_back(caplog: pytest.LogCaptureFixture) -> None:
    """Two programs that publish for one driver and node do not write all the time; it is told."""

    async def scenario() -> tuple[int, int]:
        world = site()
        await world.client.create(NODES, {"metadata": {"name": "node-1"}})
        ours, theirs = (
            SlicePublisher(
                world.client, FakeKind(count), "node-1", clock=world.clock, chance=world.chance
            )
            for count in (8, 2)
        )
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(each.run(), name="publisher") for each in (ours, theirs)]
            await settle()
            at_once = await generation(world.client)
            await world.clock.advance(600)
            later = await generation(world.client)
            for each in running:
                each.cancel()
        return at_once, later

    at_once, later = asyncio.run(scenario())

    assert at_once < 12
    assert later - at_once < 60
    told = f"slices of driver {DRIVER} on node node-1 are repeatedly changed by another program; "
    assert sum(each.message.startswith(told) for each in caplog.records) == 2


async def generation(client: Client) -> int:
    slices = (await client.list(SLICES)).items
    return max(int(each["spec"]["pool"]["generation"]) for each in slices)
