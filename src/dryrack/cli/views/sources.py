"""Find the cluster of a command as kubectl does, and read objects from it or from files."""

from __future__ import annotations

import asyncio
import os
import shlex
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from dryrack.base.errors import DryrackError
from dryrack.cli.files import UsageError
from dryrack.cli.output import say, shown

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from dryrack.client.client import Client
    from dryrack.client.endpoints import Endpoint
    from dryrack.client.kubeconfig import Connection
    from dryrack.kinds.meta import KubernetesObject


AGENT = "dryrack-view"
FILES_AND_CLUSTER = "-f reads files, not a cluster; leave out --kubeconfig, --context and --name"
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The options that name the cluster or the files."""

    kubeconfig: str = ""
    context: str = ""
    # The name of a virtual cluster.
    cluster: str = ""
    files: tuple[str, ...] = ()
    # Empty: that of the kubeconfig's context, or all of the files.
    namespace: str = ""
    all_namespaces: bool = False

    def __post_init__(self) -> None:
        if self.files and (self.kubeconfig or self.context or self.cluster):
            raise UsageError(FILES_AND_CLUSTER)
        if self.cluster and (self.kubeconfig or self.context):
            raise UsageError("--name selects a cluster; leave out --kubeconfig and --context")
        if self.namespace and self.all_namespaces:
            raise UsageError("-n and -A are mutually exclusive; use one of them")

    def objects(self, kinds: Sequence[Endpoint]) -> tuple[KubernetesObject, ...]:
        """Return the objects of these kinds in the selected namespace."""
        if self.files:
            from dryrack.cli.objects import load
            from dryrack.placement import with_namespace

            objects = (with_namespace(each.object) for each in load(self.files))
            if not self.namespace:
                return tuple(objects)
            return tuple(
                each for each in objects if each.metadata.namespace in ("", self.namespace)
            )
        from dryrack.client.client import Selection
        from dryrack.cluster import read_snapshot

        connection = self.connection()
        selection = Selection(namespace=self.namespace_in(connection))
        snapshot = on_cluster(connection, lambda client: read_snapshot(client, kinds, selection))
        for note in snapshot.notes:
            say(shown(note))
        return snapshot.objects

    def connection(self) -> Connection:
        return connection_to(kubeconfig=self.kubeconfig, context=self.context, cluster=self.cluster)

    def namespace_in(self, connection: Connection) -> str:
        """Return the selected namespace; empty for all."""
        if self.all_namespaces:
            return ""
        return self.namespace or connection.namespace

    @property
    def shows_namespaces(self) -> bool:
        """True if the objects may be in several namespaces."""
        return self.all_namespaces or bool(self.files and not self.namespace)


def on_cluster(connection: Connection, work: Callable[[Client], Awaitable[_Result]]) -> _Result:
    """Run `work` with a client of the cluster and return its result."""
    from dryrack.client.client import Client
    from dryrack.client.endpoints import NODES
    from dryrack.client.errors import TransportError
    from dryrack.client.https import connected
    from dryrack.cluster import remedy

    async def run() -> _Result:
        async with connected(connection) as transport:
            try:
                return await work(Client(transport, agent=AGENT))
            except TransportError as error:
                raise DryrackError(f"{error}; {remedy(error, NODES)}") from None

    return asyncio.run(run())


def connection_to(
    *, kubeconfig: str = "", context: str = "", cluster: str | None = None
) -> Connection:
    """
    Return the cluster that the options select, or the one that kubectl would use.

    If neither exists and exactly one virtual cluster runs, return that one and print a note.
    `cluster` is the name of a virtual cluster; None if the command has no option for it.
    """
    if cluster:
        return _connection_by_name(cluster)
    from dryrack.client.kubeconfig import NoContextError
    from dryrack.cluster import connection_of
    from dryrack.cluster.process import all_states

    try:
        return connection_of(os.environ, kubeconfig=kubeconfig, context=context)
    except NoContextError as error:
        running = [state for state in all_states() if state.running() is not None]
        if kubeconfig or context or not running:
            raise
        first = running[0].kubeconfig
        if len(running) > 1:
            names = ", ".join(state.name for state in running)
            path = shlex.quote(str(first))
            option = f"--kubeconfig {path}" if cluster is None else f"--name {running[0].name}"
            raise DryrackError(
                f"{str(error).partition(';')[0]}; {len(running)} clusters are running ({names}): "
                f"choose one, for example {option}"
            ) from None
    _note(running[0].name)
    return connection_of({}, kubeconfig=str(first))


def _connection_by_name(name: str) -> Connection:
    """Return the virtual cluster with this name; raise if it does not run."""
    from dryrack.cluster import connection_of
    from dryrack.cluster.process import ClusterStateError, state_of

    try:
        state = state_of(name)
    except ClusterStateError as error:
        raise UsageError(str(error)) from None
    if state.running() is None:
        raise DryrackError(f"cluster {name} is not running; list the clusters with: dryrack status")
    return connection_of({}, kubeconfig=str(state.kubeconfig))


@cache
def _note(name: str) -> None:
    """Print which cluster is used, once: a command may connect more than once."""
    say(shown(f'note: no kubeconfig found; using the running cluster "{name}"'))
