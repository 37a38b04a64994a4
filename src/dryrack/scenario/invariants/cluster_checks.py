"""
Invariants on an existing cluster, for the objects of the scenario only.

The writes of such a cluster cannot be seen in order, so it is read after each step, and once more
after the last one if there were faults. Kinds are read one after the other. A violation that comes
from a write between two reads is gone a moment later, and not reported.
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
    """The objects of a cluster that belong to a scenario."""

    namespaces: frozenset[str]
    nodes: frozenset[str]
    strangers: frozenset[str]
    """The UIDs of objects that existed before."""

    def has(self, endpoint: Endpoint, obj: Raw) -> bool:
        """
        Return whether an object belongs to the scenario.

        All nodes do: pods of a scenario may run on existing nodes.
        """
        if endpoint.resource == NODES.resource:
            return True
        if obj["metadata"]["uid"] in self.strangers:
            return False
        if endpoint.resource == SLICES.resource:
            return obj["spec"].get("nodeName", "") in self.nodes
        return obj["metadata"].get("namespace", "") in self.namespaces


class ClusterInvariants:
    """Reads a cluster, and checks the objects of a scenario."""

    def __init__(
        self, client: Client, clock: Timekeeper, faults: InjectedFaults, scope: ScenarioScope
    ) -> None:
        self._client = client
        self._clock = clock
        self._faults = faults
        self._scope = scope
        self._served: Sequence[Endpoint] = ()

    async def broken(self) -> str:
        """Wait for ever: the writes of this cluster cannot be followed."""
        await asyncio.Event().wait()
        return ""

    async def after_step(self) -> str:
        return await self._find_lasting(_BETWEEN_SECONDS_MAX, at_rest=False)

    async def at_rest(self) -> str:
        if not self._faults.has_failed or not self._faults.is_well():
            return ""
        return await self._find_lasting(_REST_SECONDS_MAX, at_rest=True)

    async def _find_lasting(self, seconds_max: float, *, at_rest: bool) -> str:
        """Return the violations that last for so long."""
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
