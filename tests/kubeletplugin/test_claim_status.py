"""The devices in the status of claims."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import yaml
from tests.client.planes import CountedChance, Road, Site, refusal
from tests.kubeletplugin.nodes import NODE, Bench, bench

from dryrack.client.client import Client
from dryrack.client.endpoints import CLAIMS, Endpoint
from dryrack.client.timekeeping import VirtualClock, run_virtual, settle
from dryrack.client.transport import User
from dryrack.cluster import rights
from dryrack.cluster.control_plane import ControlPlaneOptions, build_control_plane
from dryrack.cluster.process.modes import AuthorizationMode
from dryrack.kubeletplugin import ClaimStatuses
from dryrack.kubeletplugin.kinds.fake import DRIVER, FakeKind

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from dryrack.kinds.raw import Raw
    from dryrack.kubeletplugin import NodePlugin


@asynccontextmanager
async def saying(world: Bench, plugin: NodePlugin) -> AsyncIterator[None]:
    """A plugin that writes statuses, for the time of a block."""
    statuses = ClaimStatuses(world.site.client, plugin, clock=world.site.clock)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(statuses.run(), name="statuses")
        await world.site.clock.advance(3)
        yield
        await world.site.clock.advance(3)
        running.cancel()


async def claim_of(world: Bench, name: str = "c") -> Raw:
    return await world.site.client.get(CLAIMS, name, "default")


def test_a_prepared_device_is_ready_until_it_is_given_back(tmp_path: Path) -> None:
    """Written by the driver's field manager beside the allocation, and removed without a trace."""

    async def scenario() -> tuple[Raw, Raw]:
        world = bench(tmp_path)
        plugin = world.plugin()
        plugin.recover()
        claim = await world.claim("c", ["fake-0", "fake-1"])
        async with saying(world, plugin):
            await plugin.prepare([claim])
            await world.site.clock.advance(3)
            during = await claim_of(world)
            await plugin.unprepare([claim])
        return during, await claim_of(world)

    during, after = asyncio.run(scenario())
    told = during["status"]["devices"]
    uid = during["metadata"]["uid"]

    assert [(each["driver"], each["pool"], each["device"]) for each in told] == [
        (DRIVER, NODE, "fake-0"),
        (DRIVER, NODE, "fake-1"),
    ]
    conditions = [c["type"] + c["status"] for each in told for c in each["conditions"]]
    assert conditions == ["ReadyTrue", "ReadyTrue"]
    assert told[0]["data"] == {"cdiDeviceIDs": [f"k8s.{DRIVER}/fake={uid}-fake-0"]}
    assert [each["manager"] for each in during["metadata"]["managedFields"]].count(DRIVER) == 1
    assert "devices" not in after["status"]
    assert after["status"]["allocation"] == during["status"]["allocation"]


def test_a_restart_writes_nothing_that_is_said_already(tmp_path: Path) -> None:
    """The time of the transition stays; and a claim with another UID is not touched."""

    async def scenario() -> list[Raw]:
        world = bench(tmp_path)
        seen = []
        plugin = world.plugin()
        plugin.recover()
        async with saying(world, plugin):
            await plugin.prepare([await world.claim("c", ["fake-0"])])
        seen.append(await claim_of(world))
        await world.site.clock.advance(10)
        again = world.plugin()
        again.recover()
        async with saying(world, again):
            await settle()
        seen.append(await claim_of(world))
        await world.site.client.delete(CLAIMS, "c", namespace="default")
        await world.claim("c", ["fake-1"])
        third = world.plugin()
        third.recover()
        async with saying(world, third):
            await settle()
        return [*seen, await claim_of(world)]

    before, restarted, replaced = run_virtual(scenario())

    assert before["status"]["devices"] != []
    assert restarted["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    assert "devices" not in replaced["status"]


def test_a_claim_is_prepared_also_where_the_rights_are_missing(tmp_path: Path) -> None:
    """The kubelet hears nothing of it; the plugin tries again by and by, and not all the time."""

    async def scenario() -> tuple[Any, int, Raw]:
        world = bench(tmp_path)
        road = world.site.road
        road.refuse = lambda asked: refusal(403, "Forbidden") if asked.method == "PATCH" else None
        plugin = world.plugin()
        plugin.recover()
        claim = await world.claim("c", ["fake-0"])
        async with saying(world, plugin):
            answers = await plugin.prepare([claim])
            await world.site.clock.advance(3600)
            tries = sum(asked.method == "PATCH" for asked in road.asked)
            road.refuse = lambda _: None
            await world.site.clock.advance(60)
        return answers[claim.uid], tries, await claim_of(world)

    answer, tries, claim = run_virtual(scenario())

    assert [each.device for each in answer] == ["fake-0"]
    assert 2 <= tries <= 130
    assert [each["device"] for each in claim["status"]["devices"]] == ["fake-0"]


def test_the_printed_rights_are_enough_for_a_token_that_is_bound_to_the_node(
    tmp_path: Path,
) -> None:
    """And no more than that: from another node the same account is refused."""

    async def scenario(node: str) -> Raw:
        clock = VirtualClock()
        options = ControlPlaneOptions(
            clock=clock, chance=CountedChance(), authorization=AuthorizationMode.RBAC
        )
        plane = build_control_plane(options)
        admin = Client(plane.transport)
        for each in yaml.safe_load_all(rights.plugin("kube-system")):
            if each["kind"].startswith("ClusterRole"):
                await admin.create(_endpoint(each["kind"]), each)
        account = User(
            "system:serviceaccount:kube-system:dryrack-plugin",
            ("system:serviceaccounts", "system:authenticated"),
            extra={"authentication.kubernetes.io/node-name": (node,)},
        )
        bound = Client(plane.transport, user=account)
        as_admin = Site(Road(plane.transport), admin, clock, CountedChance())
        claim = await Bench(as_admin, tmp_path / node, FakeKind()).claim("c", ["fake-0"])
        world = Bench(replace(as_admin, client=bound), tmp_path / node, FakeKind())
        plugin = world.plugin()
        plugin.recover()
        async with saying(world, plugin):
            await plugin.prepare([claim])
        return await claim_of(world)

    own = asyncio.run(scenario(NODE))
    other = asyncio.run(scenario("node-2"))

    assert [each["device"] for each in own["status"]["devices"]] == ["fake-0"]
    assert "devices" not in other["status"]


def _endpoint(kind: str) -> Endpoint:
    group = "rbac.authorization.k8s.io"
    return Endpoint(group, "v1", f"{kind.lower()}s", kind, is_namespaced=False)
