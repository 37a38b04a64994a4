"""
Run a scenario on a new control plane in this process, in virtual or real time.

In virtual time an hour takes as long as its computation, and the same file and seed give the same
journal, byte for byte.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dryrack.apiserver.runtime_config import RuntimeConfig
from dryrack.base.durations import seconds_in
from dryrack.client.endpoints import CLAIMS, EVENTS, NODES, PODS, SLICES
from dryrack.client.timekeeping import VirtualClock, run_virtual
from dryrack.cluster import (
    ControlPlaneOptions,
    EngineOptions,
    SeededChance,
    SystemClock,
    node_plugins,
    provisioner_settings,
)
from dryrack.cluster.embedded import embedded
from dryrack.cluster.faults import FaultBoard, FaultInjector
from dryrack.kinds.registry import builtin_kinds
from dryrack.kinds.releases import DEFAULT_RELEASE, Release, find_gated, gates_with_needs
from dryrack.scenario.embedded_faults import InjectedFaults, StoreInvariants
from dryrack.scenario.fleet import Hardware, fleet_objects
from dryrack.scenario.journal import Journal
from dryrack.scenario.runner import Setting, SilentObserver, run
from dryrack.scenario.world import planned_log

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from dryrack.client.client import Client
    from dryrack.client.endpoints import Endpoint
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.cluster.embedded import EmbeddedCluster
    from dryrack.kinds.raw import Raw
    from dryrack.kubeletplugin import VirtualDrivers
    from dryrack.scenario.outcome import Outcome
    from dryrack.scenario.reading import LoadedScenario
    from dryrack.scenario.runner import Observer
    from dryrack.scheduler import SchedulerSettings
    from dryrack.store import Record

# Longer than a scenario stays when its time is up.
_LIMIT_SECONDS_MARGIN = 3600
# Kinds that are stored as they are served, and that expectations read again and again.
_STORED = frozenset((CLAIMS, EVENTS, NODES, PODS, SLICES))


@dataclass(frozen=True, slots=True)
class EmbeddedWorld:
    """A control plane of this process."""

    cluster: EmbeddedCluster
    journal: Journal
    faults: InjectedFaults
    invariants: StoreInvariants
    drivers: VirtualDrivers | None
    is_reproducible: bool

    @property
    def client(self) -> Client:
        return self.cluster.client

    @property
    def clock(self) -> Timekeeper:
        return self.cluster.plane.options.clock

    def revision(self) -> int | None:
        return self.cluster.plane.store.revision

    async def list(self, endpoint: Endpoint) -> Sequence[Raw]:
        if endpoint not in _STORED:
            return (await self.client.list(endpoint)).items
        kind = {"kind": endpoint.kind, "apiVersion": endpoint.api_version}
        found, _ = self.cluster.plane.store.list(endpoint.resource, None)
        return [kind | each.object for each in found]

    async def log(self, pod: Raw, container: str) -> str:
        return await planned_log(self, self.drivers, pod, container)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedRun:
    """Options of a run in this process."""

    seed: int = 0
    observer: Observer = field(default_factory=SilentObserver)
    engines_crash: bool = False
    """True if engines will crash: then they share no caches."""
    skips_missing: bool = False
    """Ignore faults, deletions and scaling of objects that do not exist."""
    node_lease_seconds: int = 0
    """How long the leases of nodes last; 0: as long as those of a kubelet."""
    resync_seconds: float = 0.0
    """How often the publisher lists everything again; 0: as often as by default."""
    journal_line: Callable[[str], None] | None = None
    """Called with every line of the journal."""
    on_write: Callable[[Record, float], None] | None = None
    """Called with every write to the store and its time."""
    scheduling: SchedulerSettings | None = None
    """None: the defaults of kube-scheduler."""
    runtime_config: RuntimeConfig = field(default_factory=RuntimeConfig)
    """The API versions that are served."""
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    """The feature gates that are not at the default of the release."""
    release: Release | None = None
    """None: the release of the scenario, or else the default release."""


def run_in_virtual_time(loaded: LoadedScenario, how: EmbeddedRun) -> Outcome:
    """Run a scenario; time advances when no task can act."""

    async def run() -> Outcome:
        clock = VirtualClock()
        task = asyncio.create_task(_run(loaded, clock, how), name=f"scenario {loaded.name}")
        try:
            await clock.advance_until(task.done)
        finally:
            task.cancel()
        return await task

    return run_virtual(run())


def run_in_real_time(loaded: LoadedScenario, how: EmbeddedRun) -> Outcome:
    """Run a scenario with the clock of the machine."""
    return asyncio.run(_run(loaded, SystemClock(), how))


async def _run(loaded: LoadedScenario, clock: Timekeeper, how: EmbeddedRun) -> Outcome:
    words = [
        *loaded.scenario.faults,
        *(each for step in loaded.scenario.steps for each in step.fail),
    ]
    crash = any(each.startswith("engine ") for each in words)
    written = loaded.scenario.release
    release = how.release or (Release.parse(written) if written else DEFAULT_RELEASE)
    versions, gates = _needs_of(loaded, release)
    how = replace(
        how,
        engines_crash=crash,
        runtime_config=versions,
        feature_gates=gates,
        release=release,
    )
    if isinstance(clock, VirtualClock):
        limit = int(seconds_in(loaded.scenario.limit) or 0) + _LIMIT_SECONDS_MARGIN
        # A fleet that renews its leases every ten seconds, and a publisher that lists it every
        # thirty, do little else. They are not needed if no engine crashes and nothing is lost.
        how = replace(
            how,
            node_lease_seconds=0 if crash else limit,
            resync_seconds=0 if words else limit,
        )
    hardware = Hardware.of(loaded.scenario.fleet)
    async with embedded_world(hardware, clock=clock, how=how) as world:
        setup = tuple(fleet_objects(loaded.scenario.fleet, hardware))
        setting = Setting(
            seed=how.seed, setup=setup, observer=how.observer, skips_missing=how.skips_missing
        )
        return await run(loaded, world, setting)


def _needs_of(loaded: LoadedScenario, release: Release) -> tuple[RuntimeConfig, Mapping[str, bool]]:
    """Return a configuration and the gates with which a server serves the scenario's objects."""
    scenario = loaded.scenario
    entries = (*scenario.objects, *(each for step in scenario.steps for each in step.apply))
    used = {(each["apiVersion"], each["kind"]) for each in loaded.objects_of(entries)}
    kinds = [each for each in builtin_kinds(release) if each.group]
    needed = [each for each in kinds if (each.api_version, each.kind) in used]
    # A kind behind a gate comes with the fields that have gates of their own.
    names = {each.gate for each in needed if each.gate}
    gated = {each.kind for each in needed if each.gate}
    for each in loaded.objects_of(entries):
        if each["kind"] in gated:
            names |= {field.gate for _, field in find_gated(each) if field.is_in(release)}
    gates = gates_with_needs(sorted(names), release)
    return RuntimeConfig({each.api_version: True for each in needed}), gates


