"""Drivers of virtual nodes: simulated in memory, or programs that register with the kubelet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kubeletplugin import VirtualDrivers

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from dryrack.kinds.raw import Raw
    from dryrack.kubelet import RegisteredDrivers
    from dryrack.kubeletplugin import DeviceKind


class DriversOfNodes(VirtualDrivers):
    """Simulated drivers, and programs for all drivers that are not simulated."""

    def __init__(self, kinds: Sequence[DeviceKind], processes: RegisteredDrivers) -> None:
        super().__init__(kinds)
        self._processes = processes

    @property
    def processes(self) -> RegisteredDrivers:  # type: ignore[override]
        return self._processes

    def injections(
        self, node: str, claims: Sequence[Raw], uses: Sequence[tuple[Raw, str]]
    ) -> Iterable[Any]:
        yield from super().injections(node, claims, uses)
        yield from self._processes.injections(node, uses)
