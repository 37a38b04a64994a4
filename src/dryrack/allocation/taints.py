"""
Taints of devices: which keep a device from a request, and the rules that add more of them.

Only NoSchedule and NoExecute keep a device from being allocated; other effects, known or not,
do not. A DeviceTaintRule acts as if its taint were written on every device it selects.
"""

from collections.abc import Iterable, Sequence

import msgspec

from dryrack.kinds.resource import (
    Device,
    DeviceTaint,
    DeviceTaintRule,
    DeviceToleration,
    ResourceSlice,
)
from dryrack.kinds.selectors import tolerates_device_taint

_BLOCKING = ("NoSchedule", "NoExecute")


def blocking_taints(
    device: Device, tolerations: Sequence[DeviceToleration]
) -> tuple[DeviceTaint, ...]:
    """The taints that keep the device from a request with these tolerations."""
    return tuple(
        taint
        for taint in device.taints
        if taint.effect in _BLOCKING
        and not any(tolerates_device_taint(toleration, taint) for toleration in tolerations)
    )


def apply_taint_rules(
    slices: Iterable[ResourceSlice], rules: Sequence[DeviceTaintRule]
) -> tuple[ResourceSlice, ...]:
    """The slices with the taints of all rules on the devices they select."""
    return tuple(_tainted(each, rules) for each in slices)


def _tainted(each: ResourceSlice, rules: Sequence[DeviceTaintRule]) -> ResourceSlice:
    here = [rule for rule in rules if _selects_slice(rule, each)]
    if not here:
        return each
    devices = tuple(_tainted_device(device, here) for device in each.spec.devices)
    return msgspec.structs.replace(each, spec=msgspec.structs.replace(each.spec, devices=devices))


def _tainted_device(device: Device, rules: Sequence[DeviceTaintRule]) -> Device:
    added = tuple(rule.spec.taint for rule in rules if _selects_device(rule, device))
    return msgspec.structs.replace(device, taints=device.taints + added) if added else device


def _selects_slice(rule: DeviceTaintRule, each: ResourceSlice) -> bool:
    selector = rule.spec.device_selector
    return selector is not None and (
        selector.driver in (None, each.spec.driver) and selector.pool in (None, each.spec.pool.name)
    )


def _selects_device(rule: DeviceTaintRule, device: Device) -> bool:
    selector = rule.spec.device_selector
    return selector is not None and selector.device in (None, device.name)
