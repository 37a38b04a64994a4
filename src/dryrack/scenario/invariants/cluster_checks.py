"""
Invariants of a cluster that is somebody's: what a scenario has brought is looked at, no more.

Nobody tells the writes of such a cluster in order, so it is read when a step has ended, and once
more after the last one if something was made to fail. Kinds are read one after the other: what
looks wrong because something was written in between is right a moment later, and not told of.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.client.discovery import discover
from dryrack.client.endpoints import NODES, SLICES
from dryrack.client.timekeeping import sleep
from dryrack.scenario.checkers import WATCHED, check

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from dryrack.client.client import Client
    from dryrack.client.endpoints import Endpoint
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.kinds.raw import Raw
    from dryrack.scenario.embedded_faults import InjectedFaults

_LOOK_SECONDS = 1.0
# How long something may look wrong: between two reads, and until all that was begun is at its end.
_BETWEEN_SECONDS_MAX = 3.0
_REST_SECONDS_MAX = 120.0


@dataclass(frozen=True, slots=True)
class ScenarioScope:
    """Which objects of a cluster are a scenario's."""

    namespaces: frozenset[str]
    nodes: frozenset[str]
    strangers: frozenset[str]
    """UIDs of what was there before."""

    def has(self, endpoint: Endpoint, obj: Raw) -> bool:
        """All nodes: pods of a scenario may be on nodes of others."""
        if endpoint.resource == NODES.resource:
            return True
        if obj["metadata"]["uid"] in self.strangers:
            return False
        if endpoint.resource == SLICES.resource:
            return obj["spec"].get("nodeName", "") in self.nodes
        return obj["metadata"].get("namespace", "") in self.namespaces


class ClusterInvariants:
    """Reads a cluster, and holds what is a scenario's against the invariants."""

    def __init__(
        self, client: Client, clock: Timekeeper, faults: InjectedFaults, scope: ScenarioScope
    ) -> None:
        self._client = client
        self._clock = clock
        self._faults = faults
        self._scope = scope
        self._served: Sequence[Endpoint] = ()

    async def broken(self) -> str:
        """Nobody tells of writes."""
        await asyncio.Event().wait()
        return ""

    async def after_step(self) -> str:
        return await self._lasting(_BETWEEN_SECONDS_MAX, at_rest=False)

    async def at_rest(self) -> str:
        if not self._faults.has_failed or not self._faults.is_well():
            return ""
        return await self._lasting(_REST_SECONDS_MAX, at_rest=True)

    async def _lasting(self, seconds_max: float, *, at_rest: bool) -> str:
        """What is wrong and stays so for that long."""
        latest = self._clock.now() + seconds_max
        while found := check([each async for each in self._objects()], at_rest=at_rest):
            if self._clock.now() >= latest:
                return "\n".join(map(str, found))
            await sleep(self._clock, _LOOK_SECONDS)
        return ""

    async def _objects(self) -> AsyncIterator[tuple[str, Raw]]:
        if not self._served:
            served = [each.endpoint for each in await discover(self._client)]
            self._served = [each for each in served if each.resource in WATCHED]
        for endpoint in self._served:
            for obj in (await self._client.list(endpoint)).items:
                if self._scope.has(endpoint, obj):
                    yield endpoint.resource, obj
