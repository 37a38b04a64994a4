"""Shards of the publisher: each node has one writer, also when leaders crash and counts change."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.client.planes import Road, Site, site
from tests.controllers.slices.definitions import definitions
from tests.controllers.slices.reading import (
    CONFIG_MAP,
    DRA_CONFIGS,
    NAMESPACE,
    config,
    dra_config,
)
from tests.controllers.slices.whole import node

from dryrack.client.endpoints import CONFIG_MAPS, DEFINITIONS, EVENTS, LEASES, NAMESPACES, NODES
from dryrack.client.endpoints import SLICES as SLICES_ENDPOINT
from dryrack.client.errors import TransportError
from dryrack.client.informer import Name
from dryrack.cluster.attached import Attached, Attachment, Candidacy
from dryrack.cluster.rights import shard_lease
from dryrack.controllers import slices
from dryrack.controllers.slices import (
    SHARED,
    DryRunInput,
    PublisherSettings,
    Shard,
    compute_dry_run,
)
from dryrack.controllers.slices.shard import parse_shard, shard_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from dryrack.client.transport import Request, Response
    from dryrack.kinds.raw import Raw

NODES_COUNT = 12
NAMES = tuple(f"node-{number}" for number in range(NODES_COUNT))
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
CONFIG_MAP_PATH = {"name": CONFIG_MAP, "namespace": NAMESPACE}


def test_an_assignment_is_the_same_in_every_process_and_release() -> None:
    """These values are written down: a release with others would move nodes."""
    assert [shard_of(name, 4) for name in NAMES] == [1, 2, 2, 1, 3, 2, 0, 1, 0, 1, 0, 2]
    assert [shard_of(name, 2) for name in NAMES] == [1, 0, 1, 1, 1, 0, 0, 1, 0, 1, 0, 0]
    assert (shard_of("a", 256), shard_of("gpu-07.example.com", 4)) == (233, 0)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_shards_are_balanced(count: int) -> None:
    """No shard differs from the mean by more than five percent, with consecutive names."""
    sizes = Counter(shard_of(f"node-{number:05}", count) for number in range(5_000))

    assert all(abs(sizes[index] * count / 5_000 - 1) < 0.05 for index in range(count))


@given(st.text(min_size=1, max_size=60), st.integers(1, 200), st.integers(1, 56))
def test_only_nodes_of_new_shards_move(name: str, count: int, more: int) -> None:
    """A node stays where it is, or moves to a shard that did not exist before."""
    before, after = shard_of(name, count), shard_of(name, count + more)

    assert after == before or count <= after < count + more
    assert 0 <= before < count


@given(st.text(max_size=60), st.integers(1, 256))
def test_exactly_one_shard_owns_a_key(name: str, count: int) -> None:
    """No key is without a publisher, and none has two; shard 0 has what is not of a node."""
    owners = [index for index in range(count) if Shard(index, count).owns(name)]

    assert owners == [shard_of(name, count)]
    assert shard_of(SHARED, count) == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1", "not INDEX/COUNT"),
        ("-1/4", "not INDEX/COUNT"),
        ("a/4", "not INDEX/COUNT"),
        ("4/4", "between 0 and 3"),
        ("0/0", "between 1 and 256"),
        ("0/257", "between 1 and 256"),
    ],
)
def test_a_shard_that_does_not_exist_is_refused(text: str, words: str) -> None:
    """With what would be right."""
    with pytest.raises(ValueError, match=words):
        parse_shard(text)


def test_a_shard_is_read_as_it_is_written() -> None:
    """The first shard of four."""
    assert parse_shard("0/4") == Shard(0, 4)


def test_a_dry_run_is_about_one_shard() -> None:
    """Together, the dry runs of all shards are the dry run without shards."""
    text = {"config.yaml": config("gpu-0")}
    nodes = [node(name, type="gpu-0") for name in NAMES]
    for each in nodes:
        each["metadata"]["uid"] = each["metadata"]["name"]
    objects = DryRunInput(
        nodes=nodes,
        config_maps=[{"metadata": CONFIG_MAP_PATH, "data": text}],
    )

    def changed(shard: Shard) -> list[str]:
        run = compute_dry_run(objects, PublisherSettings(shard=shard))
        return [each.node for each in run.changes]

    parts = [changed(Shard(index, 3)) for index in range(3)]
    assert sorted(key for part in parts for key in part) == sorted(changed(Shard()))
    assert all(shard_of(key, 3) == index for index, part in enumerate(parts) for key in part)


@dataclass(slots=True)
class Publisher:
    """A process with the publisher of one shard, and its own road to the server."""

    shard: Shard
    road: Road
    task: asyncio.Task[None] = field(init=False)

    def writes(self) -> list[tuple[str, str]]:
        """Return the writes of slices: the method, and the node or ""."""
        found = [each for each in self.road.asked if each.path.startswith(SLICES)]
        return [(each.method, _node_of(each)) for each in found if each.method != "GET"]

    def written_nodes(self) -> set[str]:
        return {name for _, name in self.writes()}

    async def crash(self) -> None:
        """End the process; from now on the server hears nothing of it."""
        self.road.refuse = _no_answer
        self.task.cancel()
        await asyncio.wait([self.task])


def _no_answer(_: Request) -> Response | None:
    raise TransportError("the process has crashed")


def _node_of(request: Request) -> str:
    if request.method == "DELETE":
        return request.path.removeprefix(f"{SLICES}/").partition("-devices-")[0]
    return str(msgspec.json.decode(request.body)["spec"].get("nodeName", ""))


@dataclass(slots=True)
class Cluster:
    """A server with nodes, and publishers that come and go."""

    at: Site
    group: asyncio.TaskGroup
    publishers: list[Publisher] = field(default_factory=list)

    def start(self, index: int, count: int) -> Publisher:
        """Start a process for a shard; several of one shard elect a leader."""
        new = Publisher(Shard(index, count), Road(self.at.road.to))
        name = shard_lease("dryrack-publisher", index)
        candidacy = Candidacy(Name(NAMESPACE, name), f"process-{len(self.publishers)}")
        attachment = Attachment(candidacy=candidacy, clock=self.at.clock, chance=self.at.chance)
        settings = PublisherSettings(shard=new.shard)
        attached = Attached(new.road, lambda context: slices.engine(context, settings), attachment)
        new.task = self.group.create_task(attached.run(asyncio.Event()))
        self.publishers.append(new)
        return new

    async def configure(self, device: str) -> None:
        data = {"config.yaml": config(device)}
        patch = {"data": data}
        await self.at.client.patch(CONFIG_MAPS, CONFIG_MAP, patch, namespace=NAMESPACE)

    async def devices(self) -> dict[str, list[str]]:
        """Return the devices of each node that has slices, "" for the whole cluster."""
        found: dict[str, list[str]] = {}
        for each in await self.slices():
            names = [device["name"] for device in each["spec"].get("devices", ())]
            found.setdefault(each["spec"].get("nodeName", ""), []).extend(names)
        return found

    async def slices(self) -> tuple[Raw, ...]:
        return (await self.at.client.list(SLICES_ENDPOINT)).items

    async def holders(self) -> dict[str, str]:
        leases = (await self.at.client.list(LEASES)).items
        return {each["metadata"]["name"]: each["spec"]["holderIdentity"] for each in leases}

    def writers(self) -> dict[str, set[int]]:
        """Return the numbers of the processes that have written slices of each node."""
        found: dict[str, set[int]] = {}
        for number, each in enumerate(self.publishers):
            for name in each.written_nodes():
                found.setdefault(name, set()).add(number)
        return found


@asynccontextmanager
async def cluster(names: Iterable[str] = NAMES) -> AsyncIterator[Cluster]:
    at = site()
    await at.client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    await at.client.create(
        CONFIG_MAPS, {"metadata": CONFIG_MAP_PATH, "data": {"config.yaml": config("gpu-0")}}
    )
    for name in names:
        await at.client.create(NODES, node(name, type="gpu-0"))
    async with asyncio.TaskGroup() as group:
        made = Cluster(at, group)
        try:
            yield made
        finally:
            for each in made.publishers:
                each.task.cancel()


@pytest.mark.parametrize("count", [2, 4])
async def test_each_node_has_one_writer(count: int) -> None:
    """Every node has its slices, and every write is of the process whose shard has the node."""
    async with cluster() as here:
        for index in range(count):
            here.start(index, count)
        await here.at.clock.advance(5)

        assert await here.devices() == {name: ["gpu-0"] for name in NAMES}
        assert here.writers() == {name: {shard_of(name, count)} for name in NAMES}
        assert sorted(await here.holders()) == [f"dryrack-publisher-{n}" for n in range(count)]


async def test_nothing_is_written_when_nothing_changes() -> None:
    """Resyncs and verified caches find nothing of other shards to delete; leases are renewed."""
    async with cluster() as here:
        for index in range(4):
            here.start(index, 4)
        await here.at.clock.advance(5)
        for each in here.publishers:
            each.road.asked.clear()
        await here.at.clock.advance(65)

        writes = [
            request.path
            for each in here.publishers
            for request in each.road.asked
            if request.method != "GET" and "/leases" not in request.path
        ]
        assert writes == []


async def test_the_second_replica_of_a_shard_goes_on_after_a_crash() -> None:
    """Until its lease is over, nodes of that shard wait; all other shards work on."""
    async with cluster(NAMES[:6]) as here:
        for _ in range(2):
            for index in range(4):
                here.start(index, 4)
            await here.at.clock.advance(3)
        assert here.writers() == {name: {shard_of(name, 4)} for name in NAMES[:6]}
        await here.publishers[1].crash()
        await here.configure("gpu-1")
        await here.at.client.delete(NODES, "node-0")
        for name in NAMES[:6]:
            if name != "node-0":
                labels = {"metadata": {"labels": {"type": "gpu-1"}}}
                await here.at.client.patch(NODES, name, labels)
        await here.at.clock.advance(5)
        waiting = {name for name in NAMES[:6] if shard_of(name, 4) == 1}
        assert waiting == {"node-0", "node-3"}
        found = await here.devices()
        assert {name for name, devices in found.items() if devices == ["gpu-0"]} == waiting

        await here.at.clock.advance(20)
        assert await here.devices() == {name: ["gpu-1"] for name in NAMES[1:6]}
        assert (await here.holders())["dryrack-publisher-1"] == "process-5"
        assert here.publishers[5].written_nodes() == waiting
        for number in (4, 6, 7):
            assert here.publishers[number].writes() == []


async def test_two_and_four_shards_at_once_agree() -> None:
    """While both counts run, no slice is written twice, changed or deleted."""
    async with cluster() as here:
        for index in range(2):
            here.start(index, 2)
        await here.at.clock.advance(5)
        before = {each["metadata"]["name"]: each for each in await here.slices()}
        for index in range(4):
            here.start(index, 4)
        # Shards 0 and 1 wait for their leases; shards 2 and 3 share nodes with the old ones.
        await here.at.clock.advance(20)
        assert [each.writes() for each in here.publishers[2:]] == [[], [], [], []]

        for name in ("late-0", "late-1", "late-2", "late-3"):
            await here.at.client.create(NODES, node(name, type="gpu-0"))
        await here.at.client.delete(NODES, "node-0")
        await here.at.clock.advance(20)
        after = {each["metadata"]["name"]: each for each in await here.slices()}
        stay = [name for name in before if not name.startswith("node-0-")]
        assert all(after[name] == before[name] for name in stay)
        assert len(after) == len(stay) + 4
        assert {each["spec"]["pool"]["generation"] for each in after.values()} == {1}

        for each in here.publishers[:2]:
            await each.crash()
            each.road.asked.clear()
        await here.configure("gpu-1")
        names = [*NAMES[1:], "late-0", "late-1", "late-2", "late-3"]
        for name in names:
            await here.at.client.patch(NODES, name, {"metadata": {"labels": {"type": "gpu-1"}}})
        for each in here.publishers[2:]:
            each.road.asked.clear()
        await here.at.clock.advance(30)
        assert await here.devices() == {name: ["gpu-1"] for name in names}
        assert here.writers() == {name: {2 + shard_of(name, 4)} for name in names}


async def test_fewer_shards_take_over_what_others_leave() -> None:
    """From four shards to two: slices of removed shards stay until their new publisher works."""
    async with cluster() as here:
        for index in range(4):
            here.start(index, 4)
        await here.at.clock.advance(5)
        before = await here.slices()
        for index in range(2):
            here.start(index, 2)
        await here.at.clock.advance(5)
        for each in here.publishers[:4]:
            await each.crash()
        await here.at.clock.advance(30)
        assert await here.slices() == before
        await here.at.client.delete(NODES, "node-4")
        await here.at.clock.advance(5)
        assert sorted(await here.devices()) == sorted(set(NAMES) - {"node-4"})
        assert [each.written_nodes() for each in here.publishers[4:]] == [set(), {"node-4"}]


CLUSTER_WIDE = """\
driver: san.example.com
mappings:
- name: san
  nodeSelectorTerms:
  - matchExpressions:
    - {key: type, operator: In, values: [san]}
  resourceSlice: {driver: san.example.com, pool: {name: san}, allNodes: true, devices: [{name: d}]}
