"""The publisher on an embedded server: what it makes, keeps, mends and leaves alone."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
from tests.client.planes import refusal, site
from tests.controllers.slices.stages import GPUS, KWOK, Stage, devices, inventory, mapping, stage
from tests.controllers.slices.weather import FAIR, Storm

from dryrack.client.endpoints import NODES, SLICES
from dryrack.controllers.slices import PublisherSettings
from dryrack.controllers.slices.published_counts import Published
from dryrack.hardware.inventory import (
    EveryNode,
    Inventory,
    Origin,
    Overlay,
    Source,
    SourceKind,
)
from dryrack.kinds.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.resource import Device, DeviceCapacity

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dryrack.client.transport import Request, Response, Transport

FPGAS = mapping("fpga", "fpga", devices("u250", 1), pool="fpgas")
SAN = mapping("san", "san", devices("nvme", 1), pool="san", reach=EveryNode())
KUBELET = {"nodeInfo": {"kubeletVersion": "v1.36.4"}}


def sized(device: Device) -> Device:
    capacity = {"memory": DeviceCapacity(value=Quantity.parse("16Gi"))}
    return Device(name=device.name, attributes=device.attributes, capacity=capacity)


class Gateless:
    """A server that does not know capacities, and drops them without a word."""

    def __init__(self, to: Transport) -> None:
        self._to = to

    async def send(self, request: Request) -> Response:
        body = request.body.replace(b'"capacity"', b'"unknown"')
        return await self._to.send(msgspec.structs.replace(request, body=body))


def play(scene: Callable[[Stage], Awaitable[None]], *mappings: Any, **options: Any) -> None:
    async def run() -> None:
        async with stage(*(mappings or (GPUS,)), options=PublisherSettings(**options)) as at:
            await scene(at)

    asyncio.run(run())


def test_a_node_gets_its_slices_as_soon_as_it_is_there() -> None:
    """No time passes between the node and its devices."""

    async def scene(at: Stage) -> None:
        node = await at.node("node-a", gpu="yes")
        await at.rest()

        [only] = await at.slices("node-a")
        assert [device["name"] for device in only["spec"]["devices"]] == ["t4-0", "t4-1"]
        assert only["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]
        assert await at.events() == [
            ("DevicesPublished", "gpu.example.com/node-a: 2 devices in 1 slice")
        ]

    play(scene)


def test_nothing_is_written_when_nothing_changes() -> None:
    """Not by looking again, and not when a node only reports on itself."""

    async def scene(at: Stage) -> None:
        await at.node("node-a", gpu="yes", fpga="yes")
        await at.rest()
        before = at.writes()
        status = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        await at.client.patch(NODES, "node-a", status, subresource="status")
        await at.site.clock.advance(3600)

        assert len(before) == 2
        assert at.writes() == before
        assert at.publishing.unsettled() == ()

    play(scene, GPUS, FPGAS)


def test_a_change_of_labels_is_seen_at_once() -> None:
    """A node that no longer matches loses its devices; one that does gets them."""

    async def scene(at: Stage) -> None:
        await at.node("node-a", gpu="yes")
        await at.rest()
        await at.label("node-a", gpu=None, fpga="yes")
        await at.rest()

        assert await at.devices("node-a") == ["u250-0"]

    play(scene, GPUS, FPGAS)


def test_a_change_of_the_inventory_touches_only_what_it_changes() -> None:
    """A change of the inventory writes only the slices that it changes."""

    async def scene(at: Stage) -> None:
        await at.node("node-a", gpu="yes")
        await at.node("node-b", fpga="yes")
        await at.rest()
        before = len(at.writes())
        at.current.replace(inventory(mapping("gpu", "gpu", devices("t4", 3)), FPGAS))
        await at.rest()

        [name] = [each["metadata"]["name"] for each in await at.slices("node-a")]
        assert at.writes()[before:] == [f"PUT /apis/resource.k8s.io/v1/resourceslices/{name}"]
        assert len(await at.devices("node-a")) == 3

    play(scene, GPUS, FPGAS)


def test_an_empty_inventory_removes_everything_that_there_was() -> None:
    """The configuration was deleted: so are its slices."""

    async def scene(at: Stage) -> None:
        await at.node("node-a", gpu="yes", san="yes")
        await at.rest()
        count = len(await at.slices())
        at.current.replace(Inventory())
        await at.rest()

        assert (count, await at.slices()) == (2, [])

    play(scene, GPUS, SAN)


def test_a_slice_that_somebody_deletes_is_put_back() -> None:
    """At once, and under the same name."""

    async def scene(at: Stage) -> None:
        await at.node("node-a", gpu="yes")
        await at.rest()
        [before] = await at.slices()
        await at.client.delete(SLICES, before["metadata"]["name"])
        await at.rest()

        [after] = await at.slices()
        assert after["spec"] == before["spec"]
        assert after["metadata"]["name"] == before["metadata"]["name"]
        assert after["metadata"]["uid"] != before["metadata"]["uid"]

    play(scene)


def test_a_slice_that_somebody_changes_is_put_right() -> None:
    """Devices and labels come back."""

    async def scene(at: Stage) -> None:
        await at.node("node-a", gpu="yes")
        await at.rest()
        [before] = await at.slices()
        patch = {"metadata": {"labels": {"kwok.x-k8s.io/node": "x"}}, "spec": {"devices": []}}
        await at.client.patch(SLICES, before["metadata"]["name"], patch)
        await at.rest()

        [after] = await at.slices()
        assert after["spec"] == before["spec"]
        assert after["metadata"]["labels"] == before["metadata"]["labels"]

    play(scene)


def test_a_node_that_is_made_again_owns_its_slices() -> None:
    """Same name, other uid: the slices stay, in other hands."""

    async def scene(at: Stage) -> None:
        await at.node("node-a", gpu="yes")
        await at.rest()
        await at.client.delete(NODES, "node-a")
        node = await at.node("node-a", gpu="yes")
        await at.rest()

        [only] = await at.slices()
        assert only["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]

    play(scene)


def test_the_slices_of_a_node_go_with_it() -> None:
    """Slices of a deleted node are deleted without a garbage collector."""

    async def scene(at: Stage) -> None:
        await at.node("node-a", gpu="yes")
        await at.node("node-b", gpu="yes")
        await at.rest()
        await at.client.delete(NODES, "node-a")
        await at.rest()

        assert [each["spec"]["nodeName"] for each in await at.slices()] == ["node-b"]
        assert at.counts.nodes == 1

    play(scene)


async def test_a_node_that_only_the_cache_does_not_know_keeps_its_slices() -> None:
    """A watch that lost a node is no reason to delete anything; the loss is found, and mended."""
    where = site()
    async with stage(GPUS, where=where) as at:
        await at.node("node-a", gpu="yes")
        await at.rest()
        before = await at.slices()
    storm = Storm(where.road.to, FAIR)
    storm.lose = lambda line: b'"kind":"Node"' in line
    where.road.to = storm
    async with stage(GPUS, where=where) as at:
        await where.clock.advance(100)
        assert await at.slices() == before

        storm.lose = lambda _: False
        await where.clock.advance(40)
        await at.label("node-a", gpu=None)
        await at.rest()
        assert await at.slices() == []


async def test_nothing_is_deleted_before_the_inventory_is_known() -> None:
    """Slices of a former run stay until it is known what there should be; then orphans go."""
    where = site()
    async with stage(GPUS, where=where) as at:
        await at.node("node-a", gpu="yes")
        await at.node("node-b", gpu="yes")
        await at.rest()
    await at.client.delete(NODES, "node-b")
    async with stage(where=where) as at:
        await where.clock.advance(600)
        assert len(await at.slices()) == 2
        at.current.replace(inventory(GPUS))
        await at.rest()
        assert [each["spec"]["nodeName"] for each in await at.slices()] == ["node-a"]


async def test_a_new_publisher_finds_everything_in_order() -> None:
    """A start on what a former run has made writes nothing."""
    where = site()
    async with stage(GPUS, SAN, where=where) as at:
        await at.node("node-a", gpu="yes", san="yes")
        await at.rest()
    where.road.asked.clear()
    async with stage(GPUS, SAN, where=where) as at:
        await where.clock.advance(100)
        assert at.writes() == []
        assert at.publishing.is_idle


def test_slices_of_others_are_left_alone() -> None:
    """Those of a driver on the same node, and those of a manager with another name."""

    async def scene(at: Stage) -> None:
        await at.node("node-a", gpu="yes")
        for name, labels in (("plain", {}), ("other", {"kwok.x-k8s.io/managed-by": "x"})):
            spec = {
                "driver": "real.example.com",
                "nodeName": "node-a",
                "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            }
            await at.client.create(
                SLICES, {"metadata": {"name": name, "labels": labels}, "spec": spec}
            )
        await at.rest()
        at.current.replace(Inventory())
        await at.site.clock.advance(100)

        assert [each["metadata"]["name"] for each in await at.slices()] == ["other", "plain"]

    play(scene)


def test_a_node_with_a_kubelet_has_nothing_published() -> None:
    """A node with a kubelet has no slices: no driver could prepare the devices."""

    async def scene(at: Stage) -> None:
        await at.node("real", annotations={}, status=KUBELET, gpu="yes")
        await at.site.clock.advance(60)

        assert await at.slices() == []

    play(scene)
    requirement = NodeSelectorRequirement(key="gpu", operator="Exists")
    term = NodeSelectorTerm(match_expressions=(requirement,))
    play(scene, nodes=NodeSelector(node_selector_terms=(term,)))


def test_real_nodes_are_published_for_if_asked_and_again_after_their_kubelet_starts() -> None:
    """A kubelet deletes all slices of its node when it starts; they come back."""

    async def scene(at: Stage) -> None:
        await at.node("real", annotations={}, status=KUBELET, gpu="yes")
        await at.rest()
        [before] = await at.slices()
        await at.client.delete(SLICES, before["metadata"]["name"])
        await at.rest()

        assert await at.devices("real") == ["t4-0", "t4-1"]

    play(scene, real_nodes=True)


def test_a_selector_takes_the_place_of_the_annotation() -> None:
    """Nodes that it means have devices, with the annotation or without; no others have."""
    requirement = NodeSelectorRequirement(key="pool", operator="In", values=("fake",))
    term = NodeSelectorTerm(match_expressions=(requirement,))

    async def scene(at: Stage) -> None:
        await at.node("meant", annotations={}, gpu="yes", pool="fake")
        await at.node("not-meant", gpu="yes")
        await at.rest()

        assert [each["spec"]["nodeName"] for each in await at.slices()] == ["meant"]

    play(scene, nodes=NodeSelector(node_selector_terms=(term,)))


def test_a_pool_of_the_whole_cluster_is_there_while_a_node_matches() -> None:
    """One slice for all nodes has no owner; it is deleted with the last matching node."""

    async def scene(at: Stage) -> None:
        await at.node("node-a", san="yes")
        await at.node("node-b", san="yes")
        await at.rest()
        [only] = await at.slices()
        assert only["spec"]["allNodes"] is True
        assert "ownerReferences" not in only["metadata"]

        await at.client.delete(NODES, "node-a")
        await at.rest()
        assert len(await at.slices()) == 1
        await at.label("node-b", san=None)
        await at.rest()
        assert await at.slices() == []

    play(scene, SAN)


def test_two_mappings_of_one_pool_are_one_value() -> None:
    """Two slices with one generation and one count; one more raises it for all."""

    async def scene(at: Stage) -> None:
        await at.node("node-a", gpu="yes")
        await at.rest()
        more = mapping("more", "gpu", devices("l4", 129))
        at.current.replace(inventory(GPUS, more))
        await at.rest()

        pools = [each["spec"]["pool"] for each in await at.slices()]
        assert pools == [{"name": "node-a", "generation": 2, "resourceSliceCount": 3}] * 3

    play(scene)


def refusing(*nodes: str) -> Callable[[Request], Response | None]:
    """A server that takes no slice of these nodes."""

    def refuse(request: Request) -> Response | None:
        is_write = request.method in ("POST", "PUT") and "resourceslices" in request.path
        hit = any(f'"nodeName":"{node}"'.encode() in request.body for node in nodes)
        return refusal(422, "Invalid") if is_write and hit else None

    return refuse


def test_what_fails_on_one_node_touches_no_other() -> None:
    """The others have their devices; people hear of the one, once; later it has them, too."""

    async def scene(at: Stage) -> None:
        at.site.road.refuse = refusing("node-a")
        await at.node("node-a", gpu="yes")
        await at.node("node-b", gpu="yes")
        await at.site.clock.advance(300)
        assert [each["spec"]["nodeName"] for each in await at.slices()] == ["node-b"]
        assert at.publishing.failing == {"node-a": "refused: Invalid"}
        told = [reason for reason, _ in await at.events() if reason == "DevicesRefused"]
        assert told == ["DevicesRefused"]

        at.site.road.refuse = lambda _: None
        await at.site.clock.advance(30)
        assert len(await at.slices()) == 2
        assert at.publishing.failing == {}

    play(scene)


def test_a_failure_without_words_is_a_failure() -> None:
    """It has the name of what was raised, and counts until the node is as it should be."""

    async def scene(at: Stage) -> None:
        at.publishing.on_failure("node-a", TimeoutError())

        assert at.publishing.failing == {"node-a": "TimeoutError"}

    play(scene)


def test_what_fails_leaves_what_is_there() -> None:
    """A change that the server refuses takes nothing away from the node."""

    async def scene(at: Stage) -> None:
        await at.node("node-a", gpu="yes")
        await at.rest()
        at.site.road.refuse = refusing("node-a")
        at.current.replace(inventory(mapping("gpu", "gpu", devices("l4", 2))))
        await at.site.clock.advance(100)
        assert await at.devices("node-a") == ["t4-0", "t4-1"]

        at.site.road.refuse = lambda _: None
        await at.site.clock.advance(30)
        assert await at.devices("node-a") == ["l4-0", "l4-1"]

    play(scene)


def test_a_pool_that_is_refused_does_not_keep_others_from_the_node() -> None:
    """The refused one waits at the end of the line."""

    def refuse(request: Request) -> Response | None:
        is_it = request.method == "POST" and b'"name":"node-a/fpgas"' in request.body
        return refusal(403, "Forbidden") if is_it else None

    async def scene(at: Stage) -> None:
        at.site.road.refuse = refuse
        await at.node("node-a", gpu="yes", fpga="yes", zoo="yes")
        await at.site.clock.advance(5)

        found = sorted(each["spec"]["pool"]["name"] for each in await at.slices())
        assert found == ["node-a/aaa", "node-a/zoo"]

    first = mapping("first", "gpu", devices("t4", 2), pool="aaa")
    zoo = mapping("zoo", "zoo", devices("v1", 1), pool="zoo")
    play(scene, first, FPGAS, zoo)


def test_fields_that_the_server_drops_are_not_sent_for_ever() -> None:
    """A gate is off: people hear of it, and that is that, until something else is wanted."""

    async def scene(at: Stage) -> None:
        at.site.road.to = Gateless(at.site.road.to)
        await at.node("node-a", gpu="yes")
        await at.site.clock.advance(200)
        assert len(at.writes()) == 1
        told = sorted(reason for reason, _ in await at.events())
        assert told == ["DevicesIncomplete", "DevicesPublished"]

        at.current.replace(inventory(mapping("gpu", "gpu", map(sized, devices("l4", 1)))))
        await at.site.clock.advance(200)
        assert await at.devices("node-a") == ["l4-0"]
        assert len(at.writes()) == 2

    play(scene, mapping("gpu", "gpu", map(sized, devices("t4", 1))))


def test_the_ledger_tells_what_each_source_has_caused() -> None:
    """Slices and nodes, by source, and again when they change."""

    async def scene(at: Stage) -> None:
        source = Source(SourceKind.CONFIG_MAP, "dra-kwok-configmap")
        await at.node("node-a", gpu="yes", san="yes")
        await at.node("node-b", gpu="yes")
        await at.rest()
        assert at.counts.of(source) == Published(slices=3, nodes=2)
        assert at.counts.is_settled()

        await at.client.delete(NODES, "node-a")
        await at.rest()
        assert at.counts.of(source) == Published(slices=1, nodes=1)

    play(scene, GPUS, SAN)


def unread(kind: SourceKind, *mappings: Any) -> Inventory:
    return replace(inventory(*mappings), unread=(Source(kind, "dra-kwok-configmap"),))


def test_pools_of_a_source_that_cannot_be_read_stay_as_they_are() -> None:
    """The devices of an unread source are unknown; the catalog does not replace it."""

    async def scene(at: Stage) -> None:
        await at.node("node-a", gpu="yes", san="yes")
        await at.rest()
        before = await at.slices()
        types = {"x": replace(FPGAS, origin=Origin(SourceKind.CATALOGUE, "x", "x"))}
        at.current.replace(replace(unread(SourceKind.CONFIG_MAP), instance_types=types))
        await at.label("node-a", fpga="yes")
        await at.site.clock.advance(60)
        assert await at.slices() == before

        await at.client.delete(NODES, "node-a")
        await at.rest()
        assert [each["spec"].get("allNodes") for each in await at.slices()] == [True]

    play(scene, GPUS, SAN)


def test_a_stronger_source_need_not_wait_for_one_that_cannot_be_read() -> None:
    """An overlay that matches has precedence over a mapping."""

    async def scene(at: Stage) -> None:
        await at.node("node-a", gpu="yes")
        await at.rest()
        overlay = replace(FPGAS, origin=Origin(SourceKind.OVERLAY, "o", ""))
        at.current.replace(
            replace(unread(SourceKind.CONFIG_MAP), overlays=(Overlay(overlay, 1, {}),))
        )
        await at.label("node-a", fpga="yes")
        await at.rest()

        assert await at.devices("node-a") == ["u250-0"]

    play(scene)


def test_longest_names_are_published_too() -> None:
    """Two nodes with names of 253 characters that differ in the last."""

    async def scene(at: Stage) -> None:
        names = [f"{'n' * 252}{last}" for last in "ab"]
        for name in names:
            await at.node(name, annotations=KWOK, gpu="yes")
        await at.rest()

        assert [len(await at.devices(name)) for name in names] == [2, 2]

    play(scene)


async def test_two_who_want_different_things_do_not_drive_each_other() -> None:
    """After a short burst each node is written once a second by each, until one gives in."""
    where = site()
    other = mapping("gpu", "gpu", devices("l4", 1))
    async with stage(GPUS, where=where) as at, stage(other, where=where):
        await at.node("node-a", gpu="yes")
        await where.clock.advance(100)

        assert 100 < len(at.writes()) < 250


def test_a_fleet_is_published_before_anybody_is_told() -> None:
    """Events wait for slices; of very many events the oldest are dropped."""

    async def scene(at: Stage) -> None:
        for number in range(40):
            await at.node(f"node-{number:02}", gpu="yes")
        await at.site.clock.advance(10)

        asked = [each.path for each in at.site.road.asked if each.method == "POST"]
        first_event = next(n for n, path in enumerate(asked) if "/events" in path)
        assert len([path for path in asked if "/events" in path]) == 40
        assert first_event >= 16

    play(scene)


def test_one_node_more_costs_the_same_however_many_there_are() -> None:
    """One slice and one event, and the pool of the whole cluster is not looked at again."""

    async def scene(at: Stage) -> None:
        costs = []
        for count in (1, 20):
            for number in range(count):
                await at.node(f"node-{count}-{number}", gpu="yes", san="yes")
            await at.rest()
            before = len(at.site.road.asked)
            await at.node(f"one-more-{count}", gpu="yes", san="yes")
            await at.rest()
            costs.append([each.method for each in at.site.road.asked[before:]])

        assert costs == [["POST", "POST"]] * 2

    play(scene, GPUS, SAN)
