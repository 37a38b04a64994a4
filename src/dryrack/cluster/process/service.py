"""
One cluster, served until it is told to stop.

The API server first, for whoever waits; the engines once it is said that it serves.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from dryrack.base.limits import GARBAGE_THRESHOLDS
from dryrack.cluster import certificates, kubeconfig
from dryrack.cluster.certificates import write_private
from dryrack.cluster.control_plane import PlaneOptions, build
from dryrack.cluster.engines import (
    families,
    plugin_families,
    running_engines,
    wanted_engines,
    with_catalogue,
)
from dryrack.cluster.initial_objects import (
    add_allocation_states,
    add_device_classes,
    add_nodes,
    add_objects,
    is_ready,
    node_names,
)
from dryrack.cluster.process.serving import AddressError, listen, served
from dryrack.cluster.process.state import Process, Running
from dryrack.cluster.signing import EllipticKey
from dryrack.store import Key

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence
    from pathlib import Path

    from dryrack.client.transport import Request, Response, Transport
    from dryrack.cluster.certificates import Keys
    from dryrack.cluster.control_plane import Plane
    from dryrack.cluster.engines import Family
    from dryrack.cluster.journal import SqliteJournal
    from dryrack.cluster.process.launching import Launch, ReadPast
    from dryrack.cluster.snapshots.past import Past
    from dryrack.controllers import Drivers
    from dryrack.controllers.slices import PublishOptions
    from dryrack.kubeletplugin import VirtualDrivers

# How long nobody has to ask anything before the engines are loaded, once somebody has; and how
# long the engines wait at most. A busy machine may take half a second to start `kubectl`.
_QUIET_SECONDS = 0.15
_QUESTION_SECONDS_MAX = 1.0
_LOOK_SECONDS = 0.02
# How long a start waits for its nodes. They take a second; thousands of them come by and by.
_NODES_SECONDS_MAX = 10.0
_SLICES = "resourceslices.resource.k8s.io"


async def serve(launch: Launch, make_keys: Callable[[], Keys], tell: Callable[[str], None]) -> None:
    """`make_keys` is called once everything else is there, and may wait for somebody else."""
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    keys = make_keys()
    tell("keys and certificates")
    async with AsyncExitStack() as stack:
        listening = stack.enter_context(contextlib.closing(_listen(launch)))
        journal = None
        if launch.data_directory is not None:
            from dryrack.cluster.journal import SqliteJournal

            journal = SqliteJournal(launch.data_directory, on_failure=stopping.set)
            stack.push_async_callback(journal.close)
        drivers = _drivers(launch)
        plane = build(_plane_options(launch, keys, journal, drivers))
        door = _Door(plane.transport)
        url = await stack.enter_async_context(served(plane, listening, keys, door=door))
        tell(f"API server at {url}")
        await _inhabit(launch, plane, tell)
        stack.enter_context(_handed_out(launch, url, keys))
        if launch.dashboard is not None:
            page = launch.dashboard(plane.client("dryrack-dashboard"), _past(plane))
            tell(f"dashboard: {await stack.enter_async_context(page)}")
        if not launch.nodes:
            tell("")
            await _let_them_ask(door, stopping)
        await asyncio.to_thread(_load_engines)
        engines = (
            *families(_publishing(launch), launch.allocator, launch.scheduling, drivers=drivers),
            *plugin_families(drivers),
        )
        chosen = wanted_engines(launch.without, engines)
        await stack.enter_async_context(_running(chosen, plane))
        if launch.nodes:
            await _nodes_are_up(launch, plane, stopping)
            tell("")
        gc.freeze()
        gc.set_threshold(*GARBAGE_THRESHOLDS)
        await stopping.wait()


@contextlib.asynccontextmanager
async def _running(chosen: Sequence[Family], plane: Plane) -> AsyncIterator[None]:
    """The engines, which meet the faults that people write into a ConfigMap."""
    from dryrack.cluster.faults import FaultBoard
    from dryrack.cluster.faults.config_map import FaultEntries

    chance = plane.options.chance
    board = FaultBoard(clock=plane.options.clock, chance=chance)
    async with running_engines(chosen, plane.around, board):
        entries = FaultEntries(plane.client("faults"), board, chance)
        task = asyncio.create_task(entries.run(), name="faults")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _nodes_are_up(launch: Launch, plane: Plane, stopping: asyncio.Event) -> None:
    """Until the nodes are ready and have their devices; without those who see to it, at once."""
    loop = asyncio.get_running_loop()
    latest = loop.time() + _NODES_SECONDS_MAX
    waiting = [] if "kubelet" in launch.without else node_names(launch.nodes)
    slices = 0
    if launch.machine is not None and "slices" not in launch.without:
        slices = launch.nodes * len(launch.machine.drivers)
    slices += launch.nodes * len(launch.devices)
    while not stopping.is_set() and loop.time() < latest:
        while waiting and is_ready(plane.store.get(Key("nodes", "", waiting[-1]))):
            waiting.pop()
        if not waiting and plane.store.count(_SLICES) >= slices:
            return
        await asyncio.sleep(_LOOK_SECONDS)


def _past(plane: Plane) -> ReadPast:
    """Reads the log of the plane's store; loaded when it is asked."""

    def read(resources: Sequence[str], writes_max: int) -> Past:
        from dryrack.cluster.snapshots.past import past_of

        return past_of(plane.store, resources, writes_max)

    return read


