"""
A cluster for a test, in its own process and its own time.

    async with AsyncCluster() as cluster:
        await cluster.add_nodes("p5.48xlarge", count=2)
        await cluster.apply("training.yaml")
        await cluster.expect_scheduled("gang/training", devices=8)

Time is virtual, and passes while expectations wait: nothing sleeps. With a directory for a
kubeconfig, the cluster is served on loopback for other programs, and its time is real.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, TypeVar

from dryrack.apiserver import runtime_config
from dryrack.base.errors import ContentError
from dryrack.client.client import Selection
from dryrack.client.endpoints import CLAIMS, EVENTS, NODES, PODS, SLICES, Endpoint
from dryrack.client.timekeeping import VirtualClock
from dryrack.cluster import (
    EXPLANATION_KINDS,
    ControlPlaneOptions,
    EngineOptions,
    SeededChance,
    SystemClock,
    add_allocation_states,
    add_compute_domains,
    add_device_classes,
    add_node,
    add_node_pools,
    apply_objects,
    has_compute_domains,
    read_snapshot,
)
from dryrack.cluster.faults import read_healing, read_injection
from dryrack.kinds.core import Event
from dryrack.kinds.paths import get
from dryrack.kinds.releases import Release, parse_gates
from dryrack.kinds.resource import ResourceClaim
from dryrack.scenario import check_state, read_state
from dryrack.testing.engines import ClusterEngines, Setup, packaged_catalogue
from dryrack.testing.expectation import (
    ExpectationError,
    Scheduled,
    Target,
    Wanted,
    missing_words,
    seconds_of,
)
from dryrack.testing.manifests import documents_of
from dryrack.testing.members import MEMBER_KINDS, Members, are_held_back, scheduled_pods
from dryrack.testing.node_fleet import NodeGroup, check_once, find_published, machine_of, node_names

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from dryrack.client.client import Client
    from dryrack.cluster import ControlPlane
    from dryrack.cluster.faults import FaultBoard
    from dryrack.kinds.raw import Raw
    from dryrack.kubeletplugin import DeviceKind
    from dryrack.scenario import Violation
    from dryrack.testing.expectation import Because
    from dryrack.testing.manifests import Manifest

_Found = TypeVar("_Found")
_MANAGER = "dryrack-testing"
# How long an expectation waits, and how long what waits has to go on waiting.
_WITHIN_SECONDS = 60.0
_LASTING_SECONDS = 10.0
_LASTING_SECONDS_REAL = 1.0
# How often it looks: virtual time costs nothing, and the first look mostly finds it.
_STEP_SECONDS_MIN = 0.05
_STEP_SECONDS_MAX = 1.0
_STEP_SECONDS_REAL = 0.02


class AsyncCluster:
    """A cluster of this process for the length of `async with`; see the module's docstring."""

    def __init__(
        self,
        setup: Setup | None = None,
        *,
        folders: Sequence[Path] = (),
        kubeconfig_in: Path | None = None,
        options: ControlPlaneOptions | None = None,
        engines: EngineOptions | None = None,
    ) -> None:
        self._setup = setup or Setup()
        self._folders = folders
        self._directory = kubeconfig_in
        release = Release.parse(self._setup.release)
        self._options = options or ControlPlaneOptions(
            clock=VirtualClock() if kubeconfig_in is None else SystemClock(),
            chance=SeededChance(self._setup.seed),
            runtime_config=runtime_config.parse(self._setup.runtime_config, release),
            release=release,
            feature_gates=parse_gates(self._setup.feature_gates),
        )
        self._engine_options = engines
        self._clock = self._options.clock
        self._virtual = self._clock if isinstance(self._clock, VirtualClock) else None
        self._stack = AsyncExitStack()
        self.kubeconfig: Path | None = None

    async def __aenter__(self) -> Self:
        if self._directory is None:
            self._engines = ClusterEngines(self._options, self._setup, self._engine_options)
        else:
            from dryrack.cluster.process import serving_on_loopback, with_keys

            options, keys = with_keys(self._options, self._directory)
            self._engines = ClusterEngines(options, self._setup, self._engine_options)
            serving = serving_on_loopback(self._engines.control_plane, keys, "test")
            self.kubeconfig = await self._stack.enter_async_context(serving)
        self.client: Client = self._engines.control_plane.client(_MANAGER)
        self._task = asyncio.create_task(self._engines.run(), name="components of a test")
        if self._setup.provisioner:
            await add_node_pools(self.client)
            await add_device_classes(self.client, packaged_catalogue().device_classes.values())
        if self.kubeconfig is not None or self._setup.provisioner:
            self._engines.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        await self._stack.aclose()
        has_failed = self._task.done()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if has_failed and error is None:
            self._task.result()

    async def apply(self, manifest: Manifest) -> list[Raw]:
        """Create or change objects as `kubectl apply` does; return the stored objects."""
        self._check_engines()
        documents = documents_of(manifest, self._folders)
        return await apply_objects(self._engines.control_plane, documents, _MANAGER)

    async def add_nodes(
        self,
        profile: str = "",
        *,
        count: int | None = None,
        name: str = "",
        devices: str | Sequence[str] = (),
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        taints: Sequence[str | Mapping[str, str]] = (),
        capacity: Mapping[str, str | int] | None = None,
    ) -> tuple[str, ...]:
        """
        Add virtual nodes, wait until they are ready and published, and return their names.

        `profile` is an instance type of the catalog, `devices` takes what `--devices` of `dryrack
        up` takes. Without a `count` there is one node, which has the `name`.
        """
        taken = [each["metadata"]["name"] for each in (await self.client.list(NODES)).items]
        group = NodeGroup(
            names=node_names(name, count, taken),
            labels=labels or {},
            annotations=annotations or {},
            taints=taints,
            capacity=capacity or {},
        )
        machine = machine_of(profile, packaged_catalogue()) if profile else None
        kinds = self._kinds((devices,) if isinstance(devices, str) else tuple(devices))
        check_once(machine, kinds)
        nodes = group.nodes(machine)
        if machine is not None:
            classes = packaged_catalogue().device_classes.values()
            await add_device_classes(self.client, classes)
            if has_compute_domains([machine]):
                await add_compute_domains(self.client)
            self._engines.use_machine(machine)
        if kinds:
            await self._use_devices(kinds, group.names)
        for node in nodes:
            if not await add_node(self.client, node):
                name = node["metadata"]["name"]
                raise ContentError(f"node {name}: the node exists already; use another name")
        drivers = {*(machine.drivers if machine else ()), *(kind.driver for kind in kinds)}
        await self._until_published(group.names, drivers)
        return group.names

    async def advance(self, time: float | str) -> None:
        """Let time pass: seconds, or a text such as `5m`."""
        seconds = seconds_of(time)
        if self._virtual is None:
            raise ContentError(
                "a cluster with dryrack_kubeconfig runs in real time; leave out this fixture to "
                "advance the time"
            )
        await self._pass(seconds)

    @property
    def control_plane(self) -> ControlPlane:
        """Return the API server and the store of the cluster."""
        return self._engines.control_plane

    @property
    def board(self) -> FaultBoard:
        """Return the faults of the API and of engines."""
        return self._engines.board

    def now(self) -> float:
        """Return the time of the cluster, in seconds since 1970."""
        return self._clock.now()

    async def get(self, kind: str, name: str, namespace: str = "default") -> Raw:
        """Return one object, by its kind or plural as kubectl takes it."""
        endpoint = self._endpoint(kind)
        return await self.client.get(endpoint, name, namespace if endpoint.is_namespaced else "")

    async def list(self, kind: str, namespace: str = "") -> list[Raw]:
        """Return all objects of a kind, of all namespaces if none is named."""
        found = await self.client.list(self._endpoint(kind), Selection(namespace=namespace))
        return [*found.items]

    async def delete(self, kind: str, name: str, namespace: str = "default") -> None:
        """Begin to delete an object; time has to pass until it is gone."""
        endpoint = self._endpoint(kind)
        await self.client.delete(
            endpoint, name, namespace=namespace if endpoint.is_namespaced else ""
        )

    async def logs(self, pod: str, namespace: str = "default") -> str:
        """Return the output of `kubectl logs`: the variables and mounts of devices."""
        return await self.client.text(PODS, pod, namespace=namespace, subresource="log")

    async def explain(self, target: str | Mapping[str, Any]) -> str:
        """Return what `dryrack explain` prints about a pod or a gang."""
        members = await self._members(Target.of(target))
        return await self._explain(members)

    async def expect_scheduled(
        self,
        target: str | Mapping[str, Any],
        *,
        on: str | Sequence[str] = "",
        devices: int | str | Sequence[str] | None = None,
        within: float | str | None = None,
    ) -> Scheduled:
        """
        Wait until a pod, all pods of a pattern, or a gang have nodes; else fail with the reason.

        `on` is a pattern of nodes; `devices` is the number of devices of each pod, or a pattern for
        each.
        """
        __tracebackhide__ = True
        wanted = Wanted.of(on, devices)
        about = Target.of(target)
        seconds = _WITHIN_SECONDS if within is None else seconds_of(within)

        async def find_scheduled() -> Members | None:
            members = await self._members(about)
            return members if members.are_scheduled else None

        members = await self._until(find_scheduled, seconds)
        if members is None:
            waiting = await self._members(about)
            raise await self._failure(waiting, f"{waiting}: not scheduled after {seconds:g} s")
        found = scheduled_pods(members, await self._claims(about))
        problems = list(filter(None, map(wanted.problem, found)))
        if problems:
            raise await self._failure(members, "\n".join(problems))
        return Scheduled(found)

    async def expect_pending(
        self,
        target: str | Mapping[str, Any],
        *,
        because: Because | Sequence[Because] = (),
        lasting: float | str | None = None,
        within: float | str | None = None,
    ) -> str:
        """
        Wait until a scheduler has refused pods and they go on waiting; return why.

        A pod whose claim is missing or being deleted is not tried, and counts as refused; so does a
        pod whose claim cannot be created, for example because a quota is exceeded.
        `because` are words of that answer, which is what the scheduler and `dryrack explain` say.
        """
        __tracebackhide__ = True
        about = Target.of(target)
        seconds = _WITHIN_SECONDS if within is None else seconds_of(within)

        async def find_refused() -> Members | None:
            members = await self._members(about)
            if members.placed or members.are_told:
                return members
            claims = await self._claims(about)
            # Pods for which an event reports that a claim cannot be created.
            selection = Selection(namespace=about.namespace)
            snapshot = await read_snapshot(self.client, (EVENTS,), selection)
            refused = frozenset(
                each.involved_object.name
                for each in snapshot.objects
                if isinstance(each, Event) and each.reason == "FailedResourceClaimCreation"
            )
            return members if are_held_back(members, claims, refused) else None

        if await self._until(find_refused, seconds) is None:
            members = await self._members(about)
            raise await self._failure(members, f"{members}: no scheduler has tried to schedule it")
        default = _LASTING_SECONDS if self._virtual is not None else _LASTING_SECONDS_REAL
        await self._pass(default if lasting is None else seconds_of(lasting))
        members = await self._members(about)
        if members.placed:
            raise await self._failure(members, f"{members}: expected to be pending")
        words = await self._explain(members)
        missing = missing_words(because, "\n".join((*members.told, words)))
        if missing:
            raise ExpectationError(
                f"{members}: pending, but not because {' and '.join(map(repr, missing))}\n{words}"
            )
        return words

    async def check_invariants(self, *, within: float | str | None = None) -> None:
        """
        Fail if an invariant of `dryrack check` is violated, and stays so for the time `within`.
        """
        __tracebackhide__ = True
        self._check_engines()
        self._engines.start()
        seconds = _WITHIN_SECONDS if within is None else seconds_of(within)
        prepared = self._engines.prepared_claims
        violations: list[Violation] = []

        async def find_none() -> bool | None:
            state = await read_state(self.client, self._clock, prepared())
            results = check_state(state)
            violations[:] = (each for it in results for each in it.violations)
            return None if violations else True

        if await self._until(find_none, seconds) is None:
            raise ExpectationError("\n".join(f"{each}; {each.fix}" for each in violations))

    async def fail(self, *faults: str) -> None:
        """Begin faults, in the words of a scenario: `node n1 ready=false for 1m`."""
        self._engines.start()
        await self._pass(0)
        for words in faults:
            await self._engines.faults().begin(read_injection(words))

    async def heal(self, what: str = "all") -> None:
        """End faults: all of them, or those of `node node-1`, `device`, `api` or `engine`."""
        await self._engines.faults().end(read_healing(what))

    async def pending(self) -> Sequence[str]:
        """Return the pods that have no node, by namespace and name."""
        pods = await self.list("pods")
        return [
            f"{each['metadata']['namespace']}/{each['metadata']['name']}"
            for each in pods
            if not each["spec"].get("nodeName")
        ]

    def _check_engines(self) -> None:
        """Raise the error of an engine that has failed."""
        if self._task.done():
            self._task.result()

    async def _claims(self, target: Target) -> Sequence[ResourceClaim]:
        selection = Selection(namespace=target.namespace)
        snapshot = await read_snapshot(self.client, (CLAIMS,), selection)
        return [each for each in snapshot.objects if isinstance(each, ResourceClaim)]

    async def _members(self, target: Target) -> Members:
        self._check_engines()
        self._engines.start()
        selection = Selection(namespace=target.namespace)
        snapshot = await read_snapshot(self.client, MEMBER_KINDS, selection)
        return Members.of(target, snapshot.objects)

    async def _failure(self, members: Members, what: str) -> ExpectationError:
        if not members.pods:
            listing = (await self.client.list(PODS)).items
            return ExpectationError(members.nothing(listing))
        return ExpectationError(f"{what}\n{await self._explain(members)}")

    async def _explain(self, members: Members) -> str:
        from dryrack.placement import World
        from dryrack.testing.explanation import explain

        if not members.pods:
            return members.nothing((await self.client.list(PODS)).items)
        snapshot = await read_snapshot(self.client, EXPLANATION_KINDS)
        world = World.of(snapshot.objects)
        return explain(
            world,
            members.explained_kind,
            members.first,
            scheduler_config=self._setup.scheduler_config,
            release=self._options.release.value,
            now=self.now(),
        )

    async def _use_devices(self, kinds: tuple[DeviceKind, ...], nodes: Sequence[str]) -> None:
        from dryrack.kubeletplugin import FakeKind, device_classes

        await add_device_classes(self.client, device_classes(kinds))
        if any(isinstance(each, FakeKind) for each in kinds):
            await add_allocation_states(self.client)
        self._engines.use_devices(kinds, nodes)

    @staticmethod
    def _kinds(texts: Sequence[str]) -> tuple[DeviceKind, ...]:
        if not texts:
            return ()
        from dryrack.kubeletplugin import read_devices

        return read_devices(texts, catalogue=packaged_catalogue)

    async def _until_published(self, names: Sequence[str], drivers: set[str]) -> None:
        self._engines.start()
        left_out = self._setup.without
        drivers = set() if {"slices", "plugin"} & set(left_out) else drivers
        wanted = {(name, driver) for name in names for driver in drivers}

        async def are_there() -> bool | None:
            nodes = {
                each["metadata"]["name"]: each for each in (await self.client.list(NODES)).items
            }
            ready = "kubelet" in left_out or all(map(_is_ready, map(nodes.get, names)))
            return (
                ready and wanted <= find_published((await self.client.list(SLICES)).items)
            ) or None

        if await self._until(are_there, _WITHIN_SECONDS) is None:
            raise ContentError(f"nodes {', '.join(names)}: not ready after {_WITHIN_SECONDS:g} s")

    async def _until(
        self, look: Callable[[], Awaitable[_Found | None]], seconds: float
    ) -> _Found | None:
        """Look until there is a result or the time is up; return the result or None."""
        end = self.now() + seconds
        step = _STEP_SECONDS_MIN
        await self._pass(0)
        while (found := await look()) is None and self.now() < end:
            self._check_engines()
            await self._pass(min(step, end - self.now()))
            step = min(2 * step, _STEP_SECONDS_MAX)
            if self._virtual is None:
                step = _STEP_SECONDS_REAL
        return found

    async def _pass(self, seconds: float) -> None:
        self._engines.start()
        if self._virtual is None:
            await asyncio.sleep(seconds)
        else:
            await self._virtual.advance(seconds)
        self._check_engines()

    def _endpoint(self, kind: str) -> Endpoint:
        word = kind.lower()
        for each in self._engines.control_plane.server.registry.all():
            names = {each.kind.lower(), each.plural, each.singular, *each.short_names}
            if word in names or word == f"{each.plural}.{each.group}":
                return Endpoint(each.group, each.version, each.plural, each.kind, each.namespaced)
        raise ContentError(f"kind {kind!r}: unknown; use a name that kubectl accepts, such as pods")


def _is_ready(node: Raw | None) -> bool:
    conditions = get((node or {}).get("status", {}), "conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
