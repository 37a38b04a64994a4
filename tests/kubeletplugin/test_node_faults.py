"""Faults of a real node: the plugin reads them, and reports them to slices and kubelet."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from tests.client.planes import site
from tests.kubeletplugin.nodes import NODE, bench
from tests.kubeletplugin.test_serving import call, dra, of, short_path

from dryrack.client.endpoints import EVENTS, NODES, SLICES
from dryrack.client.timekeeping import VirtualClock, run_virtual, settle
from dryrack.hardware import (
    NO_FAULTS,
    Health,
    add_expiry,
    device_annotation,
    faults_of,
    node_annotation,
)
from dryrack.kubeletapi import (
    DRA_V1,
    HEALTH_V1,
    HEALTH_V1ALPHA1,
    REGISTRATION,
    message,
)
from dryrack.kubeletplugin import NodeFaultWatch, SlicePublisher, serving_kubelet
from dryrack.kubeletplugin.device_health import DriverGoneError, reports
from dryrack.kubeletplugin.kinds.fake import FakeKind
from dryrack.kubeletplugin.node_faults import until_answered

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from tests.client.planes import Site

    from dryrack.hardware import NodeFaults

__all__ = ["short_path"]

LOST = {device_annotation("fake-0"): "lost"}


class Said:
    """Faults that a test says."""

    def __init__(self, clock: VirtualClock | None = None) -> None:
        self.clock = clock or VirtualClock()
        self.known = asyncio.Event()
        self.known.set()
        self._faults = NO_FAULTS
        self._changed = asyncio.Event()

    def current(self) -> NodeFaults:
        return self._faults

    async def changed(self, seen: NodeFaults) -> None:
        while self._faults == seen:
            await self._changed.wait()

    def say(self, annotations: dict[str, str]) -> None:
        self._faults = faults_of(annotations, self.clock.now())
        changed = self._changed
        self._changed = asyncio.Event()
        changed.set()


@asynccontextmanager
async def watching(world: Site, file: Path | None = None) -> AsyncIterator[NodeFaultWatch]:
    """The faults of a node, and its slices, kept for the time of a block."""
    await world.client.create(NODES, {"metadata": {"name": NODE}})
    faults = NodeFaultWatch(world.client, NODE, clock=world.clock, chance=world.chance, file=file)
    slices = SlicePublisher(
        world.client,
        FakeKind(2),
        NODE,
        clock=world.clock,
        chance=world.chance,
        faults=faults,
    )
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(faults.run(), name="faults"),
            group.create_task(slices.run(), name="slices"),
        ]
        await world.clock.advance(0)
        yield faults
        for task in tasks:
            task.cancel()


def play(
    scene: Callable[[Site, NodeFaultWatch], Awaitable[None]], file: Path | None = None
) -> None:
    async def run() -> None:
        world = site()
        async with watching(world, file) as faults:
            await scene(world, faults)

    run_virtual(run())


async def annotate(world: Site, **annotations: str | None) -> None:
    await world.client.patch(NODES, NODE, {"metadata": {"annotations": annotations}})
    await world.clock.advance(0)


async def published(world: Site) -> dict[str, list[str]]:
    """The keys of the taints of each device."""
    return {
        device["name"]: [taint["key"] for taint in device.get("taints", ())]
        for each in (await world.client.list(SLICES)).items
        for device in each["spec"]["devices"]
    }


def test_the_slices_of_a_node_show_its_faults_and_their_end() -> None:
    """By the annotations of the Node, and by the clock; then nothing is written any more."""

    async def scene(world: Site, _: NodeFaultWatch) -> None:
        lost = add_expiry("lost", world.clock.now() + 30)
        await annotate(
            world, **{device_annotation("fake-0"): lost, device_annotation("fake-1"): "unhealthy"}
        )
        assert await published(world) == {"fake-1": ["dryrack.dev/unhealthy"]}

        await world.clock.advance(31)
        assert await published(world) == {"fake-0": [], "fake-1": ["dryrack.dev/unhealthy"]}
        before = (await world.client.list(SLICES)).revision
        await world.clock.advance(300)
        assert (await world.client.list(SLICES)).revision == before

    play(scene)


def test_slices_stay_as_they_are_while_the_driver_is_gone() -> None:
    """A driver that is gone leaves its slices as they are."""

    async def scene(world: Site, _: NodeFaultWatch) -> None:
        gone = {node_annotation("driver"): "gone"}
        await annotate(world, **gone, **LOST)
        assert await published(world) == {"fake-0": [], "fake-1": []}
        await annotate(world, **{node_annotation("driver"): None})
        assert await published(world) == {"fake-1": []}

    play(scene)


def test_a_file_says_faults_as_well(tmp_path: Path) -> None:
    """It is read when it comes, when it changes and when it is gone, and adds to the Node's."""
    file = tmp_path / "faults"

    async def scene(world: Site, faults: NodeFaultWatch) -> None:
        assert faults.current() == NO_FAULTS
        file.write_text("# Monday\n\nfake-0 unhealthy=it smokes\nfake-1 broken\n")
        await world.clock.advance(1)
        assert faults.current().health_of("fake-0") == (Health.UNHEALTHY, "it smokes")
        assert faults.current().health_of("fake-1") == (Health.HEALTHY, "")
        assert await published(world) == {"fake-0": ["dryrack.dev/unhealthy"], "fake-1": []}

        await annotate(world, **{device_annotation("fake-0"): "taint=ecc:NoSchedule"})
        assert await published(world) == {"fake-0": ["ecc", "dryrack.dev/unhealthy"], "fake-1": []}

        file.unlink()
        await world.clock.advance(1)
        assert await published(world) == {"fake-0": ["ecc"], "fake-1": []}

    play(scene, file)


