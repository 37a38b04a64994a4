"""
The engines that run beside the API server, by name.

An engine is whatever keeps the cluster going: the scheduler, the claims controller, the virtual
kubelet. Each is a coroutine on the client and can be left out (`--without`), so that somebody
else's can take its place. An engine that ends or fails takes the cluster down: a control plane
that has quietly lost its scheduler is worse than none.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.base.errors import DryrackError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence

    from dryrack.base.ports import Chance
    from dryrack.client.client import Client
    from dryrack.client.timekeeping import Timekeeper


class UnknownEngineError(DryrackError):
    """Somebody names an engine that there is not."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What an engine gets: a client of its own, time and chance."""

    client: Client
    clock: Timekeeper
    chance: Chance


@dataclass(frozen=True, slots=True)
class Engine:
    """`run` goes on until it is cancelled; whatever it needs it imports when it is called."""

    name: str
    run: Callable[[Surroundings], Awaitable[None]]


# In the order in which they start.
ENGINES: tuple[Engine, ...] = ()


def chosen(without: Collection[str], engines: Sequence[Engine] = ENGINES) -> tuple[Engine, ...]:
    """All engines but those; each name must be one."""
    names = [engine.name for engine in engines]
    for name in without:
        if name not in names:
            known = ", ".join(names) or "none"
            raise UnknownEngineError(f"no engine {name!r} to leave out; there are: {known}")
    return tuple(engine for engine in engines if engine.name not in without)


@asynccontextmanager
async def running(
    engines: Sequence[Engine], surroundings: Callable[[str], Surroundings]
) -> AsyncIterator[None]:
    """Runs the engines for the length of a block; the first that fails ends the block."""
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_kept(engine, surroundings(engine.name)), name=engine.name)
            for engine in engines
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


async def _kept(engine: Engine, surroundings: Surroundings) -> None:
    await engine.run(surroundings)
    raise DryrackError(f"engine {engine.name}: ended by itself; see the log")
