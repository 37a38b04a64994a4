"""
Engines that crash and are started again, as a kubelet restarts the pods of a control plane.

A family that dies takes nothing along: its tasks are cancelled, what they would write in parting
reaches nobody, and the next life has informers of its own and begins with what the API server has.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dryrack.client.informer import Informers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from dryrack.cluster.engines import Family, Wiring
    from dryrack.cluster.faults.board import FaultBoard, Life


def supervised(
    family: Family,
    board: FaultBoard,
    surroundings: Callable[[str], Wiring],
    *,
    shared: Informers,
    keep: Callable[[Family, Wiring], Awaitable[None]],
) -> Coroutine[Any, Any, None]:
    """
    Runs a family, life after life; `keep` is one of them, and ends only by an error.

    From now on the board knows the family, although its first life has not begun.
    """
    first = board.life_of(family.name)

    async def run() -> None:
        life = first
        while True:
            around = surroundings(family.name)
            around = replace(around, client=life.client(around.client))
            if life is first and not board.informers_apart:
                await _until_death(life, keep(family, replace(around, informers=shared)))
            else:
                informers = Informers(
                    around.client,
                    clock=around.clock,
                    chance=around.chance,
                    supervisor=around.supervisor,
                )
                own = keep(family, replace(around, informers=informers))
                await _until_death(life, own, informers.run())
            await life.may_start.wait()
            life = board.life_of(family.name)

    return run()


async def _until_death(life: Life, *parts: Awaitable[None]) -> None:
    """Raises what a part raises, unless it does so because the life is over."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(_awaited(part), name=f"{life.engine} {number}")
                for number, part in enumerate(parts)
            ]
            await life.over.wait()
            for task in tasks:
                task.cancel()
    except* Exception:
        # Whatever a dying engine runs into is lost with it.
        if not life.is_over:
            raise


async def _awaited(part: Awaitable[None]) -> None:
    await part
