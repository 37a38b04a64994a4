"""NodeAllocationState objects: what a node's fake devices are, and who has them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.client.planes import CountedChance
from tests.kubeletplugin.nodes import NODE, bench
from tests.kubeletplugin.test_virtual import container, make, request

from dryrack.client.endpoints import CLASSES, NODES, PODS
from dryrack.client.timekeeping import VirtualClock, run_virtual, settle
from dryrack.cluster.assembly import EngineOptions, node_plugins
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import embedded
from dryrack.cluster.initial_objects import add_allocation_states, virtual_node
from dryrack.kinds.decode import to_builtins
from dryrack.kubeletplugin import STATE_NAMESPACE, VirtualDrivers, states_of_node
from dryrack.kubeletplugin.allocation_state import STATES, allocation_state
from dryrack.kubeletplugin.kinds.fake import DRIVER, FakeKind, uuid_of, uuids_of
from dryrack.kubeletplugin.slices import device_class

if TYPE_CHECKING:
    from pathlib import Path

    from dryrack.client.client import Client
    from dryrack.kinds.raw import Raw

KIND = FakeKind(2)
PARAMETERS = {"apiVersion": f"{DRIVER}/v1alpha1", "kind": "FakeClaimParameters"}


async def state_of(client: Client) -> Raw:
    return await client.get(STATES, NODE, STATE_NAMESPACE)


def parents_and_children(node: str, device: str) -> list[Raw]:
    parent = uuid_of(node, device)
    return [{"uuid": each, "parentUUID": parent} for each in uuids_of(node, device, 2)]


def test_the_state_of_a_node_follows_its_plugin(tmp_path: Path) -> None:
    """Before, during and after: allocated is what the API says, prepared the plugin."""

    async def scenario() -> list[Raw]:
        world = bench(tmp_path, KIND)
        client = world.site.client
        node = await client.create(NODES, {"metadata": {"name": NODE}})
        await add_allocation_states(client)
        plugin = world.plugin()
        plugin.recover()
        states = states_of_node(
            client, plugin, KIND, STATE_NAMESPACE, clock=world.site.clock, chance=world.site.chance
        )
        seen = []
        async with asyncio.TaskGroup() as group:
            running = group.create_task(states.run(), name="states")
            await settle()
            seen.append(await state_of(client))
            claim = await world.claim("c", ["fake-1"], parameters=PARAMETERS | {"split": 2})
            await settle()
            seen.append(await state_of(client))
            await plugin.prepare([claim])
            await settle()
            seen.append(await state_of(client))
            await plugin.unprepare([claim])
            await settle()
            seen.append(await state_of(client))
            running.cancel()
        await states.retire(NODE)
        seen.append(await state_of(client))
        assert seen[0]["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]
        given = {"fake": {"devices": [{"uuid": uuid_of(NODE, "fake-1"), "split": 2}]}}
        assert seen[1]["spec"]["allocatedClaims"] == {claim.uid: given}
        prepared = {"fake": {"devices": parents_and_children(NODE, "fake-1")}}
        assert seen[2]["spec"]["preparedDevices"] == {claim.uid: prepared}
        return seen

    seen = asyncio.run(scenario())

    assert seen[0]["spec"] == {
        "allocatableDevice": [
            {"fake": {"uuid": uuid_of(NODE, f"fake-{n}"), "name": "LATEST-FAKE-MODEL"}}
            for n in range(2)
        ]
    }
    assert "preparedDevices" not in seen[1]["spec"]
    assert "preparedDevices" not in seen[3]["spec"]
    assert [each["status"] for each in seen] == ["Ready"] * 4 + ["NotReady"]


def test_without_the_definition_a_plugin_waits_for_it(tmp_path: Path) -> None:
    """It is no failure; the object is there soon after the definition is, if that comes soon."""

    async def scenario() -> Raw:
        world = bench(tmp_path, KIND)
        client = world.site.client
        await client.create(NODES, {"metadata": {"name": NODE}})
        states = states_of_node(
            client,
            world.plugin(),
            KIND,
            STATE_NAMESPACE,
            clock=world.site.clock,
            chance=world.site.chance,
        )
        async with asyncio.TaskGroup() as group:
            running = group.create_task(states.run(), name="states")
            await settle()
            await add_allocation_states(client)
            await world.site.clock.advance(2)
            found = await state_of(client)
            running.cancel()
        return found

    assert run_virtual(scenario())["status"] == "Ready"


def test_virtual_nodes_have_states_that_come_to_rest() -> None:
    """A pod's devices come and go in the state; nothing is written where nothing changes."""
    clock = VirtualClock()
    options = ControlPlaneOptions(clock=clock, chance=CountedChance())

    async def scenario() -> list[Raw]:
        drivers = VirtualDrivers([KIND])
        engines = EngineOptions(drivers=drivers, plugins=node_plugins(drivers))
        async with embedded(options, engines=engines) as cluster:
            client = cluster.client
            await add_allocation_states(client)
            await client.create(CLASSES, to_builtins(device_class(KIND)))
            await client.create(NODES, virtual_node(NODE))
            await clock.advance(60)
            seen = [await state_of(client)]
            opaque = {"driver": DRIVER, "parameters": PARAMETERS | {"split": 2}}
            asked = {"requests": [request("r", "fake.3-shake.com")], "config": [{"opaque": opaque}]}
            await make(client, "test", {"one": asked}, [container("c", {"name": "one"})])
            await clock.advance(60)
            seen.append(await state_of(client))
            await clock.advance(3600)
            seen.append(await state_of(client))
            await client.delete(PODS, "pod0", namespace="test")
            await clock.advance(120)
            seen.append(await state_of(client))
            await client.delete(NODES, NODE)
            await clock.advance(120)
            assert (await client.list(STATES)).items == ()
            return seen

    before, during, later, after = run_virtual(scenario())
    [prepared] = during["spec"]["preparedDevices"].values()

    assert [each["status"] for each in (before, during, after)] == ["Ready"] * 3
    assert prepared["fake"]["devices"] == parents_and_children(NODE, "fake-0")
    assert list(during["spec"]["allocatedClaims"]) == list(during["spec"]["preparedDevices"])
    assert later["metadata"]["resourceVersion"] == during["metadata"]["resourceVersion"]
    assert after["spec"] == before["spec"]


def test_a_child_that_is_on_offer_is_prepared_with_its_parent(tmp_path: Path) -> None:
    """The state names the whole device of children that the node or a claim has split."""

    async def scenario() -> Raw:
        world = bench(tmp_path, FakeKind(1, split=2))
        plugin = world.plugin()
        plugin.recover()
        await plugin.prepare([await world.claim("c", ["fake-0-child-1"])])
        node = {"metadata": {"name": NODE, "uid": "1"}}
        return allocation_state(
            FakeKind(1, split=2), node, [], plugin.records, namespace="n", is_ready=True
        )

    [prepared] = asyncio.run(scenario())["spec"]["preparedDevices"].values()

    own = uuid_of(NODE, "fake-0-child-1")
    parent = uuid_of(NODE, "fake-0")
    assert prepared["fake"]["devices"] == [{"uuid": own, "parentUUID": parent}]