def test_an_annotation_that_says_nothing_is_an_event_of_the_node() -> None:
    """One, however often it is read."""

    async def scene(world: Site, _: NodeFaultWatch) -> None:
        await annotate(world, **{device_annotation("fake-0"): "broken"})
        await annotate(world, **LOST)
        await annotate(world, **{device_annotation("fake-0"): "broken"})

        [event] = (await world.client.list(EVENTS)).items
        assert (event["reason"], event["involvedObject"]["kind"]) == ("InvalidFault", "Node")
        assert "unknown fault 'broken'; use unhealthy" in event["message"]

    play(scene)


def test_the_kubelet_is_told_again_before_it_forgets() -> None:
    """At once when something changes, else every ten seconds; nothing more of a driver gone."""

    async def run() -> tuple[dict[float, bool], bool]:
        said = Said()
        told: dict[float, bool] = {}
        begin = said.clock.now()
        is_ended = False

        async def listen() -> None:
            nonlocal is_ended
            with suppress(DriverGoneError):
                async for faults in reports(said, asyncio.Event()):
                    told[said.clock.now() - begin] = faults.is_lost("fake-0")
            is_ended = True

        async with asyncio.TaskGroup() as group:
            group.create_task(listen(), name="kubelet")
            await said.clock.advance(14)
            said.say(LOST)
            await said.clock.advance(12)
            said.say({node_annotation("driver"): "gone"})
            await settle()
        return told, is_ended

    told, is_ended = run_virtual(run())

    assert told == {0: False, 10: False, 14: True, 24: True}
    assert is_ended


async def watched(path: Path, package: str) -> AsyncIterator[dict[str, tuple[int, str]]]:
    """Return the health and the message that a kubelet receives, by device."""
    async with grpc.aio.insecure_channel(f"unix:{path}") as channel:
        watch: Any = channel.unary_stream(
            f"/{package}.DRAResourceHealth/NodeWatchResources",
            response_deserializer=message(package, "NodeWatchResourcesResponse").FromString,
        )
        async for response in watch(b"", timeout=10):
            assert {each.device.pool_name for each in response.devices} == {NODE}
            assert all(each.last_updated_time for each in response.devices)
            yield {
                each.device.device_name: (each.health, each.message) for each in response.devices
            }


