"""
Engines: what runs beside the API server and keeps the cluster going.

The scheduler, the controllers and the virtual kubelet are engines. Engines come in families that
share their informers. `assembly` says which engines a cluster has.

With a supervisor, a component that fails stops alone and starts again (see `client.supervision`).
Without one, as in tests and scenarios, the first failure is raised: a control plane that has
quietly lost its scheduler is worse than none.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dryrack.base.errors import DryrackError, InternalError
from dryrack.kinds.releases import DEFAULT_RELEASE, Release

if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterator,
        Awaitable,
        Callable,
        Collection,
        Coroutine,
        Mapping,
        Sequence,
    )

    from dryrack.base.metrics import Registry
    from dryrack.base.ports import Chance
    from dryrack.client.client import Client
    from dryrack.client.informer import Informers
    from dryrack.client.supervision import Supervisor
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.cluster.faults.board import FaultBoard, Life
    from dryrack.controllers import Sandboxes


class UnknownEngineError(DryrackError):
    """An engine is named that does not exist."""


@dataclass(frozen=True, slots=True)
class Wiring:
    """A client, a clock and a random source for one family of engines."""

    client: Client
    clock: Timekeeper
    chance: Chance
    authority: str = ""
    """The certificates by which clients verify the API server, in PEM; "" if it has none."""
    informers: Informers | None = None
    """All families of a cluster share them, so that each kind is cached once."""
    metrics: Registry | None = None
    """Where engines count what they do."""
    sandboxes: Sandboxes | None = None
    """Runs the containers of virtual nodes."""
    release: Release = DEFAULT_RELEASE
    """The release of Kubernetes that the engines and virtual nodes behave as."""
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    """The feature gates that are not at the default of the release."""
    supervisor: Supervisor | None = None
    """Restarts components that fail; None: the first failure is raised."""

    async def supervise(self, name: str, start: Callable[[], Awaitable[None]]) -> None:
        """Run a component, under the supervisor if there is one."""
        if self.supervisor is None:
            await start()
            return

        async def run() -> None:
            await start()
            raise InternalError(f"the {name} ended by itself")

        await self.supervisor.run(name, run)


@dataclass(frozen=True, slots=True)
class Family:
    """
    Engines that run together, by name, in the order in which they start.

    `run` takes the names of the engines to run, and runs them until it is cancelled. It imports
    what the engines need.
    """

    name: str
    engines: tuple[str, ...]
    run: Callable[[Collection[str], Wiring], Awaitable[None]]


@asynccontextmanager
async def running_engines(
    families: Sequence[Family],
    wiring_of: Callable[[str], Wiring],
    board: FaultBoard | None = None,
) -> AsyncIterator[None]:
    """
    Run the engines for the length of a block; the first failure that is not supervised ends it.

    With a board, faults can make engines fail, or crash and start again.
    """
    raised: Exception | None = None
    try:
        async with asyncio.TaskGroup() as group:
            wiring = wiring_of("informers")
            if board is not None:
                client = board.life_of("informers").client(wiring.client)
                wiring = replace(wiring, client=client)
            informers = _informers(wiring)
            tasks = [group.create_task(informers.run(), name="informers")]
            for family in families:
                if board is None:
                    run = _run(family, replace(wiring_of(family.name), informers=informers))
                else:
                    # From here on the board knows the family, before its first life begins.
                    first = board.life_of(family.name)
                    run = _run_lives(family, first, wiring_of, shared=informers)
                tasks.append(group.create_task(run, name=family.name))
            try:
                yield
            except Exception as error:  # noqa: BLE001 - raised below, as it was and not in a group
                raised = error
            finally:
                for task in tasks:
                    task.cancel()
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures
    if raised is not None:
        raise raised


def _informers(wiring: Wiring) -> Informers:
    from dryrack.client.informer import Informers

    return Informers(
        wiring.client, clock=wiring.clock, chance=wiring.chance, supervisor=wiring.supervisor
    )


async def _run(family: Family, wiring: Wiring) -> None:
    await family.run(family.engines, wiring)
    raise DryrackError(f"the {family.name} ended by themselves; see the log")


async def _run_lives(
    family: Family, first: Life, wiring_of: Callable[[str], Wiring], *, shared: Informers
) -> None:
    """
    Run a family, and start it again whenever it crashes, as a kubelet restarts a static pod.

    A crash cancels the tasks of the family, and what they would still write is lost. The next life
    has informers of its own, and begins with what the API server has.
    """
    board = first.board
    life = first
    while True:
        wiring = wiring_of(family.name)
        wiring = replace(wiring, client=life.client(wiring.client))
        if life is first and not board.informers_apart:
            await _run_until_crash(life, _run(family, replace(wiring, informers=shared)))
        else:
            own = _informers(wiring)
            family_run = _run(family, replace(wiring, informers=own))
            await _run_until_crash(life, family_run, own.run())
        await life.may_start.wait()
        life = board.life_of(family.name)


async def _run_until_crash(life: Life, *runs: Coroutine[Any, Any, None]) -> None:
    """Run these until the life is over; raise what one of them raises before that."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(run, name=f"{life.engine} {number}")
                for number, run in enumerate(runs)
            ]
            await life.over.wait()
            for task in tasks:
                task.cancel()
    except* Exception:
        # The errors of an engine that crashes are lost with it.
        if not life.is_over:
            raise
