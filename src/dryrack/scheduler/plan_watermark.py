"""
The low-water mark of plans, by which a new scheduler recognizes gangs that were bound only in part.

A pod that is bound with its gang gets the time of the plan as an annotation, by the binding itself.
A lease has the time until which all plans are settled: each gang is complete, or dissolved. A new
scheduler reads both: a gang with too few bound members and a later time was interrupted, and one
with an earlier time was complete once and has lost members since.

One lease serves all gangs and is written once a second at most, so that no pod costs a further
write. Therefore it lags: if a gang became complete in the last second of a scheduler, and lost a
member before the next one started, the new scheduler takes it for interrupted.

Invariant: the mark never passes a plan that is being written, nor a gang that is bound in part.
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
# Plans that are settled in this time share one write; informers lag less than this.
SETTLING_SECONDS = 1.0
_MICROSECOND = 1e-6
_HOLDER = "dryrack"


class PlanWatermark:
    """Marks the pods of plans with their time, and writes the lease."""

    def __init__(
        self,
        client: Client,
        clock: Timekeeper,
        lease: Name,
        oldest_open: Callable[[], str | None],
    ) -> None:
        """`oldest_open` returns the oldest plan whose gang is bound only in part."""
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
    def settled_until(self) -> str | None:
        """The time until which all plans are settled; None without a lease."""
        renew_time = (self._lease or {}).get("spec", {}).get("renewTime")
        return None if renew_time is None else str(renew_time)

    async def load(self) -> None:
        """Read or create the lease; without permission for it the scheduler marks no plans."""
        async with self._reading:
            if self._lease is not None or self._is_forbidden:
                return
            try:
                self._lease = await self._read() or await self._create()
                # Plans may have been seen before.
                self._is_news.set()
            except (ForbiddenError, NotFoundError) as error:
                self._is_forbidden = True
                _logger.warning("gangs are not marked: lease %s: %s", "/".join(self._name), error)

    def is_open(self, plan: str) -> bool:
        """Return whether the plan is known not to be settled."""
        settled = self.settled_until
        return bool(plan and settled) and plan > str(settled)

    def note_plan(self, plan: str) -> None:
        """Note that pods of this plan are bound; another scheduler may have made it."""
        if plan > self._newest:
            self._newest = plan
            self._is_news.set()

    @contextmanager
    def mark_plan(self) -> Iterator[Mapping[str, str]]:
        """Yield the annotations of pods that are bound now; no two plans have the same time."""
        settled = self.settled_until
        if settled is None:
            yield {}
            return
        last = seconds_of(max(settled, self._newest))
        plan = micro_timestamp(max(self._clock.now(), last + _MICROSECOND))
        self._in_flight.add(plan)
        self.note_plan(plan)
        try:
            yield {PLAN: plan}
        finally:
            # The informers show the result in a moment.
            forget = partial(self._in_flight.discard, plan)
            self._clock.call_at(self._clock.now() + SETTLING_SECONDS, forget)

    async def run(self) -> None:
        """Keep the lease up to date; write nothing as long as there is no newer plan."""
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
        settled = self.settled_until
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

    async def _create(self) -> Raw | None:
        metadata = {"name": self._name.name, "namespace": self._name.namespace}
        spec = {"holderIdentity": _HOLDER, "renewTime": micro_timestamp(self._clock.now())}
        try:
            return await self._client.create(LEASES, {"metadata": metadata, "spec": spec})
        except ConflictError:
            return await self._read()


def plan_of(pod: Raw) -> str:
    """Return the time of the plan by which the pod was bound with its gang, or ""."""
    return str(get(pod["metadata"], "annotations", {}).get(PLAN, ""))
