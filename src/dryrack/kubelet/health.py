"""
The health that drivers report for the devices of one node: the DRAResourceHealth service.

A driver sends the health of its devices over a stream. A device that the driver does not report
again within its timeout is Unknown, and so are all devices of a driver whose stream ends.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import grpc

from dryrack.client.timekeeping import sleep
from dryrack.kubelet.instance import UNREADABLE, text_of
from dryrack.kubeletapi import HEALTH_V1, HEALTH_V1ALPHA1, message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dryrack.client.timekeeping import Timekeeper, Timer
    from dryrack.kubelet.instance import Instance

_logger = logging.getLogger(__name__)

# The services that the kubelet knows, in the order of its preference.
HEALTH_SERVICES = {
    "v1.DRAResourceHealth": HEALTH_V1,
    "v1alpha1.DRAResourceHealth": HEALTH_V1ALPHA1,
}
UNKNOWN = "Unknown"
_WORDS = {1: "Healthy", 2: "Unhealthy"}
# The values of the kubelet.
_TIMEOUT_SECONDS = 30.0
_RETRY_SECONDS = 5.0
_DEVICES_MAX = 16384
# The changes of this time become one update of the pods, so that a driver cannot flood the API.
_COLLECT_SECONDS = 0.1

_Key = tuple[str, str, str]


@dataclass(slots=True)
class _Entry:
    """The last report about a device."""

    health: str
    text: str
    reported_at: float
    timeout: float

    @property
    def expires_at(self) -> float:
        return self.reported_at + self.timeout


class NodeHealth:
    """The health of the devices of one node, by driver, pool, and device."""

    def __init__(self, node: str, *, clock: Timekeeper, on_change: Callable[[], None]) -> None:
        """`on_change` is called after the health of devices changed."""
        self._node = node
        self._clock = clock
        self._on_change = on_change
        self._entries: dict[str, dict[_Key, _Entry]] = {}
        self._notice: Timer | None = None
        self._expiry: Timer | None = None

    def health_of(self, driver: str, pool: str, device: str) -> tuple[str, str]:
        """Return the health of a device and the message of the driver."""
        entry = self._entries.get(driver, {}).get((driver, pool, device))
        if entry is None or self._clock.now() > entry.expires_at:
            return UNKNOWN, ""
        return entry.health, entry.text

    async def watch(self, instance: Instance) -> None:
        """Read the stream of an instance until the task is cancelled; reconnect if it ends."""
        while True:
            await instance.connected.wait()
            try:
                await self._read(instance)
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                    return
                _logger.info(
                    "node %s: health of driver %s: %s", self._node, instance.driver, text_of(error)
                )
            finally:
                # As in a kubelet, this includes the reports of another instance of the driver.
                if self._entries.pop(instance.driver, None):
                    self._notify()
            await sleep(self._clock, _RETRY_SECONDS)

    async def _read(self, instance: Instance) -> None:
        package = HEALTH_SERVICES[instance.health_service]
        watch: Any = instance.channel.unary_stream(
            f"/{package}.DRAResourceHealth/NodeWatchResources",
            request_serializer=lambda it: it.SerializeToString(),
            response_deserializer=message(package, "NodeWatchResourcesResponse").FromString,
        )
        call = watch(message(package, "NodeWatchResourcesRequest")())
        try:
            async for response in call:
                if response is None:
                    reason = f"health of driver {instance.driver}: {UNREADABLE}"
                    _logger.warning("node %s: %s", self._node, reason)
                    return
                self._update(instance.driver, response.devices)
                # Other tasks run between the reports of a driver that never pauses.
                await asyncio.sleep(0)
        finally:
            call.cancel()

    def _update(self, driver: str, devices: Sequence[Any]) -> None:
        now = self._clock.now()
        entries = self._entries.setdefault(driver, {})
        is_changed = False
        for each in devices:
            key = (driver, each.device.pool_name, each.device.device_name)
            old = entries.get(key)
            if old is None and len(entries) >= _DEVICES_MAX:
                _logger.warning(
                    "node %s: driver %s reports the health of more than %d devices; the others "
                    "are ignored",
                    self._node,
                    driver,
                    _DEVICES_MAX,
                )
                break
            new = _Entry(
                _WORDS.get(each.health, UNKNOWN),
                each.message,
                now,
                float(each.health_check_timeout_seconds)
                if each.health_check_timeout_seconds > 0
                else _TIMEOUT_SECONDS,
            )
            is_changed |= old is None or (old.health, old.text) != (new.health, new.text)
            is_changed |= old is not None and now > old.expires_at
            entries[key] = new
        if is_changed:
            self._notify()
        self._set_expiry()

    def _set_expiry(self) -> None:
        """Wake up when the first entry can expire; reports postpone that without a new timer."""
        if self._expiry is None:
            ends = [each.expires_at for each in self._all_entries()]
            if ends:
                self._expiry = self._clock.call_at(min(ends), self._expire)

    def _all_entries(self) -> Iterable[_Entry]:
        for entries in self._entries.values():
            yield from entries.values()

    def _expire(self) -> None:
        self._expiry = None
        now = self._clock.now()
        for driver, entries in tuple(self._entries.items()):
            kept = {key: each for key, each in entries.items() if now < each.expires_at}
            if any(e.health != UNKNOWN for key, e in entries.items() if key not in kept):
                self._notify()
            self._entries[driver] = kept
        self._set_expiry()

    def _notify(self) -> None:
        if self._notice is None:
            when = self._clock.now() + _COLLECT_SECONDS
            self._notice = self._clock.call_at(when, self._send)

    def _send(self) -> None:
        self._notice = None
        self._on_change()
