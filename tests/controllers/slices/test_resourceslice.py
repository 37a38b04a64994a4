"""
The promises that Karpenter's driver tests of its ResourceSlice controller, under the same names.

The whole publisher runs on an embedded cluster, with the document's own ConfigMap.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.hardware.dialects.examples import seed_text

from dryrack.client.client import Selection
from dryrack.client.endpoints import CONFIG_MAPS, NAMESPACES, NODES, SLICES
from dryrack.client.timekeeping import VirtualClock, settle
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import embedded
from dryrack.cluster.engines import Family
from dryrack.controllers import engines, slices
from dryrack.controllers.slices.desired import is_kwok_node

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection

    from dryrack.client.client import Client
    from dryrack.cluster.engines import Wiring
    from dryrack.kinds.raw import Raw

KWOK = {"kwok.x-k8s.io/node": "fake"}
TYPE = {"node.kubernetes.io/instance-type": "c-4x-amd64-linux"}
GPU_CONFIGURATION = seed_text("config-gpu.yaml")


@dataclass(frozen=True, slots=True)
class Karpenter:
    """A cluster with the publisher and nothing else, and what Karpenter does there."""

    client: Client
    clock: VirtualClock

    async def configure(self, text: str) -> None:
        metadata = {"name": "dra-kwok-configmap", "namespace": "karpenter"}
        document = {"metadata": metadata, "data": {"config.yaml": text}}
        await self.client.create(CONFIG_MAPS, document)
        await settle(600)

    async def node(
        self, name: str, *, annotations: Raw | None = None, labels: Raw | None = None
    ) -> None:
        metadata = {"name": name, "annotations": annotations or {}, "labels": labels or {}}
        await self.client.create(NODES, {"metadata": metadata})
        await settle(600)

    async def slices_for_node(self, name: str) -> list[Raw]:
        selection = Selection(labels=f"kwok.x-k8s.io/node={name}")
        return list((await self.client.list(SLICES, selection)).items)


async def _publish(_: Collection[str], context: Wiring) -> None:
    publisher = engines.Engine(
        "slices", (lambda given: slices.engine(given, slices.PublisherSettings()),)
    )
    await engines.run(
        (publisher,), client=context.client, clock=context.clock, chance=context.chance
    )


@asynccontextmanager
async def karpenter() -> AsyncIterator[Karpenter]:
    clock = VirtualClock()
    families = (Family("publisher", ("slices",), _publish),)
    async with embedded(ControlPlaneOptions(clock=clock), engines=families) as cluster:
        await cluster.client.create(NAMESPACES, {"metadata": {"name": "karpenter"}})
        await settle(600)
        yield Karpenter(cluster.client, clock)


def play(scene: Callable[[Karpenter], Awaitable[None]]) -> None:
    async def run() -> None:
        async with karpenter() as at:
            await scene(at)

    asyncio.run(run())


def test_should_identify_kwok_nodes_by_karpenter_kwok_annotation() -> None:
    """Any value of the annotation will do."""
    for value in ("fake", "", "true"):
        assert is_kwok_node({"metadata": {"annotations": {"kwok.x-k8s.io/node": value}}})


def test_should_not_identify_non_kwok_nodes() -> None:
    """Nodes without the annotation do not count."""
    assert not is_kwok_node({"metadata": {}})
    assert not is_kwok_node({"metadata": {"annotations": {"node.alpha/ttl": "0"}}})


def test_should_not_identify_nodes_with_other_kwok_like_labels() -> None:
    """A label is no annotation, and a name that is nearly it is not it."""
    labels = {"kwok.x-k8s.io/node": "fake", "kwok-partition": "a", "type": "kwok"}
    assert not is_kwok_node({"metadata": {"labels": labels}})
    assert not is_kwok_node({"metadata": {"annotations": {"kwok.x-k8s.io/nodes": "fake"}}})


def test_should_skip_non_kwok_nodes() -> None:
    """A node that matches and is not KWOK's gets nothing."""

    async def scene(at: Karpenter) -> None:
        await at.configure(GPU_CONFIGURATION)
        await at.node("real-node", labels=TYPE)
        await at.clock.advance(60)

        assert (await at.client.list(SLICES)).items == ()

    play(scene)


