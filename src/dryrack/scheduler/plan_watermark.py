"""
The low-water mark of plans: which gangs were bound whole, and which were left in the middle.

A pod that is bound with its gang gets the time of the plan as an annotation, by the binding itself.
A lease has the time up to which all plans are settled: each gang whole, or dissolved. Whoever
starts anew reads both: half a gang with a later time was left in the middle, and one with an
earlier time was whole once and has lost members since.

The lease is for all gangs, and written once a second at most, so that no pod costs a further write.
It is behind by as much: of a gang that became whole in the last second of a scheduler, and lost a
member before the next one started, nobody can say that it was whole.

Invariant: the mark never passes a plan that is being written, nor a gang that is half bound.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from dryrack.client.endpoints import LEASES
from dryrack.client.errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    TransportError,
)
from dryrack.client.timekeeping import micro_timestamp, seconds_of, sleep
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from dryrack.client.client import Client
    from dryrack.client.informer import Name
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.kinds.raw import Raw

_logger = logging.getLogger(__name__)

PLAN = "dryrack.dev/gang-plan"
# Plans that are settled in this time share one write; longer than any cache is behind.
SETTLING_SECONDS = 1.0
_MICROSECOND = 1e-6
_HOLDER = "dryrack"


class PlanWatermark:
    """Marks plans, and keeps the lease."""

    def __init__(
        self,
        client: Client,
        clock: Timekeeper,
        lease: Name,
        oldest_open: Callable[[], str | None],
    ) -> None:
        """`oldest_open` tells the first plan of those whose gangs are half bound."""
        self._client = client
        self._clock = clock
        self._name = lease
        self._oldest_open = oldest_open
        self._lease: Raw | None = None
        self._is_forbidden = False
        self._reading = asyncio.Lock()
        self._in_flight: set[str] = set()
        self._newest = ""
        self._is_news = asyncio.Event()

    @property
    def settled(self) -> str | None:
        """Up to when all plans are settled; None if nobody can say."""
        said = (self._lease or {}).get("spec", {}).get("renewTime")
        return None if said is None else str(said)

    async def known(self) -> None:
        """Reads the lease, or makes it; a scheduler without a right to it works without marks."""
        async with self._reading:
            if self._lease is not None or self._is_forbidden:
                return
            try:
                self._lease = await self._read() or await self._made()
                # Plans may have been seen before.
                self._is_news.set()
            except (ForbiddenError, NotFoundError) as error:
                self._is_forbidden = True
                _logger.warning("gangs are not marked: lease %s: %s", "/".join(self._name), error)

    def is_open(self, plan: str) -> bool:
        """Whether it is known that the plan was not settled."""
        settled = self.settled
        return bool(plan and settled) and plan > str(settled)

    def seen(self, plan: str) -> None:
        """Pods of this plan are bound, whoever has made it."""
        if plan > self._newest:
            self._newest = plan
            self._is_news.set()

    @contextmanager
    def plan(self) -> Iterator[Mapping[str, str]]:
        """What pods are annotated with that are bound now; no two plans have the same time."""
        settled = self.settled
        if settled is None:
            yield {}
            return
        last = seconds_of(max(settled, self._newest))
        plan = micro_timestamp(max(self._clock.now(), last + _MICROSECOND))
        self._in_flight.add(plan)
        self.seen(plan)
        try:
            yield {PLAN: plan}
        finally:
            # The caches show in a moment what came of it.
            forget = partial(self._in_flight.discard, plan)
            self._clock.call_at(self._clock.now() + SETTLING_SECONDS, forget)

    async def run(self) -> None:
        """Keeps the lease up to date, and writes nothing as long as there is no other plan."""
        while True:
            await self._is_news.wait()
            await sleep(self._clock, 2 * SETTLING_SECONDS)
            self._is_news.clear()
            try:
                await self._advance()
            except (ApiError, TransportError) as error:
                _logger.info("lease %s: %s", "/".join(self._name), error)
            if self.is_open(self._newest):
                self._is_news.set()

    async def _advance(self) -> None:
        if not self.is_open(self._newest):
            return
        moments = [self._clock.now() - SETTLING_SECONDS]
        oldest = self._oldest_open()
        open_plans = (*self._in_flight, *(() if oldest is None else (oldest,)))
        moments += [seconds_of(each) - _MICROSECOND for each in open_plans]
        reached = micro_timestamp(min(moments))
        lease = self._lease
        settled = self.settled
        if lease is None or settled is None or reached <= settled:
            return
        spec = {**lease["spec"], "renewTime": reached}
        try:
            self._lease = await self._client.update(LEASES, {**lease, "spec": spec})
        except (ConflictError, NotFoundError):
            self._lease = await self._read()

    async def _read(self) -> Raw | None:
        try:
            return await self._client.get(LEASES, self._name.name, self._name.namespace)
        except NotFoundError:
            return None

    async def _made(self) -> Raw | None:
        metadata = {"name": self._name.name, "namespace": self._name.namespace}
        spec = {"holderIdentity": _HOLDER, "renewTime": micro_timestamp(self._clock.now())}
        try:
            return await self._client.create(LEASES, {"metadata": metadata, "spec": spec})
        except ConflictError:
            return await self._read()


def plan_of(pod: Raw) -> str:
    """The time of the plan by which the pod was bound with its gang, if there was one."""
    return str(get(pod["metadata"], "annotations", {}).get(PLAN, ""))
