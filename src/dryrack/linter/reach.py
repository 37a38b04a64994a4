"""
The number of devices that one node can reach.

All devices of a claim must be reachable from one node. Claims with equal selectors share one
count.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.kinds.selectors import tolerates_device_taint

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from dryrack.kinds.resource import DeviceToleration
    from dryrack.linter.selection import Selected
    from dryrack.linter.world import PlacedDevice

# The effects that keep a request away; None is only a note.
_KEEPING_AWAY = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class Reach:
    """The most devices that any node can use, and the first such node, if they have nodes."""

    count: int
    node: str


class Supply:
    """Answers for one world."""

    def __init__(self, node_names: Sequence[str]) -> None:
        self._order = {name: index for index, name in enumerate(node_names)}
        self._answers: dict[Hashable, Reach] = {}

    def reach(
        self, selections: Sequence[Selected], tolerations: tuple[DeviceToleration, ...]
    ) -> Reach:
        """Return how many devices that any of `selections` picks the best node can reach."""
        # By identity: `Selection` keeps all selections as long as the world exists.
        key = (tuple(sorted({id(each) for each in selections})), tolerations)
        if key not in self._answers:
            shapes = {id(shape): shape for each in selections for shape in each.shapes}
            devices = (placed for shape in shapes.values() for placed in shape.members)
            self._answers[key] = self._count(devices, tolerations)
        return self._answers[key]

    def _count(
        self, devices: Iterable[PlacedDevice], tolerations: tuple[DeviceToleration, ...]
    ) -> Reach:
        shared = 0
        own = Counter[str]()
        for placed in devices:
            if not _is_usable(placed, tolerations):
                continue
            node = placed.node_name
            if node is None:
                shared += 1
            elif node in self._order:
                own[node] += 1
        best = min(own, key=lambda name: (-own[name], self._order[name]), default="")
        return Reach(shared + own[best], best)


def _is_usable(placed: PlacedDevice, tolerations: tuple[DeviceToleration, ...]) -> bool:
    """Return whether a request with these tolerations tolerates all taints of the device."""
    return all(
        any(tolerates_device_taint(toleration, taint) for toleration in tolerations)
        for taint in placed.device.taints
        if taint.effect in _KEEPING_AWAY
    )
