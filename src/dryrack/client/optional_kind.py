"""
Optional kinds: custom resources that may be missing, defined later, or deleted again.

An `OptionalKind` checks whether its kind is served, and runs an informer for as long as it is.
Definitions are watched by name, so that a new kind is noticed within a moment; without permission
for that, the kind is checked at intervals. When a kind is deleted, the listener gets the deletion
of each object.

Promise: `is_known` is true only if all objects are known, or if there certainly are none. If a
server does not answer, or does not serve a kind whose definition exists, the objects stay.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from dryrack.client.client import Selection
from dryrack.client.discovery import is_served
from dryrack.client.endpoints import DEFINITIONS
from dryrack.client.errors import ApiError, ForbiddenError, TransportError
from dryrack.client.informer import Name
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.client.client import Client
    from dryrack.client.endpoints import Endpoint
    from dryrack.client.informer import Informer, Informers, Listener
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.kinds.raw import Raw

_logger = logging.getLogger(__name__)

# A definition is served within a second; one that is never served is checked less and less often.
SOON_SECONDS = 0.25
# The interval of checks without permission to watch definitions.
SELDOM_SECONDS = 30.0


class OptionalKind:
    """A kind that may not be served; it is checked while `run` runs."""

    def __init__(
        self,
        client: Client,
        endpoint: Endpoint,
        *,
        clock: Timekeeper,
        informers: Informers,
        on_object: Listener,
        on_known: Callable[[], None],
        is_builtin: bool = False,
    ) -> None:
        """
        Build it for a kind; `is_builtin` means that the server itself may serve it.

        A built-in kind is checked once, because enabling it requires a restart of the server.
        """
        self.endpoint = endpoint
        self._is_builtin = is_builtin
        self._client = client
        self._clock = clock
        self._informers = informers
        self._on_object = on_object
        self._on_known = on_known
        self._is_absent = False
        self._objects: Informer | None = None
        self._following: asyncio.Task[None] | None = None
        self._definition: Informer | None = None
        self._may_watch = True
        self._woken = asyncio.Event()
        self._checks = 0

    @property
    def is_known(self) -> bool:
        if self._objects is not None:
            return self._objects.synced.is_set()
        return self._is_absent

    def get(self, name: str, namespace: str = "") -> Raw | None:
        return self._objects.get(namespace, name) if self._objects is not None else None

    def all(self) -> tuple[Raw, ...]:
        return self._objects.all() if self._objects is not None else ()

    async def run(self) -> None:
        """Check the kind until the task is canceled, and run its informer."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._woken.clear()
                is_settled = await self._check(group)
                self._checks = 0 if is_settled else self._checks + 1
                if is_settled and self._is_builtin:
                    return
                seconds = SELDOM_SECONDS
                if not is_settled:
                    seconds = min(SOON_SECONDS * 2.0 ** min(self._checks - 1, 16), SELDOM_SECONDS)
                timer = self._clock.call_at(self._clock.now() + seconds, self._woken.set)
                try:
                    await self._woken.wait()
                finally:
                    timer.cancel()

    async def _check(self, group: asyncio.TaskGroup) -> bool:
        """Check whether the kind is served; return whether the result is certain."""
        try:
            is_defined = not self._is_builtin and await self._is_defined(group)
            is_here = await is_served(self._client, self.endpoint)
        except (ApiError, TransportError) as error:
            _logger.warning(
                "%s: cannot find out whether it is served: %s", self.endpoint.resource, error
            )
            return False
        if is_here:
            self._follow(group)
        elif not is_defined:
            self._leave()
        return is_here or not is_defined

    async def _is_defined(self, group: asyncio.TaskGroup) -> bool:
        """Return whether a definition serves the kind; False also without permission to read it."""
        name = self.endpoint.resource
        if self._definition is None:
            selection = Selection(fields=f"metadata.name={name}")
            try:
                await self._client.list(DEFINITIONS, selection)
            except ForbiddenError as error:
                if self._may_watch:
                    seconds = int(SELDOM_SECONDS)
                    _logger.info("%s: looked for every %d s: %s", name, seconds, error)
                self._may_watch = False
                return False
            self._definition = self._informers.new_informer(DEFINITIONS, selection)
            self._definition.listen(self._on_definition)
            group.create_task(self._definition.run(), name=f"informer definition {name}")
        await self._definition.synced.wait()
        definition = self._definition.objects.get(Name("", name))
        if definition is None:
            return False
        # A definition whose names conflict with another kind is never established.
        versions = get(definition, "spec.versions", ())
        served = [each.get("name") for each in versions if each.get("served")]
        conditions = get(definition, "status.conditions", ())
        established = any(
            each["type"] == "Established" and each.get("status") == "True" for each in conditions
        )
        return established and self.endpoint.version in served

    def _on_definition(self, old: Raw | None, new: Raw | None) -> None:
        self._checks = 0
        self._woken.set()

    def _follow(self, group: asyncio.TaskGroup) -> None:
        if self._objects is not None:
            return
        self._is_absent = False
        self._objects = self._informers.new_informer(self.endpoint)
        self._objects.listen(self._on_object)
        self._following = group.create_task(
            self._run_informer(self._objects), name=f"informer {self.endpoint.resource}"
        )

    async def _run_informer(self, objects: Informer) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(objects.run(), name=f"watch {self.endpoint.resource}")
            await objects.synced.wait()
            self._on_known()

    def _leave(self) -> None:
        objects = self._objects
        following = self._following
        self._objects = None
        self._following = None
        if following is not None:
            following.cancel()
        is_news = not self._is_absent
        self._is_absent = True
        for obj in objects.all() if objects is not None else ():
            self._on_object(obj, None)
        if is_news:
            self._on_known()
