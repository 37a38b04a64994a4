"""
Run an engine on an existing cluster, as programs built with controller-runtime do.

The caches fill at once, also those of a process that is not the leader; the process is ready when
they are complete, and works while it leads. A process that loses the lease stops working at once
and ends, so that it can be restarted. On a signal it stops working, releases the lease and returns.
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
from dryrack.cluster.process.probes import (
    Site,
    health_pages,
    merge_sites,
    metrics_page,
    serve_sites,
)
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
    """Return a line that names the holder of a lease."""
    return metrics.reading(LEADS, _LEADS_TEXT, ("name",))


class AttachError(DryrackError):
    """The cluster cannot be used."""


class Engine(Protocol):
    """An engine on shared caches that runs while its process leads."""

    async def run(self) -> None: ...

    def lacking(self) -> Sequence[str]:
        """Return the kinds that are not cached yet, apart from those of the shared caches."""
        ...


@dataclass(frozen=True, slots=True)
class Candidacy:
    """A lease, and the identity of a candidate for it."""

    lease: Name
    identity: str
    terms: Terms | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """Options of an engine on a cluster."""

    agent: str = "dryrack"
    candidacy: Candidacy | None = None
    """None: it works without a lease."""
    health: Address | None = None
    metrics: Address | None = None
    clock: Timekeeper = field(default_factory=SystemClock)
    chance: Chance = field(default_factory=SystemChance)


@dataclass(frozen=True, slots=True)
class Need:
    """A kind that an engine must be able to list."""

    endpoint: Endpoint
    selection: Selection = EVERYTHING
    is_optional: bool = False
    """True if the cluster need not serve the kind."""


def connection_of(
    environment: Mapping[str, str], *, kubeconfig: str = "", context: str = ""
) -> Connection:
    """
    Return the connection to the cluster that the user means.

    It comes from the named file, else from the files that kubectl reads, else from the service
    account of the pod in which this process runs.
    """
    clock = SystemClock()
    paths = [Path(kubeconfig)] if kubeconfig else kubeconfig_paths(environment, Path.home())
    if any(path.exists() for path in paths):
        return load(paths, clock, context=context)
    if not kubeconfig and environment.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster(environment, clock)
    raise not_found(paths)


def new_identity() -> str:
    """Return an identity that no other process has and that names the host."""
    return f"{socket.gethostname()}_{SystemChance().uuid()}"


async def check_needs(
    client: Client, needs: Sequence[Need], command: str = "dryrack publish"
) -> None:
    """
    Raise an error with a remedy if the cluster is unreachable or denies a list.

    The remedy names the command that prints the manifests of the rights.
    """
    for need in needs:
        try:
            await client.peek(need.endpoint, need.selection)
        except (ApiError, TransportError) as error:
            raise AttachError(f"{error}; {remedy(error, need.endpoint, command)}") from None


def remedy(
    error: ApiError | TransportError, endpoint: Endpoint, command: str = "dryrack publish"
) -> str:
    """Return an error that explains how to fix a failed request."""
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
    """One engine on one cluster; call `run` once."""

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
        """Work until `stopping` is set; raise if the engine cannot go on."""
        async with serve_sites(self._sites()) as addresses:
            for address in addresses:
                _logger.info("pages served", extra={"address": address})
            try:
                await _until(stopping, self._work)
            except ExceptionGroup as failures:
                raise _first(failures) from failures
        _logger.info("stopped")

    def lacking(self) -> tuple[str, ...]:
        """
        Return why the process is not ready, one line for each reason.

        A process that does not lead needs only its caches.
        """
        kinds = {
            *self._informers.unsynced(),
            *(self._engine.lacking() if self._is_leading else ()),
        }
        return tuple(f"{kind}: not synced yet" for kind in sorted(kinds))

    def _sites(self) -> tuple[Site, ...]:
        wanted = (
            (self._attachment.health, health_pages(self.lacking), "--health-address"),
            (self._attachment.metrics, metrics_page(self._metrics.render), "--metrics-address"),
        )
        return merge_sites(
            Site(address, pages, (option,))
            for address, pages, option in wanted
            if address is not None
        )

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
            # restarted by its supervisor.
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
    """Return the first error in nested groups."""
    found = failures.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found


def stopping_by_signal() -> asyncio.Event:
    """Return an event that SIGINT and SIGTERM set."""
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    return stopping
