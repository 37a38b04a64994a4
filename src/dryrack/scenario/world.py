"""
The world that a scenario runs in: a cluster, its time, and faults.

One runner knows three of them: a cluster in this process whose time is virtual, the same in real
time, and a cluster of somebody else's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from dryrack.base.errors import ContentError
from dryrack.client.discovery import discover
from dryrack.client.endpoints import CLAIMS
from dryrack.scenario.references import Reference

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.client.client import Client
    from dryrack.client.endpoints import Endpoint
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.controllers import Drivers
    from dryrack.kinds.raw import Raw
    from dryrack.scenario.journal import Journal


class Faults(Protocol):
    """What brings faults about, and ends them."""

    async def begin(self, fault: Mapping[str, Any]) -> None: ...

    async def end(self, fault: Mapping[str, Any]) -> None: ...


class NoFaults:
    """Where nothing can be made to fail."""

    async def begin(self, fault: Mapping[str, Any]) -> None:
        raise ContentError("fail: nothing can be made to fail in this world")

    async def end(self, fault: Mapping[str, Any]) -> None:
        raise ContentError("heal: nothing can be made to fail in this world")


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
