"""Health streams of driver programs, over real sockets."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from tests.kubelet.programs import DRIVER, Program, report, short_directory, until

from dryrack.client.timekeeping import VirtualClock
from dryrack.cluster import SystemClock
from dryrack.kubelet.health import NodeHealth
from dryrack.kubelet.registration import Registrations

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence
    from pathlib import Path

    from dryrack.client.timekeeping import Timekeeper
    from dryrack.kinds.raw import Raw

directory = pytest.fixture(short_directory)
V1 = "v1.DRAResourceHealth"
V1ALPHA1 = "v1alpha1.DRAResourceHealth"
UNKNOWN = ("Unknown", "")


@asynccontextmanager
async def watching(
    program: Program, clock: Timekeeper, changes: list[str] | None = None
) -> AsyncIterator[NodeHealth]:
    heard = [] if changes is None else changes
    health = NodeHealth("node-1", clock=clock, on_change=lambda: heard.append("change"))
    registrations = Registrations(
        "node-1",
        program.directory,
        clock=SystemClock(),
        on_change=lambda _: None,
        health=health,
    )
    async with asyncio.TaskGroup() as group:
        task = group.create_task(registrations.run())
        async with program.serving():
            yield health
        task.cancel()


@pytest.mark.parametrize(
    ("offered", "called"),
    [((V1ALPHA1, V1), "v1"), ((V1ALPHA1,), "v1alpha1"), ((V1,), "v1"), ((), "")],
)
def test_the_kubelet_chooses_the_newest_health_service(
    directory: Path, offered: tuple[str, ...], called: str
) -> None:
    """The order of the driver does not matter, and a driver that offers none is not asked."""

    async def scenario() -> None:
        program = Program(directory, versions=("v1.DRAPlugin", *offered))
        program.reports = lambda: [[report("gpu-0", 2, message="too hot")], None]
        async with watching(program, SystemClock()) as health:
            await until(lambda: bool(program.statuses))
            if called:
                await until(lambda: health.health_of(DRIVER, "node-1", "gpu-0") != UNKNOWN)
                assert health.health_of(DRIVER, "node-1", "gpu-0") == ("Unhealthy", "too hot")
        assert [name for name, _ in program.calls] == (
            [f"{called}.NodeWatchResources"] if called else []
        )

    asyncio.run(scenario())


def test_a_device_that_is_not_reported_in_time_is_unknown(directory: Path) -> None:
    """The timeout is that of the report, or 30 seconds; the pods of the node are decided again."""

    async def scenario() -> None:
        clock = VirtualClock()
        program = Program(directory, versions=("v1.DRAPlugin", V1))
        first = [report("gpu-0", 1), report("gpu-1", 1, health_check_timeout_seconds=100)]
        program.reports = lambda: [first, None]
        changes: list[str] = []
        async with watching(program, clock, changes) as health:

            def state(device: str) -> str:
                return health.health_of(DRIVER, "node-1", device)[0]

            await until(lambda: state("gpu-1") == "Healthy")
            await clock.advance(29)
            assert changes == ["change"]
            assert (state("gpu-0"), state("gpu-1")) == ("Healthy", "Healthy")
            await clock.advance(2)
            assert changes == ["change", "change"]
            assert (state("gpu-0"), state("gpu-1")) == ("Unknown", "Healthy")
            await clock.advance(80)
            assert state("gpu-1") == "Unknown"

    asyncio.run(scenario())


def test_a_stream_that_ends_is_opened_again(directory: Path) -> None:
    """Meanwhile the health is unknown, and the next try comes after five seconds."""

    async def scenario() -> None:
        clock = VirtualClock()
        program = Program(directory, versions=("v1.DRAPlugin", V1))
        streams: Iterator[Sequence[Sequence[Raw] | None]]
        streams = iter([[[report("gpu-0", 1)]], [[report("gpu-0", 2)], None]])
        program.reports = lambda: next(streams)
        changes: list[str] = []
        async with watching(program, clock, changes) as health:
            began = clock.now()
            async with asyncio.timeout(10):
                while len(program.calls) < 2:
                    # The stream ends in real time, the next try comes in virtual time.
                    await clock.advance(0.5)
            assert clock.now() - began >= 5
            await until(lambda: health.health_of(DRIVER, "node-1", "gpu-0")[0] == "Unhealthy")

    asyncio.run(scenario())


def test_a_driver_without_health_is_asked_once(directory: Path) -> None:
    """It advertises the service, and answers that it is not implemented."""

    async def scenario() -> None:
        clock = VirtualClock()
        program = Program(directory, versions=("v1.DRAPlugin", V1))
        async with watching(program, clock) as health:
            await until(lambda: len(program.calls) == 1)
            await clock.advance(60)
            assert len(program.calls) == 1
            assert health.health_of(DRIVER, "node-1", "gpu-0") == UNKNOWN

    asyncio.run(scenario())


def test_a_driver_cannot_flood_the_pods_with_changes(directory: Path) -> None:
    """All reports within a tenth of a second are one change; too many devices are ignored."""

    async def scenario() -> None:
        clock = VirtualClock()
        program = Program(directory, versions=("v1.DRAPlugin", V1))
        many = [report(f"gpu-{number}", 1) for number in range(17_000)]
        flips = [[report("gpu-0", 1 + number % 2)] for number in range(1000)]
        program.reports = lambda: [many, *flips, [report("gpu-1", 2)], None]
        changes: list[str] = []
        async with watching(program, clock, changes) as health:
            await until(lambda: health.health_of(DRIVER, "node-1", "gpu-1")[0] == "Unhealthy")
            await clock.advance(1)
            assert changes == ["change"]
            assert health.health_of(DRIVER, "node-1", "gpu-16383")[0] == "Healthy"
            assert health.health_of(DRIVER, "node-1", "gpu-16384") == UNKNOWN

    asyncio.run(scenario())
