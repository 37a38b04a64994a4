"""
The base of every controller: a queue of keys, and workers that reconcile them.

A listener adds the key of what has changed to the queue. When all caches are complete, `decide`
reads them and returns a plan, and the plan is carried out. If a write is refused, the plan was made
from outdated objects: the key is decided again, after a longer wait each time. Two workers never
have the same key at the same time.
"""

import asyncio
import logging
from collections.abc import Hashable, Sequence
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from dryrack.base.metrics import Registry
from dryrack.client.discovery import is_served
from dryrack.client.endpoints import Endpoint
from dryrack.client.errors import ApiError, TransportError
from dryrack.client.informer import Informer, Listener
from dryrack.client.metering import QueueMeter
from dryrack.client.supervision import current_component
from dryrack.client.timekeeping import sleep
from dryrack.client.workqueue import WorkQueue
from dryrack.controllers.writes import EngineContext, Plan, WriteExecutor
from dryrack.kinds.raw import Raw

Key = TypeVar("Key", bound=Hashable)
_logger = logging.getLogger(__name__)

# Enough to keep a server in process busy: a worker waits for answers most of its time.
WORKERS = 4
_DISCOVERY_RETRY_SECONDS = 5.0


class Controller(Protocol):
    """A part of an engine: it is built, and then runs until it is cancelled."""

    async def run(self) -> None: ...


class Reconciler(Generic[Key]):
    """Decides keys, one plan at a time; a subclass says what it watches and how it decides."""

    def __init__(self, context: EngineContext, name: str, *, workers: int = WORKERS) -> None:
        self.name = name
        self.reads: list[Informer] = []
        """The caches that are complete before the first key is decided."""
        self.queue: WorkQueue[Key] = WorkQueue(context.clock, self._warn_of_throttling)
        self._context = context
        self._client = context.client
        self._clock = context.clock
        self._workers = workers
        self._buggy: set[Key] = set()
        """Keys whose last attempt ended in an unexpected exception."""
        self._executor = WriteExecutor(context, name)
        self._meter: ReconcileMeter | None = None
        if context.metrics is not None:
            self._meter = ReconcileMeter(context.metrics, name, workers)
            self.queue.measure(QueueMeter(context.metrics, name, self.queue))

    def watch(self, endpoint: Endpoint, listener: Listener | None = None) -> Informer:
        """
        Return the informer of a kind, and call the listener for each of its objects and changes.

        The informer may know objects already, so set what the listener needs before the call.
        """
        informer = self._context.informers.of(endpoint)
        self.reads.append(informer)
        if listener is not None:
            informer.listen(listener)
        return informer

    async def watch_if_served(
        self, versions: Sequence[Endpoint], listener: Listener
    ) -> Informer | None:
        """
        Return the complete informer of a kind in the first version that is served, or None.

        Discovery is asked once: to serve such a kind, the server is restarted, and so are we.
        """
        while True:
            try:
                served = [each for each in versions if await is_served(self._client, each)]
                break
            except (ApiError, TransportError) as error:
                _logger.warning("discovery of %s: %s", versions[0].resource, error)
            await sleep(self._clock, _DISCOVERY_RETRY_SECONDS)
        if not served:
            return None
        informer = self._context.informers.of(served[0])
        informer.listen(listener)
        await informer.synced.wait()
        return informer

    async def decide(self, key: Key) -> Plan:
        """Return what to write about a key."""
        raise NotImplementedError

    def on_success(self, key: Key, plan: Plan, stored: Sequence[Raw | None]) -> None:
        """Called when all of a plan is written, with the stored object of each write."""

    def on_failure(self, key: Key, error: Exception) -> None:
        """Called when a plan cannot be made or a write is refused; the key is retried."""

    async def run(self) -> None:
        for informer in self.reads:
            await informer.synced.wait()
        async with asyncio.TaskGroup() as group:
            for number in range(self._workers):
                group.create_task(
                    self.queue.work(self._reconcile if self._meter is None else self._measure),
                    name=f"{self.name} worker {number}",
                )

    async def _measure(self, key: Key) -> None:
        assert self._meter is not None, "measured only with a meter"
        result = None
        began = self._clock.now()
        self._meter.begin()
        try:
            result = await self._reconcile(key)
        finally:
            self._meter.end(result, self._clock.now() - began)

    async def _reconcile(self, key: Key) -> "Result":
        try:
            plan = await self.decide(key)
            stored = await self._executor.carry_out(plan.writes)
        except (ApiError, TransportError) as error:
            _logger.info("%s: %s: %s; retrying", self.name, key, error)
            return self._retry(key, error)
        except Exception as error:
            component = current_component()
            if component is None:
                raise
            # One object that a plan cannot cope with must not stop the controller for all others.
            component.fail_for(_key_text(key), error)
            self._buggy.add(key)
            return self._retry(key, error)
        if key in self._buggy:
            self._buggy.discard(key)
            component = current_component()
            if component is not None:
                component.recover(_key_text(key))
        self.on_success(key, plan, stored)
        self.queue.forget(key)
        if plan.again_seconds is None:
            return Result.SUCCESS
        self.queue.add_after(key, plan.again_seconds)
        return Result.REQUEUE_AFTER

    def _retry(self, key: Key, error: Exception) -> "Result":
        self.on_failure(key, error)
        self.queue.retry(key)
        return Result.ERROR

    def _warn_of_throttling(self, key: Key) -> None:
        _logger.warning("%s: %s comes back again and again; held back", self.name, key)


def _key_text(key: Hashable) -> str:
    """Return a key as people write it: `namespace/name`."""
    return "/".join(map(str, key)) if isinstance(key, tuple) else str(key)


class Result(StrEnum):
    """The result of reconciling one key."""

    SUCCESS = "success"
    REQUEUE_AFTER = "requeue_after"
    """All is written; the key is decided again after a time."""
    ERROR = "error"


# The bounds of controller-runtime, so that its dashboards fit.
RECONCILE_BOUNDS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5),
    *(0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0),
    *(6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0),
)
_CONTROLLER = ("controller",)


class ReconcileMeter:
    """The metrics of one controller, with the names that controller-runtime uses."""

    def __init__(self, registry: Registry, name: str, workers: int) -> None:
        totals = registry.counter(
            "controller_runtime_reconcile_total",
            "Reconciliations by result.",
            ("controller", "result"),
        )
        self._totals = {result: totals.of(name, result) for result in Result}
        self._errors = registry.counter(
            "controller_runtime_reconcile_errors_total",
            "Reconciliations that failed and are retried.",
            _CONTROLLER,
        ).of(name)
        self._seconds = registry.histogram(
            "controller_runtime_reconcile_time_seconds",
            "Duration of a reconciliation with its writes.",
            _CONTROLLER,
            bounds=RECONCILE_BOUNDS,
        ).of(name)
        self._active = registry.gauge(
            "controller_runtime_active_workers", "Workers that are reconciling a key.", _CONTROLLER
        ).of(name)
        registry.gauge(
            "controller_runtime_max_concurrent_reconciles", "Number of workers.", _CONTROLLER
        ).of(name).set(workers)

    def begin(self) -> None:
        self._active.add()

    def end(self, result: Result | None, seconds: float) -> None:
        """Count a result; None stands for a reconciliation that was cancelled."""
        self._active.add(-1)
        if result is None:
            return
        self._totals[result].add()
        self._seconds.observe(seconds)
        if result is Result.ERROR:
            self._errors.add()