"""


async def test_pools_of_the_whole_cluster_belong_to_shard_0() -> None:
    """Shard 0 publishes them also if all nodes that match them are of other shards."""
    async with cluster(()) as here:
        patch = {"data": {"config.yaml": CLUSTER_WIDE}}
        await here.at.client.patch(CONFIG_MAPS, CONFIG_MAP, patch, namespace=NAMESPACE)
        for index in range(4):
            here.start(index, 4)
        assert shard_of("node-4", 4) == 3
        await here.at.client.create(NODES, node("node-4", type="san"))
        await here.at.clock.advance(5)
        assert await here.devices() == {"": ["d"]}
        await here.at.client.delete(NODES, "node-4")
        await here.at.clock.advance(5)
        assert await here.devices() == {}
        assert {name for each in here.publishers[1:] for name in each.written_nodes()} == set()


async def test_shard_0_reports_for_all_shards() -> None:
    """The status of a DRAConfig counts all nodes, and each report is written once."""
    async with cluster() as here:
        for definition in definitions():
            await here.at.client.create(DEFINITIONS, definition)
        for index in range(4):
            here.start(index, 4)
        await here.at.clock.advance(10)
        await here.at.client.create(DRA_CONFIGS, dra_config("a", driver="more.example.com"))
        await here.configure("gpu-0\x00")
        await here.at.clock.advance(10)
        status = (await here.at.client.get(DRA_CONFIGS, "a"))["status"]
        assert (status["nodeCount"], status["resourceSliceCount"]) == (NODES_COUNT, NODES_COUNT)
        events = (await here.at.client.list(EVENTS)).items
        assert [each["reason"] for each in events].count("InvalidConfig") == 1
        for each in here.publishers[1:]:
            assert not [r for r in each.road.asked if "draconfigs/a" in r.path]

        await here.at.client.delete(NODES, "node-4")
        await here.at.clock.advance(10)
        status = (await here.at.client.get(DRA_CONFIGS, "a"))["status"]
        assert status["nodeCount"] == NODES_COUNT - 1
