"""The virtual kubelets of a cluster: slices, restarts, reboots, and the end of calls."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from tests.kubelet.programs import DRIVER, Program, claim, short_directory, until

from dryrack.client.endpoints import NODES
from dryrack.cluster import SystemClock
from dryrack.kubelet import RegisteredDrivers
from dryrack.kubelet.claims import CHECKPOINT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from dryrack.client.timekeeping import Result, Timer
    from dryrack.kinds.raw import Raw

directory = pytest.fixture(short_directory)
NODE = {"metadata": {"name": "node-1"}}
POD = {"metadata": {"name": "pod", "namespace": "team", "uid": "pod-1"}}
CLAIM = claim()


@dataclass
class FastClock:
    """A clock in real time whose long waits end at once when the test says so."""

    system: SystemClock = field(default_factory=SystemClock)
    waits: list[tuple[float, Callable[[], None]]] = field(default_factory=list)

    def now(self) -> float:
        return self.system.now()

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        if when - self.now() < 5:
            return self.system.call_at(when, callback)
        entry = (when, callback)
        self.waits.append(entry)

        def cancel() -> None:
            self.waits = [each for each in self.waits if each is not entry]

        return SimpleNamespace(cancel=cancel)

    async def compute(self, function: Callable[[], Result]) -> Result:
        return function()

    def pass_waits(self) -> None:
        """Call everything that waits."""
        waits, self.waits = self.waits, []
        for _, callback in waits:
            callback()


@dataclass
class Cluster:
    """The API and the caches that virtual kubelets read."""

    drivers: RegisteredDrivers
    clock: FastClock
    slices: list[Raw] = field(default_factory=list)
    listeners: list[Any] = field(default_factory=list)

    async def list(self, _: object, __: object) -> Any:
        return SimpleNamespace(items=list(self.slices))

    async def delete(self, _: object, name: str) -> None:
        self.slices = [each for each in self.slices if each["metadata"]["name"] != name]

    def of(self, endpoint: object) -> Any:
        synced = asyncio.Event()
        synced.set()
        objects = {"node-1": NODE} if endpoint is NODES else {}

        def listen(listener: Any) -> None:
            self.listeners.append(listener)
            listener(None, NODE)

        return SimpleNamespace(synced=synced, objects=objects, listen=listen)

    def publish(self, driver: str = DRIVER, **labels: str) -> None:
        metadata = {"name": f"slice-of-{driver}", "labels": labels}
        self.slices.append({"metadata": metadata, "spec": {"driver": driver, "nodeName": "node-1"}})

    @property
    def published(self) -> set[str]:
        return {each["spec"]["driver"] for each in self.slices}

    def prepares(self) -> str | None:
        return self.drivers.call(POD, "node-1", [CLAIM])

    async def until_prepared(self) -> None:
        await until(lambda: self.prepares() is None)


@asynccontextmanager
async def running(directory: Path, *slices: Raw) -> AsyncIterator[Cluster]:
    clock = FastClock()
    drivers = RegisteredDrivers(directory, clock=clock, simulated=["simulated.example.com"])
    cluster = Cluster(drivers, clock, list(slices))
    task = asyncio.create_task(drivers.run(cluster, cluster, lambda _: True))  # type: ignore[arg-type]
    await until(lambda: (directory / "node-1" / "plugins_registry").exists())
    yield cluster
    task.cancel()
    await asyncio.wait([task])


def test_slices_are_deleted_when_a_driver_stays_away(directory: Path) -> None:
    """30 seconds after the last instance is gone, and not if one comes back before."""

    async def scenario() -> None:
        async with running(directory) as cluster:
            program = Program(directory / "node-1")
            async with program.serving():
                await cluster.until_prepared()
                cluster.publish()
                cluster.publish("other.example.com")
            await until(lambda: bool(cluster.clock.waits))
            assert cluster.clock.waits[0][0] - cluster.clock.now() > 29
            async with Program(directory / "node-1", "-2").serving():
                await until(lambda: not cluster.clock.waits)
                assert cluster.published == {DRIVER, "other.example.com"}
            await until(lambda: bool(cluster.clock.waits))
            cluster.clock.pass_waits()
            await until(lambda: cluster.published == {"other.example.com"})

    asyncio.run(scenario())


def test_the_kubelet_deletes_the_slices_of_programs_when_it_starts(directory: Path) -> None:
    """Simulated drivers, publishers of dryrack, and other nodes keep theirs."""

    async def scenario() -> None:
        async with running(directory) as cluster:
            for driver in (DRIVER, "simulated.example.com"):
                cluster.publish(driver)
            cluster.publish("kwok.example.com", **{"kwok.x-k8s.io/managed-by": "karpenter"})
            cluster.publish("far.example.com")
            cluster.slices[-1]["spec"]["nodeName"] = "node-2"
            cluster.drivers.restart("node-1")
            await until(lambda: DRIVER not in cluster.published)
            assert "simulated.example.com" in cluster.published
            assert "far.example.com" in cluster.published

    asyncio.run(scenario())


def test_a_restarted_kubelet_knows_what_is_prepared(directory: Path) -> None:
    """The claims come from the checkpoint, and the driver registers again."""

    async def scenario() -> None:
        program = Program(directory / "node-1")
        async with running(directory) as cluster, program.serving():
            await cluster.until_prepared()
            cluster.drivers.restart("node-1")
            await until(lambda: program.statuses == [(True, "")] * 2)
            assert (directory / "node-1" / CHECKPOINT).exists()
            await until(lambda: cluster.drivers.release("pod-1", "node-1"))
        assert [name for name, _ in program.calls] == [
            "NodePrepareResources",
            "NodeUnprepareResources",
        ]

    asyncio.run(scenario())


def test_a_reboot_empties_the_directory_of_cdi_specs(directory: Path) -> None:
    """The claims are prepared again, and only then."""

    async def scenario() -> None:
        program = Program(directory / "node-1")
        async with running(directory) as cluster, program.serving():
            await cluster.until_prepared()
            (directory / "node-1" / "cdi" / "spec.json").write_text("{}")
            cluster.drivers.reboot("node-1")
            assert list((directory / "node-1" / "cdi").iterdir()) == []
            await cluster.until_prepared()
        assert [name for name, _ in program.calls] == ["NodePrepareResources"] * 2

    asyncio.run(scenario())


def test_the_deletion_of_a_pod_cancels_its_call(directory: Path) -> None:
    """The claims are unprepared after that, although the driver never answered."""

    async def scenario() -> None:
        program = Program(directory / "node-1")
        held = asyncio.Event()
        program.before["NodePrepareResources"] = held.wait
        async with running(directory) as cluster, program.serving():
            await until(lambda: cluster.prepares() == "" and bool(program.calls))
            assert not cluster.drivers.release("pod-1", "node-1")
            await until(lambda: cluster.drivers.release("pod-1", "node-1"))
        names = [name for name, _ in program.calls]
        assert names == ["NodePrepareResources", "NodeUnprepareResources"]

    asyncio.run(scenario())
