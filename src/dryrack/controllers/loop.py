"""
The thin loop that every controller shares.

Something about a key has changed; when all caches are whole, `decide` reads them and answers with
a plan; the plan is carried out; a refusal means that the plan was made from an older world, and
the key is decided anew, later each time. One key is never in two workers' hands.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, Protocol, TypeVar

from dryrack.client.errors import ApiError, TransportError
from dryrack.client.informer import Informer
from dryrack.client.metering import QueueMeter
from dryrack.client.supervision import current_component
from dryrack.client.workqueue import WorkQueue
from dryrack.controllers.metering import LoopMeter, Result
from dryrack.controllers.writes import EngineContext, Plan, WriteExecutor
from dryrack.kinds.raw import Raw

Key = TypeVar("Key", bound=Hashable)
Told = TypeVar("Told", bound=Hashable, contravariant=True)
_logger = logging.getLogger(__name__)

# Enough to keep a server in process busy; each waits for answers most of its time.
WORKERS = 4


class Controller(Protocol):
    """An engine: built, then run until it is cancelled."""

    async def run(self) -> None: ...


class Witness(Protocol[Told]):
    """Is told what came of each key."""

    def done(self, key: Told, plan: Plan, stored: Sequence[Raw | None]) -> None:
        """All is written, and this is what the server made of each write that stores something."""

    def failed(self, key: Told, error: Exception) -> None:
        """Some write was refused, or the plan could not be made; it is tried again."""


class Loop(Generic[Key]):
    """Decides keys, one plan at a time."""

    def __init__(
        self,
        around: EngineContext,
        name: str,
        decide: Callable[[Key], Awaitable[Plan]],
        *,
        reads: Sequence[Informer],
        workers: int = WORKERS,
        witness: Witness[Key] | None = None,
    ) -> None:
        self.queue: WorkQueue[Key] = WorkQueue(around.clock, self._on_held_back)
        self._meter: LoopMeter | None = None
        self._clock = around.clock
        self._name = name
        self._decide = decide
        self._reads = reads
        self._workers = workers
        self._witness = witness
        self._buggy: set[Key] = set()
        """Keys whose last attempt ended in an unexpected exception."""
        self._hands = WriteExecutor(around, name)
        if around.metrics is not None:
            self._meter = LoopMeter(around.metrics, name, workers)
            self.queue.measure(QueueMeter(around.metrics, name, self.queue))

    async def run(self) -> None:
        for informer in self._reads:
            await informer.synced.wait()
        async with asyncio.TaskGroup() as group:
            for number in range(self._workers):
                group.create_task(
                    self.queue.work(self._handle if self._meter is None else self._metered),
                    name=f"{self._name} worker {number}",
                )

    async def _metered(self, key: Key) -> None:
        assert self._meter is not None, "measured only with a meter"
        result = None
        began = self._clock.now()
        self._meter.began()
        try:
            result = await self._handle(key)
        finally:
            self._meter.ended(result, self._clock.now() - began)

    async def _handle(self, key: Key) -> Result:
        try:
            plan = await self._decide(key)
            stored = await self._hands.carry_out(plan.writes)
        except (ApiError, TransportError) as error:
            _logger.info("%s: %s: %s; retrying", self._name, key, error)
            return self._failed(key, error)
        except Exception as error:
            component = current_component()
            if component is None:
                raise
            # One object that a plan cannot cope with must not stop it for all the others.
            component.fail_for(_shown(key), error)
            self._buggy.add(key)
            return self._failed(key, error)
        if key in self._buggy:
            self._buggy.discard(key)
            component = current_component()
            if component is not None:
                component.recover(_shown(key))
        if self._witness is not None:
            self._witness.done(key, plan, stored)
        self.queue.forget(key)
        if plan.again_seconds is None:
            return Result.SUCCESS
        self.queue.add_after(key, plan.again_seconds)
        return Result.REQUEUE_AFTER

    def _on_held_back(self, key: Key) -> None:
        _logger.warning("%s: %s comes back again and again; held back", self._name, key)

    def _failed(self, key: Key, error: Exception) -> Result:
        if self._witness is not None:
            self._witness.failed(key, error)
        self.queue.retry(key)
        return Result.ERROR


def _shown(key: Hashable) -> str:
    """Return a key as people write it: `namespace/name`."""
    return "/".join(map(str, key)) if isinstance(key, tuple) else str(key)