def test_should_handle_missing_configuration_gracefully() -> None:
    """No ConfigMap: no slices, and no harm; when it comes, they come."""

    async def scene(at: Karpenter) -> None:
        await at.node("kwok-node", annotations=KWOK, labels=TYPE)
        await at.clock.advance(60)
        assert (await at.client.list(SLICES)).items == ()
        await at.configure(GPU_CONFIGURATION)
        assert len(await at.slices_for_node("kwok-node")) == 1

    play(scene)


def test_should_create_resourceslices_for_matching_kwok_node() -> None:
    """Driver, labels, owner and devices are there; what the API could not take is put right."""

    async def scene(at: Karpenter) -> None:
        await at.configure(GPU_CONFIGURATION)
        await at.node("kwok-node", annotations=KWOK, labels=TYPE)

        [only] = await at.slices_for_node("kwok-node")
        labels = only["metadata"]["labels"]
        assert only["metadata"]["name"].startswith("kwok-node-devices-gpu-t4-mapping-")
        assert labels["kwok.x-k8s.io/managed-by"] == "dra-kwok-driver"
        assert labels["kwok.x-k8s.io/mapping"] == "gpu-t4-mapping"
        assert only["metadata"]["ownerReferences"][0]["kind"] == "Node"
        assert only["spec"]["driver"] == "karpenter.sh.dra-kwok-driver"
        assert only["spec"]["pool"] == {
            "name": "kwok-node/t4-gpu-pool",
            "generation": 1,
            "resourceSliceCount": 1,
        }
        [device] = only["spec"]["devices"]
        assert device["name"] == "nvidia-t4-0"
        assert device["attributes"]["type"] == {"string": "nvidia-tesla-t4"}

    play(scene)


def test_should_clean_up_resourceslices_when_node_is_deleted() -> None:
    """At once, not in the next round of a poll."""

    async def scene(at: Karpenter) -> None:
        await at.configure(GPU_CONFIGURATION)
        await at.node("kwok-node", annotations=KWOK, labels=TYPE)
        before = len(await at.slices_for_node("kwok-node"))
        await at.client.delete(NODES, "kwok-node")
        await settle(600)

        assert (before, await at.slices_for_node("kwok-node")) == (1, [])

    play(scene)


def test_should_clean_up_resourceslices_when_no_mapping_matches() -> None:
    """The labels of the node have changed, or the mapping has."""

    async def scene(at: Karpenter) -> None:
        await at.configure(GPU_CONFIGURATION)
        await at.node("one", annotations=KWOK, labels=TYPE)
        await at.node("two", annotations=KWOK, labels=TYPE)
        await at.client.patch(NODES, "one", {"metadata": {"labels": dict.fromkeys(TYPE)}})
        await settle(600)
        assert await at.slices_for_node("one") == []
        assert len(await at.slices_for_node("two")) == 1

        other = GPU_CONFIGURATION.replace("c-4x-amd64-linux", "c-8x-amd64-linux")
        patch = {"data": {"config.yaml": other}}
        await at.client.patch(CONFIG_MAPS, "dra-kwok-configmap", patch, namespace="karpenter")
        await settle(600)
        assert (await at.client.list(SLICES)).items == ()

    play(scene)


def test_should_return_empty_slice_when_no_resourceslices_exist() -> None:
    """The slices of a node are found by its label; there are none."""

    async def scene(at: Karpenter) -> None:
        assert await at.slices_for_node("kwok-node") == []

    play(scene)


def test_should_return_resourceslices_for_specified_node() -> None:
    """Those of this node and of no other."""

    async def scene(at: Karpenter) -> None:
        await at.configure(GPU_CONFIGURATION)
        for name in ("kwok-node", "kwok-node-2"):
            await at.node(name, annotations=KWOK, labels=TYPE)

        [only] = await at.slices_for_node("kwok-node")
        assert only["spec"]["nodeName"] == "kwok-node"
        by_field = Selection(fields="spec.nodeName=kwok-node-2")
        [other] = (await at.client.list(SLICES, by_field)).items
        assert other["metadata"]["labels"]["kwok.x-k8s.io/node"] == "kwok-node-2"

    play(scene)
