"""
Drivers that are programs, for the virtual nodes of a cluster.

Each node has a directory with the layout of a kubelet: drivers register below `plugins_registry`,
and the pods of the node wait until the drivers have prepared their claims. Devices that dryrack
simulates on the same nodes are prepared in memory, as before.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from dryrack.base.errors import DryrackError
from dryrack.client.client import Selection
from dryrack.client.endpoints import NODES, SLICES
from dryrack.client.errors import ApiError, TransportError
from dryrack.kinds.paths import get
from dryrack.kubelet.cdi import ContainerEdits, resolve
from dryrack.kubelet.claims import CheckpointError, NodeClaims
from dryrack.kubelet.instance import CallError
from dryrack.kubelet.registration import REGISTRY, Registrations

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from dryrack.client.client import Client
    from dryrack.client.informer import Informers
    from dryrack.client.timekeeping import Timekeeper, Timer
    from dryrack.kinds.raw import Raw

_logger = logging.getLogger(__name__)

# The kubelet deletes the slices of a driver that is gone for so long.
WIPE_SECONDS = 30.0
# The kubelet tries a pod or an unpreparation again after this time.
RETRY_SECONDS = 10.0
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
    # By the UID of a pod.
    preparing: dict[str, _Call] = field(default_factory=dict)
    prepared: set[str] = field(default_factory=set)
    releasing: dict[str, _Call] = field(default_factory=dict)
    wipes: dict[str, Timer] = field(default_factory=dict)


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
        cdi: Sequence[Path] = (),
    ) -> None:
        """`simulated` are drivers without programs; `cdi` are more directories of CDI specs."""
        self._directory = directory
        self._clock = clock
        self._simulated = simulated
        self._cdi = (*_SYSTEM_CDI, *cdi)
        self._nodes: dict[str, _Node] = {}
        self._listeners: list[NodeListener] = []
        self._tasks: asyncio.TaskGroup | None = None
        self._client: Client | None = None

    def listen(self, listener: NodeListener) -> None:
        """Call the listener whenever a call for a pod of a node has ended."""
        self._listeners.append(listener)

    async def run(
        self, client: Client, informers: Informers, is_virtual: Callable[[Raw], bool]
    ) -> None:
        """Serve the directory of every virtual node until the task is cancelled."""
        nodes = informers.of(NODES)
        self._client = client
        watches: dict[str, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as group:
            self._tasks = group

            def on_node(old: Raw | None, new: Raw | None) -> None:
                name = (new or old or {})["metadata"]["name"]
                is_served = new is not None and is_virtual(new)
                if is_served and name not in watches:
                    node = self._add(name)
                    run = node.registrations.run()
                    watches[name] = group.create_task(run, name=f"drivers of node {name}")
                    self._notify(name)
                elif not is_served and name in watches:
                    watches.pop(name).cancel()
                    del self._nodes[name]

            try:
                nodes.listen(on_node)
                await asyncio.Event().wait()
            finally:
                self._tasks = None

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
        if kubelet is None or self._tasks is None:
            # The kubelet of the node starts; the listener is called when it has.
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
            # The claims are unprepared when the call has ended.
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

    def claims(self) -> set[str]:
        """Return the UIDs of the claims that are prepared on any node."""
        return {e.reference.uid for node in self._nodes.values() for e in node.claims.infos}

    def abandon(self, claim: str) -> None:
        """Unprepare a claim that no pod may use any more."""
        for name, node in self._nodes.items():
            info = node.claims.by_uid(claim)
            for pod in sorted(info.pods) if info is not None else ():
                self.release(pod, name)

    def restart(self, node: str) -> None:
        """Prepare every claim of a node again, as after a restart of its kubelet."""
        kubelet = self._nodes.get(node)
        if kubelet is not None:
            kubelet.claims.forget_prepared()
            kubelet.prepared.clear()
            self._notify(node)

    def injections(self, node: str, uses: Sequence[tuple[Raw, str]]) -> Iterable[ContainerEdits]:
        """Yield the edits of a container with these claims, each with a request or ""."""
        names = list(dict.fromkeys(self._cdi_names(node, uses)))
        if names:
            yield resolve(names, (*self._cdi, self.directory_of(node) / "cdi"))

    def cdi_ids(self, node: str, uid: str) -> Mapping[tuple[str, str, str, str, str], str]:
        """Return the first CDI device of each device of a claim; see `Drivers.cdi_ids`."""
        info = self._nodes[node].claims.by_uid(uid) if node in self._nodes else None
        return {
            (driver, device.pool, device.device, request, device.share_id): device.cdi_ids[0]
            for driver, devices in (info.devices.items() if info is not None else ())
            for device in devices
            if device.cdi_ids
            for request in device.requests
        }

    def _add(self, name: str) -> _Node:
        directory = self.directory_of(name)
        (directory / "plugins").mkdir(parents=True, exist_ok=True)
        (directory / REGISTRY).mkdir(parents=True, exist_ok=True)

        def on_change(driver: str) -> None:
            self._on_driver(name, driver)

        registrations = Registrations(name, directory, clock=self._clock, on_change=on_change)
        claims = NodeClaims(directory, registrations)
        try:
            claims.load()
        except CheckpointError as error:
            # The pods of the node are prepared again, as after the loss of the file.
            _logger.warning("node %s: starting without it: %s", name, error)
        self._nodes[name] = _Node(registrations, claims)
        return self._nodes[name]

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
        except CallError as error:
            _logger.warning("node %s: pod %s: unprepare dynamic resources: %s", node, uid, error)
            call.retry_at = self._clock.now() + RETRY_SECONDS
            # The pod can be gone by then, so that nothing else asks again.
            self._clock.call_at(call.retry_at, lambda: self._release_again(uid, node))
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

    def _on_driver(self, node: str, driver: str) -> None:
        """Delete the slices of a driver that stays away, and try waiting pods again."""
        kubelet = self._nodes.get(node)
        if kubelet is None:
            return
        instance = kubelet.registrations.instance(driver)
        timer = kubelet.wipes.pop(driver, None)
        if timer is not None:
            timer.cancel()
        if instance is None or not instance.is_connected:
            when = self._clock.now() + WIPE_SECONDS
            kubelet.wipes[driver] = self._clock.call_at(when, lambda: self._wipe(node, driver))
        else:
            for call in (*kubelet.preparing.values(), *kubelet.releasing.values()):
                call.retry_at = 0.0
            self._notify(node)

    def _wipe(self, node: str, driver: str) -> None:
        if self._tasks is not None:
            self._start(self._delete_slices(node, driver), f"wipe {driver} on {node}")

    async def _delete_slices(self, node: str, driver: str) -> None:
        assert self._client is not None, "the drivers run"
        fields = f"spec.nodeName={node},spec.driver={driver}"
        try:
            found = await self._client.list(SLICES, Selection(fields=fields))
            for each in found.items:
                await self._client.delete(SLICES, each["metadata"]["name"])
        except (ApiError, TransportError) as error:
            _logger.warning("node %s: slices of driver %s not deleted: %s", node, driver, error)
