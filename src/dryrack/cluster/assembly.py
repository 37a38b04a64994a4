"""
The engines of a cluster, chosen and configured in one place.

`dryrack up`, embedded clusters, scenarios and the pytest fixtures run the same engines; each says
in `EngineOptions` what is different about its own.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from dryrack.cluster.engines import Family, UnknownEngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from dryrack.allocation import LiveAllocator
    from dryrack.base.ports import Chance
    from dryrack.cluster.engines import Wiring
    from dryrack.controllers import DriverProcesses, Drivers, Engine
    from dryrack.controllers.provisioning import ProvisionerSettings
    from dryrack.controllers.slices import PublisherSettings
    from dryrack.hardware.catalogue import Catalogue, InstanceType
    from dryrack.kinds.raw import Raw
    from dryrack.kubeletplugin import VirtualDrivers
    from dryrack.scheduler import SchedulerSettings

# The names in release 0.2.
_OLD_NAMES = {
    "garbage": "garbage-collector",
    "accounts": "serviceaccounts",
    "eviction": "taint-eviction",
}


class MakeAllocator(Protocol):
    """Makes an allocator that takes identifiers from `chance`."""

    def __call__(self, *, chance: Chance) -> LiveAllocator: ...


@dataclass(frozen=True, slots=True)
class NodePlugin:
    """The drivers whose devices virtual nodes have."""

    drivers: VirtualDrivers
    includes: Callable[[Raw], bool] | None = None
    """Selects the nodes; None: all virtual nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """Options of the engines of one cluster."""

    without: Collection[str] = ()
    """Engines that are left out, by name."""
    only: Collection[str] | None = None
    """The engines to run, by name; names that do not exist are ignored. None: all."""
    catalogue: Catalogue | None = None
    """Nodes have the devices of their instance type, beside what documents in the cluster say."""
    resync_seconds: float = 0.0
    """How often the publisher of slices lists everything again; 0: as often as by default."""
    machines: Iterable[InstanceType] = ()
    """The instance types of nodes that exist or may come; some need engines of their own."""
    allocator: MakeAllocator | None = None
    """Allocates devices; None: the allocator of the cluster's release and feature gates."""
    scheduling: SchedulerSettings | None = None
    """None: the defaults of kube-scheduler in the cluster's release."""
    drivers: Drivers | None = None
    """Prepare devices on virtual nodes."""
    plugins: Sequence[NodePlugin] = ()
    """Publish the devices of `drivers`."""
    provisioner: ProvisionerSettings | None = None
    """Creates nodes for pods that fit on no node; None: there is no provisioner."""
    node_lease_seconds: int = 0
    """How long the leases of virtual nodes last; 0: as long as those of a kubelet."""


def node_plugins(drivers: VirtualDrivers | None) -> tuple[NodePlugin, ...]:
    """Return the plugin that gives all virtual nodes the devices of these drivers, if any."""
    return () if drivers is None else (NodePlugin(drivers),)


def assemble_engines(options: EngineOptions | None = None) -> tuple[Family, ...]:
    """Return the engines that these options ask for; raise if `without` names an unknown one."""
    from dryrack.controllers import ENGINES

    options = options or EngineOptions()
    families = [
        Family("controllers", tuple(each.name for each in ENGINES), _Controllers(options).run),
        Family("scheduler", ("scheduler",), _Scheduling(options).run),
        *(Family("plugin", ("plugin",), _Publishing(each).run) for each in options.plugins),
    ]
    processes = None if options.drivers is None else options.drivers.processes
    if processes is not None:
        run_processes = _DriverProcesses(processes).run
        families.append(Family("driver-processes", ("driver-processes",), run_processes))
    if has_compute_domains(options.machines):
        families.append(Family("computedomains", ("computedomains",), _run_compute_domains))
    if options.provisioner is not None:
        run = _Provisioning(options.provisioner).run
        families.append(Family("provisioner", ("provisioner",), run))
    return select_engines(families, without=options.without, only=options.only)


def select_engines(
    families: Sequence[Family],
    *,
    without: Collection[str] = (),
    only: Collection[str] | None = None,
) -> tuple[Family, ...]:
    """Return the families with the chosen engines only; each name of `without` must be known."""
    names = [name for family in families for name in family.engines]
    left_out = {_OLD_NAMES.get(name, name) for name in without}
    for name in without:
        if _OLD_NAMES.get(name, name) not in names:
            known = ", ".join(names) or "none"
            raise UnknownEngineError(f"unknown component {name!r}; use one of: {known}")
    chosen = [name for name in names if name not in left_out and (only is None or name in only)]
    selected = (
        replace(each, engines=tuple(name for name in each.engines if name in chosen))
        for each in families
    )
    return tuple(family for family in selected if family.engines)


def has_compute_domains(machines: Iterable[InstanceType]) -> bool:
    """Return whether nodes of one of these types have channels of compute domains."""
    from dryrack.kinds.expansion.compute_domains import DRIVER

    return any(DRIVER in each.drivers for each in machines)


