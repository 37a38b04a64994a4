"""
Books of the devices of nodes: what is left of each, and which claims obviously need more.

Most nodes that refuse claims do so for a plain reason: too few of their devices are of the right
model, or too few of these are free. To find that out takes no search. The devices of nodes are of
few kinds (`Hardware`); for each kind the checks that do not depend on use are made once for all
claims alike (`Suitable`). Then a look at what is left (`DeviceBook`) counts the devices.

The count is a necessary condition only: counters, constraints and the other requests of the pod are
left to the search. A refusal has the reasons that the search finds. Where a check could end in an
error, or depends on the node, there is no `Suitable`, and the search decides.
"""

from __future__ import annotations

from dataclasses import replace
from operator import ge
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from dryrack.allocation.search.problem import FAILED, Problem
from dryrack.allocation.supply.usage import UsageSnapshot
from dryrack.kinds.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dryrack.allocation.search.problem import AllocatorContext
    from dryrack.allocation.supply.pools import Inventory, Pool, PooledDevice
    from dryrack.kinds.core import Node
    from dryrack.kinds.resource import (
        Device,
        DeviceRequest,
        DeviceSubRequest,
        ExactDeviceRequest,
        ResourceClaim,
    )

# A whole device, as scores count shares.
WHOLE = 1000
# Claims come from few templates; a fleet has few kinds of nodes.
_CLAIMS_MAX = 4096
_HARDWARE_MAX = 4096
_NOTHING_IN_USE = UsageSnapshot()


class Way(NamedTuple):
    """One alternative of a request: so many of these devices, and what it takes of each."""

    number: int
    # By position among the devices of the node. None is the whole device; otherwise the amount of
    # each capacity, in the order of the device's capacities.
    devices: tuple[tuple[int, tuple[int, ...] | None], ...]


class Suitable(NamedTuple):
    """The devices that are suitable for claims while nothing is in use: by request, its ways."""

    requests: tuple[tuple[Way, ...], ...]


class Hardware:
    """Devices that look the same, in the same order; one object for all nodes that have them."""

    __slots__ = ("suitable",)

    def __init__(self) -> None:
        # By the key of claims.
        self.suitable: dict[bytes, Suitable | None] = {}


class DeviceBook:
    """The devices that a node can use, in the order of the search, and what is left of each."""

    __slots__ = ("_fractions", "_lacks", "_pooled", "hardware", "left", "node", "pools", "version")

    def __init__(
        self,
        node: Node,
        pools: tuple[Pool, ...],
        hardware: Hardware,
        context: AllocatorContext,
        *,
        version: int,
    ) -> None:
        self.node = node
        self.pools = pools
        # The version of the inventory.
        self.version = version
        # Nodes with the same object have devices that look the same.
        self.hardware = hardware
        self._pooled = tuple(each for pool in pools for each in pool.devices)
        # What is left of each capacity of a device, in billionths; None if a claim has the device.
        self.left = [_count_left(each, context) for each in self._pooled]
        self._fractions: tuple[int, ...] | None = None
        self._lacks: dict[int, bool] = {}

    @property
    def devices(self) -> tuple[Device, ...]:
        return tuple(each.device for each in self._pooled)

    @property
    def fractions(self) -> tuple[int, ...]:
        """Return how much of each device is left, in thousandths; the least of its capacities."""
        if self._fractions is None:
            self._fractions = tuple(map(_fraction, self._pooled, self.left))
        return self._fractions

    def lacks(self, suitable: Suitable) -> bool:
        """Return True if a request needs more devices than are left."""
        known = self._lacks.get(id(suitable))
        if known is None:
            known = not all(any(map(self._has, ways)) for ways in suitable.requests)
            self._lacks[id(suitable)] = known
        return known

    def _has(self, way: Way) -> bool:
        missing = way.number
        left = self.left
        for index, need in way.devices:
            rest = left[index]
            if rest is None:
                continue
            # A request gets no device twice.
            missing -= need is None or all(map(ge, rest, need))
            if missing <= 0:
                return True
        return missing <= 0


