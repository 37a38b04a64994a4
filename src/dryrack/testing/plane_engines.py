"""
A plane whose engines can start again with devices of other kinds.

A test says by and by which nodes there are; which engines that takes is known with the last of
them. So they start with the first node, and once more if a later one needs what is not there yet:
any engine may die at any point and start again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING

from dryrack.cluster import (
    SeededChance,
    build_control_plane,
    compute_domain_families,
    families,
    load_catalogue,
    plugin_families,
    running_engines,
    wanted_engines,
    with_catalogue,
)
from dryrack.cluster.faults import FaultBoard, FaultInjector
from dryrack.hardware.catalogue import Catalogue

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from dryrack.cluster import ControlPlaneOptions, Family
    from dryrack.hardware.catalogue import InstanceType
    from dryrack.kinds.raw import Raw
    from dryrack.kubeletplugin import ContainerInjection, DeviceKind, VirtualDrivers
    from dryrack.scheduler import SchedulerSettings

_FAULTS_SEED = 2**32
# Reading it takes longer than a test; nothing of it changes.
packaged_catalogue = cache(load_catalogue)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What is not usual about the cluster of a test."""

    seed: int = 0
    """Decides names and identifiers."""
    without: tuple[str, ...] = ()
    """Engines that are left out, by name, as with `dryrack up --without`."""
    scheduler_config: str = ""
    """A file with a KubeSchedulerConfiguration."""
    runtime_config: str = ""
    """API versions to serve beside the usual, as with `dryrack up --runtime-config`."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Nodes that have devices of the same kinds."""

    drivers: VirtualDrivers
    nodes: frozenset[str]

    def includes(self, node: Raw) -> bool:
        return node["metadata"]["name"] in self.nodes


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

    def restore(self, node: str, claims: Sequence[Raw]) -> None:
        own = self.by_node.get(node)
        if own is not None:
            own.restore(node, claims)

    def cdi_ids(self, node: str, uid: str) -> Mapping[tuple[str, str, str, str, str], str]:
        own = self.by_node.get(node)
        return {} if own is None else own.cdi_ids(node, uid)

    def prepared(self) -> Collection[str]:
        return {uid for drivers in self.by_node.values() for uid in drivers.prepared()}

    def unprepare(self, uid: str) -> None:
        for drivers in dict.fromkeys(self.by_node.values()):
            drivers.unprepare(uid)

    def _of(self, node: Raw) -> VirtualDrivers | None:
        return self.by_node.get(node["metadata"]["name"])


class PlaneEngines:
    """An API server, and whatever keeps its cluster going."""

    def __init__(self, options: ControlPlaneOptions, setup: Setup) -> None:
        self._setup = setup
        self._drivers = NodeDrivers()
        self.plane = build_control_plane(replace(options, drivers=self._drivers))
        # Faults have a chance of their own, so that names are the same with and without them.
        self._chance = SeededChance(setup.seed + _FAULTS_SEED)
        self._board = FaultBoard(clock=options.clock, chance=self._chance)
        # What of the catalogue there are nodes of; all of it takes half a second to start with.
        self._machines: dict[str, InstanceType] = {}
        self._groups: list[_Group] = []
        self._started = asyncio.Event()
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Until it is cancelled; the first engine that fails ends it with its error."""
        try:
            await self._started.wait()
            while True:
                self._changed.clear()
                async with running_engines(self._engines(), self.plane.around, self._board):
                    await self._changed.wait()
        finally:
            self.plane.expiry.stop()

    def faults(self) -> FaultInjector:
        """What makes nodes, devices, the API and engines fail."""
        clock = self.plane.options.clock
        return FaultInjector(self.plane.client("faults"), clock, self._chance, self._board)

    def start(self) -> None:
        """From here on there are engines."""
        self._started.set()

    def use_machine(self, machine: InstanceType) -> None:
        """Nodes of this instance type have its devices."""
        if machine.name not in self._machines:
            self._machines[machine.name] = machine
            self._changed.set()

    def use_devices(self, kinds: tuple[DeviceKind, ...], nodes: Collection[str]) -> None:
        """These nodes have devices of these kinds."""
        from dryrack.kubeletplugin import VirtualDrivers

        drivers = VirtualDrivers(kinds)
        self._groups.append(_Group(drivers, frozenset(nodes)))
        self._drivers.by_node.update(dict.fromkeys(nodes, drivers))
        self._changed.set()

    def _engines(self) -> tuple[Family, ...]:
        catalogue = Catalogue(instance_types=dict(self._machines))
        publishing = partial(with_catalogue, catalogue) if self._machines else None
        usual = families(publishing, None, self._scheduling(), drivers=self._drivers)
        plugins = [
            each
            for group in self._groups
            for each in plugin_families(group.drivers, group.includes)
        ]
        domains = compute_domain_families(self._machines.values())
        return wanted_engines(self._setup.without, (*usual, *plugins, *domains))

    def _scheduling(self) -> SchedulerSettings | None:
        if not self._setup.scheduler_config:
            return None
        from dryrack.cli.scheduler_config import read_config, settings_of_plane

        return settings_of_plane(read_config(self._setup.scheduler_config))
