"""Whatever the weather: in the end the cluster is as it should be, and nobody saw half a pool."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import pytest
from tests.client.planes import Site, site
from tests.controllers.slices.stages import KWOK, Stage, devices, inventory, mapping, stage
from tests.controllers.slices.weather import FAIR, Storm, Weather
from tests.hardware.pool_worlds import seen_in_order

from dryrack.client.client import Client
from dryrack.client.endpoints import NODES, SLICES
from dryrack.client.timekeeping import settle

if TYPE_CHECKING:
    from dryrack.client.transport import Request, Response, Transport
    from dryrack.hardware.inventory import Inventory
    from dryrack.kinds.raw import Raw

BAD = Weather(refused=0.25, lost_before=0.05, lost_after=0.1, cut=0.02, expired=0.01, late_steps=30)
LOSSY = Weather(dropped=0.3, late_steps=10)
FORGETFUL = Weather(refused=0.15, lost_after=0.1, dropped=0.15, cut=0.02, late_steps=30)
SLOW = Weather(late_seconds=40.0)
SLOW_AND_LOSSY = Weather(refused=0.2, lost_after=0.2, late_seconds=30.0)
WEATHERS = {
    "bad": BAD,
    "lossy": LOSSY,
    "forgetful": FORGETFUL,
    "slow": SLOW,
    "slow and lossy": SLOW_AND_LOSSY,
}

# What a node has: one slice, three, two with one of the first, two others.
VERSIONS = (
    inventory(mapping("gpu", "gpu", devices("t4", 2))),
    inventory(mapping("gpu", "gpu", devices("t4", 2)), mapping("more", "gpu", devices("l4", 200))),
    inventory(mapping("gpu", "gpu", devices("a100", 3)), mapping("other", "gpu", devices("l4", 1))),
    inventory(mapping("one", "gpu", devices("a100", 1)), mapping("two", "gpu", devices("l4", 1))),
)


def node_named(name: str) -> Raw:
    return {"metadata": {"name": name, "labels": {"gpu": "yes"}, "annotations": KWOK}}


class Observer:
    """Looks at every pool after each change of a slice, as the allocator would."""

    def __init__(self) -> None:
        self._slices: dict[str, Raw] = {}
        self.seen: dict[str, list[tuple[str, ...] | None]] = {}
        self.story: list[tuple[str, tuple[str, ...] | None]] = []
        self.deleted: list[Raw] = []

    async def watch(self, client: Client) -> None:
        async with client.watch(SLICES, with_initial_events=True) as events:
            async for event in events:
                if event.type != "BOOKMARK":
                    self._take(event.type, event.object)

    def _take(self, kind: str, slice_: Raw) -> None:
        name = slice_["metadata"]["name"]
        if kind == "DELETED":
            self.deleted.append(self._slices.pop(name))
        else:
            self._slices[name] = slice_
        pool = slice_["spec"]["pool"]["name"]
        there = [each for each in self._slices.values() if each["spec"]["pool"]["name"] == pool]
        moved = [each | {"spec": each["spec"] | {"nodeName": "node-a"}} for each in there]
        seen = seen_in_order(moved)
        self.seen.setdefault(pool, []).extend((seen, seen_in_order(moved[::-1])))
        self.story.append((pool, seen))


def whole(wanted: Inventory) -> tuple[str, ...]:
    """Return the devices that the allocator sees in a wanted pool."""
    found = (batch for each in wanted.assignments for batch in each.batches)
    return tuple(
        repr((device.name, device.attributes)) for batch in found for device in batch.devices
    )


def assert_no_halves(observer: Observer, *versions: Inventory) -> None:
    allowed = {None, (), *map(whole, versions)}
    for pool, seen in observer.seen.items():
        assert set(seen) <= allowed, pool


async def assert_as_wanted(client: Client, nodes: list[str], wanted: Inventory) -> None:
    found = (await client.list(SLICES)).items
    by_node: dict[str, list[Raw]] = {node: [] for node in nodes}
    for each in found:
        by_node[each["spec"]["nodeName"]].append(each)
    for node, slices in by_node.items():
        moved = [each | {"spec": each["spec"] | {"nodeName": "node-a"}} for each in slices]
        count = slices[0]["spec"]["pool"]["resourceSliceCount"] if slices else 0
        assert (seen_in_order(moved), len(slices)) == (whole(wanted), count), node


async def stirred(at: Stage, seed: int) -> list[str]:
    """
    All that happens while the weather is bad.

    Nodes come, go and come again, somebody deletes slices, and the inventory changes.
    """
    dice = random.Random(seed)
    nodes: list[str] = []
    for step in range(24):
        name = f"node-{dice.randint(0, 5)}"
        if name in nodes and dice.random() < 0.4:
            nodes.remove(name)
            await at.client.delete(NODES, name)
        elif name not in nodes:
            nodes.append(name)
            await at.node(name, gpu="yes")
        if step % 6 == 5:
            at.current.replace(dice.choice(VERSIONS))
        if step % 5 == 4 and (there := await at.slices()):
            await at.client.delete(SLICES, dice.choice(there)["metadata"]["name"])
        await at.site.clock.advance(dice.choice((0.01, 0.1, 1, 5)))
    return nodes


@pytest.mark.parametrize("weather", WEATHERS)
@pytest.mark.parametrize("seed", range(4))
async def test_the_cluster_becomes_what_is_wanted_whatever_gets_lost(
    weather: str, seed: int
) -> None:
    """Errors, timeouts with and without effect, conflicts, watches that break, lag and lose."""
    where = site()
    observer = Observer()
    server = where.road.to
    storm = Storm(server, FAIR, seed, clock=where.clock)
    where.road.to = storm
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(observer.watch(Client(server)))
        async with stage(where=where) as at:
            at.client = Client(server)
            at.current.replace(VERSIONS[0])
            storm.weather = WEATHERS[weather]
            nodes = await stirred(at, seed)
            at.current.replace(VERSIONS[2])
            storm.weather = FAIR
            await where.clock.advance(200)
            await assert_as_wanted(at.client, nodes, VERSIONS[2])
            assert at.publishing.unsettled() == ()
        watching.cancel()
    assert_no_halves(observer, *VERSIONS)


@pytest.mark.parametrize("weather", [FAIR, Weather(lost_after=1.0)], ids=["fair", "lossy"])
async def test_a_cache_that_lags_is_not_taken_for_the_truth(weather: Weather) -> None:
    """Without a watch of slices the server is asked for them; consumers never see a mixture."""
    where = site()
    observer = Observer()
    server = where.road.to
    storm = Storm(server, FAIR)
    where.road.to = storm
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(observer.watch(Client(server)))
        async with stage(wanted=VERSIONS[0], where=where) as at:
            at.client = Client(server)
            storm.slices_pass.clear()
            storm.weather = weather
            await at.node("node-a", gpu="yes")
            await where.clock.advance(1)
            storm.weather = FAIR
            await where.clock.advance(14)
            for version in (3, 0, 1, 2):
                at.current.replace(VERSIONS[version])
                await where.clock.advance(15)
                await assert_as_wanted(Client(server), ["node-a"], VERSIONS[version])
            storm.slices_pass.set()
            await where.clock.advance(40)
            assert at.publishing.unsettled() == ()
        watching.cancel()
    assert_no_halves(observer, *VERSIONS)


async def test_devices_are_never_offered_under_two_names() -> None:
    """A pool that gets another name is gone under the first before it is there under the second."""
    where = site()
    observer = Observer()
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(observer.watch(Client(where.road.to)))
        async with stage(mapping("gpu", "gpu", devices("t4", 1), pool="a"), where=where) as at:
            await at.node("node-a", gpu="yes")
            await at.rest()
            at.current.replace(inventory(mapping("gpu", "gpu", devices("t4", 1), pool="b")))
            await at.rest()
        watching.cancel()
    told = [repr((each.name, each.attributes)) for each in devices("t4", 1)]
    assert observer.story == [
        ("node-a/a", tuple(told)),
        ("node-a/a", ()),
        ("node-a/b", tuple(told)),
    ]


@pytest.mark.parametrize("seed", range(4))
async def test_no_healthy_slice_is_deleted_on_the_way(seed: int) -> None:
    """While nodes and inventory stay as they are, nothing the weather does deletes a slice."""
    where = site()
    observer = Observer()
    server = where.road.to
    storm = Storm(server, FAIR, seed)
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(observer.watch(Client(server)))
        for weather in (FAIR, BAD, LOSSY, FORGETFUL):
            where.road.to = storm
            storm.weather = weather
            async with stage(wanted=VERSIONS[1], where=where) as at:
                at.client = Client(server)
                if weather is FAIR:
                    for number in range(4):
                        await at.node(f"node-{number}", gpu="yes")
                await where.clock.advance(70)
        await settle()
        watching.cancel()
    assert observer.deleted == []
    assert_no_halves(observer, VERSIONS[1])


class Mortal:
    """A way to the server that ends with a number of writes of slices; then nothing moves."""

    def __init__(self, to: Transport, writes: int) -> None:
        self.to = to
        self.death = asyncio.Event()
        self._left = writes

    async def send(self, request: Request) -> Response:
        if request.method != "GET" and "resourceslices" in request.path:
            self._left -= 1
        if self._left < 0:
            self.death.set()
            await asyncio.Event().wait()
        return await self.to.send(request)


@pytest.mark.parametrize("old", range(3))
@pytest.mark.parametrize("new", range(3))
async def test_a_publisher_may_be_killed_between_any_two_writes(old: int, new: int) -> None:
    """The next publisher continues, and consumers never see an incomplete pool."""

    async def life(where: Site, server: Transport, wanted: Inventory, writes: int) -> bool:
        """Return True if the publisher was killed."""
        mortal = Mortal(server, writes)
        where.road.to = mortal
        async with stage(wanted=wanted, where=where):
            await where.clock.advance(3)
        return mortal.death.is_set()

    where = site()
    observer = Observer()
    server = where.road.to
    await Client(server).create(NODES, node_named("node-a"))
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(observer.watch(Client(server)))
        writes = 0
        while await life(where, server, VERSIONS[new], writes):
            await life(where, server, VERSIONS[new], 100)
            await assert_as_wanted(Client(server), ["node-a"], VERSIONS[new])
            await life(where, server, VERSIONS[old], 100)
            writes += 1
        await settle()
        watching.cancel()
    assert writes > 0 or old == new
    await assert_as_wanted(Client(server), ["node-a"], VERSIONS[new])
    assert_no_halves(observer, VERSIONS[old], VERSIONS[new])
