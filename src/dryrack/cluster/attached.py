"""
An engine on a cluster that is somebody else's.

As a program built with controller-runtime behaves: the caches fill at once, also of one that is
not the leader, and it is ready when they are whole; it works when it leads. Whoever loses the
lease stops working at that moment and ends, to be started again. Told to stop, it stops working,
gives the lease back and returns.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from dryrack.base.errors import DryrackError
from dryrack.base.metrics import Reading, Registry
from dryrack.client.client import EVERYTHING, Client, Selection
from dryrack.client.election import LeaderElection
from dryrack.client.errors import (
    ApiError,
    ForbiddenError,
    NotFoundError,
    TransportError,
    UnauthorizedError,
)
from dryrack.client.informer import Informers
from dryrack.client.kubeconfig import in_cluster, kubeconfig_paths, load, not_found
from dryrack.client.metering import MeteredTransport
from dryrack.client.supervision import Component, Supervisor
from dryrack.cluster.ports import SystemChance, SystemClock
from dryrack.cluster.process.probes import Site, health_pages, merged, metrics_page, serving
from dryrack.controllers import EngineContext

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from dryrack.base.ports import Chance
    from dryrack.client.election import Terms
    from dryrack.client.endpoints import Endpoint
    from dryrack.client.informer import Name
    from dryrack.client.kubeconfig import Connection
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.client.transport import Transport
    from dryrack.cluster.process.serving import Address

_logger = logging.getLogger(__name__)

# As controller-runtime has it, so that its dashboards show it.
LEADS = "leader_election_master_status"
_LEADS_TEXT = "1 if this process holds the lease, 0 otherwise."


def leadership(metrics: Registry) -> Reading:
    """Tells by the name of a lease who holds it."""
    return metrics.reading(LEADS, _LEADS_TEXT, ("name",))


class AttachError(DryrackError):
    """The cluster cannot be worked on."""


class Engine(Protocol):
    """Built on shared caches, run while it leads."""

    async def run(self) -> None: ...

    def lacking(self) -> Sequence[str]:
        """The kinds that it does not know yet, beside those of the shared caches."""
        ...


@dataclass(frozen=True, slots=True)
class Candidacy:
    """For which lease, and under which name."""

    lease: Name
    identity: str
    terms: Terms | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """How an engine is on the cluster, beside what it does there."""

    agent: str = "dryrack"
    candidacy: Candidacy | None = None
    """None: it leads without asking anybody."""
    health: Address | None = None
    metrics: Address | None = None
    clock: Timekeeper = field(default_factory=SystemClock)
    chance: Chance = field(default_factory=SystemChance)


@dataclass(frozen=True, slots=True)
class Need:
    """Objects that an engine must be able to list."""

    endpoint: Endpoint
    selection: Selection = EVERYTHING
    is_optional: bool = False
    """Whether the cluster may do without the kind."""


def connection_of(
    environment: Mapping[str, str], *, kubeconfig: str = "", context: str = ""
) -> Connection:
    """
    The cluster that somebody means.

    It is that of a file that is named, else of those that kubectl would read, else the one that
    this process is a pod of.
    """
    clock = SystemClock()
    paths = [Path(kubeconfig)] if kubeconfig else kubeconfig_paths(environment, Path.home())
    if any(path.exists() for path in paths):
        return load(paths, clock, context=context)
    if not kubeconfig and environment.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster(environment, clock)
    raise not_found(paths)


def new_identity() -> str:
    """A name that no other process has, and that tells where this one is."""
    return f"{socket.gethostname()}_{SystemChance().uuid()}"


async def check_needs(
    client: Client, needs: Sequence[Need], command: str = "dryrack publish"
) -> None:
    """
    Raises with a remedy if the cluster is not there, or will not show what is needed.

    The command tells which rights it needs.
    """
    for need in needs:
        try:
            await client.peek(need.endpoint, need.selection)
        except (ApiError, TransportError) as error:
            raise AttachError(f"{error}; {remedy(error, need.endpoint, command)}") from None


def remedy(
    error: ApiError | TransportError, endpoint: Endpoint, command: str = "dryrack publish"
) -> str:
    """What to do about a request that came to nothing."""
    match error:
        case TransportError():
            return "check that the cluster runs, and check --kubeconfig and --context"
        case UnauthorizedError():
            return "the cluster does not accept the credentials; get new ones"
        case ForbiddenError():
            return f"grant the permissions: {command} --print-rbac | kubectl apply -f -"
        case NotFoundError():
            return f"{endpoint.api_version} needs Kubernetes 1.34 or newer"
        case _:
            return "the API server has an error; try again"


class Attached:
    """One engine on one cluster; to be run once."""

    def __init__(
        self, transport: Transport, build: Callable[[EngineContext], Engine], attachment: Attachment
    ) -> None:
        clock = attachment.clock
        chance = attachment.chance
        self._attachment = attachment
        self._metrics = Registry()
        self._client = Client(MeteredTransport(transport, self._metrics), agent=attachment.agent)
        self._informers = Informers(self._client, clock=clock, chance=chance)
        self._leads = leadership(self._metrics)
        around = EngineContext(self._client, self._informers, clock, chance, metrics=self._metrics)
        self._engine = build(around)
        self._is_leading = False

    async def run(self, stopping: asyncio.Event) -> None:
        """Works until it is told to stop; raises if it cannot go on."""
        async with serving(self._sites()) as addresses:
            for address in addresses:
                _logger.info("pages served", extra={"address": address})
            try:
                await _until(stopping, self._work)
            except ExceptionGroup as failures:
                raise _first(failures) from failures
        _logger.info("stopped")

    def lacking(self) -> tuple[str, ...]:
        """Why it is not ready, a line for each reason; a follower needs its caches alone."""
        kinds = {*self._informers.unsynced(), *(self._engine.lacking() if self._is_leading else ())}
        return tuple(f"{kind}: not synced yet" for kind in sorted(kinds))

    def _sites(self) -> tuple[Site, ...]:
        wanted = (
            (self._attachment.health, health_pages(self.lacking)),
            (self._attachment.metrics, metrics_page(self._metrics.render)),
        )
        return merged(Site(address, pages) for address, pages in wanted if address is not None)

    async def _work(self) -> None:
        async with asyncio.TaskGroup() as group:
            informing = group.create_task(self._informers.run(), name="informers")
            await self._lead()
            informing.cancel()
        raise AttachError("the component stopped unexpectedly; see the log")

    async def _lead(self) -> None:
        candidacy = self._attachment.candidacy
        if candidacy is None:
            await self._work_on()
            return
        election = LeaderElection(
            self._client,
            candidacy.lease,
            candidacy.identity,
            clock=self._attachment.clock,
            chance=self._attachment.chance,
            terms=candidacy.terms,
        )
        self._leads.read_from(lambda: {(candidacy.lease.name,): float(self._is_leading)})
        await election.lead(self._work_on)

    async def _work_on(self) -> None:
        self._is_leading = True
        component = Component(self._attachment.agent, Supervisor(self._attachment.clock))
        try:
            # An object that cannot be handled is logged; any other failure ends the process, to be
            # started again by whatever runs it.
            failure = await component.run(self._engine.run)
        finally:
            self._is_leading = False
        if failure is not None:
            raise failure


async def _until(stopping: asyncio.Event, work: Callable[[], Awaitable[None]]) -> None:
    async def working() -> None:
        await work()

    async with asyncio.TaskGroup() as group:
        tasks = (
            group.create_task(working(), name="work"),
            group.create_task(stopping.wait(), name="word to stop"),
        )
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()


def _first(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first that went wrong, out of however many groups."""
    found = failures.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found


def stopping_by_signal() -> asyncio.Event:
    """Set when the process is told to end."""
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    return stopping
