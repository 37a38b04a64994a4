"""The pools of a node for display: their devices, and which of them are in use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.allocation.demand.constraints import lookup_attribute

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from dryrack.allocation.model.identity import PoolId
    from dryrack.allocation.supply.pools import PooledDevice
    from dryrack.kinds.resource import CounterSet, Device, DeviceAttribute


@dataclass(frozen=True, slots=True)
class NodePool:
    """The devices that a complete and valid pool offers to a node."""

    id: PoolId
    _devices: tuple[PooledDevice, ...]
    # The names of those that any claim has, whole or in part.
    in_use: AbstractSet[str]
    counter_sets: Mapping[str, CounterSet]

    @property
    def devices(self) -> tuple[Device, ...]:
        """In the order in which they are given out."""
        return tuple(pooled.device for pooled in self._devices)

    def attributes(self, name: str) -> Mapping[str, DeviceAttribute]:
        """Return the attribute of this name, of every device that has it."""
        pairs = ((each.device.name, lookup_attribute(each, name)) for each in self._devices)
        return {device: attribute for device, attribute in pairs if attribute is not None}
