"""
Compatibility groups: which devices can be allocated together from one counter set.

Devices that consume counters of one set must have a group in common: all of them together, and not
only in pairs. A device without groups goes only with devices without groups; so "none" is a group
here, too. Devices in use count with the groups that their slices have now, even if these would not
go together any more.

Counter sets are numbered through all pools of an attempt. A pool in which no device has groups has
no numbers.
"""

from collections.abc import Callable
from collections.abc import Set as AbstractSet

import msgspec

from dryrack.allocation.model.identity import PoolId
from dryrack.allocation.supply.counters import all_devices
from dryrack.allocation.supply.pools import Pool, has_groups
from dryrack.kinds.resource import Device

Groups = frozenset[str]
_NONE: Groups = frozenset(("",))


class GroupLedger(msgspec.Struct, eq=False):
    """The counter sets of all pools met so far, and the groups that devices in use have left."""

    # The names of the devices that any claim has, whole or in part.
    in_use: Callable[[PoolId], AbstractSet[str]]
    # By number; None is a set from which no device is in use.
    left: list[Groups | None] = []
    _numbers: dict[PoolId, dict[str, int]] = {}

    def groups_of(self, pool: Pool, device: Device) -> tuple[tuple[int, Groups], ...]:
        """Return the numbers of the counter sets that the device consumes, and its groups there."""
        numbers = self._open(pool)
        groups: dict[int, Groups] = {}
        for name, own in _groups(device) if numbers else ():
            number = numbers.get(name)
            if number is not None:
                groups[number] = groups.get(number, own) & own
        return tuple(groups.items())

    def _open(self, pool: Pool) -> dict[str, int]:
        known = self._numbers.get(pool.id)
        if known is not None:
            return known
        numbers = self._numbers[pool.id] = {}
        if not has_groups(all_devices(pool)):
            return numbers
        for name in pool.counter_sets or ():
            numbers[name] = len(self.left)
            self.left.append(None)
        in_use = self.in_use(pool.id)
        for device in all_devices(pool):
            for name, own in _groups(device) if device.name in in_use else ():
                if name in numbers:
                    number = numbers[name]
                    self.left[number] = _join(self.left[number], own)
        return numbers


def meet(left: Groups | None, groups: Groups) -> Groups:
    """Return what is left of the groups of a counter set beside a device; empty if it clashes."""
    return groups if left is None else left & groups


def _join(left: Groups | None, own: Groups) -> Groups:
    """Add a device in use, which need not go together with the others."""
    if left is None:
        return own
    return left if _NONE in (left, own) else left & own


def _groups(device: Device) -> list[tuple[str, Groups]]:
    return [
        (each.counter_set, frozenset(each.compatibility_groups) or _NONE)
        for each in device.consumes_counters
    ]
