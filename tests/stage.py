"""
The cluster that tests run on: `dryrack.testing.AsyncCluster` in virtual time.

    @pytest.mark.stage(only=("scheduler",))
    async def test_a_pod_is_bound(stage: Stage) -> None:
        await stage.create(PODS, pod("a"))
        await stage.advance(5)
        assert await stage.bound() == ["a"]

The `stage` fixture makes one for each test; the arguments of the marker are those of `Stage`. Tests
that are asynchronous functions run by themselves (see tests/conftest.py).
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from dryrack.client.client import Client, Selection
from dryrack.client.endpoints import EVENTS, PODS
from dryrack.client.errors import NotFoundError
from dryrack.client.timekeeping import VirtualClock
from dryrack.cluster import ControlPlaneOptions, EngineOptions, SeededChance
from dryrack.scheduler import Scheduler
from dryrack.testing import AsyncCluster, Setup

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine
    from types import TracebackType
    from typing import Self

    from dryrack.base.ports import Chance
    from dryrack.client.endpoints import Endpoint
    from dryrack.client.transport import Transport
    from dryrack.kinds.raw import Raw
    from dryrack.store import Store

_LOOK_SECONDS = 0.1


class Stage(AsyncCluster):
    """A cluster in virtual time, whose engines run from the start."""

    def __init__(
        self,
        *,
        only: Collection[str] | None = None,
        without: Collection[str] = (),
        engines: EngineOptions | None = None,
        start: float | None = None,
        seed: int = 0,
        chance: Chance | None = None,
        informers_apart: bool = False,
        prepare: Callable[[Any], Awaitable[object]] | None = None,
        **options: Any,
    ) -> None:
        """
        `only` names the engines that run: () for none. `prepare` fills the cluster before the test
        begins. `options` are fields of ControlPlaneOptions.
        """
        self._prepare = prepare
        self._tasks: list[asyncio.Task[object]] = []
        self.clock = VirtualClock() if start is None else VirtualClock(start)
        self._informers_apart = informers_apart
        super().__init__(
            Setup(seed=seed),
            options=ControlPlaneOptions(
                clock=self.clock, chance=chance or SeededChance(seed), **options
            ),
            engines=engines or EngineOptions(only=only, without=without),
        )

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self.board.informers_apart = self._informers_apart
        self._engines.start()
        # One turn of the loop, so that the board knows the engines.
        await asyncio.sleep(0)
        try:
            await self.set_up()
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def set_up(self) -> None:
        """Fill the cluster before the test begins."""
        if self._prepare is not None:
            await self._prepare(self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await super().__aexit__(kind, error, _)

    def run_beside(self, work: Coroutine[Any, Any, object]) -> asyncio.Task[object]:
        """Run something beside the test; it is cancelled when the test ends."""
        task = asyncio.create_task(work)
        self._tasks.append(task)
        return task

    @asynccontextmanager
    async def scheduler(
        self, transport: Transport | None = None, **options: Any
    ) -> AsyncIterator[None]:
        """Run a scheduler within the block; it has had its turn when the block begins."""
        client = Client(transport or self.transport, agent="scheduler")
        chance = SeededChance(self._setup.seed)
        scheduler = Scheduler(client, clock=self.clock, chance=chance, **options)
        task = asyncio.create_task(scheduler.run(), name="scheduler")
        try:
            await self.advance(1)
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    @property
    def store(self) -> Store:
        return self.control_plane.store

    @property
    def transport(self) -> Transport:
        """For requests that a client does not make."""
        return self.control_plane.transport

    def engine(self, name: str = "engine") -> Client:
        """Return the client of an engine, which faults of the API hit."""
        return self.board.life_of(name).client(self.control_plane.client(name))

    async def create(self, endpoint: Endpoint, *objects: Raw) -> list[Raw]:
        return [await self.client.create(endpoint, each) for each in objects]

    async def until(self, holds: Callable[[], Awaitable[bool]], *, seconds: float = 30) -> None:
        """Let time pass until the condition holds; fail if it does not in time."""
        end = self.now() + seconds
        while not await holds():
            if self.now() >= end:
                pytest.fail(f"the condition does not hold after {seconds} s")
            await self.advance(_LOOK_SECONDS)

    async def pod(self, name: str, namespace: str = "default") -> Raw:
        return await self.client.get(PODS, name, namespace)

    async def is_in_phase(self, pod: str, phase: str) -> bool:
        return bool((await self.pod(pod))["status"]["phase"] == phase)

    async def is_gone(self, endpoint: Endpoint, name: str, namespace: str = "default") -> bool:
        try:
            await self.client.get(endpoint, name, namespace if endpoint.is_namespaced else "")
        except NotFoundError:
            return True
        return False

    async def node_of(self, pod: str) -> str:
        """Return the node of a pod, "" if it has none."""
        return str((await self.pod(pod))["spec"].get("nodeName", ""))

    async def bound(self) -> list[str]:
        """Return the names of the pods that have a node."""
        pods = (await self.client.list(PODS)).items
        return [each["metadata"]["name"] for each in pods if each["spec"].get("nodeName")]

    async def condition(self, pod: str) -> Raw:
        """Return the condition PodScheduled of a pod, {} if it has none."""
        conditions = (await self.pod(pod)).get("status", {}).get("conditions", ())
        return next((each for each in conditions if each["type"] == "PodScheduled"), {})

    async def refusal(self, pod: str) -> str:
        """Return why a pod is not scheduled, by its condition."""
        return str((await self.condition(pod)).get("message", ""))

    async def events(self, name: str, reason: str, namespace: str = "default") -> list[str]:
        """Return the messages of events about an object, oldest first."""
        listing = await self.client.list(EVENTS, Selection(namespace=namespace))
        return [
            each["message"]
            for each in sorted(listing.items, key=lambda it: int(it["metadata"]["resourceVersion"]))
            if each["involvedObject"]["name"] == name and each["reason"] == reason
        ]