class DeviceBooks:
    """The books of all nodes, each kept until its devices change."""

    def __init__(self, context: AllocatorContext, inventory: Inventory) -> None:
        self._context = context
        self._inventory = inventory
        self._books: dict[str, DeviceBook] = {}
        self._hardware: dict[tuple[object, ...], Hardware] = {}
        # By node, with the pools that it was found for.
        self._hardware_on: dict[str, tuple[tuple[Pool, ...], Hardware]] = {}
        # Whether claims asked for all devices that match, instead of a number.
        self.asked_for_all = False
        # The claims of the last question, and their key: the same claims are asked on many nodes.
        self._claims: Sequence[ResourceClaim] = ()
        self._key = b""

    def on(self, node: Node) -> DeviceBook:
        """Return the book of the node; it is valid until the next change."""
        name = node.metadata.name
        book = self._books.get(name)
        version = self._inventory.version
        if book is not None and book.version == version and book.node is node:
            return book
        pools = self._inventory.pools(node)
        known = self._hardware_on.get(name)
        if known is None or known[0] is not pools:
            known = self._hardware_on[name] = (pools, self._hardware_of(pools))
        book = DeviceBook(node, pools, known[1], self._context, version=version)
        self._books[name] = book
        return book

    def suitable(self, node: Node, claims: Sequence[ResourceClaim]) -> Suitable | None:
        """Return the devices of the node that are suitable for the claims; None if unknown."""
        book = self.on(node)
        key = self._key_of(claims)
        known = book.hardware.suitable
        if key not in known:
            if len(known) >= _CLAIMS_MAX:
                known.clear()
                self._books.clear()
            known[key] = _find_suitable(self._context, node, book.pools, claims)
        return known[key]

    def forget_use(self, nodes: Sequence[str] | None) -> None:
        """Note that the devices in use of these nodes have changed; None is all nodes."""
        if nodes is None:
            self._books.clear()
            return
        for name in nodes:
            self._books.pop(name, None)

    def forget_node(self, name: str) -> None:
        """Drop what is known about a deleted node."""
        self._books.pop(name, None)
        self._hardware_on.pop(name, None)

    def forget_all(self) -> None:
        """Note that a class has changed."""
        self._books.clear()
        self._hardware.clear()
        self._hardware_on.clear()

    def _hardware_of(self, pools: Sequence[Pool]) -> Hardware:
        key = tuple(
            (each.shape, each.device.taints, bool(each.device.binding_conditions), _draws(each))
            for pool in pools
            for each in pool.devices
        )
        hardware = self._hardware.get(key)
        if hardware is None:
            if len(self._hardware) >= _HARDWARE_MAX:
                self.forget_all()
            hardware = self._hardware[key] = Hardware()
        return hardware

    def _key_of(self, claims: Sequence[ResourceClaim]) -> bytes:
        if claims is not self._claims:
            devices = [(it.spec.devices.requests, it.spec.devices.constraints) for it in claims]
            self._claims, self._key = claims, _encode(devices)
            self.asked_for_all |= any(map(_takes_all, _requests_of(claims)))
        return self._key


def _quantity(value: object) -> str:
    assert isinstance(value, Quantity), "all other values of a request are JSON"
    return value.text


_encode = msgspec.json.Encoder(enc_hook=_quantity).encode


def _requests_of(claims: Sequence[ResourceClaim]) -> Iterator[DeviceRequest]:
    return (request for claim in claims for request in claim.spec.devices.requests)


def _alternatives(request: DeviceRequest) -> Sequence[ExactDeviceRequest | DeviceSubRequest]:
    return request.first_available if request.exactly is None else (request.exactly,)


def _takes_all(request: DeviceRequest) -> bool:
    return any(each.allocation_mode == "All" for each in _alternatives(request))


def _draws(pooled: PooledDevice) -> bool:
    return bool(pooled.device.consumes_counters)


def _count_left(pooled: PooledDevice, context: AllocatorContext) -> tuple[int, ...] | None:
    allocated = context.allocated
    if pooled.id in allocated.devices:
        return None
    consumed: Mapping[str, Quantity] = allocated.capacity.get(pooled.id, {})
    return tuple(
        each.value.nanos - (consumed[name].nanos if name in consumed else 0)
        for name, each in pooled.device.capacity.items()
    )


def _fraction(pooled: PooledDevice, left: tuple[int, ...] | None) -> int:
    if left is None:
        return 0
    totals = (each.value.nanos for each in pooled.device.capacity.values())
    parts = (WHOLE * have // total for have, total in zip(left, totals, strict=True) if total > 0)
    return max(0, min(parts, default=WHOLE))


def _find_suitable(
    context: AllocatorContext, node: Node, pools: Sequence[Pool], claims: Sequence[ResourceClaim]
) -> Suitable | None:
    """Return the devices that pass all checks which do not depend on use; None if one may fail."""
    specs = [each.slice.spec for pool in pools for each in pool.devices]
    if any(spec.per_device_node_selection or spec.skip_node_operations for spec in specs):
        return None
    for request in _requests_of(claims):
        if _takes_all(request) or (request.exactly and request.exactly.admin_access):
            return None
        if any(each.derived_attributes for each in _alternatives(request)):
            return None
    problem = Problem(replace(context, allocated=_NOTHING_IN_USE), node, pools, claims)
    found: list[tuple[Way, ...]] = []
    for rows in problem.requests:
        ways: list[Way] = []
        for row in rows:
            devices: list[tuple[int, tuple[int, ...] | None]] = []
            for index in range(len(problem.devices)):
                code = problem.check_without_use(row, index)
                if code == FAILED:
                    return None
                if not code:
                    devices.append((index, row.needs.get(index)))
            ways.append(Way(row.count, tuple(devices)))
        found.append(tuple(ways))
    return Suitable(tuple(found))
