"""
Taints of devices that keep a device from a request, and the rules that add taints.

Only NoSchedule and NoExecute keep a device from being allocated; other effects, known or not,
do not. A DeviceTaintRule acts as if its taint were written on every device it selects.

A rule without a selector is where Kubernetes disagrees with itself: its scheduler takes that for
every device, as it takes an empty selector, while what evicts pods takes it for none, as the
API's documentation has it. Both are reproduced: `apply_taint_rules` is what the scheduler sees,
`evicts_from` what eviction goes by.
"""

from collections.abc import Iterable, Sequence

import msgspec

from dryrack.allocation.model.identity import DeviceId
from dryrack.kinds.resource import (
    Device,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintSelector,
    DeviceToleration,
    ResourceSlice,
)
from dryrack.kinds.selectors import tolerates_device_taint

_BLOCKING = ("NoSchedule", "NoExecute")
_EVERY = DeviceTaintSelector()


def blocking_taints(
    device: Device, tolerations: Sequence[DeviceToleration]
) -> tuple[DeviceTaint, ...]:
    """Return the taints that keep the device from a request with these tolerations."""
    return tuple(
        taint
        for taint in device.taints
        if taint.effect in _BLOCKING
        and not any(tolerates_device_taint(toleration, taint) for toleration in tolerations)
    )


def apply_taint_rules(
    slices: Iterable[ResourceSlice], rules: Sequence[DeviceTaintRule]
) -> tuple[ResourceSlice, ...]:
    """Return the slices with the taints of all rules on the devices they select."""
    return tuple(_with_taints(each, rules) for each in slices)


def _with_taints(each: ResourceSlice, rules: Sequence[DeviceTaintRule]) -> ResourceSlice:
    pool = each.spec.pool.name
    here = [rule for rule in rules if _selects(rule, each.spec.driver, pool)]
    if not here:
        return each
    devices = tuple(_device_with_taints(device, here) for device in each.spec.devices)
    return msgspec.structs.replace(each, spec=msgspec.structs.replace(each.spec, devices=devices))


def _device_with_taints(device: Device, rules: Sequence[DeviceTaintRule]) -> Device:
    added = tuple(rule.spec.taint for rule in rules if _selects_device(rule, device.name))
    return msgspec.structs.replace(device, taints=device.taints + added) if added else device


def evicts_from(rule: DeviceTaintRule, device: DeviceId) -> bool:
    """Return whether the rule's taint can evict pods that use the device."""
    return rule.spec.device_selector is not None and (
        _selects(rule, device.driver, device.pool) and _selects_device(rule, device.device)
    )


def _selects(rule: DeviceTaintRule, driver: str, pool: str) -> bool:
    selector = rule.spec.device_selector or _EVERY
    return selector.driver in (None, driver) and selector.pool in (None, pool)


def _selects_device(rule: DeviceTaintRule, device: str) -> bool:
    selector = rule.spec.device_selector or _EVERY
    return selector.device in (None, device)
