"""
The engines that run beside the API server, by name.

An engine is whatever keeps the cluster going: the scheduler, the claims controller, the virtual
kubelet. Each can be left out (`--without`), so that somebody else's can take its place. Engines
come in families that share their informers.

With a supervisor, a component that fails stops alone and starts again (see `client.supervision`).
Without one, as in tests and scenarios, the first failure is raised: a control plane that has
quietly lost its scheduler is worse than none.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from dryrack.base.errors import DryrackError, InternalError

if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterator,
        Awaitable,
        Callable,
        Collection,
        Iterable,
        Sequence,
    )

    from dryrack.allocation import LiveAllocator
    from dryrack.base.metrics import Registry
    from dryrack.base.ports import Chance
    from dryrack.client.client import Client
    from dryrack.client.informer import Informers
    from dryrack.client.supervision import Supervisor
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.cluster.faults.board import FaultBoard
    from dryrack.controllers import Drivers, Engine
    from dryrack.controllers.slices import PublisherSettings
    from dryrack.hardware.catalogue import Catalogue, InstanceType
    from dryrack.kinds.raw import Raw
    from dryrack.kubeletplugin import VirtualDrivers
    from dryrack.scheduler import SchedulerSettings


class MakeAllocator(Protocol):
    """Makes what hands devices out, with the chance that it takes identifiers from."""

    def __call__(self, *, chance: Chance) -> LiveAllocator: ...


class UnknownEngineError(DryrackError):
    """Somebody names an engine that there is not."""


@dataclass(frozen=True, slots=True)
class Wiring:
    """What a family of engines gets: a client of its own, time and chance."""

    client: Client
    clock: Timekeeper
    chance: Chance
    authority: str = ""
    """The certificates by which clients know the server, in PEM; none if it has none to show."""
    informers: Informers | None = None
    """What all families of a cluster read through, so that each kind is kept once."""
    metrics: Registry | None = None
    """Where engines count what they do."""
    supervisor: Supervisor | None = None
    """Restarts components that fail; None: the first failure is raised."""

    async def supervise(self, name: str, start: Callable[[], Awaitable[None]]) -> None:
        """Run a component, under the supervisor if there is one."""
        if self.supervisor is None:
            await start()
            return

        async def run() -> None:
            await start()
            raise InternalError(f"the {name} ended by itself")

        await self.supervisor.run(name, run)


@dataclass(frozen=True, slots=True)
class Family:
    """
    Engines that run together, by name, in the order in which they start.

    `run` is called with those that are wanted and goes on until it is cancelled; whatever it
    needs it imports then.
    """

    name: str
    engines: tuple[str, ...]
    run: Callable[[Collection[str], Wiring], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _Controllers:
    """All controllers; what people decide about publishing is asked for when they start."""

    publishing: Callable[[], PublisherSettings] | None
    drivers: Drivers | None
    node_lease_seconds: int

    async def run(self, names: Collection[str], around: Wiring) -> None:
        from dryrack.controllers import ENGINES, run

        await run(
            [self._decided(engine) for engine in ENGINES if engine.name in names],
            client=around.client,
            clock=around.clock,
            chance=around.chance,
            authority=around.authority,
            informers=around.informers,
            metrics=around.metrics,
            drivers=self.drivers,
            node_lease_seconds=self.node_lease_seconds,
            supervisor=around.supervisor,
        )

    def _decided(self, engine: Engine) -> Engine:
        from dryrack.controllers import publisher

        if engine.name != "slices" or self.publishing is None:
            return engine
        return publisher(self.publishing())


@dataclass(frozen=True, slots=True)
class _Scheduling:
    """The scheduler, with the allocator and the settings that were decided on."""

    allocator: MakeAllocator | None = None
    settings: SchedulerSettings | None = None

    async def run(self, _: Collection[str], around: Wiring) -> None:
        from dryrack.scheduler import Scheduler

        async def start() -> None:
            scheduler = Scheduler(
                around.client,
                clock=around.clock,
                chance=around.chance,
                informers=around.informers,
                allocator=None if self.allocator is None else self.allocator(chance=around.chance),
                settings=self.settings,
                metrics=around.metrics,
            )
            await scheduler.run()

        await around.supervise("scheduler", start)


def scheduling_family(names: Sequence[str]) -> Family:
    """A scheduler for the pods that name it so."""
    from dryrack.scheduler import SchedulerSettings

    run = _Scheduling(settings=SchedulerSettings.of(names)).run
    return Family("scheduler", ("scheduler",), run)


def families(
    publishing: Callable[[], PublisherSettings] | None = None,
    allocator: MakeAllocator | None = None,
    scheduling: SchedulerSettings | None = None,
    *,
    drivers: Drivers | None = None,
    node_lease_seconds: int = 0,
) -> tuple[Family, ...]:
    """
    All engines of a whole cluster.

    `publishing` says what is not usual about the slices, `allocator` how devices are handed out
    if not as the reference release does it, `scheduling` how pods are scheduled, `drivers` what
    prepares devices on virtual nodes, `node_lease_seconds` how long these are believed to live
    without another word, if not as long as others.
    """
    from dryrack.controllers import ENGINES

    controllers = tuple(engine.name for engine in ENGINES)
    decided = _Controllers(publishing, drivers, node_lease_seconds)
    return (
        Family("controllers", controllers, decided.run),
        Family("scheduler", ("scheduler",), _Scheduling(allocator, scheduling).run),
    )


@dataclass(frozen=True, slots=True)
class _Plugins:
    """What publishes the devices of virtual nodes that have a driver of their own."""

    drivers: VirtualDrivers
    includes: Callable[[Raw], bool] | None

    async def run(self, _: Collection[str], around: Wiring) -> None:
        await around.supervise("plugin", lambda: self._publish(around))

    async def _publish(self, around: Wiring) -> None:
        from dryrack.kubeletplugin import (
            ClaimStatuses,
            DriverRecords,
            FakeKind,
            VirtualNodeSlices,
            states_of_virtual_nodes,
        )

        informers = around.informers
        client = around.client
        clock = around.clock
        assert informers is not None, "engines of one cluster share them"
        kinds = self.drivers.kinds
        is_virtual = self._is_virtual
        slices = VirtualNodeSlices(client, informers, kinds, clock=clock, is_virtual=is_virtual)
        async with asyncio.TaskGroup() as group:
            group.create_task(slices.run(), name="slices of the plugin")
            for kind in kinds:
                statuses = ClaimStatuses(client, DriverRecords(self.drivers, kind), clock=clock)
                group.create_task(statuses.run(), name="devices of claims")
                if isinstance(kind, FakeKind):
                    states = states_of_virtual_nodes(
                        client, informers, kind, self.drivers, clock=clock, is_virtual=is_virtual
                    )
                    group.create_task(states.run(), name="allocation states")

    def _is_virtual(self, node: Raw) -> bool:
        from dryrack.controllers import is_virtual

        return is_virtual(node) and (self.includes is None or self.includes(node))


def plugin_families(
    drivers: VirtualDrivers | None, includes: Callable[[Raw], bool] | None = None
) -> tuple[Family, ...]:
    """What gives virtual nodes, or those included, the devices of drivers; nothing without any."""
    if drivers is None:
        return ()
    return (Family("plugin", ("plugin",), _Plugins(drivers, includes).run),)


async def _run_compute_domains(_: Collection[str], around: Wiring) -> None:
    from dryrack.controllers import compute_domains, run

    await run(
        [compute_domains()],
        client=around.client,
        clock=around.clock,
        chance=around.chance,
        informers=around.informers,
        metrics=around.metrics,
        supervisor=around.supervisor,
    )


def has_compute_domains(machines: Iterable[InstanceType]) -> bool:
    """Return whether nodes of one of these types have channels of compute domains."""
    from dryrack.kinds.expansion.compute_domains import DRIVER

    return any(DRIVER in each.drivers for each in machines)


def compute_domain_families(machines: Iterable[InstanceType]) -> tuple[Family, ...]:
    """Return the controller of ComputeDomains if nodes of these types have their channels."""
    if not has_compute_domains(machines):
        return ()
    return (Family("computedomains", ("computedomains",), _run_compute_domains),)


def wanted_engines(without: Collection[str], available: Sequence[Family]) -> tuple[Family, ...]:
    """The families with what is left of them; each name must be an engine."""
    names = [name for family in available for name in family.engines]
    for name in without:
        if name not in names:
            known = ", ".join(names) or "none"
            raise UnknownEngineError(f"unknown component {name!r}; use one of: {known}")
    left = (
        Family(each.name, tuple(name for name in each.engines if name not in without), each.run)
        for each in available
    )
    return tuple(family for family in left if family.engines)


@asynccontextmanager
async def running_engines(
    chosen: Sequence[Family],
    surroundings: Callable[[str], Wiring],
    board: FaultBoard | None = None,
) -> AsyncIterator[None]:
    """
    Run the engines for the length of a block; the first failure that is not supervised ends it.

    With a board, faults can make engines fail, or crash and start again.
    """
    raised: Exception | None = None
    try:
        async with asyncio.TaskGroup() as group:
            informers = _informers(surroundings("informers"), board)
            tasks = [group.create_task(informers.run(), name="informers")]
            for family in chosen:
                if board is None:
                    run = _kept(family, replace(surroundings(family.name), informers=informers))
                else:
                    from dryrack.cluster.faults.supervision import supervised

                    run = supervised(family, board, surroundings, shared=informers, keep=_kept)
                tasks.append(group.create_task(run, name=family.name))
            try:
                yield
            except Exception as error:  # noqa: BLE001 - raised below, as it was and not in a group
                raised = error
            finally:
                for task in tasks:
                    task.cancel()
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures
    if raised is not None:
        raise raised


def _informers(around: Wiring, board: FaultBoard | None) -> Informers:
    from dryrack.client.informer import Informers

    client = around.client if board is None else board.life_of("informers").client(around.client)
    return Informers(client, clock=around.clock, chance=around.chance, supervisor=around.supervisor)


async def _kept(family: Family, surroundings: Wiring) -> None:
    await family.run(family.engines, surroundings)
    raise DryrackError(f"the {family.name} ended by themselves; see the log")


def with_catalogue(catalogue: Catalogue | None = None) -> PublisherSettings:
    """Devices by instance type, beside what the documents say; None: the packaged catalogue."""
    from dryrack.cluster.catalogue import load_catalogue
    from dryrack.controllers.slices import PublisherSettings

    return PublisherSettings(catalogue=(catalogue or load_catalogue()).assignments())
