"""
The plugin of nodes that do not exist: the same kinds and the same planning, and no files.

A virtual node runs no containers, so nothing is written for it. What is prepared is remembered, so
that numbers and refusals are those of a real node; after a restart the virtual kubelet asks for all
of it again.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dryrack.client.endpoints import NODES, SLICES
from dryrack.client.errors import ApiError, TransportError
from dryrack.client.workqueue import WorkQueue
from dryrack.hardware import NO_FAULTS, PrepareMode, faults_of
from dryrack.kinds.decode import decode
from dryrack.kinds.paths import get
from dryrack.kinds.resource import ResourceClaim
from dryrack.kubeletplugin.device_kind import PrepareError
from dryrack.kubeletplugin.node_faults import failure
from dryrack.kubeletplugin.prepare import NodeDevices, plan
from dryrack.kubeletplugin.record import State
from dryrack.kubeletplugin.record_index import RecordIndex
from dryrack.kubeletplugin.slices import MANAGED_BY, MANAGER, publish

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from dryrack.client.client import Client
    from dryrack.client.informer import Informers
    from dryrack.client.timekeeping import Timekeeper, Timer
    from dryrack.hardware import NodeFaults
    from dryrack.kinds.raw import Raw
    from dryrack.kubeletplugin.device_kind import DeviceKind
    from dryrack.kubeletplugin.record import ClaimRecord

_logger = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class ContainerInjection:
    """What a container gets with its devices of one driver."""

    env: tuple[tuple[str, str], ...] = ()
    mounts: tuple[str, ...] = ()
    lines: tuple[tuple[str, str], ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class _VirtualPlugin:
    """What is prepared of one driver on one node."""

    devices: NodeDevices
    index: RecordIndex = field(default_factory=RecordIndex)

    @property
    def records(self) -> Mapping[str, ClaimRecord]:
        return self.index.by_uid


class VirtualDrivers:
    """The plugins of all virtual nodes, in memory."""

    def __init__(self, kinds: Sequence[DeviceKind]) -> None:
        self.kinds = tuple(kinds)
        self.names: Collection[str] = frozenset(kind.driver for kind in kinds)
        self._plugins: dict[tuple[str, str], _VirtualPlugin] = {}
        """By driver and node, where something is prepared."""
        self._places: dict[str, set[tuple[str, str]]] = {}
        """By the UID of a claim, where it is prepared."""
        self._listeners: list[Callable[[str], None]] = []

    def listen(self, listener: Callable[[str], None]) -> None:
        """Calls it with the name of a node whenever something is prepared there, or given back."""
        self._listeners.append(listener)

    def records(self, driver: str, node: str = "") -> tuple[ClaimRecord, ...]:
        """What is prepared of a driver, on one node or on all."""
        return tuple(
            record
            for (of, where), plugin in sorted(self._plugins.items(), key=lambda each: each[0])
            if of == driver and (not node or where == node)
            for record in plugin.records.values()
        )

    def call_seconds(self, node: Raw, now: float) -> float:
        """How long a call takes: no time, but for a fault of the node."""
        fault = _faults(node, now).prepare
        if fault is None:
            return 0.0
        return math.inf if fault.mode is PrepareMode.HANG else fault.seconds

    def is_registered(self, node: Raw, now: float) -> bool:
        return not _faults(node, now).is_driver_gone

    def prepare(self, node: Raw, claims: Sequence[Raw], now: float) -> Mapping[str, str]:
        """By the names of claims, why they cannot be prepared; as a real node would, in memory."""
        return self._prepare_all(node["metadata"]["name"], claims, _faults(node, now))

    def restore(self, node: str, claims: Sequence[Raw]) -> None:
        """What ran before a restart is prepared, whatever has gone wrong with the node since."""
        self._prepare_all(node, claims, NO_FAULTS)

    def _prepare_all(
        self, node: str, claims: Sequence[Raw], faults: NodeFaults
    ) -> Mapping[str, str]:
        errors: dict[str, str] = {}
        for kind in self.kinds:
            for claim in claims:
                if not _has(claim, kind.driver):
                    continue
                try:
                    self._prepare(kind, node, claim, faults)
                except PrepareError as error:
                    errors.setdefault(claim["metadata"]["name"], str(error))
        return errors

    def prepared(self) -> Collection[str]:
        """The UIDs of claims that are prepared on any node."""
        return self._places.keys()

    def unprepare(self, uid: str) -> None:
        """A claim that is not prepared is unprepared already."""
        for place in sorted(self._places.pop(uid, ())):
            plugin = self._plugins[place]
            plugin.index.drop(uid)
            if not plugin.records:
                del self._plugins[place]
            self._tell(place[1])

    def cdi_ids(self, node: str, uid: str) -> Mapping[tuple[str, str, str, str, str], str]:
        """
        The CDI devices of a claim that is prepared on a node.

        By driver, pool, device, request and share; a device that brings nothing has none.
        """
        return {
            (kind.driver, device.pool, device.device, request, device.share_id or ""): cdi_id
            for kind in self.kinds
            if (kind.driver, node) in self._places.get(uid, ())
            for device in self._plugins[kind.driver, node].records[uid].devices
            for request in device.requests
            for cdi_id in device.cdi_ids
        }

    def injections(
        self, node: str, claims: Sequence[Raw], uses: Sequence[tuple[Raw, str]]
    ) -> Iterable[ContainerInjection]:
        """
        What a container gets of each driver; the claims of its pod in their order.

        Of a pod that has ended, claims may be prepared no more: then it is what it would get now.
        """
        wanted = [(use["metadata"]["uid"], request) for use, request in uses]
        for kind in self.kinds:
            plugin = self._plugin(kind, node)
            index = RecordIndex(plugin.records.values())
            mine = [decode(each, ResourceClaim) for each in claims if _has(each, kind.driver)]
            try:
                for claim in mine:
                    if claim.metadata.uid not in index.by_uid:
                        index.put(plan(claim, plugin.devices, index))
            except PrepareError as error:
                yield ContainerInjection(error=str(error))
                continue
            yield _injection(index.by_uid, wanted)

    def _prepare(self, kind: DeviceKind, node: str, raw: Raw, faults: NodeFaults) -> None:
        plugin = self._plugin(kind, node)
        place = (kind.driver, node)
        uid = raw["metadata"]["uid"]
        if uid in plugin.records:
            return
        if refusal := failure(faults.prepare, node):
            raise PrepareError(refusal)
        devices = plugin.devices.present(faults)
        record = plan(decode(raw, ResourceClaim), devices, plugin.index)
        plugin.index.put(replace(record, state=State.PREPARED))
        self._plugins[place] = plugin
        self._places.setdefault(uid, set()).add(place)
        self._tell(node)

    def _plugin(self, kind: DeviceKind, node: str) -> _VirtualPlugin:
        there = self._plugins.get((kind.driver, node))
        return there or _VirtualPlugin(NodeDevices.of(kind, node))

    def _tell(self, node: str) -> None:
        for listener in self._listeners:
            listener(node)


@dataclass(frozen=True, slots=True)
class DriverRecords:
    """What is prepared of one driver on all virtual nodes, as `ClaimStatuses` reads it."""

    drivers: VirtualDrivers
    kind: DeviceKind

    @property
    def records(self) -> tuple[ClaimRecord, ...]:
        return self.drivers.records(self.kind.driver)

    def listen(self, listener: Callable[[], None]) -> None:
        self.drivers.listen(lambda _: listener())


def _injection(
    records: Mapping[str, ClaimRecord], wanted: Sequence[tuple[str, str]]
) -> ContainerInjection:
    used = [
        device.edits
        for record in records.values()
        for device in record.devices
        if any(
            record.uid == uid and (not request or request in device.requests)
            for uid, request in wanted
        )
    ]
    mounts = {mount.host_path: mount.container_path for edits in used for mount in edits.mounts}
    return ContainerInjection(
        env=tuple(dict.fromkeys(pair for edits in used for pair in edits.env)),
        mounts=tuple(mounts.values()),
        # Whoever else has the file has a line in it, too.
        lines=tuple(
            (mounts[line.path], line.text)
            for record in records.values()
            for device in record.devices
            for line in device.edits.lines
            if line.path in mounts
        ),
    )


def _faults(node: Raw, now: float) -> NodeFaults:
    return faults_of(get(node["metadata"], "annotations", {}), now)


def _has(claim: Raw, driver: str) -> bool:
    """Whether a claim was given devices of a driver."""
    devices = get(claim, "status.allocation.devices", {})
    return any(each["driver"] == driver for each in get(devices, "results", ()))


class VirtualNodeSlices:
    """
    Keeps the slices of every node that is played: with the node they come and go.

    They show the faults of devices that the Node's annotations tell of. A driver that is gone
    leaves its slices as they are.
    """

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
        # Names of nodes. It holds a node back whose slices somebody else deletes again and again.
        self._queue: WorkQueue[str] = WorkQueue(clock)
        self._expiries: dict[str, Timer] = {}

    async def run(self) -> None:
        """Until it is cancelled."""
        await self._nodes.synced.wait()
        await self._slices.synced.wait()
        self._nodes.listen(self._on_node)
        self._slices.listen(self._on_slice)
        await self._queue.work(self._handle)

    async def _handle(self, name: str) -> None:
        try:
            await self._publish(name)
        except (ApiError, TransportError) as error:
            # Mostly the cache is behind what was just written; a look later all is well.
            _logger.debug("slices of %s not written: %s", name, error)
            self._queue.retry(name)
        else:
            self._queue.forget(name)

    async def _publish(self, name: str) -> None:
        node = self._nodes.get("", name)
        if node is None or not self._is_virtual(node) or "deletionTimestamp" in node["metadata"]:
            return
        faults = _faults(node, self._clock.now())
        self._look_again_at(name, faults.next_expiry)
        if faults.is_driver_gone:
            return
        for kind in self._kinds:
            there = [s for s in self._by_node.get(name) if s["spec"]["driver"] == kind.driver]
            await publish(self._client, kind, node, there, faults)

    def _look_again_at(self, name: str, when: float | None) -> None:
        """When the first fault of a node is over, its devices are others."""
        timer = self._expiries.pop(name, None)
        if timer is not None:
            timer.cancel()
        if when is not None:
            self._expiries[name] = self._clock.call_at(when, lambda: self._queue.add(name))

    def _on_node(self, old: Raw | None, new: Raw | None) -> None:
        if new is not None:
            self._queue.add(new["metadata"]["name"])
        elif old is not None:
            self._look_again_at(old["metadata"]["name"], None)

    def _on_slice(self, old: Raw | None, new: Raw | None) -> None:
        for each in (old, new):
            for name in _nodes_of(each) if each is not None else ():
                # Mostly it went with its node, and the watch of nodes is about to tell so: who
                # writes it again at once contends with the garbage collector until then.
                self._queue.add_after(name, _RETRY_SECONDS if new is None else 0.0)


def _nodes_of(slice_: Raw) -> tuple[str, ...]:
    labels = get(slice_["metadata"], "labels", {})
    node = slice_["spec"].get("nodeName")
    return (node,) if node and labels.get(MANAGED_BY) == MANAGER else ()