def _publishing(launch: Launch) -> Callable[[], PublishOptions] | None:
    """What is not usual about the slices."""
    return None if launch.catalogue is None else partial(with_catalogue, launch.catalogue)


def _load_engines() -> None:
    """In a thread of its own, so that the server goes on answering."""
    from dryrack.controllers import ENGINES
    from dryrack.controllers.slices import Publisher
    from dryrack.scheduler import Scheduler

    _ = ENGINES, Publisher, Scheduler


class _Door:
    """Notes when somebody last came or left."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.used_at: float | None = None

    async def send(self, request: Request) -> Response:
        loop = asyncio.get_running_loop()
        self.used_at = loop.time()
        try:
            return await self._inner.send(request)
        finally:
            self.used_at = loop.time()


async def _let_them_ask(door: _Door, stopping: asyncio.Event) -> None:
    """Engines take a while to load, and who waited for the word that it serves asks at once."""
    loop = asyncio.get_running_loop()
    latest = loop.time() + _QUESTION_SECONDS_MAX
    while not stopping.is_set() and loop.time() < latest:
        if door.used_at is not None and loop.time() - door.used_at > _QUIET_SECONDS:
            return
        await asyncio.sleep(_LOOK_SECONDS)


def _listen(launch: Launch) -> socket.socket:
    """At the port of the last time, if the data is of a last time and nobody minds."""
    address, data = launch.address, launch.data_directory
    if data is None or address.port:
        return listen(address)
    last = data / "port"
    try:
        listening = listen(replace(address, port=int(last.read_text())))
    except (OSError, ValueError, AddressError):
        listening = listen(address)
    data.mkdir(parents=True, mode=0o700, exist_ok=True)
    last.write_text(str(listening.getsockname()[1]))
    return listening


def _plane_options(
    launch: Launch,
    keys: certificates.Keys,
    journal: SqliteJournal | None,
    drivers: Drivers | None,
) -> PlaneOptions:
    signing = EllipticKey(lambda: certificates.load_key(keys.accounts))
    return PlaneOptions(
        authorization=launch.authorization,
        runtime_config=launch.runtime_config,
        signing_key=signing,
        journal=journal,
        authority=keys.authority.certificate.read_text(),
        drivers=drivers,
    )


def _drivers(launch: Launch) -> VirtualDrivers | None:
    if not launch.devices:
        return None
    from dryrack.kubeletplugin import VirtualDrivers

    return VirtualDrivers(launch.devices)


async def _inhabit(launch: Launch, plane: Plane, tell: Callable[[str], None]) -> None:
    if launch.catalogue is not None:
        classes = launch.catalogue.device_classes.values()
        await add_device_classes(plane.client(), classes)
        tell(f"{len(classes)} device classes of the catalogue's drivers")
    if launch.devices:
        from dryrack.kubeletplugin import FakeKind, device_classes

        offered = device_classes(launch.devices)
        await add_device_classes(plane.client(), offered)
        tell(f"device classes: {', '.join(each.metadata.name for each in offered)}")
        if any(isinstance(each, FakeKind) for each in launch.devices):
            await add_allocation_states(plane.client())
            tell("NodeAllocationState, kubectl get -n fake-system nas")
    if launch.nodes:
        await add_nodes(plane.client(), launch.nodes, launch.machine)
        which = f" of the type {launch.machine.name}" if launch.machine else ""
        tell(f"{launch.nodes} virtual node{'s' if launch.nodes > 1 else ''}{which}")
    if launch.objects:
        created = await add_objects(plane, launch.objects)
        tell(f"{created} object{'' if created == 1 else 's'} of the configuration")


@contextlib.contextmanager
def _handed_out(launch: Launch, url: str, keys: certificates.Keys) -> Iterator[None]:
    """
    The kubeconfig, and then the record: who finds the record finds a cluster that serves.

    A cluster that has ended is no longer in anybody's kubeconfig; a file that could not be written
    is not touched then either.
    """
    state = launch.state
    own = kubeconfig.own_text(state.name, url, keys)
    write_private(state.kubeconfig, own.encode(), lasts=False)
    theirs = launch.kubeconfig
    if theirs is not None:
        theirs.parent.mkdir(parents=True, exist_ok=True)
        if launch.merges:
            config = kubeconfig.kubeconfig(state.name, url, keys)
            own = kubeconfig.text(kubeconfig.merged(kubeconfig.read(theirs), config))
        write_private(theirs, own.encode())
    try:
        merged_into = str(theirs) if launch.merges and theirs else ""
        data = str(launch.data_directory) if launch.data_directory else ""
        state.write(Running(Process.of(os.getpid()), url, data, merged_into))
        yield
    finally:
        if theirs is not None and theirs.exists():
            _take_back(theirs, launch)


def _take_back(theirs: Path, launch: Launch) -> None:
    if launch.merges:
        rest = kubeconfig.without(kubeconfig.read(theirs), launch.state.name)
        write_private(theirs, kubeconfig.text(rest).encode())
    else:
        theirs.unlink()
