"""A small server to ask: three plain kinds, virtual time, no sockets, nothing plugged in."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.apiserver.replay import CountingChance

from dryrack.apiserver.registry import STATUS, Registry, Resource
from dryrack.apiserver.server import ApiServer
from dryrack.apiserver.strategy import Strategy
from dryrack.client.timekeeping import VirtualClock
from dryrack.client.transport import Request, Response
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.store import Key, Store

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from dryrack.kinds.raw import Raw


CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
TASKS = "/apis/example.com/v1/namespaces/default/tasks"


class TaskStrategy(Strategy):
    """A kind with a status, a generation, a selectable field and a grace."""

    selectable_fields = ("spec.where",)

    def prepare_create(self, obj: Raw, write: Any) -> Raw:
        kept = super().prepare_create(obj, write)
        return {**kept, "metadata": {**kept["metadata"], "generation": 1}}

    def grace_seconds(self, obj: Raw, requested: int | None) -> int:
        return 30 if requested is None else requested


def registry() -> Registry:
    return Registry(
        [
            Resource(
                group="",
                version="v1",
                kind="Namespace",
                plural="namespaces",
                namespaced=False,
                strategy=Strategy(KindRules(namespaced=False)),
            ),
            Resource(
                group="",
                version="v1",
                kind="ConfigMap",
                plural="configmaps",
                namespaced=True,
                strategy=Strategy(KindRules(namespaced=True)),
            ),
            Resource(
                group="example.com",
                version="v1",
                kind="Task",
                plural="tasks",
                namespaced=True,
                strategy=TaskStrategy(KindRules(namespaced=True, has_status=True)),
                subresources={"status": STATUS},
            ),
        ]
    )


@dataclass(slots=True)
class Asked:
    """A server, and short ways to ask it."""

    store: Store = field(default_factory=Store)
    clock: VirtualClock = field(default_factory=VirtualClock)
    server: ApiServer = field(init=False)

    def __post_init__(self) -> None:
        self.server = ApiServer(self.store, registry(), clock=self.clock, chance=CountingChance())
        namespace = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "default"}}
        self.store.put(Key("namespaces", "", "default"), namespace, expected=None)

    async def ask(
        self, request: str, body: Any = None, *, headers: dict[str, str] | None = None
    ) -> Response:
        """`request` is "METHOD path?query"."""
        method, _, target = request.partition(" ")
        path, _, query = target.partition("?")
        content = body if isinstance(body, bytes) else b""
        if body is not None and not isinstance(body, bytes):
            content = json.dumps(body).encode()
        return await self.server.send(Request(method, path, query, headers or {}, content))

    async def told(self, request: str, body: Any = None) -> Raw:
        """The answer as an object."""
        answer = await self.ask(request, body)
        assert isinstance(answer.body, bytes)
        raw: Raw = json.loads(answer.body)
        return raw

    async def make(self, name: str, path: str = CONFIG_MAPS, **parts: Any) -> Raw:
        metadata = {"name": name, **parts.pop("metadata", {})}
        made = await self.told(f"POST {path}", {"metadata": metadata, **parts})
        assert made["kind"] != "Status", made
        return made


@dataclass(slots=True)
class Watching:
    """Reads a watch without waiting for what has not happened."""

    response: Response

    async def events(self) -> list[Raw]:
        """Return the events since the last call; stop reading if the watch is over."""
        body = self.response.body
        assert not isinstance(body, bytes), body
        reading = asyncio.ensure_future(body.__anext__())
        for _ in range(3):
            await asyncio.sleep(0)
        if not reading.done():
            reading.cancel()
            return []
        try:
            text = reading.result()
        except StopAsyncIteration:
            raise WatchIsOverError from None
        assert isinstance(text, bytes)
        return [json.loads(line) for line in text.splitlines()]

    async def names(self) -> list[tuple[str, str]]:
        return [
            (event["type"], event["object"]["metadata"].get("name", ""))
            for event in await self.events()
        ]

    async def close(self) -> None:
        body = self.response.body
        assert not isinstance(body, bytes)
        await body.aclose()


class WatchIsOverError(Exception):
    """The server has ended the watch."""


def run(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scene)
