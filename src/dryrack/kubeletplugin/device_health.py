"""
The DRAResourceHealth service: report the health of a driver's devices to the kubelet.

The stream has the health of all devices, again whenever one changes, and often enough that the
kubelet does not assume that the driver is gone. A kubelet writes the health to the status of pods.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import grpc

from dryrack.client.timekeeping import deadline
from dryrack.hardware import Health
from dryrack.kubeletapi import message

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from dryrack.hardware import NodeFaults
    from dryrack.kubeletplugin.device_kind import DeviceKind
    from dryrack.kubeletplugin.node_faults import FaultSource

# A kubelet ignores a health that is older than 30 seconds.
REFRESH_SECONDS = 10.0
_NUMBERS = {Health.UNKNOWN: 0, Health.HEALTHY: 1, Health.UNHEALTHY: 2}


class DriverGoneError(Exception):
    """A fault removes the driver, so it reports nothing."""


async def reports(faults: FaultSource, ended: asyncio.Event) -> AsyncIterator[NodeFaults]:
    """
    Yield the faults to report, until `ended` is set.

    Raise `DriverGoneError` when a fault removes the driver.
    """
    await faults.known.wait()
    while not ended.is_set():
        current = faults.current()
        if current.is_driver_gone:
            raise DriverGoneError
        yield current
        with suppress(TimeoutError):
            async with deadline(faults.clock, faults.clock.now() + REFRESH_SECONDS):
                await _wait_for_change(faults, current, ended)


async def _wait_for_change(faults: FaultSource, seen: NodeFaults, ended: asyncio.Event) -> None:
    """Wait until the faults change, or `ended` is set."""
    async with asyncio.TaskGroup() as group:
        waits = (
            group.create_task(faults.changed(seen), name="change of faults"),
            group.create_task(ended.wait(), name="end of health"),
        )
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for each in waits:
            each.cancel()


class HealthStreams:
    """The streams of a driver's devices, in all versions of the service."""

    def __init__(self, kind: DeviceKind, node: str, faults: FaultSource) -> None:
        self._node = node
        self._names = tuple(device.name for device in kind.devices(node))
        self._faults = faults
        self._ended = asyncio.Event()

    def service(self, package: str) -> grpc.GenericRpcHandler:
        """Return the service in one version; the messages of all versions are alike."""

        async def watch(_: bytes, context: Any) -> AsyncIterator[Any]:
            try:
                async for current in reports(self._faults, self._ended):
                    yield self._response(package, current)
            except DriverGoneError:
                await context.abort(
                    grpc.StatusCode.UNAVAILABLE, "the fault annotation driver=gone is set"
                )

        handler: Any = grpc.unary_stream_rpc_method_handler(
            watch, response_serializer=lambda each: each.SerializeToString()
        )
        return grpc.method_handlers_generic_handler(
            f"{package}.DRAResourceHealth", {"NodeWatchResources": handler}
        )

    def end(self) -> None:
        """End all open streams."""
        self._ended.set()

    def _response(self, package: str, current: NodeFaults) -> Any:
        made = message(package, "NodeWatchResourcesResponse")()
        for name in self._names:
            health, why = current.health_of(name)
            made.devices.add(
                device={"pool_name": self._node, "device_name": name},
                health=_NUMBERS[health],
                last_updated_time=int(self._faults.clock.now()),
                message=why,
            )
        return made
