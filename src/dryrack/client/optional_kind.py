"""
Optional kinds: custom resources that may be absent, defined later, or taken away again.

An `OptionalKind` finds out whether its kind is served, and keeps an informer for as long as it is.
Definitions are watched, each by its name, so that a new kind is there within a moment; where they
may not be watched, the kind is looked for now and then. A kind that goes takes its objects with
it: the listener is told of each.

Promise: `is_known` only when all objects are known, or when there certainly are none. A server
that does not answer, or says no more than that it does not know the kind while its definition is
there, is no reason to believe that anything is gone.
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

# A definition is served within a second; one that never is must not cost a request a second.
SOON_SECONDS = 0.25
# How long a new kind may stay unseen where definitions may not be watched.
SELDOM_SECONDS = 30.0


class OptionalKind:
    """One kind; `run` keeps it going, and nothing is known before."""

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
        `is_builtin` is a kind that comes with the server, if it is switched on.

        That is found out once: who does so starts the server anew, and its clients see it.
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
        self._looks = 0

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
        """Looks for the kind until it is cancelled, and keeps its informer going."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._woken.clear()
                is_settled = await self._looked(group)
                self._looks = 0 if is_settled else self._looks + 1
                if is_settled and self._is_builtin:
                    return
                await self._pause(SELDOM_SECONDS if is_settled else self._soon())

    def _soon(self) -> float:
        return min(SOON_SECONDS * 2.0 ** min(self._looks - 1, 16), SELDOM_SECONDS)

    async def _pause(self, seconds: float) -> None:
        timer = self._clock.call_at(self._clock.now() + seconds, self._woken.set)
        try:
            await self._woken.wait()
        finally:
            timer.cancel()

    async def _looked(self, group: asyncio.TaskGroup) -> bool:
        """Whether it could be told what is the case."""
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
        """Whether a definition says that it is served; False also if that may not be asked."""
        name = self.endpoint.resource
        if self._definition is None:
            selection = Selection(fields=f"metadata.name={name}")
            try:
                await self._client.list(DEFINITIONS, selection)
            except ForbiddenError as error:
                self._tell_once(error)
                return False
            self._definition = self._informers.apart(DEFINITIONS, selection)
            self._definition.listen(self._on_definition)
            group.create_task(self._definition.run(), name=f"informer definition {name}")
        await self._definition.synced.wait()
        definition = self._definition.objects.get(Name("", name))
        return definition is not None and self._promises(definition)

    def _promises(self, definition: Raw) -> bool:
        """Whether it says that our version is served; one with a name that is taken never is."""
        versions = get(definition, "spec.versions", ())
        served = [each.get("name") for each in versions if each.get("served")]
        conditions = get(definition, "status.conditions", ())
        established = any(
            each["type"] == "Established" and each.get("status") == "True" for each in conditions
        )
        return established and self.endpoint.version in served

    def _tell_once(self, error: ForbiddenError) -> None:
        if self._may_watch:
            seconds = int(SELDOM_SECONDS)
            _logger.info("%s: looked for every %d s: %s", self.endpoint.resource, seconds, error)
        self._may_watch = False

    def _on_definition(self, old: Raw | None, new: Raw | None) -> None:
        self._looks = 0
        self._woken.set()

    def _follow(self, group: asyncio.TaskGroup) -> None:
        if self._objects is not None:
            return
        self._is_absent = False
        self._objects = self._informers.apart(self.endpoint)
        self._objects.listen(self._on_object)
        self._following = group.create_task(
            self._followed(self._objects), name=f"informer {self.endpoint.resource}"
        )

    async def _followed(self, objects: Informer) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(objects.run(), name=f"watch {self.endpoint.resource}")
            await objects.synced.wait()
            self._on_known()

    def _leave(self) -> None:
        objects = self._objects
        following = self._following
        self._objects = self._following = None
        if following is not None:
            following.cancel()
        is_news = not self._is_absent
        self._is_absent = True
        for obj in objects.all() if objects is not None else ():
            self._on_object(obj, None)
        if is_news:
            self._on_known()
