"""Slices on a server that knows what the real one does with them, and those who look at them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

from dryrack.allocation import Features
from dryrack.allocation.supply.pools import Inventory as Sight
from dryrack.hardware.inventory import Origin, PerDevice, Pool, Section, SourceKind, ThisNode
from dryrack.hardware.pool_plan import CreateSlice, SliceWrite, UpdateSlice
from dryrack.hardware.slicing import node_owner, slices_of
from dryrack.kinds.core import Node
from dryrack.kinds.decode import decode
from dryrack.kinds.meta import ObjectMeta
from dryrack.kinds.releases import DEFAULT_RELEASE
from dryrack.kinds.resource import Device, ResourceSlice

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dryrack.kinds.raw import Raw

NODE = "node-a"
NOW = "2027-01-15T08:00:00Z"


class Refusal(Exception):  # noqa: N818 - the server's word
    """A write that does not meet what is stored."""


class Slices:
    """All slices there are."""

    def __init__(self, observed: Iterable[Raw] = ()) -> None:
        self._stored = {each["metadata"]["name"]: each for each in observed}
        self._counter = itertools.count(1000)

    def all(self) -> list[Raw]:
        return [self._stored[name] for name in sorted(self._stored)]

    def carry_out(self, write: SliceWrite) -> None:
        obj = write.slice
        name = obj["metadata"]["name"]
        if isinstance(write, CreateSlice):
            if name in self._stored:
                raise Refusal(name)
            self.put(obj | {"metadata": obj["metadata"] | {"uid": f"u{next(self._counter)}"}})
            return
        self._check(obj["metadata"])
        if isinstance(write, UpdateSlice):
            self.put(obj)
        else:
            del self._stored[name]

    def put(self, obj: Raw) -> None:
        metadata = obj["metadata"] | {"resourceVersion": str(next(self._counter))}
        self._stored[metadata["name"]] = obj | {"metadata": metadata, "spec": _stamped(obj["spec"])}

    def remove(self, name: str) -> None:
        del self._stored[name]

    def _check(self, metadata: Raw) -> None:
        stored = self._stored.get(metadata["name"])
        if stored is None or stored["metadata"]["uid"] != metadata["uid"]:
            raise Refusal(metadata["name"])
        if stored["metadata"]["resourceVersion"] != metadata["resourceVersion"]:
            raise Refusal(metadata["name"])


def _stamped(spec: Raw) -> Raw:
    devices = [
        device | {"taints": [{"timeAdded": NOW} | taint for taint in device["taints"]]}
        if "taints" in device
        else device
        for device in spec.get("devices", ())
    ]
    return spec | {"devices": devices} if devices else spec


def pool_with(parts: Mapping[str, Sequence[Device]], *, name: str = NODE) -> Pool:
    """One section for each origin."""
    sections = tuple(
        Section(Origin(SourceKind.CONFIG_MAP, "config", part), tuple(devices))
        for part, devices in parts.items()
    )
    return Pool("gpu.example.com", name, NODE, ThisNode(), sections)


def scattered_pool(parts: Mapping[str, Sequence[Device]]) -> Pool:
    """One pool for all nodes, whose devices say themselves where they are."""
    return replace(pool_with(parts), node="", reach=PerDevice())


def wanted_slices(pool: Pool, uid: str = "uid-a") -> tuple[ResourceSlice, ...]:
    return slices_of(pool, owner=node_owner(NODE, uid))


def visible(slices: Iterable[Raw]) -> tuple[str, ...] | None:
    """
    Return the devices that the allocator can allocate; None while the pool is incomplete.

    It looks at whatever slice comes first for the count; all orders must give one answer.
    """
    ordered = list(slices)
    forwards = seen_in_order(ordered)
    backwards = seen_in_order(ordered[::-1])
    assert forwards == backwards, "it depends on the order in which slices come"
    return forwards


def seen_in_order(slices: Sequence[Raw], on: str = NODE) -> tuple[str, ...] | None:
    """Return these devices for slices that arrive in this order, for any node."""
    node = Node(metadata=ObjectMeta(name=on))
    typed = [decode(each, ResourceSlice) for each in slices]
    pools = Sight(typed, Features.defaults(), DEFAULT_RELEASE).pools(node)
    if not pools:
        return ()
    [pool] = pools
    if pool.incomplete is not None or pool.invalid:
        return None
    return tuple(repr((each.device.name, each.device.attributes)) for each in pool.devices)
