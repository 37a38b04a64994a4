"""
The plugin of virtual nodes: the same kinds and the same planning, without files.

A virtual node runs no containers, so nothing is written for it. The prepared claims are kept in
memory, so numbers and errors are those of a real node; after a restart the virtual kubelet prepares
all claims again.
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
from dryrack.kinds.expansion.pod_claims import skips_prepare
from dryrack.kinds.paths import get
from dryrack.kinds.resource import ResourceClaim
from dryrack.kubeletplugin.device_kind import PrepareError
from dryrack.kubeletplugin.node_faults import failure
from dryrack.kubeletplugin.prepare import NodeDevices, plan
from dryrack.kubeletplugin.record import RecordIndex, State
from dryrack.kubeletplugin.slices import MANAGED_BY, MANAGER, DroppedGates, publish

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
    """The changes to a container that has devices of one driver."""

    env: tuple[tuple[str, str], ...] = ()
    mounts: tuple[str, ...] = ()
    device_nodes: tuple[str, ...] = ()
    lines: tuple[tuple[str, str], ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class _VirtualPlugin:
    """The prepared claims of one driver on one node."""

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
        """The plugins with prepared claims, by driver and node."""
        self._places: dict[str, set[tuple[str, str]]] = {}
        """By the UID of a claim: the drivers and nodes for which it is prepared."""
        self._listeners: list[Callable[[str], None]] = []

    @property
    def processes(self) -> None:
        """Return nothing: no driver is a program."""
        return None

    def listen(self, listener: Callable[[str], None]) -> None:
        """Call the listener with the name of a node whenever its prepared claims change."""
        self._listeners.append(listener)

    def records(self, driver: str, node: str = "") -> tuple[ClaimRecord, ...]:
        """Return the prepared claims of a driver, on one node or on all."""
        return tuple(
            record
            for (of, where), plugin in sorted(self._plugins.items(), key=lambda each: each[0])
            if of == driver and (not node or where == node)
            for record in plugin.records.values()
        )

    def call_seconds(self, node: Raw, now: float) -> float:
        """Return the duration of a call: 0, unless a fault of the node delays it."""
        fault = _faults(node, now).prepare
        if fault is None:
            return 0.0
        return math.inf if fault.mode is PrepareMode.HANG else fault.seconds

    def is_registered(self, node: Raw, now: float) -> bool:
        return not _faults(node, now).is_driver_gone

    def prepare(self, node: Raw, claims: Sequence[Raw], now: float) -> Mapping[str, str]:
        """Prepare claims in memory; return the errors by the names of the claims."""
        return self._prepare_all(node["metadata"]["name"], claims, _faults(node, now))

    def restore(self, node: str, claims: Sequence[Raw]) -> None:
        """Prepare the claims of a pod that ran before a restart, regardless of faults."""
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
        """Return the UIDs of claims that are prepared on any node."""
        return self._places.keys()

    def unprepare(self, uid: str) -> None:
        """Unprepare a claim; nothing happens if it is not prepared."""
        for place in sorted(self._places.pop(uid, ())):
            plugin = self._plugins[place]
            plugin.index.drop(uid)
            if not plugin.records:
                del self._plugins[place]
            self._notify(place[1])

    def host_files(self, node: str) -> Mapping[str, Sequence[str]]:
        """Return the lines of the files that the drivers keep on a node, by path."""
        files: dict[str, list[str]] = {}
        for kind in self.kinds:
            files |= {path: [] for path in kind.host_files()}
            for record in self._plugin(kind, node).records.values():
                for line in (each for device in record.devices for each in device.edits.lines):
                    files.setdefault(line.path, []).append(line.text)
        return files

    def cdi_ids(self, node: str, uid: str) -> Mapping[tuple[str, str, str, str, str], str]:
        """
        Return the CDI devices of a claim that is prepared on a node.

        The key is driver, pool, device, request and share. A device without edits has none.
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
        Yield the injection of each driver; `claims` are those of the pod, in their order.

        The claims of an ended pod may be unprepared: then they are planned as they would be now.
        """
        wanted = [(use["metadata"]["uid"], request) for use, request in uses]
        for kind in self.kinds:
            plugin = self._plugin(kind, node)
            index = RecordIndex(plugin.records.values())
            own = [decode(each, ResourceClaim) for each in claims if _has(each, kind.driver)]
            try:
                for claim in own:
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
        self._notify(node)

    def _plugin(self, kind: DeviceKind, node: str) -> _VirtualPlugin:
        there = self._plugins.get((kind.driver, node))
        return there or _VirtualPlugin(NodeDevices.of(kind, node))

    def _notify(self, node: str) -> None:
        for listener in self._listeners:
            listener(node)


@dataclass(frozen=True, slots=True)
class DriverRecords:
    """The prepared claims of one driver on all virtual nodes, for `ClaimStatuses`."""

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
        device_nodes=tuple(dict.fromkeys(path for edits in used for path in edits.device_nodes)),
        # Other claims that have the file have lines in it, too.
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
    """Return True if a claim has devices that a driver prepares."""
    devices = get(claim, "status.allocation.devices", {})
    return any(
        each["driver"] == driver and not skips_prepare(each) for each in get(devices, "results", ())
    )


class VirtualNodeSlices:
    """
    Keeps the slices of every virtual node.

    They have the faults of devices from the Node's annotations. The slices of a driver that a fault
    has removed stay as they are.
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
        self._dropped = DroppedGates()
        self._nodes = informers.of(NODES)
        self._slices = informers.of(SLICES)
        self._by_node = self._slices.index("plugin node", _nodes_of)
        # Names of nodes. The queue delays a node whose slices are deleted again and again.
        self._queue: WorkQueue[str] = WorkQueue(clock)
        self._expiries: dict[str, Timer] = {}

    async def run(self) -> None:
        """Run until it is cancelled."""
        await self._nodes.synced.wait()
        await self._slices.synced.wait()
        self._nodes.listen(self._on_node)
        self._slices.listen(self._on_slice)
        await self._queue.work(self._handle)

    async def _handle(self, name: str) -> None:
        try:
            await self._publish(name)
        except (ApiError, TransportError) as error:
            # Mostly the cache lacks the last write; the next try succeeds.
            _logger.debug("slices of %s not written: %s", name, error)
            self._queue.retry(name)
        else:
            self._queue.forget(name)

    async def _publish(self, name: str) -> None:
        node = self._nodes.get("", name)
        if node is None or not self._is_virtual(node) or "deletionTimestamp" in node["metadata"]:
            return
        faults = _faults(node, self._clock.now())
        self._decide_at(name, faults.next_expiry)
        if faults.is_driver_gone:
            return
        for kind in self._kinds:
            observed = [s for s in self._by_node.get(name) if s["spec"]["driver"] == kind.driver]
            await publish(self._client, kind, node, observed, faults, self._dropped)

    def _decide_at(self, name: str, when: float | None) -> None:
        """Decide a node again when its first fault ends, which changes its devices."""
        timer = self._expiries.pop(name, None)
        if timer is not None:
            timer.cancel()
        if when is not None:
            self._expiries[name] = self._clock.call_at(when, lambda: self._queue.add(name))

    def _on_node(self, old: Raw | None, new: Raw | None) -> None:
        if new is not None:
            self._queue.add(new["metadata"]["name"])
        elif old is not None:
            self._decide_at(old["metadata"]["name"], None)

    def _on_slice(self, old: Raw | None, new: Raw | None) -> None:
        for each in (old, new):
            for name in _nodes_of(each) if each is not None else ():
                # Mostly its node was deleted, and the watch of nodes is about to report that. To
                # write the slice at once would compete with the garbage collector.
                self._queue.add_after(name, _RETRY_SECONDS if new is None else 0.0)


def _nodes_of(slice_: Raw) -> tuple[str, ...]:
    labels = get(slice_["metadata"], "labels", {})
    node = slice_["spec"].get("nodeName")
    return (node,) if node and labels.get(MANAGED_BY) == MANAGER else ()
