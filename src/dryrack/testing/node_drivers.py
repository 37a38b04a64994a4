"""Drivers of virtual nodes that have devices of different kinds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.kubeletplugin import ContainerInjection, VirtualDrivers


@dataclass(frozen=True, slots=True)
class NodeDrivers:
    """What prepares devices on each node: the drivers that this node has, and no others."""

    by_node: dict[str, VirtualDrivers] = field(default_factory=dict)

    @property
    def names(self) -> Collection[str]:
        return {name for drivers in self.by_node.values() for name in drivers.names}

    def injections(
        self, node: str, claims: Sequence[Raw], uses: Sequence[tuple[Raw, str]]
    ) -> Iterable[ContainerInjection]:
        own = self.by_node.get(node)
        return () if own is None else own.injections(node, claims, uses)

    def call_seconds(self, node: Raw, now: float) -> float:
        own = self._of(node)
        return 0.0 if own is None else own.call_seconds(node, now)

    def is_registered(self, node: Raw, now: float) -> bool:
        own = self._of(node)
        return own is None or own.is_registered(node, now)

    def prepare(self, node: Raw, claims: Sequence[Raw], now: float) -> Mapping[str, str]:
        own = self._of(node)
        return {} if own is None else own.prepare(node, claims, now)

    def cdi_ids(self, node: str, uid: str) -> Mapping[tuple[str, str, str, str, str], str]:
        own = self.by_node.get(node)
        return {} if own is None else own.cdi_ids(node, uid)

    def unprepare(self, uid: str) -> None:
        for drivers in dict.fromkeys(self.by_node.values()):
            drivers.unprepare(uid)

    def _of(self, node: Raw) -> VirtualDrivers | None:
        return self.by_node.get(node["metadata"]["name"])
