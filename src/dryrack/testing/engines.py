"""
A control plane whose engines start again when nodes with other devices are added.

A test adds nodes one by one, and the nodes decide which engines the cluster needs. The engines
start with the first node, and restart if a later node needs another engine. Engines may crash and
restart at any point, so a restart changes nothing else.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING

from dryrack.cluster import (
    EngineOptions,
    NodePlugin,
    assemble_engines,
    build_control_plane,
    load_catalogue,
    provisioner_settings,
    running_engines,
)
from dryrack.cluster.faults import FaultBoard, FaultInjector
from dryrack.hardware.catalogue import Catalogue
from dryrack.kinds.releases import DEFAULT_RELEASE, Release
from dryrack.scenario import PreparedClaims

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from dryrack.cluster import ControlPlaneOptions, Family
    from dryrack.hardware.catalogue import InstanceType
    from dryrack.kinds.raw import Raw
    from dryrack.kubeletplugin import ContainerInjection, DeviceKind, VirtualDrivers

# Reading it takes longer than a test; nothing of it changes.
packaged_catalogue = cache(load_catalogue)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Options of the cluster of a test."""

    seed: int = 0
    """Decides names and identifiers."""
    without: tuple[str, ...] = ()
    """Engines that are left out, by name, as with `dryrack up --without`."""
    scheduler_config: str = ""
    """A file with a KubeSchedulerConfiguration."""
    runtime_config: str = ""
    """API versions to serve beside the stable ones, as with `dryrack up --runtime-config`."""
    release: str = DEFAULT_RELEASE.value
    """The Kubernetes release that the cluster behaves as, as with `dryrack up --release`."""
    feature_gates: str = ""
    """Feature gates of the cluster, as with `dryrack up --feature-gates`."""
    provisioner: bool = False
    """Whether NodePools create nodes, as with `dryrack up --provisioner`."""


@dataclass(frozen=True, slots=True)
class NodeDrivers:
    """Prepares devices on each node with the drivers of that node."""

    by_node: dict[str, VirtualDrivers] = field(default_factory=dict)

    @property
    def processes(self) -> None:
        return None

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

    def host_files(self, node: str) -> Mapping[str, Sequence[str]]:
        own = self.by_node.get(node)
        return {} if own is None else own.host_files(node)

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


class ClusterEngines:
    """A control plane and its engines."""

    def __init__(
        self, options: ControlPlaneOptions, setup: Setup, engines: EngineOptions | None = None
    ) -> None:
        self._setup = setup
        self._options = engines or EngineOptions()
        self._drivers = NodeDrivers()
        self.control_plane = build_control_plane(replace(options, drivers=self._drivers))
        self.board = FaultBoard.seeded(setup.seed, clock=options.clock)
        # Only the instance types that nodes have; the whole catalogue takes half a second.
        self._machines: dict[str, InstanceType] = {}
        self._plugins: list[NodePlugin] = []
        self._started = asyncio.Event()
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Run the engines until the task is cancelled; raise the error of the first that fails."""
        try:
            await self._started.wait()
            while True:
                self._changed.clear()
                async with running_engines(self._assemble(), self.control_plane.wiring, self.board):
                    await self._changed.wait()
        finally:
            self.control_plane.expiry.stop()

    def faults(self) -> FaultInjector:
        """Return what makes nodes, devices, the API and engines fail."""
        return FaultInjector.of_board(self.control_plane.client("faults"), self.board)

    def prepared_claims(self) -> tuple[PreparedClaims, ...]:
        """Return the claims that the drivers of each node have prepared."""
        return tuple(
            PreparedClaims(name, frozenset(each.uid for each in drivers.records(name, node)), node)
            for node, drivers in self._drivers.by_node.items()
            for name in sorted(drivers.names)
        )

    def start(self) -> None:
        """Let the engines run, if they do not run yet."""
        self._started.set()

    def use_machine(self, machine: InstanceType) -> None:
        """Give nodes of this instance type its devices."""
        if machine.name not in self._machines:
            self._machines[machine.name] = machine
            self._changed.set()

    def use_devices(self, kinds: tuple[DeviceKind, ...], nodes: Collection[str]) -> None:
        """Give these nodes devices of these kinds."""
        from dryrack.kubeletplugin import VirtualDrivers

        drivers = VirtualDrivers(kinds)
        names = frozenset(nodes)
        self._plugins.append(NodePlugin(drivers, lambda node: node["metadata"]["name"] in names))
        self._drivers.by_node.update(dict.fromkeys(nodes, drivers))
        self._changed.set()

    def _assemble(self) -> tuple[Family, ...]:
        scheduling = self._options.scheduling
        if self._setup.scheduler_config:
            from dryrack.cli.scheduler_config import read_config, settings_of_plane

            scheduling = settings_of_plane(read_config(self._setup.scheduler_config))
        machines = dict(self._machines)
        provisioner = None
        if self._setup.provisioner:
            machines = dict(packaged_catalogue().instance_types)
            release = Release.parse(self._setup.release)
            provisioner = provisioner_settings(packaged_catalogue(), release=release)
        return assemble_engines(
            replace(
                self._options,
                without=(*self._options.without, *self._setup.without),
                catalogue=Catalogue(instance_types=machines) if machines else None,
                machines=machines.values(),
                scheduling=scheduling,
                drivers=self._drivers,
                plugins=self._plugins,
                provisioner=provisioner,
            )
        )
