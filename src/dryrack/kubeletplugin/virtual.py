"""
The plugin of nodes that do not exist: the same kinds and the same planning, and no files.

A virtual node runs no containers, so nothing is prepared on it; what would have been is planned
when somebody asks for a container's log.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.client.endpoints import NODES, SLICES
from dryrack.client.errors import ApiError, TransportError
from dryrack.client.timekeeping import sleep
from dryrack.kinds.decode import decode
from dryrack.kinds.resource import ResourceClaim
from dryrack.kubeletplugin.device_kind import PrepareError
from dryrack.kubeletplugin.prepare import NodeDevices, plan
from dryrack.kubeletplugin.slices import MANAGED_BY, MANAGER, publish

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from dryrack.client.client import Client
    from dryrack.client.informer import Informers
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.kinds.raw import Raw
    from dryrack.kubeletplugin.device_kind import DeviceKind
    from dryrack.kubeletplugin.record import ClaimRecord, PreparedDevice

_logger = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class VirtualDrivers:
    """What containers of virtual nodes would get, as lines of their logs."""

    kinds: tuple[DeviceKind, ...]

    @property
    def names(self) -> Collection[str]:
        return {kind.driver for kind in self.kinds}

    def lines(
        self, node: str, claims: Sequence[Raw], uses: Sequence[tuple[Raw, str]]
    ) -> Iterable[str]:
        """Variables and mounted files of a container; the claims of its pod in their order."""
        decoded = [decode(each, ResourceClaim) for each in claims]
        wanted = [(use["metadata"]["uid"], request) for use, request in uses]
        for kind in self.kinds:
            try:
                records = _records(decoded, kind, node)
            except PrepareError as error:
                yield f"not prepared: {error}"
                continue
            devices = [
                device
                for record in records
                for device in record.devices
                if any(
                    record.uid == uid and (not request or request in device.requests)
                    for uid, request in wanted
                )
            ]
            yield from dict.fromkeys(line for device in devices for line in _lines(device))


def _records(claims: Iterable[ResourceClaim], kind: DeviceKind, node: str) -> list[ClaimRecord]:
    records: list[ClaimRecord] = []
    devices = NodeDevices.of(kind, node)
    for claim in claims:
        allocation = claim.status.allocation
        if allocation and any(each.driver == kind.driver for each in allocation.devices.results):
            records.append(plan(claim, devices, records))
    return records


def _lines(device: PreparedDevice) -> Iterator[str]:
    edits = device.edits
    for name, value in edits.env:
        yield f"env: {name}={value}"
    for mount in edits.mounts:
        yield f"mount: {mount.container_path}"
        for line in edits.lines:
            if line.path == mount.host_path:
                yield f"file {mount.container_path}: {line.text}"


class VirtualNodeSlices:
    """Keeps the slices of every node that is played: with the node they come and go."""

    def __init__(
        self,
        client: Client,
        informers: Informers,
        kinds: Sequence[DeviceKind],
        *,
        clock: Timekeeper,
        is_virtual: Callable[[Raw], bool],
    ) -> None:
        self._client = client
        self._kinds = kinds
        self._clock = clock
        self._is_virtual = is_virtual
        self._nodes = informers.of(NODES)
        self._slices = informers.of(SLICES)
        self._by_node = self._slices.index("plugin node", _nodes_of)
        self._due: set[str] = set()
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Until it is cancelled."""
        await self._nodes.synced.wait()
        await self._slices.synced.wait()
        self._nodes.listen(self._on_node)
        self._slices.listen(self._on_slice)
        while True:
            await self._changed.wait()
            self._changed.clear()
            for name in sorted(self._due):
                self._due.discard(name)
                await self._publish(name)

    async def _publish(self, name: str) -> None:
        node = self._nodes.get("", name)
        if node is None or not self._is_virtual(node) or "deletionTimestamp" in node["metadata"]:
            return
        for kind in self._kinds:
            there = [s for s in self._by_node.get(name) if s["spec"]["driver"] == kind.driver]
            try:
                await publish(self._client, kind, node, there)
            except (ApiError, TransportError) as error:
                # Mostly the cache is behind what was just written; a look later all is well.
                _logger.debug("slices of %s not written: %s", name, error)
                self._mark(name)
                await sleep(self._clock, _RETRY_SECONDS)

    def _on_node(self, _: Raw | None, new: Raw | None) -> None:
        if new is not None:
            self._mark(new["metadata"]["name"])

    def _on_slice(self, old: Raw | None, new: Raw | None) -> None:
        for each in (old, new):
            for name in _nodes_of(each) if each is not None else ():
                self._mark(name)

    def _mark(self, name: str) -> None:
        self._due.add(name)
        self._changed.set()


def _nodes_of(slice_: Raw) -> tuple[str, ...]:
    labels = slice_["metadata"].get("labels") or {}
    node = slice_["spec"].get("nodeName")
    return (node,) if node and labels.get(MANAGED_BY) == MANAGER else ()