class _Controllers:
    def __init__(self, options: EngineOptions) -> None:
        self._options = options
        self._publisher_settings: PublisherSettings | None = None

    async def run(self, names: Collection[str], wiring: Wiring) -> None:
        from dryrack.controllers import ENGINES, run

        await run(
            [
                self._publisher() if each.name == "slices" else each
                for each in ENGINES
                if each.name in names
            ],
            client=wiring.client,
            clock=wiring.clock,
            chance=wiring.chance,
            authority=wiring.authority,
            informers=wiring.informers,
            metrics=wiring.metrics,
            drivers=self._options.drivers,
            sandboxes=wiring.sandboxes,
            node_lease_seconds=self._options.node_lease_seconds,
            release=wiring.release,
            feature_gates=wiring.feature_gates,
            supervisor=wiring.supervisor,
        )

    def _publisher(self) -> Engine:
        from dryrack.controllers import publisher
        from dryrack.controllers.slices import PublisherSettings

        if self._publisher_settings is None:
            # The assignments of a catalogue take half a second; engines may start several times.
            catalogue = self._options.catalogue
            options = PublisherSettings(catalogue=catalogue.assignments() if catalogue else None)
            if self._options.resync_seconds:
                options = replace(options, resync_seconds=self._options.resync_seconds)
            self._publisher_settings = options
        return publisher(self._publisher_settings)


@dataclass(frozen=True, slots=True)
class _Scheduling:
    options: EngineOptions

    async def run(self, _: Collection[str], wiring: Wiring) -> None:
        from dryrack.allocation import Features, LiveAllocator
        from dryrack.scheduler import Scheduler, SchedulerSettings

        release = wiring.release
        features = Features.from_gates(wiring.feature_gates, release)
        make_allocator = self.options.allocator or partial(
            LiveAllocator, features=features, release=release
        )
        settings = self.options.scheduling or SchedulerSettings.of(release=release)
        settings = replace(settings, release=release)

        async def start() -> None:
            scheduler = Scheduler(
                wiring.client,
                clock=wiring.clock,
                chance=wiring.chance,
                informers=wiring.informers,
                allocator=make_allocator(chance=wiring.chance),
                settings=settings,
                metrics=wiring.metrics,
            )
            await scheduler.run()

        await wiring.supervise("scheduler", start)


@dataclass(frozen=True, slots=True)
class _Publishing:
    """Publishes the devices of virtual nodes that have drivers of their own."""

    plugin: NodePlugin

    async def run(self, _: Collection[str], wiring: Wiring) -> None:
        await wiring.supervise("plugin", lambda: self._publish(wiring))

    async def _publish(self, wiring: Wiring) -> None:
        from dryrack.kubeletplugin import (
            ClaimStatuses,
            DriverRecords,
            FakeKind,
            VirtualNodeSlices,
            states_of_virtual_nodes,
        )

        informers = wiring.informers
        client = wiring.client
        clock = wiring.clock
        assert informers is not None, "engines of one cluster share them"
        drivers = self.plugin.drivers
        kinds = drivers.kinds
        is_virtual = self._is_virtual
        slices = VirtualNodeSlices(client, informers, kinds, clock=clock, is_virtual=is_virtual)
        async with asyncio.TaskGroup() as group:
            group.create_task(slices.run(), name="slices of the plugin")
            for kind in kinds:
                statuses = ClaimStatuses(client, DriverRecords(drivers, kind), clock=clock)
                group.create_task(statuses.run(), name="devices of claims")
                if isinstance(kind, FakeKind):
                    states = states_of_virtual_nodes(
                        client, informers, kind, drivers, clock=clock, is_virtual=is_virtual
                    )
                    group.create_task(states.run(), name="allocation states")

    def _is_virtual(self, node: Raw) -> bool:
        from dryrack.controllers import is_virtual

        includes = self.plugin.includes
        return is_virtual(node) and (includes is None or includes(node))


@dataclass(frozen=True, slots=True)
class _DriverProcesses:
    """Registers driver programs with the kubelets of virtual nodes, and calls them."""

    processes: DriverProcesses

    async def run(self, _: Collection[str], wiring: Wiring) -> None:
        from dryrack.controllers import is_virtual

        informers = wiring.informers
        assert informers is not None, "engines of one cluster share them"

        async def start() -> None:
            await self.processes.run(wiring.client, informers, is_virtual)

        await wiring.supervise("driver-processes", start)


@dataclass(frozen=True, slots=True)
class _Provisioning:
    """Runs the provisioner, and creates its kinds if they do not exist."""

    settings: ProvisionerSettings

    async def run(self, _: Collection[str], wiring: Wiring) -> None:
        from dryrack.cluster.initial_objects import add_node_pools
        from dryrack.controllers import provisioner, run

        await add_node_pools(wiring.client)
        await run(
            [provisioner(self.settings)],
            client=wiring.client,
            clock=wiring.clock,
            chance=wiring.chance,
            informers=wiring.informers,
            metrics=wiring.metrics,
            supervisor=wiring.supervisor,
        )


async def _run_compute_domains(_: Collection[str], wiring: Wiring) -> None:
    from dryrack.controllers import compute_domains, run

    await run(
        [compute_domains()],
        client=wiring.client,
        clock=wiring.clock,
        chance=wiring.chance,
        informers=wiring.informers,
        metrics=wiring.metrics,
        supervisor=wiring.supervisor,
    )
