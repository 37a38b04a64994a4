"""
Run a scenario on an existing cluster.

The publisher, the plugin, a kubelet for the scenario's nodes, and a scheduler for pods that name
another than the default one run while the scenario runs; the cluster does the rest. Existing
objects are not touched: a scenario that would change one is refused, and the objects of a scenario
are deleted when it ends. On a control plane of dryrack, which has all engines, none is attached.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dryrack.base.errors import ContentError
from dryrack.client.client import Client
from dryrack.client.discovery import release_of
from dryrack.client.endpoints import CLAIMS, EVENTS, NODES, PODS, SLICES
from dryrack.client.errors import NotFoundError
from dryrack.client.https import connected
from dryrack.client.timekeeping import sleep
from dryrack.cluster import (
    EngineOptions,
    Need,
    SystemChance,
    SystemClock,
    Wiring,
    assemble_engines,
    check_needs,
    node_plugins,
    running_engines,
)
from dryrack.cluster.faults import FaultInjector
from dryrack.kinds.paths import get, spec_of
from dryrack.kinds.releases import DEFAULT_RELEASE
from dryrack.scenario.embedded_faults import InjectedFaults
from dryrack.scenario.embedded_world import drivers_of
from dryrack.scenario.fleet import Hardware, fleet_objects
from dryrack.scenario.invariants.cluster_checks import ClusterInvariants, ScenarioScope
from dryrack.scenario.journal import Journal
from dryrack.scenario.references import DEFAULT_NAMESPACE, name_in
from dryrack.scenario.runner import Setting, SilentObserver, run
from dryrack.scenario.world import Kinds, planned_log
from dryrack.scheduler import DEFAULT_NAME, SchedulerSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from dryrack.client.endpoints import Endpoint
    from dryrack.client.kubeconfig import Connection
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.kinds.raw import Raw
    from dryrack.kubeletplugin import VirtualDrivers
    from dryrack.scenario.outcome import Outcome
    from dryrack.scenario.reading import LoadedScenario
    from dryrack.scenario.runner import Observer

ENGINES = ("kubelet", "slices", "plugin")
_AGENT = "dryrack-scenario"
_LOOK_SECONDS = 0.1
_GONE_SECONDS_MAX = 60.0
# Others use them too: where they are, they stay.
_COMMON = ("Namespace", "CustomResourceDefinition", "DeviceClass")
# Objects of these kinds that were there before are none of the scenario's.
_SEEN = (CLAIMS, EVENTS, NODES, PODS, SLICES)
# What has made others goes after them.
_OWNERS = ("apps", "batch")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRun:
    """Options of a run on an existing cluster."""

    connection: Connection
    engines: Sequence[str] = ENGINES
    """The engines that are attached."""
    stays: bool = False
    """True if the objects stay when the scenario ends: on a control plane made for it."""
    observer: Observer = field(default_factory=SilentObserver)


@dataclass(frozen=True, slots=True)
class ClusterWorld:
    """A cluster that others use as well."""

    client: Client
    clock: Timekeeper
    journal: Journal
    faults: InjectedFaults
    drivers: VirtualDrivers | None
    invariants: ClusterInvariants
    strangers: frozenset[str]
    """The UIDs of objects that existed before."""
    is_reproducible: bool = False

    def revision(self) -> int | None:
        return None

    async def list(self, endpoint: Endpoint) -> Sequence[Raw]:
        found = (await self.client.list(endpoint)).items
        return [each for each in found if each["metadata"].get("uid") not in self.strangers]

    async def log(self, pod: Raw, container: str) -> str:
        return await planned_log(self, self.drivers, pod, container)


def run_on_cluster(loaded: LoadedScenario, how: ClusterRun) -> Outcome:
    """Run a scenario on a cluster, in real time."""
    return asyncio.run(_run(loaded, how))


async def _run(loaded: LoadedScenario, how: ClusterRun) -> Outcome:
    hardware = Hardware.of(loaded.scenario.fleet)
    if hardware.has_provisioner:
        raise ContentError(
            "fleet.provisioner: not supported on a cluster, because nodes could stay; "
            "run the scenario on the embedded control plane"
        )
    drivers = drivers_of(hardware)
    setup = tuple(fleet_objects(loaded.scenario.fleet, hardware))
    clock = SystemClock()
    async with connected(how.connection) as transport:
        client = Client(transport, agent=_AGENT)
        await check_needs(client, (Need(NODES), Need(SLICES)))
        setting = Setting(setup=setup, observer=how.observer)
        journal = Journal(clock)
        faults = InjectedFaults(FaultInjector(client, clock, SystemChance()), journal)
        brought = (*setup, *_objects(loaded))
        visit = Visit(client, clock, brought)
        strangers: frozenset[str] = frozenset()
        if not how.stays:
            await visit.look_around()
            lists = [(await client.list_metadata(endpoint)).items for endpoint in _SEEN]
            strangers = frozenset(each["metadata"]["uid"] for items in lists for each in items)
        invariants = ClusterInvariants(client, clock, faults, scope_of(brought, strangers))
        world = ClusterWorld(client, clock, journal, faults, drivers, invariants, strangers)
        if how.stays:
            return await run(loaded, world, setting)
        async with _run_engines(loaded, hardware, drivers, how, client), visit.delete_afterwards():
            return await run(loaded, world, setting)


def scope_of(brought: Iterable[Raw], strangers: frozenset[str]) -> ScenarioScope:
    """Return the namespaces and nodes of the objects of a scenario."""
    objects = [*brought]
    nodes = frozenset(_name(each)[1] for each in objects if each["kind"] == "Node")
    namespaces = frozenset(_name(each)[0] for each in objects)
    return ScenarioScope(namespaces, nodes, strangers)


def _objects(loaded: LoadedScenario) -> list[Raw]:
    scenario = loaded.scenario
    entries = [*scenario.objects, *(each for step in scenario.steps for each in step.apply)]
    return loaded.objects_of(entries)


@asynccontextmanager
async def _run_engines(
    loaded: LoadedScenario,
    hardware: Hardware,
    drivers: VirtualDrivers | None,
    how: ClusterRun,
    client: Client,
) -> AsyncIterator[None]:
    """Run the engines for the length of a block, with the catalog if the fleet uses it."""
    # The cluster has the default scheduler; pods may name others.
    objects = _objects(loaded)
    specs = [spec_of(each) for each in objects]
    specs += [get(each, "template.spec", {}) for each in specs]
    names = {each.get("schedulerName") or DEFAULT_NAME for each in specs}
    schedulers = tuple(sorted(names - {DEFAULT_NAME}))
    release = await release_of(client) if schedulers else DEFAULT_RELEASE
    engines = assemble_engines(
        EngineOptions(
            only=(*how.engines, *(["scheduler"] if schedulers else ())),
            catalogue=hardware.catalogue,
            scheduling=SchedulerSettings.of(schedulers, release),
            drivers=drivers,
            plugins=node_plugins(drivers),
        )
    )
    wiring = Wiring(client, SystemClock(), SystemChance())
    async with running_engines(engines, lambda _: wiring):
        yield


class Visit:
    """The objects that a scenario creates on a cluster and deletes again."""

    def __init__(self, client: Client, clock: Timekeeper, brought: Iterable[Raw]) -> None:
        self._client = client
        self._clock = clock
        self._kinds = Kinds(client)
        self._brought = list({(each["kind"], *_name(each)): each for each in brought}.values())

    async def look_around(self) -> None:
        """Raise if the scenario would change an existing object."""
        brought = []
        for obj in self._brought:
            endpoint = await self._kinds.of(obj["apiVersion"], obj["kind"])
            if endpoint is None or not await self._is_there(endpoint, obj):
                brought.append(obj)
            elif obj["kind"] not in _COMMON:
                what = name_in(obj)
                raise ContentError(f"{what}: already exists, and the scenario would change it")
        self._brought = brought

    @asynccontextmanager
    async def delete_afterwards(self) -> AsyncIterator[None]:
        """Delete the objects of the scenario after the block, the last one first."""
        try:
            yield
        finally:
            for obj in reversed(self._brought):
                endpoint = await self._kinds.of(obj["apiVersion"], obj["kind"])
                if endpoint is not None:
                    await self._delete(endpoint, obj)

    async def _delete(self, endpoint: Endpoint, obj: Raw) -> None:
        namespace, name = _name(obj)
        propagation = "Foreground" if endpoint.group in _OWNERS else ""
        try:
            await self._client.delete(
                endpoint,
                name,
                namespace=namespace if endpoint.is_namespaced else "",
                grace_seconds=0,
                propagation=propagation,
            )
        except NotFoundError:
            return
        latest = self._clock.now() + _GONE_SECONDS_MAX
        while await self._is_there(endpoint, obj):
            if self._clock.now() > latest:
                raise ContentError(f"{name_in(obj)}: still exists after its deletion")
            await sleep(self._clock, _LOOK_SECONDS)

    async def _is_there(self, endpoint: Endpoint, obj: Raw) -> bool:
        namespace, name = _name(obj)
        try:
            await self._client.get(endpoint, name, namespace if endpoint.is_namespaced else "")
        except NotFoundError:
            return False
        return True


def _name(obj: Raw) -> tuple[str, str]:
    metadata = obj["metadata"]
    return metadata.get("namespace") or DEFAULT_NAMESPACE, metadata["name"]
