"""
The kubelet plugins of one node, put together: one for each driver, in one process.

Each has its sockets, its checkpoint and its slices. They come up in the order in which they are
needed: first the state that an earlier process left is brought in order, then the kubelet may
call, and then the scheduler is told of the devices.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.base.errors import DryrackError
from dryrack.base.metrics import Registry
from dryrack.client.endpoints import CLAIMS, SLICES
from dryrack.client.errors import ApiError, TransportError
from dryrack.client.timekeeping import sleep
from dryrack.cluster.attached import Need
from dryrack.cluster.process.probes import Site, health_pages, metrics_page, serving
from dryrack.kubeletplugin import (
    ClaimStatuses,
    Directories,
    FakeKind,
    NodePlugin,
    SlicePublisher,
    Sockets,
    fatal_errors,
    serving_health,
    serving_kubelet,
    states_of_node,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from dryrack.base.ports import Chance
    from dryrack.client.client import Client
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.cluster.process.serving import Address
    from dryrack.kubeletplugin import DeviceKind

_logger = logging.getLogger(__name__)

COMMAND = "dryrack plugin"
NEEDS = (Need(CLAIMS), Need(SLICES))
# A claim that ended while the plugin was down, and of which no kubelet knows any more.
RECONCILE_SECONDS = 60.0


class PluginError(DryrackError):
    """The plugin cannot be on this node."""


@dataclass(frozen=True, slots=True)
class NodeSite:
    """Where on a node the plugins are."""

    node: str
    kubelet: Path
    cdi: Path


class NodePlugins:
    """The plugins of a node; to be run once."""

    def __init__(
        self,
        client: Client,
        kinds: Sequence[DeviceKind],
        site: NodeSite,
        *,
        clock: Timekeeper,
        chance: Chance,
        state_namespace: str = "",
        writes_metadata: bool = False,
        metrics: Registry | None = None,
        metrics_address: Address | None = None,
        health_address: Address | None = None,
    ) -> None:
        self._health_address = health_address
        self._metrics = metrics or Registry()
        self._metrics_address = metrics_address
        self._fatal_errors = fatal_errors(self._metrics)
        self._site = site
        self._clock = clock
        self._publishers = tuple(
            SlicePublisher(client, kind, site.node, clock=clock, chance=chance) for kind in kinds
        )
        self._plugins = tuple(
            NodePlugin(
                kind,
                client,
                site.node,
                self._directories(kind),
                metrics=self._metrics,
                writes_metadata=writes_metadata,
            )
            for kind in kinds
        )
        self._statuses = tuple(ClaimStatuses(client, each, clock=clock) for each in self._plugins)
        self._states = tuple(
            states_of_node(client, each, each.kind, state_namespace, clock=clock, chance=chance)
            for each in self._plugins
            if state_namespace and isinstance(each.kind, FakeKind)
        )

    async def run(self, stopping: asyncio.Event, *, removes_slices: bool = False) -> None:
        """Serves until it is told to stop; what is prepared stays prepared."""
        async with AsyncExitStack() as stack:
            for plugin in self._plugins:
                stack.enter_context(alone(self._directories(plugin.kind).plugin))
                plugin.recover()
                sockets = Sockets.of(self._site.kubelet, plugin.kind.driver)
                await stack.enter_async_context(serving_kubelet(plugin, sockets))
            if (where := self._health_address) is not None:
                health = serving_health(where.host, where.port, self._sockets())
                port = await stack.enter_async_context(health)
                _logger.info("gRPC probes answered", extra={"address": f"{where.host}:{port}"})
            for address in await stack.enter_async_context(serving(self._sites())):
                _logger.info("pages served", extra={"address": address})
            try:
                await self._work(stopping)
            except Exception:
                self._fatal_errors.add()
                raise
        for states in self._states:
            await states.retire(self._site.node)
        if removes_slices:
            for publisher in self._publishers:
                await publisher.remove()
        _logger.info("stopped")

    def _sockets(self) -> tuple[Sockets, ...]:
        drivers = [each.kind.driver for each in self._plugins]
        return tuple(Sockets.of(self._site.kubelet, driver) for driver in drivers)

    def _sites(self) -> tuple[Site, ...]:
        if self._metrics_address is None:
            return ()
        pages = {**metrics_page(self._metrics.render), **health_pages(lambda: ())}
        return (Site(self._metrics_address, pages),)

    async def _work(self, stopping: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            tasks = [
                *(group.create_task(each.run(), name="slices") for each in self._publishers),
                *(group.create_task(self._tend(each), name="orphans") for each in self._plugins),
                *(group.create_task(each.run(), name="states") for each in self._states),
                *(group.create_task(each.run(), name="claims") for each in self._statuses),
            ]
            await stopping.wait()
            for task in tasks:
                task.cancel()

    async def _tend(self, plugin: NodePlugin) -> None:
        while True:
            try:
                await plugin.reconcile()
            except (ApiError, TransportError, OSError) as error:
                _logger.warning("claims not compared: %s", error)
            await sleep(self._clock, RECONCILE_SECONDS)

    def _directories(self, kind: DeviceKind) -> Directories:
        return Directories(self._site.kubelet / "plugins" / kind.driver, self._site.cdi)


@contextmanager
def alone(directory: Path) -> Iterator[None]:
    """The only process with this directory: two would overwrite what the other remembers."""
    try:
        directory.mkdir(mode=0o750, parents=True, exist_ok=True)
        lock = os.open(directory / "plugin.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise PluginError(
            f"{directory}: {error.strerror}; run as root, or name --kubelet-dir and --cdi-dir"
        ) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise PluginError(f"{directory}: another plugin is at work here; end it first") from None
    try:
        yield
    finally:
        os.close(lock)
