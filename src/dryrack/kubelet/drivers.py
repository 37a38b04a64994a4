"""
Drivers that are programs, for the virtual nodes of a cluster.

Each node has a directory with the layout of a kubelet: drivers register below `plugins_registry`,
and the pods of the node wait until the drivers have prepared their claims. Devices that dryrack
simulates on the same nodes are prepared in memory, as before.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from dryrack.base.errors import DryrackError
from dryrack.client.client import Selection
from dryrack.client.endpoints import NODES, PODS, SLICES
from dryrack.client.errors import ApiError, NotFoundError, TransportError
from dryrack.client.timekeeping import sleep
from dryrack.hardware import KUBELET_RESTART, MANAGED_BY, MANAGER
from dryrack.kinds.paths import get
from dryrack.kubelet.cdi import ContainerEdits, resolve
from dryrack.kubelet.claims import CheckpointError, NodeClaims
from dryrack.kubelet.health import NodeHealth
from dryrack.kubelet.registration import REGISTRY, Registrations

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from dryrack.client.client import Client
    from dryrack.client.informer import Informers
    from dryrack.client.timekeeping import Timekeeper, Timer
    from dryrack.kinds.raw import Raw
    from dryrack.kubelet.programs import DriverPrograms

_logger = logging.getLogger(__name__)

# The kubelet deletes the slices of a driver that is gone for so long.
WIPE_SECONDS = 30.0
# The kubelet tries a pod or an unpreparation again after this time.
RETRY_SECONDS = 10.0
# The kubelet tries to delete slices again after this time, which doubles up to a limit.
_WIPE_RETRY_SECONDS = 1.0
_WIPE_RETRY_SECONDS_MAX = 300.0
_SYSTEM_CDI = (Path("/etc/cdi"), Path("/var/run/cdi"))


@dataclass(slots=True)
class _Call:
    """A call for a pod that is under way, or its error and the time of the next try."""

    task: asyncio.Task[None] | None = None
    error: str = ""
    retry_at: float = 0.0


@dataclass(slots=True)
class _Node:
    """The kubelet of one node."""

    registrations: Registrations
    claims: NodeClaims
    health: NodeHealth
    watch: asyncio.Task[None] | None = None
    # By the UID of a pod.
    preparing: dict[str, _Call] = field(default_factory=dict)
    prepared: set[str] = field(default_factory=set)
    releasing: dict[str, _Call] = field(default_factory=dict)
    wipes: dict[str, Timer] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReportedDevice:
    """A device that a program has prepared, as the status of a pod shows it."""

    requests: Sequence[str]
    identity: str
    name: str
    health: tuple[str, str]


class NodeListener(Protocol):
    """Gets the name of a node when a call of its kubelet has ended."""

    def __call__(self, node: str) -> None: ...


class RegisteredDrivers:
    """The programs that serve devices of virtual nodes."""

    def __init__(
        self,
        directory: Path,
        *,
        clock: Timekeeper,
        simulated: Collection[str] = (),
        cdi: Sequence[str] = (),
        programs: DriverPrograms | None = None,
    ) -> None:
        """
        `simulated` are drivers without sockets; `cdi` are more directories of CDI specs, in
        which {node} stands for the name of the node.

        `programs` starts a driver for each node; without it, people start the drivers.
        """
        self._directory = directory
        self._clock = clock
        self._simulated = simulated
        self._cdi = cdi
        self._nodes: dict[str, _Node] = {}
        self._listeners: list[NodeListener] = []
        self._health_listeners: list[NodeListener] = []
        self._programs = programs
        self._tasks: asyncio.TaskGroup | None = None
        self._client: Client | None = None

    def listen(self, listener: NodeListener) -> None:
        """Call the listener whenever a call for a pod of a node has ended."""
        self._listeners.append(listener)

    def listen_to_health(self, listener: NodeListener) -> None:
        """Call the listener whenever the health of devices of a node has changed."""
        self._health_listeners.append(listener)

    async def run(
        self, client: Client, informers: Informers, is_virtual: Callable[[Raw], bool]
    ) -> None:
        """Serve the directory of every virtual node until the task is cancelled."""
        nodes, pods = informers.of(NODES), informers.of(PODS)
        self._client = client
        await pods.synced.wait()
        await nodes.synced.wait()
        running: dict[str, asyncio.Task[None]] = {}
        ending: dict[str, asyncio.Task[None]] = {}
        try:
            async with asyncio.TaskGroup() as group:
                self._tasks = group

                def on_node(old: Raw | None, new: Raw | None) -> None:
                    name = (new or old or {})["metadata"]["name"]
                    is_served = new is not None and is_virtual(new)
                    if is_served and name not in running:
                        run = self._run_node(name, ending.pop(name, None))
                        running[name] = group.create_task(run, name=f"drivers of node {name}")
                        self._add(name)
                        self._release_vanished(name, pods.objects.values())
                    elif not is_served and name in running:
                        ending[name] = running.pop(name)
                        ending[name].cancel()
                        ending[name].add_done_callback(lambda _: ending.pop(name, None))
                        self._remove(name)
                    elif is_served and _restart_of(old) != _restart_of(new):
                        self.restart(name)

                served = [e["metadata"]["name"] for e in nodes.objects.values() if is_virtual(e)]
                # No driver is registered yet, so its devices must not be allocated.
                group.create_task(self._delete_slices(served), name="wipe slices")
                nodes.listen(on_node)
                await asyncio.Event().wait()
        finally:
            self._tasks = None
            self._nodes.clear()
            if self._programs is not None:
                await self._programs.close()

    async def _run_node(self, name: str, previous: asyncio.Task[None] | None) -> None:
        """Run the program of a node, if there is one, after that of an earlier node has ended."""
        if previous is not None:
            await asyncio.wait([previous])
        if self._programs is not None:
            await self._programs.run(name, self.directory_of(name))

    def directory_of(self, node: str) -> Path:
        """Return the directory that the drivers of a node use as the kubelet's."""
        return self._directory / node

    def call(self, pod: Raw, node: str, claims: Sequence[Raw]) -> str | None:
        """
        Return why the claims of a pod are not prepared; None if they are.

        The text is empty while a call is under way.
        """
        uid = pod["metadata"]["uid"]
        own = [each for each in claims if self._is_served(each)]
        kubelet = self._nodes.get(node)
        if not own or (kubelet is not None and uid in kubelet.prepared):
            return None
        if kubelet is None or self._tasks is None or uid in kubelet.releasing:
            # The kubelet of the node starts, or unprepares the claims; it calls the listener then.
            return ""
        call = kubelet.preparing.setdefault(uid, _Call())
        if call.task is None and self._clock.now() >= call.retry_at:
            call.task = self._start(self._prepare(kubelet, node, uid, own), f"prepare {uid}")
            call.error = ""
        return call.error

    def release(self, uid: str, node: str) -> bool:
        """Return whether no claim is prepared for a pod; unprepare its claims otherwise."""
        kubelet = self._nodes.get(node)
        if kubelet is None or self._tasks is None:
            return False
        preparing = kubelet.preparing.get(uid)
        if preparing is not None and preparing.task is not None:
            # A kubelet cancels the call, and unprepares the claims when it has ended.
            preparing.task.cancel()
            kubelet.releasing.setdefault(uid, _Call())
            return False
        kubelet.preparing.pop(uid, None)
        kubelet.prepared.discard(uid)
        if not any(uid in each.pods for each in kubelet.claims.infos):
            kubelet.releasing.pop(uid, None)
            return True
        call = kubelet.releasing.setdefault(uid, _Call())
        if call.task is None and self._clock.now() >= call.retry_at:
            call.task = self._start(self._unprepare(kubelet, node, uid), f"unprepare {uid}")
        return False

    def abandon(self, claim: str) -> None:
        """Unprepare a claim that no pod may use any more."""
        for name, node in self._nodes.items():
            info = node.claims.by_uid(claim)
            for pod in sorted(info.pods) if info is not None else ():
                self.release(pod, name)

    def serves(self, driver: str) -> bool:
        """Return True if programs serve a driver."""
        return driver not in self._simulated

    def restart(self, node: str) -> None:
        """
        Restart the kubelet of a node: it reads its checkpoint, and the drivers register again.

        Like a kubelet, it deletes the slices of the node, which the drivers then publish again.
        """
        if node in self._nodes:
            self._remove(node)
            self._add(node)
            self._start(self._delete_slices([node]), f"wipe slices of {node}")

    def reboot(self, node: str) -> None:
        """Empty the directory of CDI specs, kill the program, and restart the kubelet of a node."""
        if node not in self._nodes:
            return
        if self._programs is not None:
            self._programs.reboot(node)
        with suppress(OSError):
            for path in (self.directory_of(node) / "cdi").iterdir():
                if path.is_file() or path.is_symlink():
                    path.unlink()
        self.restart(node)

    def injections(self, node: str, uses: Sequence[tuple[Raw, str]]) -> Iterable[ContainerEdits]:
        """Yield the edits of a container with these claims, each with a request or ""."""
        names = list(dict.fromkeys(self._cdi_names(node, uses)))
        if names:
            more = [Path(each.replace("{node}", node)) for each in self._cdi]
            yield resolve(names, (*_SYSTEM_CDI, self.directory_of(node) / "cdi", *more))

    def devices(self, node: str, claim: str) -> Sequence[ReportedDevice]:
        """Return the devices that programs have prepared for a claim, with their health."""
        kubelet = self._nodes.get(node)
        info = kubelet.claims.by_uid(claim) if kubelet is not None else None
        if kubelet is None or info is None:
            return ()
        return [
            ReportedDevice(
                each.requests,
                each.cdi_ids[0] if each.cdi_ids else f"{driver}/{each.pool}/{each.device}",
                each.device,
                kubelet.health.health_of(driver, each.pool, each.device),
            )
            for driver, devices in info.devices.items()
            for each in devices
        ]

    def _add(self, name: str) -> None:
        """Start the kubelet of a node."""
        assert self._tasks is not None, "the drivers run"
        directory = self.directory_of(name)
        for part in ("plugins", REGISTRY, "cdi"):
            (directory / part).mkdir(parents=True, exist_ok=True)
        health = NodeHealth(name, clock=self._clock, on_change=lambda: self._notify_health(name))
        registrations = Registrations(
            name,
            directory,
            clock=self._clock,
            on_change=lambda driver: self._on_driver(name, registrations, driver),
            health=health,
        )
        claims = NodeClaims(directory, registrations)
        try:
            claims.load()
        except CheckpointError as error:
            # The pods of the node are prepared again, as after the loss of the file.
            _logger.warning("node %s: starting without it: %s", name, error)
        kubelet = self._nodes[name] = _Node(registrations, claims, health)
        run = registrations.run()
        kubelet.watch = self._tasks.create_task(run, name=f"registrations of node {name}")
        self._notify(name)

    def _remove(self, name: str) -> None:
        """Stop the kubelet of a node; its checkpoint stays."""
        kubelet = self._nodes.pop(name)
        for timer in kubelet.wipes.values():
            timer.cancel()
        calls = (*kubelet.preparing.values(), *kubelet.releasing.values())
        for task in (kubelet.watch, *(each.task for each in calls)):
            if task is not None:
                task.cancel()

    def _release_vanished(self, name: str, pods: Iterable[Raw]) -> None:
        """Unprepare the claims of pods that do not exist any more."""
        known = {uid for each in self._nodes[name].claims.infos for uid in each.pods}
        if known:
            for uid in sorted(known - {each["metadata"]["uid"] for each in pods}):
                self.release(uid, name)

    def _is_served(self, claim: Raw) -> bool:
        results = get(claim, "status.allocation.devices.results", ())
        return any(each["driver"] not in self._simulated for each in results)

    def _cdi_names(self, node: str, uses: Sequence[tuple[Raw, str]]) -> Iterable[str]:
        for claim, request in uses if node in self._nodes else ():
            info = self._nodes[node].claims.by_uid(claim["metadata"]["uid"])
            for devices in info.devices.values() if info is not None else ():
                for each in devices:
                    if not request or not each.requests or request in each.requests:
                        yield from each.cdi_ids

    async def _prepare(self, kubelet: _Node, node: str, uid: str, claims: Sequence[Raw]) -> None:
        call = kubelet.preparing[uid]
        try:
            await kubelet.claims.prepare(uid, claims)
        except DryrackError as error:
            call.error = str(error)
            call.retry_at = self._clock.now() + RETRY_SECONDS
        else:
            kubelet.preparing.pop(uid, None)
            kubelet.prepared.add(uid)
        finally:
            call.task = None
            if uid in kubelet.releasing:
                self.release(uid, node)
            self._notify(node)

    async def _unprepare(self, kubelet: _Node, node: str, uid: str) -> None:
        call = kubelet.releasing[uid]
        try:
            await kubelet.claims.unprepare(uid)
        except DryrackError as error:
            _logger.warning("node %s: pod %s: unprepare dynamic resources: %s", node, uid, error)
            call.retry_at = self._clock.now() + RETRY_SECONDS
            # The pod can be gone by then, so that nothing else asks again.
            self._clock.call_at(call.retry_at, lambda: self._release_again(uid, node))
        else:
            kubelet.releasing.pop(uid, None)
        finally:
            call.task = None
            self._notify(node)

    def _release_again(self, uid: str, node: str) -> None:
        self.release(uid, node)

    def _start(self, work: object, name: str) -> asyncio.Task[None]:
        assert self._tasks is not None, "the drivers run"
        return self._tasks.create_task(work, name=name)  # type: ignore[arg-type]

    def _notify(self, node: str) -> None:
        for listener in self._listeners:
            listener(node)

    def _notify_health(self, node: str) -> None:
        for listener in self._health_listeners:
            listener(node)

    def _on_driver(self, node: str, registrations: Registrations, driver: str) -> None:
        """Delete the slices of a driver that stays away, and try waiting pods again."""
        kubelet = self._nodes.get(node)
        if kubelet is None or kubelet.registrations is not registrations:
            # The kubelet restarted meanwhile.
            return
        instance = registrations.instance(driver)
        if instance is None or not instance.is_connected:
            if driver not in kubelet.wipes:
                when = self._clock.now() + WIPE_SECONDS
                wipe = partial(self._wipe, node, driver)
                kubelet.wipes[driver] = self._clock.call_at(when, wipe)
            return
        timer = kubelet.wipes.pop(driver, None)
        if timer is not None:
            timer.cancel()
        for call in (*kubelet.preparing.values(), *kubelet.releasing.values()):
            call.retry_at = 0.0
        self._notify(node)

    def _wipe(self, node: str, driver: str) -> None:
        kubelet = self._nodes.get(node)
        if kubelet is not None and self._tasks is not None:
            kubelet.wipes.pop(driver, None)
            self._start(self._delete_slices([node], driver), f"wipe {driver} on {node}")

    async def _delete_slices(self, nodes: Sequence[str], driver: str = "") -> None:
        """Delete the slices of a driver on nodes, or of all programs; retry until it succeeds."""
        assert self._client is not None, "the drivers run"
        selection = Selection(fields=f"spec.nodeName={nodes[0]}" if len(nodes) == 1 else "")
        wait = _WIPE_RETRY_SECONDS
        left = frozenset(nodes)
        while left:
            try:
                found = await self._client.list(SLICES, selection)
                for each in found.items:
                    own = each["spec"]["driver"]
                    labels = get(each["metadata"], "labels", {})
                    # Slices that dryrack publishes for nodes need no program.
                    is_ours = own in self._simulated or labels.get(MANAGED_BY) == MANAGER
                    is_meant = own == driver if driver else not is_ours
                    if is_meant and each["spec"].get("nodeName") in left:
                        with suppress(NotFoundError):
                            await self._client.delete(SLICES, each["metadata"]["name"])
                left = frozenset()
            except (ApiError, TransportError) as error:
                _logger.warning("slices of %s not deleted: %s; retrying", ", ".join(nodes), error)
                await sleep(self._clock, wait)
                wait = min(2 * wait, _WIPE_RETRY_SECONDS_MAX)


def _restart_of(node: Raw | None) -> str:
    return str(get(node or {}, "metadata.annotations", {}).get(KUBELET_RESTART, ""))
