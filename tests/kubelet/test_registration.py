"""Registration of driver programs, over real sockets."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.kubelet.programs import DRIVER, Program, short_directory, until

from dryrack.cluster import SystemClock
from dryrack.kubelet.registration import Registrations

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

directory = pytest.fixture(short_directory)
PREFIX = "RegisterPlugin error -- "


@asynccontextmanager
async def watching(directory: Path, changes: list[str]) -> AsyncIterator[Registrations]:
    found = Registrations("node-1", directory, clock=SystemClock(), on_change=changes.append)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(found.run())
        try:
            yield found
        finally:
            task.cancel()


def test_a_driver_is_registered_as_long_as_its_socket_exists(directory: Path) -> None:
    """The program learns that it is registered; calls go to the first version that it offers."""

    async def scenario() -> None:
        changes: list[str] = []
        program = Program(directory)
        async with watching(directory, changes) as registrations:
            async with program.serving():
                await until(lambda: bool(registrations.drivers))
                instance = registrations.instance(DRIVER)
                assert instance is not None
                await until(lambda: instance.is_connected)
            await until(lambda: not registrations.drivers)
            assert registrations.instance(DRIVER) is None
        assert program.statuses == [(True, "")]
        assert (instance.service, instance.endpoint) == ("v1.DRAPlugin", str(program.dra))
        assert set(changes) == {DRIVER}

    asyncio.run(scenario())


def test_the_newest_connected_instance_gets_the_calls(directory: Path) -> None:
    """In a rolling update, the old instance gets them again if the new one fails."""

    async def scenario() -> None:
        old, new = Program(directory, "-1"), Program(directory, "-2")
        async with watching(directory, []) as registrations, old.serving():

            def serves(program: Program) -> bool:
                instance = registrations.instance(DRIVER)
                return (
                    instance is not None
                    and instance.is_connected
                    and instance.endpoint == str(program.dra)
                )

            await until(lambda: serves(old))
            async with new.serving():
                await until(lambda: serves(new))
            await until(lambda: serves(old))

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"kind": "CSIPlugin"}, "no handler registered for plugin type: CSIPlugin at socket {}"),
        (
            {"versions": ()},
            (
                "plugin validation failed with err: invalid supported gRPC versions of DRA driver "
                f"plugin {DRIVER} at endpoint /x: empty list of supported gRPC services (aka "
                "supported versions)"
            ),
        ),
        (
            {"versions": ("v1alpha3.Node",)},
            (
                "plugin validation failed with err: invalid supported gRPC versions of DRA driver "
                f'plugin {DRIVER} at endpoint /x: none of services supported by the plugin (["'
                'v1alpha3.Node"]) are supported by the kubelet '
                '(["v1.DRAPlugin" "v1beta1.DRAPlugin"])'
            ),
        ),
    ],
    ids=["type", "no-versions", "old-version"],
)
def test_a_refused_program_gets_the_reason(
    directory: Path, change: dict[str, object], error: str
) -> None:
    """The text is that of a kubelet; the driver is not registered."""

    async def scenario() -> None:
        program = replace(Program(directory, endpoint="/x"), **change)  # type: ignore[arg-type]
        async with watching(directory, []) as registrations, program.serving():
            await until(lambda: bool(program.statuses))
            assert registrations.drivers == ()
        assert program.statuses[0] == (False, PREFIX + error.format(program.registration))

    asyncio.run(scenario())


def test_an_instance_cannot_take_the_endpoint_of_another(directory: Path) -> None:
    """The second one is refused, and the first one stays registered."""

    async def scenario() -> None:
        first = Program(directory, "-1")
        second = Program(directory, "-2", endpoint=str(first.dra))
        async with watching(directory, []) as registrations, first.serving():
            await until(lambda: bool(registrations.drivers))
            async with second.serving():
                await until(lambda: bool(second.statuses))
            assert second.statuses[0] == (
                False,
                (
                    f"{PREFIX}plugin registration failed with err: endpoint {first.dra} already "
                    f"registered for DRA driver plugin {DRIVER}"
                ),
            )
            assert registrations.drivers == (DRIVER,)

    asyncio.run(scenario())


def test_a_socket_that_answers_garbage_is_not_registered(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log names the socket, and other sockets register."""

    async def scenario() -> None:
        bad = Program(directory, "-bad", garbage={"GetInfo": b"\xff\xff\xff"})
        good = Program(directory, "-good")
        async with watching(directory, []) as registrations, bad.serving():
            await until(lambda: "failed to unmarshal" in caplog.text)
            async with good.serving():
                await until(lambda: bool(registrations.drivers))
        assert f"socket {bad.registration}: GetInfo: rpc error" in caplog.text

    asyncio.run(scenario())
