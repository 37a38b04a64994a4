"""A pod asks for a device, gets it, runs, and gives it back: the whole way, in one process."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from tests.apiserver.replay import CountingChance

from dryrack.apiserver.runtime_config import RuntimeConfig
from dryrack.client.client import Selection
from dryrack.client.endpoints import CLAIMS, CLASSES, NODES, PODS, SLICES, TEMPLATES
from dryrack.client.errors import ApiError
from dryrack.client.timekeeping import VirtualClock
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import EmbeddedCluster, embedded
from dryrack.cluster.initial_objects import KWOK_NODE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

Raw = dict[str, Any]

NODE = {"metadata": {"name": "n1", "annotations": {KWOK_NODE: "fake"}}}
SLICE = {
    "metadata": {"name": "n1-gpus"},
    "spec": {
        "driver": "gpu.example.com",
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0", "attributes": {"model": {"string": "a100"}}}],
    },
}
CLASS = {
    "metadata": {"name": "gpu"},
    "spec": {"selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]},
}
TEMPLATE = {
    "metadata": {"name": "one-gpu", "namespace": "default"},
    "spec": {
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
    },
}


def pod(name: str) -> Raw:
    container = {
        "name": "main",
        "image": "trainer:1",
        "command": ["train"],
        "resources": {"claims": [{"name": "gpu"}]},
    }
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}],
            "containers": [container],
            "terminationGracePeriodSeconds": 2,
        },
    }


class World:
    """A cluster whose time passes when somebody waits."""

    def __init__(self, cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        self.client = cluster.client
        self.clock = clock

    async def until(self, holds: Callable[[], Awaitable[bool]], *, seconds: int = 30) -> None:
        """Lets time pass until something holds; virtual seconds."""
        for _ in range(seconds * 10):
            if await holds():
                return
            await self.clock.advance(0.1)
        pytest.fail(f"not so after {seconds} s")

    async def pod(self, name: str) -> Raw:
        return await self.client.get(PODS, name, "default")

    async def is_in_phase(self, name: str, phase: str) -> bool:
        return bool((await self.pod(name))["status"]["phase"] == phase)

    async def is_gone(self, name: str) -> bool:
        try:
            await self.pod(name)
        except ApiError as error:
            return error.reason == "NotFound"
        return False

    async def claims(self) -> list[Raw]:
        return list((await self.client.list(CLAIMS, Selection(namespace="default"))).items)


@asynccontextmanager
async def world(serving: RuntimeConfig | None = None) -> AsyncIterator[World]:
    clock = VirtualClock()
    options = ControlPlaneOptions(
        clock=clock, chance=CountingChance(), runtime_config=serving or RuntimeConfig()
    )
    async with embedded(options) as cluster:
        here = World(cluster, clock)
        for endpoint, obj in (
            (NODES, NODE),
            (SLICES, SLICE),
            (CLASSES, CLASS),
            (TEMPLATES, TEMPLATE),
        ):
            await here.client.create(endpoint, obj)
        yield here


async def _life_of_a_pod() -> None:
    async with world() as here:
        await here.client.create(PODS, pod("first"))
        await here.until(lambda: here.is_in_phase("first", "Running"))

        first = await here.pod("first")
        assert first["spec"]["nodeName"] == "n1"
        (claim,) = await here.claims()
        results = claim["status"]["allocation"]["devices"]["results"]
        assert [each["device"] for each in results] == ["gpu-0"]
        assert [each["name"] for each in claim["status"]["reservedFor"]] == ["first"]

        text = await here.client.text(PODS, "first", namespace="default", subresource="log")
        assert "device: gpu.example.com/n1/gpu-0" in text.splitlines()


async def _device_goes_on_to_the_next() -> None:
    async with world() as here:
        await here.client.create(PODS, pod("first"))
        await here.until(lambda: here.is_in_phase("first", "Running"))
        await here.client.create(PODS, pod("second"))
        await here.clock.advance(5)
        assert await here.is_in_phase("second", "Pending")

        await here.client.delete(PODS, "first", namespace="default")
        await here.until(lambda: here.is_gone("first"))
        await here.until(lambda: here.is_in_phase("second", "Running"), seconds=120)

        (claim,) = await here.claims()
        assert [each["name"] for each in claim["status"]["reservedFor"]] == ["second"]


async def _node_is_ready() -> None:
    async with world() as here:

        async def is_ready() -> bool:
            node = await here.client.get(NODES, "n1")
            conditions = node["status"].get("conditions") or ()
            return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

        await here.until(is_ready)


def test_a_node_annotated_for_kwok_becomes_ready() -> None:
    """The virtual kubelet reports for a node that has none."""
    asyncio.run(_node_is_ready())


def test_a_pod_with_a_template_gets_its_device_and_runs() -> None:
    """A claim is made, allocated and reserved; the pod is bound, runs, and its log tells."""
    asyncio.run(_life_of_a_pod())


def test_a_device_goes_on_to_the_next_pod_when_its_pod_is_deleted() -> None:
    """The claim goes with its pod, and who waits for the device gets it."""
    asyncio.run(_device_goes_on_to_the_next())
