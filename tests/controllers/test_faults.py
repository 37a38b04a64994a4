"""Every write can fail, and any controller may die: in the end the cluster is as it should be."""

from __future__ import annotations

import asyncio
import logging
import random
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from tests.client.planes import Road, refusal
from tests.controllers import scenes

from dryrack.client.client import Client
from dryrack.cluster.control_plane import ControlPlaneOptions, build_control_plane
from dryrack.cluster.ports import SystemChance, SystemClock
from dryrack.controllers.engines import ENGINES, run
from dryrack.scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from dryrack.client.transport import Request, Response

SCENES: dict[str, Callable[[Client], Awaitable[object]]] = {
    "claim": lambda client: scenes.claim_comes_and_goes(client, "play", "node-a"),
    "deployment": lambda client: scenes.deployment_rolls(client, "play"),
    "job": lambda client: scenes.job_completes(client, "play"),
    "stateful set": lambda client: scenes.stateful_set_keeps_order(client, "play"),
    "namespace": lambda client: scenes.namespace_ends(client, "play"),
}


class Unlucky:
    """Refuses two writes of five, each time in another way; a seed says which."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def __call__(self, request: Request) -> Response | None:
        if request.method == "GET" or self._random.random() > 0.4:
            return None
        ways = ((409, "Conflict"), (500, "InternalError"), (429, "TooManyRequests"))
        return refusal(*self._random.choice(ways))


class Deadly:
    """Let a number of requests pass, and then kill the controllers."""

    def __init__(self, requests: int) -> None:
        self._left = requests
        self.death = asyncio.Event()

    def __call__(self, request: Request) -> Response | None:
        self._left -= 1
        if self._left == 0:
            self.death.set()
        return None


@asynccontextmanager
async def engines_on(road: Road, *, lives: int) -> AsyncIterator[None]:
    """Controllers and a scheduler that reach the server by this road; they die so many times."""
    client = Client(road)
    clock = SystemClock()
    chance = SystemChance()

    async def live() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(run(ENGINES, client=client, clock=clock, chance=chance))
            group.create_task(Scheduler(client, clock=clock, chance=chance).run())

    async def keep_alive() -> None:
        for number in range(lives - 1):
            road.refuse = deadly = Deadly(70 + 30 * number)
            async with asyncio.TaskGroup() as group:
                life = group.create_task(live())
                await deadly.death.wait()
                life.cancel()
        await live()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(keep_alive())
        yield
        task.cancel()


async def play(scene: str, refuse: Callable[[Request], Response | None], lives: int) -> None:
    transport = build_control_plane(ControlPlaneOptions()).transport
    road = Road(transport)
    road.refuse = refuse
    async with engines_on(road, lives=lives):
        client = Client(transport)
        await scenes.make_class(client)
        await scenes.make_node(client, "node-a", devices=2)
        await scenes.make_namespace(client, "play")
        await SCENES[scene](client)


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("seed", [1, 2])
def test_refused_writes_are_made_good(
    scene: str, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The scenes end correctly with two refused writes of five."""
    asyncio.run(play(scene, Unlucky(seed), 1))

    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("scene", SCENES)
def test_controllers_that_die_are_replaced(scene: str, caplog: pytest.LogCaptureFixture) -> None:
    """New ones go on from what is stored, wherever the last ones were."""
    asyncio.run(play(scene, lambda _: None, 5))

    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []
