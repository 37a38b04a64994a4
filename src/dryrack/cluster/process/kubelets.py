"""
Virtual kubelets beside any cluster: they serve only the nodes that they are named for.

A Node that does not exist is created, and deleted at the end. A Node that exists must have no other
kubelet: neither a real one, nor KWOK, nor `dryrack up`, which would write the status of the same
pods. An annotation marks the nodes of this program, so that it can take them over after a crash.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dryrack.base.errors import DryrackError
from dryrack.client.client import EVERYTHING, MERGE_PATCH, Client, Selection
from dryrack.client.discovery import release_of
from dryrack.client.endpoints import CLAIMS, LEASES, NODES, PODS, SLICES
from dryrack.client.errors import ApiError, ConflictError, NotFoundError, TransportError
from dryrack.client.https import connected
from dryrack.client.informer import Informers
from dryrack.client.timekeeping import seconds_of
from dryrack.cluster.attached import Attached, Attachment, Need, check_needs, stopping_by_signal
from dryrack.cluster.initial_objects import virtual_node
from dryrack.cluster.ports import SystemClock
from dryrack.cluster.process.driver_processes import DriversOfNodes
from dryrack.cluster.process.locks import hold
from dryrack.controllers import ENGINES
from dryrack.kinds.paths import get
from dryrack.kubelet import DriverPrograms, RegisteredDrivers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dryrack.client.endpoints import Endpoint
    from dryrack.client.informer import Informer
    from dryrack.client.kubeconfig import Connection
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.cluster.process.serving import Address
    from dryrack.controllers import EngineContext
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.releases import Release

AGENT = "dryrack-kubelet"
COMMAND = "dryrack kubelet"
NEEDS = (Need(NODES), Need(PODS), Need(CLAIMS), Need(SLICES))
# On a Node that this program serves.
SERVED = "dryrack.dev/kubelet"
_LEASES = "kube-node-lease"
# The marks of nodes whose kubelet another program plays. KWOK does so even after the mark is gone.
_MARKS_OF_OTHERS = ("kwok.x-k8s.io/node", "dryrack.dev/node")


class NodeError(DryrackError):
    """A node cannot be served."""


@dataclass(frozen=True, slots=True)
class ServedNodes:
    """The nodes that virtual kubelets serve."""

    client: Client
    clock: Timekeeper
    names: Sequence[str]
    keeps_nodes: bool = False

    async def take(self) -> frozenset[str]:
        """Create or mark the nodes; return the names of new ones. Raise before the first write."""
        known = {name: await self._find(name) for name in self.names}
        created = set()
        for name, node in known.items():
            if node is None:
                await self._create(name)
                created.add(name)
            else:
                created |= {name} if self._mark_of(node) == "created" else set()
                await self._annotate(name, self._mark_of(node) or "existing")
        return frozenset(created)

    async def leave(self, created: frozenset[str]) -> None:
        """Delete the new nodes, unless they are to be kept, and remove the mark of the others."""
        with suppress(TransportError):
            for name in self.names:
                with suppress(ApiError):
                    if name in created and not self.keeps_nodes:
                        await self.client.delete(NODES, name)
                    else:
                        await self._annotate(name, None)

    async def _find(self, name: str) -> Raw | None:
        """Return a node; raise if another program serves it."""
        try:
            node = await self.client.get(NODES, name)
        except NotFoundError:
            return None
        metadata = node["metadata"]
        marks = {**get(metadata, "labels", {}), **get(metadata, "annotations", {})}
        for mark in _MARKS_OF_OTHERS:
            if mark in marks:
                raise NodeError(
                    f"node {name}: KWOK or dryrack up serves this node, because it has {mark}; "
                    "name a node that does not exist, and this command creates it"
                )
        if not self._mark_of(node) and await self._has_lease(name):
            raise NodeError(
                f"node {name}: another kubelet renews the lease of this node; stop it and wait 40 "
                "seconds, or name a node that does not exist"
            )
        return node

    async def _has_lease(self, name: str) -> bool:
        try:
            lease = await self.client.get(LEASES, name, _LEASES)
        except NotFoundError:
            return False
        renewed = get(lease, "spec.renewTime")
        seconds = get(lease, "spec.leaseDurationSeconds", 40)
        return bool(renewed) and self.clock.now() < seconds_of(renewed) + seconds

    async def _create(self, name: str) -> None:
        node = virtual_node(name)
        metadata = node["metadata"]
        labels = {key: value for key, value in metadata["labels"].items() if key != "type"}
        node["metadata"] = {"name": name, "labels": labels, "annotations": {SERVED: "created"}}
        with suppress(ConflictError):
            made = await self.client.create(NODES, node)
            await self.client.update(NODES, made | {"status": node["status"]}, subresource="status")

    async def _annotate(self, name: str, value: str | None) -> None:
        patch = {"metadata": {"annotations": {SERVED: value}}}
        await self.client.patch(NODES, name, patch, media_type=MERGE_PATCH)

    def _mark_of(self, node: Raw) -> str:
        return str(get(node["metadata"], "annotations", {}).get(SERVED, ""))


class _NodeInformers(Informers):
    """The informers of a kubelet: of one node it reads only what belongs to it."""

    def __init__(self, shared: Informers, names: Sequence[str]) -> None:
        self._shared = shared
        self._names = names

    def of(self, endpoint: Endpoint, selection: Selection = EVERYTHING) -> Informer:
        """Return the informer of a kind, for the nodes that are served."""
        name = self._names[0] if len(self._names) == 1 else ""
        if endpoint is PODS and name:
            selection = Selection(fields=f"spec.nodeName={name}")
        elif endpoint is NODES and name:
            selection = Selection(fields=f"metadata.name={name}")
        elif endpoint is LEASES:
            fields = f"metadata.name={name}" if name else ""
            selection = Selection(namespace=_LEASES, fields=fields)
        return self._shared.of(endpoint, selection)

    def find_existing(self, endpoint: Endpoint) -> Informer | None:
        """Return the informer of a kind, if there is one."""
        if endpoint in (PODS, NODES, LEASES):
            return self.of(endpoint)
        return self._shared.find_existing(endpoint)


class VirtualKubelets:
    """The kubelets of some nodes of a cluster, and the drivers that register with them."""

    def __init__(
        self,
        context: EngineContext,
        processes: RegisteredDrivers,
        names: Sequence[str],
        release: Release,
    ) -> None:
        self._processes = processes
        self._names = frozenset(names)
        self._context = replace(
            context,
            informers=_NodeInformers(context.informers, names),
            drivers=DriversOfNodes((), processes),
            kubelets=self._is_served,
            reads_configuration=False,
            release=release,
        )
        kubelet = next(each for each in ENGINES if each.name == "kubelet")
        self._parts = [part(self._context) for part in kubelet.parts]

    def lacking(self) -> Sequence[str]:
        return ()

    async def run(self) -> None:
        """Serve the nodes until the task is cancelled."""
        context = self._context
        async with asyncio.TaskGroup() as group:
            for part in self._parts:
                group.create_task(part.run(), name="virtual kubelet")
            run = self._processes.run(context.client, context.informers, self._is_served)
            group.create_task(run, name="drivers")

    def _is_served(self, node: Raw) -> bool:
        return node["metadata"]["name"] in self._names


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletSettings:
    """The nodes and drivers of virtual kubelets."""

    names: Sequence[str]
    directory: Path
    cdi: Sequence[str] = ()
    program: Sequence[str] = ()
    """The words of the driver program to run for each node; empty: people start the drivers."""
    kubeconfig: str = ""
    """The kubeconfig of the programs."""
    keeps_nodes: bool = False
    health: Address | None = None


async def serve_nodes(connection: Connection, settings: KubeletSettings) -> None:
    """Serve nodes until a signal arrives; leave nothing behind."""
    stopping = stopping_by_signal()
    clock = SystemClock()
    names = settings.names
    with ExitStack() as stack:
        for name in names:
            (settings.directory / name).mkdir(exist_ok=True)
            stack.callback(os.close, hold(settings.directory / name / "lock"))
        async with connected(connection) as transport:
            client = Client(transport, agent=AGENT)
            await check_needs(client, NEEDS, COMMAND)
            release = await release_of(client)
            nodes = ServedNodes(client, clock, names, settings.keeps_nodes)
            try:
                created = await nodes.take()
            except ApiError as error:
                fix = f"{COMMAND} --print-rbac | kubectl apply -f -"
                raise NodeError(f"{error}; grant the permissions: {fix}") from None
            programs = None
            if settings.program:
                programs = DriverPrograms(settings.program, settings.kubeconfig, clock)
            drivers = RegisteredDrivers(
                settings.directory, clock=clock, cdi=settings.cdi, programs=programs
            )
            attached = Attached(
                transport,
                lambda context: VirtualKubelets(context, drivers, names, release),
                Attachment(agent=AGENT, health=settings.health),
            )
            try:
                await attached.run(stopping)
            finally:
                await nodes.leave(created)
