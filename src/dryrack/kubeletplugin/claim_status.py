"""
`status.devices` of claims: the plugin reports each device that is prepared.

It is written beside the kubelet's calls and never in them, so a pod starts even without the API
server or the permissions. The field manager has the driver's name, so drivers that share a claim do
not change each other's devices.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Protocol

from dryrack.client.endpoints import CLAIMS
from dryrack.client.errors import ApiError, NotFoundError, TransportError
from dryrack.client.timekeeping import sleep, timestamp
from dryrack.kinds.paths import get, status_of
from dryrack.kubeletplugin.record import State

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.client.client import Client
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.kinds.raw import Raw
    from dryrack.kubeletplugin.device_kind import DeviceKind
    from dryrack.kubeletplugin.record import ClaimRecord, PreparedDevice

_logger = logging.getLogger(__name__)

# Missing permissions are not granted within a second.
_RETRY_SECONDS = 30.0
# Claims of pods that start together are written together; people wait no longer for a status.
_CALM_SECONDS = 0.1
_CALM_SECONDS_MAX = 2.0
_Key = tuple[str, str, str, str]


def device_statuses(driver: str, record: ClaimRecord, now: float) -> list[Raw]:
    """Return the statuses of the devices of a prepared claim, each device once."""
    statuses = {
        _key(status): status for d in record.devices for status in [_status(driver, d, now)]
    }
    return list(statuses.values())


def _status(driver: str, device: PreparedDevice, now: float) -> Raw:
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "Prepared",
        "message": "",
        "lastTransitionTime": timestamp(now),
    }
    share = {"shareID": device.share_id} if device.share_id is not None else {}
    data = {"data": {"cdiDeviceIDs": list(device.cdi_ids)}} if device.cdi_ids else {}
    names = {"driver": driver, "pool": device.pool, "device": device.device}
    return {**names, **share, "conditions": [condition], **data}


class Plugin(Protocol):
    """The prepared claims of a driver."""

    @property
    def kind(self) -> DeviceKind: ...

    @property
    def records(self) -> tuple[ClaimRecord, ...]: ...

    def listen(self, listener: Callable[[], None]) -> None: ...


class ClaimStatuses:
    """Keeps `status.devices` of a plugin's claims."""

    def __init__(self, client: Client, plugin: Plugin, *, clock: Timekeeper) -> None:
        self._client = client
        self._plugin = plugin
        self._clock = clock
        self._written: dict[str, ClaimRecord] = {}
        self._changed = asyncio.Event()
        self._changed.set()
        plugin.listen(self._changed.set)

    async def run(self) -> None:
        """Run until it is cancelled."""
        reported = ""
        while True:
            await self._changed.wait()
            # Wait until nothing changes for a moment: many calls become one write.
            latest = self._clock.now() + _CALM_SECONDS_MAX
            while self._changed.is_set() and self._clock.now() < latest:
                self._changed.clear()
                await sleep(self._clock, _CALM_SECONDS)
            self._changed.clear()
            try:
                await self._write()
            except (ApiError, TransportError) as error:
                if str(error) != reported:
                    _logger.warning("status.devices not written: %s", error)
                    reported = str(error)
                self._changed.set()
                await sleep(self._clock, _RETRY_SECONDS)

    async def _write(self) -> None:
        prepared = {each.uid: each for each in self._plugin.records if each.state is State.PREPARED}
        for uid, record in list(self._written.items()):
            if uid not in prepared:
                await self._update_claim(record, [])
                del self._written[uid]
        for uid, record in prepared.items():
            if self._written.get(uid) is not record:
                statuses = device_statuses(self._plugin.kind.driver, record, self._clock.now())
                await self._update_claim(record, statuses)
                self._written[uid] = record

    async def _update_claim(self, record: ClaimRecord, wanted: list[Raw]) -> None:
        driver = self._plugin.kind.driver
        try:
            claim = await self._client.get(CLAIMS, record.name, record.namespace)
        except NotFoundError:
            return
        status = status_of(claim)
        present = {_key(s): s for s in get(status, "devices", ()) if s["driver"] == driver}
        if claim["metadata"]["uid"] != record.uid or "allocation" not in status:
            return
        if {_key(s): _without_times(s) for s in wanted} == {
            key: _without_times(s) for key, s in present.items()
        }:
            return
        metadata = {"name": record.name, "namespace": record.namespace, "uid": record.uid}
        applied = {"devices": wanted} if wanted else {}
        await self._client.apply(
            CLAIMS,
            {"metadata": metadata, "status": applied},
            manager=driver,
            subresource="status",
            force=True,
        )


def _key(status: Raw) -> _Key:
    return status["driver"], status["pool"], status["device"], status.get("shareID") or ""


def _without_times(status: Raw) -> Raw:
    conditions = [
        {key: value for key, value in each.items() if key != "lastTransitionTime"}
        for each in get(status, "conditions", ())
    ]
    return {**status, "conditions": conditions}
