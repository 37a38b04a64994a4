"""
Leader election: of several candidates, only the holder of a lease works.

The holder renews the lease. A candidate takes the lease if its own clock shows no renewal for the
duration of the lease, so that clocks need not agree. A holder that cannot renew stops before
another candidate may begin: its deadline is shorter than the lease, also if the server does not
answer. A holder that finds another holder stops at once.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from dryrack.base.errors import DryrackError
from dryrack.base.ports import Chance
from dryrack.client.client import Client
from dryrack.client.endpoints import LEASES
from dryrack.client.errors import ApiError, ConflictError, NotFoundError, TransportError
from dryrack.client.informer import Name
from dryrack.client.timekeeping import Timekeeper, add_jitter, deadline, micro_timestamp, sleep
from dryrack.kinds.paths import spec_of
from dryrack.kinds.raw import Raw

_logger = logging.getLogger(__name__)


NEVER = float("-inf")
# A server that does not answer must not keep a process from ending; the lease then runs out.
GIVE_BACK_SECONDS_MAX = 5.0


class LostLeadershipError(DryrackError):
    """The lease could not be renewed in time, or another has it; the work was stopped."""


class _TakenError(DryrackError):
    """Another candidate has taken the lease."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The durations of an election; the defaults are those of client-go."""

    lease_seconds: float = 15.0
    renew_seconds: float = 10.0
    retry_seconds: float = 2.0


def is_open(lease: Raw, identity: str, *, unchanged_seconds: float) -> bool:
    """Return whether a candidate may take a lease that has not changed for this time."""
    spec = spec_of(lease)
    holder = spec.get("holderIdentity") or ""
    duration = float(spec.get("leaseDurationSeconds") or 0)
    return holder in ("", identity) or unchanged_seconds >= duration


def take_lease(lease: Raw, identity: str, terms: Terms, now: float) -> Raw:
    """Return the lease with this holder, taken or renewed now."""
    spec = spec_of(lease)
    when = micro_timestamp(now)
    is_mine = spec.get("holderIdentity") == identity
    changes = {
        "holderIdentity": identity,
        "leaseDurationSeconds": int(terms.lease_seconds),
        "renewTime": when,
        "acquireTime": spec.get("acquireTime") or when if is_mine else when,
        "leaseTransitions": int(spec.get("leaseTransitions") or 0) + (not is_mine),
    }
    return lease | {"spec": spec | changes}


class LeaderElection:
    """A candidate for one lease."""

    def __init__(
        self,
        client: Client,
        lease: Name,
        identity: str,
        *,
        clock: Timekeeper,
        chance: Chance,
        terms: Terms | None = None,
    ) -> None:
        self._client = client
        self._lease = lease
        self._identity = identity
        self._clock = clock
        self._chance = chance
        self._terms = terms or Terms()
        self._seen: tuple[str, float] = ("", clock.now())
        # The start of the last successful attempt; other candidates count from a later time.
        self._renewed = NEVER
        self._complaint = ""
        self._holder = ""

    async def lead(self, work: Callable[[], Awaitable[None]]) -> None:
        """Wait for the lease, work while holding it, and release it."""
        while not await self._try():
            await sleep(self._clock, add_jitter(self._chance, self._terms.retry_seconds))
        _logger.info("lease %s: held by %s", "/".join(self._lease), self._identity)
        try:
            await self._work_while_held(work)
        finally:
            await self._release()

    async def _work_while_held(self, work: Callable[[], Awaitable[None]]) -> None:
        async def worker() -> None:
            await work()

        async with asyncio.TaskGroup() as group:
            working = group.create_task(worker(), name="leader's work")
            renewing = group.create_task(self._renew(), name="leader's lease")
            await asyncio.wait((working, renewing), return_when=asyncio.FIRST_COMPLETED)
            is_lost = not working.done()
            working.cancel()
            renewing.cancel()
        if is_lost:
            name = "/".join(self._lease)
            raise LostLeadershipError(f"lease {name}: {renewing.result()}; start again")

    async def _renew(self) -> str:
        """Renew the lease until it is lost; return the reason."""
        try:
            while True:
                async with deadline(self._clock, self._renewed + self._terms.renew_seconds):
                    is_renewed = False
                    while not is_renewed:
                        await sleep(self._clock, self._terms.retry_seconds)
                        is_renewed = await self._try()
        except TimeoutError:
            return "not renewed in time"
        except _TakenError:
            return "taken by another"

    async def _try(self) -> bool:
        """Make one attempt to take or renew the lease."""
        try:
            return await self._attempt()
        except ConflictError:
            return False
        except (ApiError, TransportError) as error:
            # A candidate tries every other second; an error is logged once.
            if str(error) != self._complaint:
                _logger.warning("lease %s: %s", "/".join(self._lease), error)
            self._complaint = str(error)
            return False

    async def _attempt(self) -> bool:
        now = self._clock.now()
        try:
            lease = await self._client.get(LEASES, self._lease.name, self._lease.namespace)
        except NotFoundError:
            metadata = {"name": self._lease.name, "namespace": self._lease.namespace}
            new = take_lease({"metadata": metadata}, self._identity, self._terms, now)
            await self._client.create(LEASES, new)
            self._renewed = now
            return True
        revision = lease["metadata"]["resourceVersion"]
        if revision != self._seen[0]:
            self._seen = (revision, now)
        if not is_open(lease, self._identity, unchanged_seconds=now - self._seen[1]):
            if self._renewed != NEVER:
                raise _TakenError(f"lease {'/'.join(self._lease)}: taken by another")
            holder = lease["spec"]["holderIdentity"]
            if holder != self._holder:
                _logger.info("lease %s: held by %s; waiting", "/".join(self._lease), holder)
            self._holder = holder
            return False
        await self._client.update(LEASES, take_lease(lease, self._identity, self._terms, now))
        self._renewed = now
        return True

    async def _release(self) -> None:
        self._renewed = NEVER
        try:
            async with deadline(self._clock, self._clock.now() + GIVE_BACK_SECONDS_MAX):
                lease = await self._client.get(LEASES, self._lease.name, self._lease.namespace)
                spec = spec_of(lease)
                if spec.get("holderIdentity") == self._identity:
                    released = spec | {"holderIdentity": "", "leaseDurationSeconds": 1}
                    await self._client.update(LEASES, lease | {"spec": released})
        except (ApiError, TransportError, TimeoutError) as error:
            _logger.info("lease %s: not given back: %s", "/".join(self._lease), error)
