"""
The world in which a scenario runs: a cluster, its clock, and faults.

There are three: an embedded cluster in virtual time, the same in real time, and an existing
cluster.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from dryrack.client.discovery import discover
from dryrack.client.endpoints import CLAIMS
from dryrack.scenario.references import Reference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.client.client import Client
    from dryrack.client.endpoints import Endpoint
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.controllers import Drivers
    from dryrack.kinds.raw import Raw
    from dryrack.scenario.journal import Journal


class Faults(Protocol):
    """The faults of a world, in the words of `dryrack.cluster.faults`."""

    async def begin(self, words: str) -> None: ...

    async def end(self, words: str) -> None: ...


class Invariants(Protocol):
    """The invariants of a world."""

    async def broken(self) -> str:
        """Wait until one is broken, and return which and how."""
        ...

    async def after_step(self) -> str:
        """Return the violations after a step, "" if there are none or writes are followed."""
        ...

    async def at_rest(self) -> str:
        """
        Wait until nothing is under way, and return the violations, or "".

        If there were no faults, or one is still in force, it does not wait.
        """
        ...


class World(Protocol):
    """The operations that a runner needs of a world."""

    @property
    def client(self) -> Client: ...

    @property
    def clock(self) -> Timekeeper: ...

    @property
    def journal(self) -> Journal: ...

    @property
    def faults(self) -> Faults: ...

    @property
    def invariants(self) -> Invariants: ...

    @property
    def is_reproducible(self) -> bool:
        """Return whether the file and the seed alone decide what happens."""
        ...

    def revision(self) -> int | None:
        """Return a number that changes with every write; None if the world has none."""
        ...

    async def list(self, endpoint: Endpoint) -> Sequence[Raw]:
        """Return all objects of a kind, with their kind and version."""
        ...

    async def log(self, pod: Raw, container: str) -> str: ...


class Kinds:
    """The kinds that a cluster serves, discovered again when one is missing."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._served: tuple[Endpoint, ...] = ()

    async def of(self, api_version: str, kind: str) -> Endpoint | None:
        """Return the endpoint of an object, in the version of the object."""
        group, _, version = api_version.rpartition("/")
        found = await self.named(Reference(kind, group, "", ""))
        return None if found is None else replace(found, version=version)

    async def named(self, reference: Reference) -> Endpoint | None:
        """Return the endpoint of the kind that a scenario names, or None."""
        found = self._search(reference)
        if found is None:
            self._served = tuple(each.endpoint for each in await discover(self._client))
            found = self._search(reference)
        return found

    def _search(self, reference: Reference) -> Endpoint | None:
        return next((each for each in self._served if reference.names_kind(each)), None)


class ClusterReader:
    """A world at one moment: each list is read once."""

    def __init__(self, world: World, kinds: Kinds) -> None:
        self._world = world
        self._kinds = kinds
        self._lists: dict[Endpoint, Sequence[Raw]] = {}

    async def endpoint(self, reference: Reference) -> Endpoint | None:
        return await self._kinds.named(reference)

    async def list(self, endpoint: Endpoint) -> Sequence[Raw]:
        if endpoint not in self._lists:
            self._lists[endpoint] = await self._world.list(endpoint)
        return self._lists[endpoint]

    async def log(self, pod: Raw, container: str) -> str:
        return await self._world.log(pod, container)


async def planned_log(world: World, drivers: Drivers | None, pod: Raw, container: str) -> str:
    """Return the log of a container on a virtual node, which no process writes."""
    from dryrack.controllers import log_of

    claims = {
        (each["metadata"]["namespace"], each["metadata"]["name"]): each
        for each in await world.list(CLAIMS)
    }
    return log_of(pod, container, lambda *name: claims.get(name), drivers=drivers)
