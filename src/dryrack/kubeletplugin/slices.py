"""
ResourceSlices of this node, for one driver.

They are compared with what the API has whenever that changes: a kubelet deletes the slices of its
node when it starts, and whoever else does, they are there again at once. Who is undone again and
again, because another program publishes for the same driver and node, holds back.
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
from dryrack.kinds.decode import DecodeError, decode, to_builtins
from dryrack.kinds.meta import ObjectMeta
from dryrack.kinds.paths import get
from dryrack.kinds.resource import (
    CELDeviceSelector,
    DeviceClass,
    DeviceClassSpec,
    DeviceSelector,
    ResourceSlice,
    ResourceSliceSpec,
)
from dryrack.kubeletplugin.device_kind import ClassifiedKind, PartitionableKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

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
# Of all slices that plugins look after.
PLUGIN_LABEL = (MANAGED_BY, MANAGER)
# A server that refuses a write now will mostly do so for a moment.
_RETRY_SECONDS = 2.0
# So often the same is written at once that somebody has undone, and then at longer intervals.
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
    """The slices that publish the devices of a kind on a node, in one pool with the node's name."""
    counters = kind.counter_sets() if isinstance(kind, PartitionableKind) else ()
    devices = faults.apply(kind.devices(node))
    section = Section(Origin(SourceKind.CONFIG, MANAGER, kind.driver), devices, counters)
    pool = Pool(kind.driver, node, node, ThisNode(), (section,))
    # These are not for the publisher to look after: its labels stay away from them.
    return tuple(
        replace(each, metadata=replace(each.metadata, labels={MANAGED_BY: MANAGER}))
        for each in slices_of(pool, owner=owner)
    )


def device_class(kind: DeviceKind) -> DeviceClass:
    """The class of all devices of a kind."""
    selector = CELDeviceSelector(expression=f"device.driver == '{kind.driver}'")
    return DeviceClass(
        metadata=ObjectMeta(name=kind.device_class),
        spec=DeviceClassSpec(selectors=(DeviceSelector(cel=selector),)),
    )


def device_classes(kinds: Iterable[DeviceKind]) -> tuple[DeviceClass, ...]:
    """What claims ask for, to have devices of these kinds."""
    return tuple(
        each
        for kind in kinds
        for each in (
            kind.device_classes() if isinstance(kind, ClassifiedKind) else (device_class(kind),)
        )
    )


def plan(wanted: Sequence[ResourceSlice], observed: Sequence[Raw]) -> tuple[list[Raw], list[Raw]]:
    """What to write, and then what to delete; nothing where the API says what is wanted."""
    there = {each["metadata"]["name"]: each for each in observed}
    newest = max((_generation(each) for each in observed), default=0)
    times = dict(_times(observed))
    documents = [_timed(_at(to_builtins(each), newest), times) for each in wanted]
    names = {each["metadata"]["name"] for each in documents}
    obsolete = [each for name, each in there.items() if name not in names]
    if not obsolete and all(_is_same(each, there.get(_name(each))) for each in documents):
        return [], []
    return [_over(_at(each, newest + 1), there.get(_name(each))) for each in documents], obsolete


class SlicePublisher:
    """Keeps the slices of a driver on this node as they should be."""

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
        """`may_write` says whether nobody else looks after them, each time before it is done."""
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
        # What was written last and when, and how often it had been written before.
        self._written: NodeFaults | None = None
        self._written_at = 0.0
        self._rewrites = 0

    async def run(self) -> None:
        """Until it is cancelled."""
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
        """Takes the node's devices off the cluster, for a plugin that will not come back."""
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
        if await publish(self._client, self._kind, node, self._informer.all(), faults):
            await self._hold_back(faults)

    async def _hold_back(self, faults: NodeFaults) -> None:
        """The longer, the more often the same was written."""
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


async def publish(
    client: Client,
    kind: DeviceKind,
    node: Raw,
    observed: Sequence[Raw],
    faults: NodeFaults = NO_FAULTS,
) -> bool:
    """Writes the slices of a kind on a node, where what is observed is not that."""
    name = _name(node)
    owner = node_owner(name, node["metadata"]["uid"])
    wanted = node_slices(kind, name, owner=owner, faults=faults)
    writes, obsolete = plan(wanted, observed)
    for each in writes:
        if each["metadata"].get("resourceVersion"):
            await client.update(SLICES, each)
        else:
            await client.create(SLICES, each)
    for each in obsolete:
        await _delete(client, each)
    if writes or obsolete:
        devices = sum(len(each.spec.devices) for each in wanted)
        extra: dict[str, Any] = {"driver": kind.driver, "node": name, "devices": devices}
        _logger.info("slices written", extra=extra)
    return bool(writes or obsolete)


async def _delete(client: Client, each: Raw) -> None:
    try:
        await client.delete(SLICES, _name(each))
    except NotFoundError:
        _logger.debug("a slice no longer exists")


def _name(obj: Raw) -> str:
    return str(obj["metadata"]["name"])


def _generation(slice_: Raw) -> int:
    return int(slice_["spec"]["pool"]["generation"])


def _at(slice_: Raw, generation: int) -> Raw:
    spec = slice_["spec"]
    return {**slice_, "spec": {**spec, "pool": {**spec["pool"], "generation": generation}}}


_Mark = tuple[str, str, str, str]


def _times(observed: Iterable[Raw]) -> Iterator[tuple[_Mark, str]]:
    """When taints came, as the server has noted it where it was not told."""
    for each in observed:
        for device in get(each["spec"], "devices", ()):
            for taint in get(device, "taints", ()):
                if "timeAdded" in taint:
                    yield _mark(device, taint), taint["timeAdded"]


def _timed(slice_: Raw, times: Mapping[_Mark, str]) -> Raw:
    """With the times of taints that are there already."""
    for device in get(slice_["spec"], "devices", ()):
        for taint in get(device, "taints", ()):
            when = times.get(_mark(device, taint))
            if when is not None:
                taint.setdefault("timeAdded", when)
    return slice_


def _mark(device: Raw, taint: Raw) -> _Mark:
    return device["name"], taint["key"], taint.get("value", ""), taint["effect"]


def _is_same(new: Raw, old: Raw | None) -> bool:
    if old is None:
        return False
    try:
        spec = to_builtins(decode(old["spec"], ResourceSliceSpec))
    except DecodeError:
        return False
    uids = [[owner["uid"] for owner in _owners(each)] for each in (new, old)]
    return bool(new["spec"] == spec and uids[0] == uids[1])


def _owners(slice_: Raw) -> list[Raw]:
    return get(slice_["metadata"], "ownerReferences", [])


def _over(new: Raw, old: Raw | None) -> Raw:
    if old is None:
        return new
    revision = old["metadata"]["resourceVersion"]
    return {**new, "metadata": {**new["metadata"], "resourceVersion": revision}}
