"""
ResourceSlices of this node, for one driver.

They are compared with those in the API whenever these change: a kubelet deletes the slices of its
node when it starts, and they are written again at once. If another program publishes for the same
driver and node, the slices are written ever more rarely.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from dryrack.client.client import Selection
from dryrack.client.endpoints import NODES, SLICES
from dryrack.client.errors import ApiError, NotFoundError, TransportError
from dryrack.client.informer import Informer
from dryrack.client.timekeeping import sleep
from dryrack.hardware import (
    NO_FAULTS,
    Origin,
    Pool,
    Section,
    SourceKind,
    ThisNode,
    node_owner,
    slices_of,
)
from dryrack.hardware.pool_plan import (
    CreateSlice,
    PoolId,
    UpdateSlice,
    document,
    plan_pools,
)
from dryrack.kinds.meta import ObjectMeta
from dryrack.kinds.releases import find_dropped, without_gates
from dryrack.kinds.resource import (
    CELDeviceSelector,
    DeviceClass,
    DeviceClassSpec,
    DeviceSelector,
    ResourceSlice,
)
from dryrack.kubeletplugin.device_kind import ClassifiedKind, PartitionableKind, SkippingKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dryrack.base.ports import Chance
    from dryrack.client.client import Client
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.hardware import NodeFaults
    from dryrack.kinds.meta import OwnerReference
    from dryrack.kinds.raw import Raw
    from dryrack.kubeletplugin.device_kind import DeviceKind
    from dryrack.kubeletplugin.node_faults import FaultSource

_logger = logging.getLogger(__name__)

MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "dryrack-plugin"
# The label of all slices of plugins.
PLUGIN_LABEL = (MANAGED_BY, MANAGER)
# A server that refuses a write mostly does so for a moment only.
_RETRY_SECONDS = 2.0
# Slices that another program changes are written this often at once, and then at intervals.
_REWRITES_AT_ONCE = 3
_REWRITE_SECONDS_MAX = 30.0
_REWRITES_FORGOTTEN_AFTER_SECONDS = 60.0


def node_slices(
    kind: DeviceKind,
    node: str,
    *,
    owner: OwnerReference | None = None,
    faults: NodeFaults = NO_FAULTS,
) -> tuple[ResourceSlice, ...]:
    """Return the slices with the devices of a kind on a node, in one pool with the node's name."""
    counters = kind.counter_sets() if isinstance(kind, PartitionableKind) else ()
    devices = faults.apply(kind.devices(node))
    section = Section(Origin(SourceKind.CONFIG, MANAGER, kind.driver), devices, counters)
    pool = Pool(kind.driver, node, node, ThisNode(), (section,))
    # Without the labels of the publisher, which would manage these slices.
    skipped = kind.skip_node_operations if isinstance(kind, SkippingKind) else ()
    return tuple(
        replace(
            each,
            metadata=replace(each.metadata, labels={MANAGED_BY: MANAGER}),
            spec=replace(each.spec, skip_node_operations=skipped),
        )
        for each in slices_of(pool, owner=owner)
    )


def device_class(kind: DeviceKind) -> DeviceClass:
    """Return the class of all devices of a kind."""
    selector = CELDeviceSelector(expression=f"device.driver == '{kind.driver}'")
    return DeviceClass(
        metadata=ObjectMeta(name=kind.device_class),
        spec=DeviceClassSpec(selectors=(DeviceSelector(cel=selector),)),
    )


def device_classes(kinds: Iterable[DeviceKind]) -> tuple[DeviceClass, ...]:
    """Return the classes with which claims request devices of these kinds."""
    return tuple(
        each
        for kind in kinds
        for each in (
            kind.device_classes() if isinstance(kind, ClassifiedKind) else (device_class(kind),)
        )
    )


