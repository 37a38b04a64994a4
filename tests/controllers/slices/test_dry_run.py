"""A survey says what the engine would do, without doing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.cli.command import documents
from tests.client.planes import site

from dryrack.client.endpoints import CONFIG_MAPS, NAMESPACES, NODES, SLICES
from dryrack.client.informer import Informers
from dryrack.cluster.publish_snapshot import read_world
from dryrack.controllers.slices import PublisherSettings
from dryrack.controllers.slices.dry_run import compute_dry_run
from dryrack.controllers.writes import Create, Delete, EngineContext, Update, WriteExecutor

if TYPE_CHECKING:
    from tests.client.planes import Site

    from dryrack.controllers.slices.dry_run import DryRun


OPTIONS = PublisherSettings()


async def ground(*files: str) -> Site:
    at = site()
    await at.client.create(NAMESPACES, {"metadata": {"name": "karpenter"}})
    for name in files:
        for each in documents(name):
            endpoint = {"Node": NODES, "ConfigMap": CONFIG_MAPS}[each["kind"]]
            await at.client.create(endpoint, each)
    return at


async def look(at: Site) -> DryRun:
    return compute_dry_run(await read_world(at.client, OPTIONS), OPTIONS)


async def carry_out(at: Site, found: DryRun) -> None:
    informers = Informers(at.client, clock=at.clock, chance=at.chance)
    hands = WriteExecutor(EngineContext(at.client, informers, at.clock, at.chance), "test")
    for change in found.changes:
        await hands.carry_out(change.writes)


def deeds(found: DryRun) -> list[type]:
    return [type(write) for change in found.changes for write in change.writes]


async def test_what_it_says_is_what_comes_of_it() -> None:
    """When its writes are carried out, the slices are those it showed, and it has no others."""
    files = ("karpenter-multi/config.yaml", "karpenter-multi/nodes.yaml")
    at = await ground(*files)
    before = await look(at)
    await carry_out(at, before)
    there = (await at.client.list(SLICES)).items
    shown = [each for change in before.changes for each in change.slices]
    assert [each["spec"] for each in there] == [each["spec"] for each in shown]
    assert deeds(before) == [Create, Create]
    assert deeds(await look(at)) == []


async def test_it_tells_changes_and_ends() -> None:
    """A changed configuration changes slices; one that is gone, or a node, ends them."""
    at = await ground("karpenter-gpu/config.yaml", "karpenter-gpu/nodes.yaml")
    await carry_out(at, await look(at))
    data = documents("karpenter-gpu/config-changed.yaml")[0]["data"]
    name = {"name": "dra-kwok-configmap", "namespace": "karpenter"}
    await at.client.patch(CONFIG_MAPS, name["name"], {"data": data}, namespace="karpenter")
    assert deeds(await look(at)) == [Update, Update]
    await at.client.delete(NODES, "kwok-2")
    assert deeds(await look(at)) == [Update, Delete]
    await at.client.delete(CONFIG_MAPS, name["name"], namespace="karpenter")
    assert deeds(await look(at)) == [Delete, Delete]


async def test_what_is_there_stays_when_a_document_cannot_be_read() -> None:
    """Only slices of deleted nodes are deleted; the problems are reported."""
    at = await ground("karpenter-gpu/config.yaml", "karpenter-gpu/nodes.yaml")
    await carry_out(at, await look(at))
    data = documents("karpenter-gpu/config-wrong.yaml")[0]["data"]
    await at.client.patch(CONFIG_MAPS, "dra-kwok-configmap", {"data": data}, namespace="karpenter")
    found = await look(at)
    assert deeds(found) == []
    assert [problem.line for problem in found.problems] == [25]
    assert sum(len(change.slices) for change in found.changes) == 2
    await at.client.delete(NODES, "kwok-2")
    assert deeds(await look(at)) == [Delete]


async def test_slices_of_others_are_none_of_its_business() -> None:
    """A slice without our label is neither shown nor written."""
    at = await ground("karpenter-gpu/nodes.yaml")
    pool = {"name": "theirs", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "theirs.example.com", "pool": pool, "nodeName": "kwok-1", "devices": []}
    await at.client.create(SLICES, {"metadata": {"name": "theirs"}, "spec": spec})
    found = await look(at)
    assert [change.slices for change in found.changes] == [(), (), ()]
    assert deeds(found) == []
