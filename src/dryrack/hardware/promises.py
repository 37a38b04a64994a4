"""
Whether an overlay promises as many devices as it has.

An overlay tells an autoscaler, as an extended resource of a node, how many devices to expect, and
has the devices themselves beside it. The resource whose name begins with a driver's is the one
that counts that driver's devices.
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
class Broken:
    """A promise: an extended resource that says another number than there are devices."""

    resource: str
    message: str


def broken_promises(overlay: Overlay) -> Iterator[Broken]:
    """Yield each driver whose number of devices differs from the stated capacity."""
    counts: dict[str, int] = {}
    for batch in overlay.assignment.batches:
        if isinstance(batch.reach, ThisNode):
            counts[batch.driver] = counts.get(batch.driver, 0) + len(batch.devices)
    for driver, count in counts.items():
        stated = [name for name in overlay.capacity if name.partition("/")[0] == driver]
        # With several resources of one driver it is not said which device counts as which.
        if len(stated) == 1 and overlay.capacity[stated[0]] != Quantity.parse(str(count)):
            said = overlay.capacity[stated[0]]
            devices = "1 device" if count == 1 else f"{count} devices"
            yield Broken(
                stated[0], f"capacity of {stated[0]} is {said}, but {driver} publishes {devices}"
            )