@asynccontextmanager
async def embedded_world(
    hardware: Hardware, *, clock: Timekeeper, how: EmbeddedRun
) -> AsyncIterator[EmbeddedWorld]:
    """Run a control plane with the engines that a fleet needs, for the length of a block."""
    journal = Journal(clock)
    if how.journal_line is not None:
        journal.listen(how.journal_line)
    on_write = how.on_write
    if on_write is not None:
        journal.watch(lambda record: on_write(record, clock.now()))
    drivers = drivers_of(hardware)
    options = ControlPlaneOptions(
        clock=clock,
        chance=SeededChance(how.seed),
        recorder=journal,
        drivers=drivers,
        runtime_config=how.runtime_config,
        feature_gates=how.feature_gates,
        release=how.release or DEFAULT_RELEASE,
    )
    engines = EngineOptions(
        catalogue=hardware.catalogue,
        resync_seconds=how.resync_seconds,
        machines=hardware.machines,
        scheduling=how.scheduling,
        drivers=drivers,
        plugins=node_plugins(drivers),
        node_lease_seconds=how.node_lease_seconds,
        provisioner=(
            provisioner_settings(hardware.catalogue, release=options.release)
            if hardware.has_provisioner and hardware.catalogue is not None
            else None
        ),
    )
    board = FaultBoard.seeded(how.seed, clock=clock, informers_apart=how.engines_crash)
    async with embedded(options, engines=engines, board=board) as cluster:
        is_virtual = isinstance(clock, VirtualClock)
        injector = FaultInjector.of_board(cluster.client, board)
        faults = InjectedFaults(injector, journal, skips_missing=how.skips_missing)
        invariants = StoreInvariants(
            cluster.plane.store, cluster.client, faults, drivers, how.scheduling
        )
        yield EmbeddedWorld(cluster, journal, faults, invariants, drivers, is_virtual)


def drivers_of(hardware: Hardware) -> VirtualDrivers | None:
    """Return the drivers of the devices that every node has."""
    if not hardware.devices:
        return None
    from dryrack.kubeletplugin import VirtualDrivers

    return VirtualDrivers(hardware.devices)
