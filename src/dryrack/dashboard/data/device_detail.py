"""The details of one device: its holders, and what it shares with others of a physical device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.dashboard.data.fleet import used_percent
from dryrack.kinds.pool_generation import newest_generation
from dryrack.kinds.quantity import ZERO, Quantity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.dashboard.data.fleet import Fleet, PoolKey
    from dryrack.kinds.resource import Device, ResourceSlice
    from dryrack.placement import DeviceView

Document = dict[str, Any]


def device_document(fleet: Fleet, key: PoolKey, name: str) -> Document | None:
    """Return the details of a device; None if no device has this name."""
    views = {each.device: each for each in fleet.views_of(key)}
    if name not in views:
        return None
    view = views[name]
    newest = newest_generation(fleet.slices_of(key), lambda each: each.spec.pool)
    devices = {device.name: device for each in newest.slices for device in each.spec.devices}
    device = devices.get(name)
    sets = [each.counter_set for each in device.consumes_counters] if device is not None else []
    return {
        **view.document(),
        # The map has more states than the command.
        "state": fleet.state_of(view),
        "health": [
            {"pod": pod, "message": message}
            for pod, message in sorted(fleet.health_reports(view).items())
        ],
        "taintsOf": list(fleet.taints_of(key, name)),
        "levels": {
            name: _level(total, view.left[name])
            for name, total in view.capacity.items()
            if name in view.left
        },
        "sharesCapacity": bool(device is not None and device.allow_multiple_allocations),
        "slices": [
            each.metadata.name
            for each in newest.slices
            if any(device.name == name for device in each.spec.devices)
        ],
        "generation": newest.number,
        "counters": [_counter_set(fleet, each, newest.slices, views) for each in sets],
    }


def _level(total: Quantity, left: Quantity) -> Document:
    return {
        "total": str(total),
        "used": str(total - left),
        "left": str(left),
        "usedPercent": used_percent(total, left),
    }


def _counter_set(
    fleet: Fleet,
    name: str,
    slices: Sequence[ResourceSlice],
    views: Mapping[str, DeviceView],
) -> Document:
    """Return the counters of a physical device, and the amounts that its partitions take."""
    shared = (counters for each in slices for counters in each.spec.shared_counters)
    totals: dict[str, Quantity] = {
        counter: amount.value
        for counters in shared
        if counters.name == name
        for counter, amount in counters.counters.items()
    }
    parts = [device for each in slices for device in each.spec.devices if _takes(device, name)]
    used = dict.fromkeys(totals, ZERO)
    for device in parts:
        if any(not holder.admin_access for holder in views[device.name].holders):
            for counter, amount in _takes(device, name).items():
                used[counter] = used.get(counter, ZERO) + amount
    return {
        "name": name,
        "counters": {each: _level(total, total - used[each]) for each, total in totals.items()},
        "partitions": [
            {
                "device": device.name,
                "model": views[device.name].model,
                "state": fleet.state_of(views[device.name]),
                "claims": [holder.claim for holder in views[device.name].holders],
                "takes": {each: str(amount) for each, amount in _takes(device, name).items()},
            }
            for device in parts
        ],
    }


def _takes(device: Device, counter_set: str) -> Mapping[str, Quantity]:
    """Return the amounts that a device takes from a set of counters."""
    return {
        name: counter.value
        for each in device.consumes_counters
        if each.counter_set == counter_set
        for name, counter in each.counters.items()
    }
