"""
Mismatches between the capacity of an overlay and its devices.

An overlay has devices, and an extended resource by which an autoscaler knows their number. The
resource whose name begins with the name of a driver counts the devices of that driver.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.hardware.inventory import ThisNode
from dryrack.kinds.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.hardware.inventory import Overlay


@dataclass(frozen=True, slots=True)
class CapacityMismatch:
    """An extended resource whose quantity differs from the number of devices."""

    resource: str
    message: str


def find_capacity_mismatches(overlay: Overlay) -> Iterator[CapacityMismatch]:
    """Yield each driver whose number of devices differs from the stated capacity."""
    counts: dict[str, int] = {}
    for batch in overlay.assignment.batches:
        if isinstance(batch.reach, ThisNode):
            counts[batch.driver] = counts.get(batch.driver, 0) + len(batch.devices)
    for driver, count in counts.items():
        resources = [name for name in overlay.capacity if name.partition("/")[0] == driver]
        # With several resources of one driver it is unknown which device counts as which.
        if len(resources) == 1 and overlay.capacity[resources[0]] != Quantity.parse(str(count)):
            [resource] = resources
            devices = "1 device" if count == 1 else f"{count} devices"
            yield CapacityMismatch(
                resource,
                f"capacity of {resource} is {overlay.capacity[resource]}, "
                f"but {driver} publishes {devices}",
            )
