"""
Serve one cluster until a signal arrives.

The API server starts first, for programs that wait for it; the engines start once it serves.
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
from dryrack.cluster.assembly import (
    EngineOptions,
    assemble_engines,
    has_compute_domains,
    node_plugins,
)
from dryrack.cluster.control_plane import ControlPlaneOptions, build_control_plane
from dryrack.cluster.engines import Wiring, running_engines
from dryrack.cluster.initial_objects import (
    add_allocation_states,
    add_compute_domains,
    add_device_classes,
    add_node_pools,
    add_nodes,
    add_objects,
    is_ready,
)
from dryrack.cluster.ports import SystemClock
from dryrack.cluster.private_files import write_private
from dryrack.cluster.process.launching import PROGRESS, WARNING
from dryrack.cluster.process.serving import AddressError, listen, served
from dryrack.cluster.process.state import Process, Running
from dryrack.cluster.signing import EllipticKey

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence

    from dryrack.client.transport import Request, Response, Transport
    from dryrack.cluster.certificates import Keys
    from dryrack.cluster.control_plane import ControlPlane
    from dryrack.cluster.engines import Family
    from dryrack.cluster.process.launching import Launch, ReadPast
    from dryrack.cluster.snapshots.past import Past
    from dryrack.hardware.catalogue import InstanceType
    from dryrack.kubeletplugin import VirtualDrivers

# The engines are loaded once no request has arrived for so long after the first one; they wait
# this long at most. A busy machine may take half a second to start `kubectl`.
_QUIET_SECONDS = 0.15
_QUESTION_SECONDS_MAX = 1.0
_LOOK_SECONDS = 0.02
# A start waits for its nodes as long as more of them become Ready, at most this long in all.
_NODES_SECONDS_MAX = 120.0
_NODES_STALL_SECONDS_MAX = 10.0
_PROGRESS_SECONDS = 0.5
_SLICES = "resourceslices.resource.k8s.io"
_NO_NODES = (
    "The cluster has no nodes, so Pods stay Pending. To start with nodes, add for example: "
    "--nodes 3 --instance-type p5.48xlarge"
)


async def serve(launch: Launch, make_keys: Callable[[], Keys], tell: Callable[[str], None]) -> None:
    """
    Serve a cluster; `tell` gets a line for every step.

    `make_keys` is called when everything else is loaded, and may wait for another process.
    """
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
        plane = build_control_plane(
            ControlPlaneOptions(
                authorization=launch.authorization,
                runtime_config=launch.runtime_config,
                release=launch.release,
                feature_gates=launch.feature_gates,
                signing_key=EllipticKey(lambda: certificates.load_key(keys.accounts)),
                journal=journal,
                authority=keys.authority.certificate.read_text(),
                drivers=drivers,
                prepared_claims=partial(_prepared_claims, drivers),
            )
        )
        door = _Door(plane.transport)
        url = await stack.enter_async_context(served(plane, listening, keys, door=door))
        tell(f"API server at {url}")
        await _inhabit(launch, plane, tell)
        stack.enter_context(_handed_out(launch, url, keys))
        if launch.dashboard is not None:
            page = launch.dashboard(plane.client("dryrack-dashboard"), _past(plane))
            tell(f"dashboard: {await stack.enter_async_context(page)}")
        if launch.merges:
            context = kubeconfig.entry_name(launch.state.name)
            tell(f"kubectl uses the cluster: context {context} in {launch.kubeconfig}")
        has_nodes = plane.store.count("nodes") > 0
        if not has_nodes:
            if launch.provisioner is None:
                tell(f"{WARNING}{_NO_NODES}")
            tell("")
            await _let_them_ask(door, stopping)
        await asyncio.to_thread(_load_engines)
        engines = assemble_engines(
            EngineOptions(
                without=launch.without,
                catalogue=launch.catalogue,
                machines=_machines(launch),
                allocator=launch.allocator,
                scheduling=launch.scheduling,
                drivers=drivers,
                plugins=node_plugins(drivers),
                provisioner=launch.provisioner,
            )
        )
        await stack.enter_async_context(supervised_engines(engines, plane))
        if has_nodes:
            await _wait_for_nodes(launch, plane, stopping, tell)
            tell("")
        gc.freeze()
        gc.set_threshold(*GARBAGE_THRESHOLDS)
        await stopping.wait()


@contextlib.asynccontextmanager
async def supervised_engines(chosen: Sequence[Family], plane: ControlPlane) -> AsyncIterator[None]:
    """Run the engines under a supervisor, with the faults that people write into a ConfigMap."""
    from dryrack.cluster.faults import FaultBoard
    from dryrack.cluster.faults.config_map import FaultEntries
    from dryrack.cluster.process.component_status import ComponentStatuses

    clock = plane.options.clock
    chance = plane.options.chance
    board = FaultBoard(clock=clock, chance=chance)
    statuses = ComponentStatuses(plane.client("components"), clock=clock, chance=chance)
    supervisor = statuses.supervisor

    def wiring_of(engine: str) -> Wiring:
        return replace(plane.wiring(engine), supervisor=supervisor)

    async def follow_faults() -> None:
        await FaultEntries(plane.client("faults"), board, chance).run()

    async with running_engines(chosen, wiring_of, board):
        tasks = [
            asyncio.create_task(statuses.run(), name="components"),
            asyncio.create_task(supervisor.run("faults", follow_faults), name="faults"),
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _wait_for_nodes(
    launch: Launch, plane: ControlPlane, stopping: asyncio.Event, tell: Callable[[str], None]
) -> None:
    """Wait until the virtual nodes are Ready and have their devices; report the progress."""
    from dryrack.controllers import is_played

    nodes, _ = plane.store.list("nodes", None)
    # Without the engine that plays them, nodes never become Ready.
    is_waited_for = "kubelet" not in launch.without
    waiting = [each.key for each in nodes if is_waited_for and is_played(each.object)]
    count = len(waiting)
    # The nodes of the command line have at least so many slices.
    slices = launch.nodes * len(launch.devices)
    if launch.machine is not None and "slices" not in launch.without:
        slices += launch.nodes * len(launch.machine.drivers)
    loop = asyncio.get_running_loop()
    changed_at = counted_at = loop.time()
    latest = changed_at + _NODES_SECONDS_MAX
    left = count + slices
    while not stopping.is_set() and loop.time() < latest:
        while waiting and is_ready(plane.store.get(waiting[-1])):
            waiting.pop()
        missing = max(0, slices - plane.store.count(_SLICES))
        if not waiting and not missing:
            break
        now = loop.time()
        if now - counted_at > _PROGRESS_SECONDS:
            # Looking at all nodes of a large fleet every time would slow them down.
            counted_at = now
            waiting = [key for key in waiting if not is_ready(plane.store.get(key))]
            tell(f"{PROGRESS}{count - len(waiting)} of {count} nodes are Ready")
            if len(waiting) + missing < left:
                changed_at = now
                left = len(waiting) + missing
            elif now - changed_at > _NODES_STALL_SECONDS_MAX:
                break
        await asyncio.sleep(_LOOK_SECONDS)
    waiting = [key for key in waiting if not is_ready(plane.store.get(key))]
    if waiting:
        tell(f"{WARNING}{len(waiting)} of {count} nodes are not Ready yet; see: kubectl get nodes")
    elif count:
        tell(f"{count} node{'s are' if count > 1 else ' is'} Ready")


def _past(plane: ControlPlane) -> ReadPast:
    """Return a function that reads the watch log of the store."""

    def read(resources: Sequence[str], writes_max: int) -> Past:
        from dryrack.cluster.snapshots.past import past_of

        return past_of(plane.store, resources, writes_max)

    return read


def _load_engines() -> None:
    """Load the code of the engines, in a thread so that the server goes on answering."""
    from dryrack.controllers import ENGINES
    from dryrack.controllers.slices import Publisher
    from dryrack.scheduler import Scheduler

    _ = ENGINES, Publisher, Scheduler


class _Door:
    """Notes when the last request began or ended."""

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
    """Wait for the first requests: loading the engines would delay their answers."""
    loop = asyncio.get_running_loop()
    latest = loop.time() + _QUESTION_SECONDS_MAX
    while not stopping.is_set() and loop.time() < latest:
        if door.used_at is not None and loop.time() - door.used_at > _QUIET_SECONDS:
            return
        await asyncio.sleep(_LOOK_SECONDS)


def _listen(launch: Launch) -> socket.socket:
    """Listen, at the previous port if the data directory has one and it is free."""
    address = launch.address
    data = launch.data_directory
    if data is None or address.port:
        return listen(address)
    last = data / "port"
    try:
        listening = listen(replace(address, port=int(last.read_text())))
    except (OSError, ValueError, AddressError):
        listening = listen(address)
    write_private(last, str(listening.getsockname()[1]).encode(), lasts=False)
    return listening


def _machines(launch: Launch) -> Collection[InstanceType]:
    """Return the instance types of the nodes that exist or may come."""
    if launch.machine is not None:
        return (launch.machine,)
    return launch.catalogue.instance_types.values() if launch.catalogue is not None else ()


def _drivers(launch: Launch) -> VirtualDrivers | None:
    """Return the drivers of the nodes: simulated ones, and programs; None without any."""
    from dryrack.kubeletplugin import VirtualDrivers

    if launch.kubelet_directory is None:
        return VirtualDrivers(launch.devices) if launch.devices else None
    from dryrack.cluster.process.driver_processes import DriversOfNodes
    from dryrack.kubelet import DriverPrograms, RegisteredDrivers

    programs = None
    if launch.program:
        kubeconfig = launch.state.kubeconfig
        programs = DriverPrograms(launch.program, str(kubeconfig), clock=SystemClock())
    processes = RegisteredDrivers(
        launch.kubelet_directory,
        clock=SystemClock(),
        simulated=[kind.driver for kind in launch.devices],
        programs=programs,
    )
    return DriversOfNodes(launch.devices, processes)


def _prepared_claims(drivers: VirtualDrivers | None) -> Mapping[str, Sequence[str]]:
    """Return the UIDs of the claims that simulated drivers have prepared, by driver."""
    names = sorted(drivers.names) if drivers is not None else ()
    return {name: [each.uid for each in drivers.records(name)] for name in names if drivers}


async def _inhabit(launch: Launch, plane: ControlPlane, tell: Callable[[str], None]) -> None:
    if launch.catalogue is not None and not launch.omits_device_classes:
        classes = launch.catalogue.device_classes.values()
        await add_device_classes(plane.client(), classes)
        tell(f"{len(classes)} device classes of the hardware catalog")
    if has_compute_domains(_machines(launch)):
        await add_compute_domains(plane.client())
        tell("ComputeDomain, kubectl get computedomains")
    if launch.provisioner is not None:
        await add_node_pools(plane.client())
        tell("provisioner; it needs a NodePool, kubectl get nodepools")
    if launch.devices:
        from dryrack.kubeletplugin import FakeKind, device_classes

        if not launch.omits_device_classes:
            offered = device_classes(launch.devices)
            await add_device_classes(plane.client(), offered)
            tell(f"device classes: {', '.join(each.metadata.name for each in offered)}")
        if any(isinstance(each, FakeKind) for each in launch.devices):
            await add_allocation_states(plane.client())
            tell("NodeAllocationState, kubectl get -n fake-system nas")
    if launch.nodes:
        await add_nodes(plane.client(), launch.nodes, launch.machine, pattern=launch.node_name)
        which = f" of the instance type {launch.machine.name}" if launch.machine else ""
        tell(f"{launch.nodes} virtual node{'s' if launch.nodes > 1 else ''}{which}")
    if launch.objects:
        created = await add_objects(plane, launch.objects)
        tell(f"{created} object{'' if created == 1 else 's'} from the files of --config")


@contextlib.contextmanager
def _handed_out(launch: Launch, url: str, keys: certificates.Keys) -> Iterator[None]:
    """
    Write the kubeconfig and then the record of the process, for the length of a block.

    Whoever reads the record finds a cluster that serves. At the end the cluster is removed from the
    user's kubeconfig; a file that could not be written is not changed then either.
    """
    state = launch.state
    own = kubeconfig.own_text(state.name, url, keys)
    write_private(state.kubeconfig, own.encode(), lasts=False)
    theirs = launch.kubeconfig
    if theirs is not None:
        theirs.parent.mkdir(parents=True, exist_ok=True)
        if launch.merges:
            config = kubeconfig.kubeconfig(state.name, url, keys)
            own = kubeconfig.text(kubeconfig.merge(kubeconfig.read(theirs), config))
        write_private(theirs, own.encode())
    try:
        merged_into = str(theirs) if launch.merges and theirs else ""
        data = str(launch.data_directory) if launch.data_directory else ""
        files = None if launch.catalogue is None else launch.catalogue_files
        state.write(Running(Process.of(os.getpid()), url, data, merged_into, files))
        yield
    finally:
        if theirs is not None and theirs.exists():
            if launch.merges:
                rest = kubeconfig.without(kubeconfig.read(theirs), launch.state.name)
                write_private(theirs, kubeconfig.text(rest).encode())
            else:
                theirs.unlink()