@pytest.mark.parametrize("package", [HEALTH_V1ALPHA1, HEALTH_V1])
def test_a_kubelet_hears_how_devices_are(short_path: Path, package: str) -> None:
    """All devices at first and whenever one changes; the stream ends when the driver is gone."""

    async def scenario() -> tuple[list[Any], str]:
        world = bench(short_path, FakeKind(2))
        said = Said()
        heard = []
        code = ""
        async with serving_kubelet(world.plugin(), of(world), said):
            try:
                async for health in watched(of(world).dra, package):
                    heard.append(health)
                    match len(heard):
                        case 1:
                            said.say({device_annotation("fake-0"): "unhealthy=it smokes"})
                        case 2:
                            said.say({device_annotation("fake-1"): "unknown"})
                        case 3:
                            said.say({node_annotation("driver"): "gone"})
            except grpc.aio.AioRpcError as error:
                code = error.code().name
        return heard, code

    heard, code = asyncio.run(scenario())

    assert heard == [
        {"fake-0": (1, ""), "fake-1": (1, "")},
        {"fake-0": (2, "it smokes"), "fake-1": (1, "")},
        {"fake-0": (1, ""), "fake-1": (0, "")},
    ]
    assert code == "UNAVAILABLE"


def test_a_kubelet_that_listens_does_not_keep_the_plugin_from_ending(short_path: Path) -> None:
    """The end of the plugin does not wait for open streams."""

    async def scenario() -> list[Any]:
        world = bench(short_path)
        heard = []
        async with asyncio.timeout(5):
            with suppress(grpc.aio.AioRpcError):
                async with serving_kubelet(world.plugin(), of(world), Said()):
                    stream = watched(of(world).dra, HEALTH_V1ALPHA1)
                    heard.append(await anext(stream))
            with suppress(grpc.aio.AioRpcError):
                heard += [each async for each in stream]
        return heard

    assert len(asyncio.run(scenario())) == 1


def test_a_kubelet_finds_the_health_of_its_version(short_path: Path) -> None:
    """Registration lists DRA first, and then the health services."""

    async def scenario() -> list[str]:
        world = bench(short_path)
        async with serving_kubelet(world.plugin(), of(world), Said()):
            asked = message(REGISTRATION, "InfoRequest")
            told = message(REGISTRATION, "PluginInfo")
            method = f"/{REGISTRATION}.Registration/GetInfo"
            info = await call(of(world).registration, method, asked(), told)
        return list(info.supported_versions)

    assert asyncio.run(scenario()) == [
        "v1.DRAPlugin",
        "v1beta1.DRAPlugin",
        "v1.DRAResourceHealth",
        "v1alpha1.DRAResourceHealth",
    ]


def test_prepare_fails_as_it_is_said(short_path: Path) -> None:
    """A claim that is prepared stays so, and all is well when the fault is over."""

    async def scenario() -> list[str]:
        world = bench(short_path)
        said = Said()
        first = await world.claim("first", ["fake-0"])
        second = await world.claim("second", ["fake-1"])
        prepare = node_annotation("prepare")
        errors: list[str] = []

        async def ask(faults: dict[str, str], *claims: Any) -> None:
            said.say(faults)
            answer = await dra(of(world), DRA_V1, "NodePrepareResources", list(claims))
            errors.extend(answer.claims[claim.uid].error for claim in claims)

        plugin = world.plugin(faults=said.current)
        plugin.recover()
        async with serving_kubelet(plugin, of(world), said):
            await ask({}, first)
            await ask({device_annotation("fake-1"): "lost"}, first, second)
            await ask({prepare: "fail=no disk"}, first, second)
            await ask({prepare: "fail"}, second)
            await ask({node_annotation("driver"): "gone"}, second)
            await ask({}, second)
        return errors

    assert asyncio.run(scenario()) == [
        *("", ""),
        (
            "claim default/second, request req: device node-1/fake-1 is not on node node-1; "
            "it has 7 devices of fake.resource.3-shake.com in pool node-1"
        ),
        *("", "no disk"),
        "node node-1: the fault annotation prepare=fail is set",
        "driver fake.resource.3-shake.com: the fault annotation driver=gone is set",
        "",
    ]


def test_a_call_takes_as_long_as_it_is_said() -> None:
    """One that hangs is answered when that is over, and a slow one in its time."""

    async def run() -> tuple[bool, bool, bool]:
        said = Said()
        said.say({node_annotation("prepare"): "hang"})
        async with asyncio.TaskGroup() as group:
            call = group.create_task(until_answered(said), name="call")
            await said.clock.advance(3600)
            hangs = not call.done()
            said.say({node_annotation("prepare"): "slow=5s"})
            await said.clock.advance(4.9)
            is_slow = not call.done()
            await said.clock.advance(0.2)
            return hangs, is_slow, call.done()

    assert run_virtual(run()) == (True, True, True)
