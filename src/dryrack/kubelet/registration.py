"""
Registration of drivers: the plugin watcher of a kubelet, for one node.

A driver creates a socket below `plugins_registry`. The kubelet calls GetInfo, reports whether the
driver is registered, and unregisters it when the socket is gone. Several instances of a driver can
be registered, as in a rolling update: the newest one that is connected gets the calls.
"""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc

from dryrack.client.timekeeping import sleep
from dryrack.kubelet.health import HEALTH_SERVICES
from dryrack.kubelet.instance import SERVICES, UNREADABLE, Instance, text_of
from dryrack.kubeletapi import REGISTRATION, message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dryrack.client.timekeeping import Timekeeper
    from dryrack.kubelet.health import NodeHealth

_logger = logging.getLogger(__name__)

REGISTRY = "plugins_registry"
# People do not notice half a second, and a look at an unchanged directory costs microseconds.
LOOK_SECONDS = 0.5
# Two changes of a directory that are closer than this can have the same time of modification.
_UNCERTAIN_SECONDS = 2.0
# The timeouts of the kubelet.
_INFO_SECONDS_MAX = 1.0
_NOTIFY_SECONDS_MAX = 5.0
# The kubelet tries a socket again after this time, which doubles up to a limit.
_RETRY_SECONDS = 0.5
_RETRY_SECONDS_MAX = 122.0

Identity = tuple[int, int]


class RefusedError(Exception):
    """The kubelet does not register a plugin; the text is that of the kubelet."""


