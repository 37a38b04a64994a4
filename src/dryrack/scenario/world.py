"""
The world that a scenario runs in: a cluster, its time, and faults.

One runner knows three of them: a cluster in this process whose time is virtual, the same in real
time, and a cluster of somebody else's.
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
    """What brings faults about, in the words of `dryrack.cluster.faults`, and ends them."""

    async def begin(self, words: str) -> None: ...

    async def end(self, words: str) -> None: ...


class Invariants(Protocol):
    """What must be so in a world whatever happens."""

    async def broken(self) -> str:
        """Waits until one is broken, and tells which and how."""
        ...

    async def after_step(self) -> str:
        """What is wrong when a step has ended, where writes are not followed; "" else."""
        ...

    async def at_rest(self) -> str:
        """
        Waits until nothing is under way, and tells what is wrong then; "" if nothing is.

        Where nothing was made to fail, or something still is, it does not wait.
        """
        ...


class World(Protocol):
    """What a runner needs of a world."""

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
        """Whether nothing but the file and the seed decide what happens."""
        ...

    def revision(self) -> int | None:
        """A number that is another after every change; None if only a look tells."""
        ...

    async def list(self, endpoint: Endpoint) -> Sequence[Raw]:
        """All objects of a kind, with their kind and version."""
        ...

    async def log(self, pod: Raw, container: str) -> str: ...


class Kinds:
    """The kinds that a cluster serves, found out again when one is missing."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._served: tuple[Endpoint, ...] = ()

    async def of(self, api_version: str, kind: str) -> Endpoint | None:
        """The kind of an object, in the version that the object is in."""
        group, _, version = api_version.rpartition("/")
        found = await self.named(Reference(kind, group, "", ""))
        return None if found is None else replace(found, version=version)

    async def named(self, reference: Reference) -> Endpoint | None:
        """The kind that a scenario names."""
        found = self._search(reference)
        if found is None:
            self._served = tuple(each.endpoint for each in await discover(self._client))
            found = self._search(reference)
        return found

    def _search(self, reference: Reference) -> Endpoint | None:
        return next((each for each in self._served if reference.names_kind(each)), None)


class Glance:
    """A world at one moment: what was read once is not read again."""

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
    """The log of a container of a virtual node, which nobody executes."""
    from dryrack.controllers import log_of

    claims = {
        (each["metadata"]["namespace"], each["metadata"]["name"]): each
        for each in await world.list(CLAIMS)
    }
    return log_of(pod, container, lambda *name: claims.get(name), drivers=drivers)
