"""
A publisher that dies at any moment, on a real API server.

Pools of several slices change from one config to another while the publisher is killed without
warning, again and again. Whoever watches must never see a complete pool that is neither the one nor
the other; and the one that lives at the end leaves the cluster as the config says.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections import defaultdict
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
import yaml
from tests.realcluster.controlplane import Options

from dryrack.client.client import Client
from dryrack.client.endpoints import CONFIG_MAPS, NAMESPACES, NODES, SLICES
from dryrack.client.https import connected
from dryrack.client.kubeconfig import load
from dryrack.cluster.ports import SystemClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from tests.realcluster.fixtures import StartCluster

    from dryrack.kinds.raw import Raw

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


NODE_COUNT = 20
# Several slices for each pool: a slice has room for 128 devices.
SIZES = {"small": 40, "large": 300, "middle": 150}
DEATHS = 9
SECONDS_MAX = 90.0
# It has started, and there is nothing left to write.
SILENCE_SECONDS_MAX = 5.0


def config_map(model: str) -> Raw:
    device = {"name": model, "count": SIZES[model], "attributes": {"model": model}}
    mapping = {
        "name": "gpus",
        "nodeSelector": {"matchLabels": {"has": "gpus"}},
        "resourceSlice": {"devices": [device]},
    }
    text = yaml.safe_dump({"driver": "gpu.example.com", "mappings": [mapping]})
    metadata = {"name": "dra-kwok-configmap", "namespace": "karpenter"}
    return {"metadata": metadata, "data": {"config.yaml": text}}


def node(number: int) -> Raw:
    annotations = {"kwok.x-k8s.io/node": "fake"}
    return {
        "metadata": {
            "name": f"node-{number}",
            "labels": {"has": "gpus"},
            "annotations": annotations,
        }
    }


@dataclass(slots=True)
class Witness:
    """A watcher of slices, like a scheduler."""

    slices: dict[str, Raw] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    moved: asyncio.Event = field(default_factory=asyncio.Event)

    async def watch(self, client: Client) -> None:
        async with client.watch(SLICES, revision="0") as events:
            async for event in events:
                self._take(event.type, event.object)

    def _take(self, kind: str, obj: Raw) -> None:
        if kind == "BOOKMARK":
            return
        name = obj["metadata"]["name"]
        self.slices.pop(name, None)
        if kind != "DELETED":
            self.slices[name] = obj["spec"]
        pool = obj["spec"]["pool"]["name"]
        found = self._complete(pool)
        if found is not None and not _is_whole(found):
            self.wrong.append(f"{pool}: {len(found)} devices: {sorted(set(found))}")
        self.moved.set()

    def _complete(self, pool: str) -> list[str] | None:
        """The models of a pool's devices, if its newest generation is complete."""
        mine = [spec for spec in self.slices.values() if spec["pool"]["name"] == pool]
        newest = max((spec["pool"]["generation"] for spec in mine), default=0)
        current = [spec for spec in mine if spec["pool"]["generation"] == newest]
        if not current or len(current) != current[0]["pool"]["resourceSliceCount"]:
            return None
        return [
            device["attributes"]["model"]["string"]
            for spec in current
            for device in spec.get("devices", ())
        ]

    def is_settled(self, model: str) -> bool:
        """Return True if every node has this model only."""
        models = defaultdict[str, list[str]](list)
        for spec in self.slices.values():
            for device in spec.get("devices", ()):
                models[spec["nodeName"]].append(device["attributes"]["model"]["string"])
        return len(models) == NODE_COUNT and all(
            each == [model] * SIZES[model] for each in models.values()
        )


def _is_whole(models: list[str]) -> bool:
    return any(models == [model] * size for model, size in SIZES.items())


def test_no_death_leaves_a_complete_pool_with_wrong_devices(start_cluster: StartCluster) -> None:
    """Between any two writes: incomplete, the old pool or the new one; in the end, the new one."""
    cluster = start_cluster(Options(with_scheduler=False))
    asyncio.run(_scene(cluster.plane.kubeconfig))


async def _scene(kubeconfig: Path) -> None:
    chance = random.Random(5)
    witness = Witness()
    async with (
        connected(load([kubeconfig], SystemClock())) as transport,
        asyncio.timeout(SECONDS_MAX * 2),
    ):
        client = Client(transport)
        await client.create(NAMESPACES, {"metadata": {"name": "karpenter"}})
        for number in range(NODE_COUNT):
            await client.create(NODES, node(number))
        await client.create(CONFIG_MAPS, config_map("small"))
        watching = asyncio.create_task(witness.watch(client))
        for model in _models():
            await client.patch(
                CONFIG_MAPS, "dra-kwok-configmap", config_map(model), namespace="karpenter"
            )
            await _short_life(kubeconfig, witness, writes=chance.randrange(1, NODE_COUNT * 3))
        await _at_rest(kubeconfig, witness, model)
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
    assert witness.wrong == []


def _models() -> Iterator[str]:
    names = list(SIZES)
    for number in range(DEATHS):
        yield names[number % len(names)]


async def _short_life(kubeconfig: Path, witness: Witness, *, writes: int) -> None:
    """A publisher that is killed after so many of its writes were seen."""
    async with _publisher(kubeconfig):
        with suppress(TimeoutError):
            for _ in range(writes):
                witness.moved.clear()
                await asyncio.wait_for(witness.moved.wait(), SILENCE_SECONDS_MAX)


async def _at_rest(kubeconfig: Path, witness: Witness, model: str) -> None:
    async with _publisher(kubeconfig), asyncio.timeout(SECONDS_MAX):
        while not witness.is_settled(model):
            witness.moved.clear()
            await witness.moved.wait()


@asynccontextmanager
async def _publisher(kubeconfig: Path) -> AsyncIterator[None]:
    """One that dies with the block, without warning."""
    addresses = ("--metrics-address", "0", "--health-address", "0", "--no-leader-elect")
    command = (sys.executable, "-m", "dryrack", "publish", "--kubeconfig", str(kubeconfig))
    nowhere = asyncio.subprocess.DEVNULL
    publisher = await asyncio.create_subprocess_exec(
        *command, *addresses, stdout=nowhere, stderr=nowhere
    )
    try:
        yield
    finally:
        publisher.kill()
        await publisher.wait()