class Registrations:
    """The registered instances of the drivers of one node."""

    def __init__(
        self,
        node: str,
        directory: Path,
        *,
        clock: Timekeeper,
        on_change: Callable[[str], None],
        health: NodeHealth | None = None,
    ) -> None:
        """
        `on_change` gets the name of a driver whose instances or connections changed.

        `health` reads the health reports of the instances; without it no driver is asked.
        """
        self._health = health
        self._node = node
        self._registry = directory / REGISTRY
        self._clock = clock
        self._on_change = on_change
        self._instances: dict[str, list[Instance]] = {}
        # By socket: its identity, and the task that registers it and watches its connection.
        self._sockets: dict[Path, tuple[Identity, asyncio.Task[None]]] = {}
        # The time of the last modification of the directory, if that shows every change.
        self._seen_at: int | None = None

    def instance(self, driver: str) -> Instance | None:
        """Return the instance that gets calls: the newest that is connected, or the newest."""
        instances = self._instances.get(driver, [])
        connected = [each for each in instances if each.is_connected]
        return next(reversed(connected or instances), None)

    @property
    def drivers(self) -> tuple[str, ...]:
        """The names of the registered drivers."""
        return tuple(sorted(self._instances))

    async def run(self) -> None:
        """Watch the directory until the task is cancelled."""
        self._registry.mkdir(parents=True, exist_ok=True)
        async with asyncio.TaskGroup() as group:
            while True:
                try:
                    modified_at = self._registry.stat().st_mtime_ns
                    if modified_at != self._seen_at:
                        self._look(group)
                        self._seen_at = self._certain_time(modified_at)
                except OSError:
                    # The directory is gone, and so are the sockets.
                    self._look(group)
                    self._seen_at = None
                await sleep(self._clock, LOOK_SECONDS)

    def _certain_time(self, modified_at: int) -> int | None:
        """Return the time if no later change can have the same, and none below can be missed."""
        is_recent = abs(self._clock.now() - modified_at / 1e9) < _UNCERTAIN_SECONDS
        with os.scandir(self._registry) as entries:
            has_directories = any(each.is_dir(follow_symlinks=False) for each in entries)
        return None if is_recent or has_directories else modified_at

    def _look(self, group: asyncio.TaskGroup) -> None:
        found = dict(_sockets_below(self._registry))
        for path, (identity, task) in tuple(self._sockets.items()):
            if found.get(path) != identity:
                # The socket is gone, or another program has created it again.
                task.cancel()
                del self._sockets[path]
        for path, identity in found.items():
            if path not in self._sockets:
                task = group.create_task(self._keep(path), name=f"registration of {path.name}")
                self._sockets[path] = identity, task

    async def _keep(self, path: Path) -> None:
        """Register the plugin of a socket until that succeeds, and follow its connection."""
        wait = _RETRY_SECONDS
        with suppress(asyncio.CancelledError):
            while True:
                try:
                    instance = await self._register(path)
                    break
                except (RefusedError, grpc.aio.AioRpcError) as error:
                    reason = text_of(error) if isinstance(error, grpc.aio.AioRpcError) else error
                    _logger.warning("node %s: socket %s: %s", self._node, path, reason)
                await sleep(self._clock, wait)
                wait = min(2 * wait, _RETRY_SECONDS_MAX)
            try:
                async with asyncio.TaskGroup() as group:
                    if self._health is not None and instance.health_service:
                        watch = self._health.watch(instance)
                        group.create_task(watch, name=f"health of {instance.driver}")
                    await self._follow(instance)
            finally:
                self._instances[instance.driver].remove(instance)
                if not self._instances[instance.driver]:
                    del self._instances[instance.driver]
                _logger.info("node %s: driver %s unregistered", self._node, instance.driver)
                self._on_change(instance.driver)
                await asyncio.shield(instance.channel.close())

    async def _register(self, path: Path) -> Instance:
        async with grpc.aio.insecure_channel(f"unix:{path}") as channel:
            info = await _call(channel, "GetInfo", "InfoRequest", "PluginInfo", _INFO_SECONDS_MAX)
            if info is None:
                raise RefusedError(f"GetInfo: {UNREADABLE}")
            try:
                instance = self._accept(info, path)
            except RefusedError as error:
                await _notify(channel, str(error))
                raise
            await _notify(channel, "")
        self._instances.setdefault(instance.driver, []).append(instance)
        _logger.info(
            "node %s: driver %s registered with %s", self._node, instance.driver, instance.service
        )
        self._on_change(instance.driver)
        return instance

    def _accept(self, info: Any, path: Path) -> Instance:
        """Return the instance that a plugin describes; raise `RefusedError` as a kubelet does."""
        if info.type != "DRAPlugin":
            raise RefusedError(
                f"RegisterPlugin error -- no handler registered for plugin type: {info.type} "
                f"at socket {path}"
            )
        endpoint = info.endpoint or str(path)
        offered = list(info.supported_versions)
        service = next((each for each in offered if each in SERVICES), "")
        if not service:
            reason = "empty list of supported gRPC services (aka supported versions)"
            if offered:
                reason = (
                    f"none of services supported by the plugin ({_go_list(offered)}) are "
                    f"supported by the kubelet ({_go_list(SERVICES)})"
                )
            raise RefusedError(
                "RegisterPlugin error -- plugin validation failed with err: invalid supported "
                f"gRPC versions of DRA driver plugin {info.name} at endpoint {endpoint}: {reason}"
            )
        if any(each.endpoint == endpoint for each in self._instances.get(info.name, ())):
            raise RefusedError(
                "RegisterPlugin error -- plugin registration failed with err: endpoint "
                f"{endpoint} already registered for DRA driver plugin {info.name}"
            )
        health = next((each for each in HEALTH_SERVICES if each in offered), "")
        return Instance(info.name, endpoint, service, health_service=health)

    async def _follow(self, instance: Instance) -> None:
        """Note when the connection to an instance is made or lost."""
        while True:
            state = instance.channel.get_state(try_to_connect=True)
            is_connected = state is grpc.ChannelConnectivity.READY
            if is_connected != instance.is_connected:
                if is_connected:
                    instance.connected.set()
                else:
                    instance.connected.clear()
                self._on_change(instance.driver)
            await instance.channel.wait_for_state_change(state)


def _sockets_below(directory: Path) -> Iterator[tuple[Path, Identity]]:
    """Yield the sockets below a directory; names that begin with a dot are ignored."""
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in sorted(entries, key=lambda each: each.name):
            if entry.name.startswith("."):
                continue
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    yield from _sockets_below(Path(entry.path))
                    continue
                found = entry.stat(follow_symlinks=False)
                if stat.S_ISSOCK(found.st_mode):
                    yield Path(entry.path), (found.st_ino, found.st_ctime_ns)


def _go_list(names: Iterable[str]) -> str:
    return "[" + " ".join(f'"{each}"' for each in names) + "]"


async def _notify(channel: grpc.aio.Channel, error: str) -> None:
    """Report to a plugin whether it is registered."""
    await _call(
        channel,
        "NotifyRegistrationStatus",
        "RegistrationStatus",
        "RegistrationStatusResponse",
        _NOTIFY_SECONDS_MAX,
        plugin_registered=not error,
        error=error,
    )


async def _call(
    channel: grpc.aio.Channel,
    method: str,
    request: str,
    response: str,
    seconds: float,
    **fields: Any,
) -> Any:
    call: Any = channel.unary_unary(
        f"/{REGISTRATION}.Registration/{method}",
        request_serializer=lambda it: it.SerializeToString(),
        response_deserializer=message(REGISTRATION, response).FromString,
    )
    return await call(message(REGISTRATION, request)(**fields), timeout=seconds)
