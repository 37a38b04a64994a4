"""
Devices as the selectors of a request see them, and the CEL that a release has for it.

Devices that look the same to every selector have one shape, which `cel.selectors` judges once for
all nodes and all attempts of an allocator's life.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from dryrack import cel
from dryrack.allocation.model.features import Release

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.allocation.model.features import Features
    from dryrack.allocation.supply.pools import PooledDevice
    from dryrack.cel.selectors import Selector
    from dryrack.kinds.resource import DeviceAttribute, DeviceCapacity, DeviceSelector


class CelCompiler:
    """CEL as the scheduler uses it: expressions that were stored, every library on."""

    def __init__(self, features: Features, release: Release = Release.V1_36) -> None:
        # From 1.37 on a stored expression may look at lists whatever the gate says.
        lists = features.list_type_attributes or release is not Release.V1_36
        self._environment = cel.Environment(
            consumable_capacity=features.consumable_capacity,
            list_type_attributes=lists,
            new_expressions=False,
        )

    def compile(self, expression: str) -> Selector | cel.CompileError:
        return cel.compile_expression(expression, self._environment)


def shape_of(pooled: PooledDevice) -> cel.Device:
    """The device as selectors see it: the same object for devices that look the same."""
    shape = pooled.shape
    if shape is None:
        device = pooled.device
        # Two quantities of one value may be held differently, and CEL can tell.
        capacity = tuple(
            [
                (name, each.value.unscaled, each.value.scale, each.value.big, each)
                for name, each in device.capacity.items()
            ]
            if device.capacity
            else ()
        )
        shape = pooled.shape = _prepared(
            pooled.slice.spec.driver,
            tuple(device.attributes.items()),
            capacity,
            device.allow_multiple_allocations,
        )
    return shape


# A scheduler makes an allocator for each pod, and sees the same devices every time.
@lru_cache(maxsize=65536)
def _prepared(
    driver: str,
    attributes: tuple[tuple[str, DeviceAttribute], ...],
    capacity: tuple[tuple[str, int, int, bool, DeviceCapacity], ...],
    multiple: bool | None,
) -> cel.Device:
    amounts = {name: each for name, _, _, _, each in capacity}
    return cel.Device(driver, dict(attributes), amounts, multiple)


def expressions_of(selectors: Sequence[DeviceSelector]) -> tuple[str, ...]:
    if not selectors:
        return ()
    return tuple([selector.cel.expression for selector in selectors if selector.cel is not None])