class SlicePublisher:
    """Keeps the slices of a driver on this node up to date."""

    def __init__(
        self,
        client: Client,
        kind: DeviceKind,
        node: str,
        *,
        clock: Timekeeper,
        chance: Chance,
        may_write: Callable[[], bool] = lambda: True,
        faults: FaultSource | None = None,
    ) -> None:
        """`may_write` is called before each write; it returns False if another instance writes."""
        self.driver = kind.driver
        self._may_write = may_write
        self._client = client
        self._faults = faults
        self._kind = kind
        self._node = node
        self._clock = clock
        self._informer = Informer(
            client,
            SLICES,
            clock=clock,
            chance=chance,
            selection=self._selection(),
        )
        self._changed = asyncio.Event()
        # The faults in the last write, its time, and how often the same was written before.
        self._written: NodeFaults | None = None
        self._written_at = 0.0
        self._rewrites = 0
        self._dropped = DroppedGates()

    async def run(self) -> None:
        """Run until it is cancelled."""
        self._informer.listen(lambda _old, _new: self._changed.set())
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informer.run(), name="slices of this node")
            if self._faults is not None:
                group.create_task(self._follow(self._faults), name="faults in slices")
                await self._faults.known.wait()
            await self._informer.synced.wait()
            while True:
                self._changed.clear()
                try:
                    await self._write()
                except (ApiError, TransportError) as error:
                    _logger.warning("slices not written: %s", error)
                    await sleep(self._clock, _RETRY_SECONDS)
                    continue
                await self._changed.wait()

    async def remove(self) -> None:
        """Delete the slices, for a plugin that will not start again."""
        for each in (await self._client.list(SLICES, self._selection())).items:
            await _delete(self._client, each)

    def _selection(self) -> Selection:
        return Selection(fields=f"spec.driver={self._kind.driver},spec.nodeName={self._node}")

    async def _follow(self, faults: FaultSource) -> None:
        seen = faults.current()
        while True:
            await faults.changed(seen)
            seen = faults.current()
            self._changed.set()

    async def _write(self) -> None:
        faults = NO_FAULTS if self._faults is None else self._faults.current()
        if faults.is_driver_gone or not self._may_write():
            return
        node = await self._client.get(NODES, self._node)
        observed = self._informer.all()
        if await publish(self._client, self._kind, node, observed, faults, self._dropped):
            await self._hold_back(faults)

    async def _hold_back(self, faults: NodeFaults) -> None:
        """Wait after a write, longer the more often the same was written."""
        now = self._clock.now()
        is_soon = now - self._written_at < _REWRITES_FORGOTTEN_AFTER_SECONDS
        self._rewrites = self._rewrites + 1 if is_soon and faults == self._written else 0
        self._written = faults
        self._written_at = now
        beyond = self._rewrites - _REWRITES_AT_ONCE
        if beyond == 0:
            _logger.warning(
                "slices of driver %s on node %s are repeatedly changed by another program; "
                "use one publisher for each driver and node",
                self.driver,
                self._node,
            )
        if beyond >= 0:
            await sleep(self._clock, min(2.0 ** min(beyond, 16), _REWRITE_SECONDS_MAX))


class DroppedGates:
    """
    The feature gates whose fields the API server dropped.

    The server reports nothing. To write such a field again would change nothing, so slices are
    written without it, until the plugin starts again.
    """

    def __init__(self) -> None:
        self._gates: set[str] = set()

    def adapt(self, slice_: Raw) -> Raw:
        """Return a slice without the fields of these gates."""
        return without_gates(slice_, self._gates) if self._gates else slice_

    def learn(self, sent: Raw, stored: Raw) -> None:
        """Compare a sent slice with the stored one, and warn about each new gate."""
        for gate in find_dropped(sent, stored):
            if gate not in self._gates:
                self._gates.add(gate)
                _logger.warning(
                    "the API server dropped fields of slices of driver %s; "
                    "enable the feature gate %s, and start the plugin again",
                    sent["spec"]["driver"],
                    gate,
                )


async def publish(
    client: Client,
    kind: DeviceKind,
    node: Raw,
    observed: Sequence[Raw],
    faults: NodeFaults = NO_FAULTS,
    dropped: DroppedGates | None = None,
) -> bool:
    """
    Write the slices of a kind on a node where they differ; return True if any did.

    `dropped` has the gates of fields that the server drops, and learns more of them.
    """
    dropped = dropped or DroppedGates()
    name = node["metadata"]["name"]
    owner = node_owner(name, node["metadata"]["uid"])
    slices = [
        dropped.adapt(document(each))
        for each in node_slices(kind, name, owner=owner, faults=faults)
    ]
    wanted = {PoolId(kind.driver, name): slices} if slices else {}
    writes = [write for pool in plan_pools(wanted, observed).values() for write in pool]
    for write in writes:
        if isinstance(write, CreateSlice):
            dropped.learn(write.slice, await client.create(SLICES, write.slice))
        elif isinstance(write, UpdateSlice):
            dropped.learn(write.slice, await client.update(SLICES, write.slice))
        else:
            revision = write.slice["metadata"]["resourceVersion"]
            await _delete(client, write.slice, revision=revision)
    if writes:
        devices = sum(len(each["spec"].get("devices", ())) for each in slices)
        extra: dict[str, Any] = {"driver": kind.driver, "node": name, "devices": devices}
        _logger.info("slices written", extra=extra)
    return bool(writes)


async def _delete(client: Client, slice_: Raw, *, revision: str = "") -> None:
    metadata = slice_["metadata"]
    try:
        await client.delete(SLICES, metadata["name"], uid=metadata["uid"], revision=revision)
    except NotFoundError:
        _logger.debug("a slice no longer exists")
