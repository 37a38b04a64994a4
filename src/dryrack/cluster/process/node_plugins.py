"""
The kubelet plugins of one node: one for each driver, in one process.

Each has its sockets, its checkpoint and its slices. They start in this order: first they restore
the state of an earlier process, then the kubelet may call, and then the slices are published.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from dryrack.base.metrics import Registry
from dryrack.client.endpoints import CLAIMS, SLICES
from dryrack.client.errors import ApiError, TransportError
from dryrack.client.timekeeping import sleep
from dryrack.cluster.attached import Need
from dryrack.cluster.process.instances import instance
from dryrack.cluster.process.probes import Site, health_pages, metrics_page, serve_sites
from dryrack.kubeletplugin import (
    ClaimStatuses,
    Directories,
    FakeKind,
    NodeFaultWatch,
    NodePlugin,
    SlicePublisher,
    Sockets,
    fatal_errors,
    serving_health,
    serving_kubelet,
    states_of_node,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dryrack.base.ports import Chance
    from dryrack.client.client import Client
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.cluster.process.instances import Instance
    from dryrack.cluster.process.serving import Address
    from dryrack.kubeletplugin import DeviceKind

_logger = logging.getLogger(__name__)

COMMAND = "dryrack plugin"
NEEDS = (Need(CLAIMS), Need(SLICES))
# A kubelet registers a plugin within a second after it creates its socket.
REGISTRATION_SECONDS = 10.0
# A claim that ended while the plugin was down, and of which no kubelet knows any more.
RECONCILE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class NodeSite:
    """The node and the directories of its plugins."""

    node: str
    kubelet: Path
    cdi: Path
    rolling_update_uid: str = ""
    """The UID of the pod, if other instances of the plugins may run beside it."""

    def sockets(self, driver: str) -> Sockets:
        return Sockets.of(self.kubelet, driver, self.rolling_update_uid)


class NodePlugins:
    """The plugins of a node; call `run` once."""

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
        fault_file: Path | None = None,
    ) -> None:
        self._health_address = health_address
        self._metrics = metrics or Registry()
        self._metrics_address = metrics_address
        self._fatal_errors = fatal_errors(self._metrics)
        self._site = site
        self._clock = clock
        self._faults = NodeFaultWatch(
            client, site.node, clock=clock, chance=chance, file=fault_file
        )
        self._publishers = tuple(
            SlicePublisher(
                client,
                kind,
                site.node,
                clock=clock,
                chance=chance,
                faults=self._faults,
                may_write=partial(self._is_newest, kind.driver),
            )
            for kind in kinds
        )
        self._instances: dict[str, Instance] = {}
        """By driver, from the time on that they are entered."""
        self._plugins = tuple(
            NodePlugin(
                kind,
                client,
                site.node,
                self._directories(kind),
                metrics=self._metrics,
                writes_metadata=writes_metadata,
                is_shared=bool(site.rolling_update_uid),
                faults=self._faults.current,
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
        """Serve until `stopping` is set; prepared claims stay prepared."""
        async with AsyncExitStack() as stack:
            for plugin in self._plugins:
                directory = self._directories(plugin.kind).plugin
                driver = plugin.kind.driver
                entered = stack.enter_context(instance(directory, self._site.rolling_update_uid))
                self._instances[driver] = entered
                for uid in entered.forget_killed():
                    Sockets.of(self._site.kubelet, driver, uid).remove()
                plugin.recover()
                sockets = self._site.sockets(driver)
                await stack.enter_async_context(serving_kubelet(plugin, sockets, self._faults))
            if (where := self._health_address) is not None:
                health = serving_health(where.host, where.port, self._sockets())
                port = await stack.enter_async_context(health)
                _logger.info("gRPC probes answered", extra={"address": f"{where.host}:{port}"})
            for address in await stack.enter_async_context(serve_sites(self._sites())):
                _logger.info("pages served", extra={"address": address})
            try:
                await self._work(stopping)
            except Exception:
                self._fatal_errors.add()
                raise
            # What others of a rolling update still look after is theirs.
            last = {driver for driver, each in self._instances.items() if each.is_last()}
        for states in self._states:
            if states.driver in last:
                await states.retire(self._site.node)
        for publisher in self._publishers:
            if removes_slices and publisher.driver in last:
                await publisher.remove()
        _logger.info("stopped")

    def _is_newest(self, driver: str) -> bool:
        return self._instances[driver].is_newest()

    def _sockets(self) -> tuple[Sockets, ...]:
        drivers = [each.kind.driver for each in self._plugins]
        return tuple(map(self._site.sockets, drivers))

    def _sites(self) -> tuple[Site, ...]:
        if self._metrics_address is None:
            return ()
        pages = {**metrics_page(self._metrics.render), **health_pages(lambda: ())}
        return (Site(self._metrics_address, pages, ("--metrics-address",)),)

    async def _work(self, stopping: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._faults.run(), name="faults"),
                *(group.create_task(each.run(), name="slices") for each in self._publishers),
                *(group.create_task(self._tend(each), name="orphans") for each in self._plugins),
                *(group.create_task(each.run(), name="states") for each in self._states),
                *(group.create_task(each.run(), name="claims") for each in self._statuses),
                group.create_task(self._warn_of_missing_kubelet(), name="registration"),
            ]
            await stopping.wait()
            for task in tasks:
                task.cancel()

    async def _warn_of_missing_kubelet(self) -> None:
        """Log the drivers that no kubelet has registered after a while."""
        await sleep(self._clock, REGISTRATION_SECONDS)
        for plugin in self._plugins:
            if not plugin.has_met_kubelet:
                _logger.warning(
                    "no kubelet has registered the plugin; check that a kubelet runs on this node"
                    " and that --kubelet-dir is its directory",
                    extra={
                        "driver": plugin.kind.driver,
                        "socket": str(self._site.sockets(plugin.kind.driver).registration),
                    },
                )

    async def _tend(self, plugin: NodePlugin) -> None:
        while True:
            try:
                await plugin.reconcile()
            except (ApiError, TransportError, OSError) as error:
                _logger.warning("claims not compared: %s", error)
            await sleep(self._clock, RECONCILE_SECONDS)

    def _directories(self, kind: DeviceKind) -> Directories:
        return Directories(self._site.kubelet / "plugins" / kind.driver, self._site.cdi)
