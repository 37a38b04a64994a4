"""Read the objects of a command from a cluster, found as kubectl does, or from files."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from dryrack.base.errors import DryrackError
from dryrack.cli.files import UsageError
from dryrack.cli.output import say, shown
from dryrack.cli.views.connecting import connection_to

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from dryrack.client.client import Client
    from dryrack.client.endpoints import Endpoint
    from dryrack.client.kubeconfig import Connection
    from dryrack.kinds.meta import KubernetesObject

AGENT = "dryrack-view"
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The options that name the cluster or the files."""

    kubeconfig: str = ""
    context: str = ""
    files: tuple[str, ...] = ()
    # Empty: that of the kubeconfig's context, or all of the files.
    namespace: str = ""
    all_namespaces: bool = False

    def __post_init__(self) -> None:
        if self.files and (self.kubeconfig or self.context):
            raise UsageError("-f reads files, not a cluster; leave out --kubeconfig and --context")
        if self.namespace and self.all_namespaces:
            raise UsageError("-n and -A are mutually exclusive; use one of them")

    def objects(self, kinds: Sequence[Endpoint]) -> tuple[KubernetesObject, ...]:
        """All of these kinds, in the namespace that is looked at."""
        if self.files:
            return self._of_files()
        from dryrack.client.client import Selection
        from dryrack.cluster import read_snapshot

        connection = self.connection()
        selection = Selection(namespace=self.namespace_in(connection))
        snapshot = on_cluster(connection, lambda client: read_snapshot(client, kinds, selection))
        for note in snapshot.notes:
            say(shown(note))
        return snapshot.objects

    def _of_files(self) -> tuple[KubernetesObject, ...]:
        from dryrack.cli.objects import load
        from dryrack.placement import with_namespace

        found = (with_namespace(each.object) for each in load(self.files))
        if not self.namespace:
            return tuple(found)
        return tuple(each for each in found if each.metadata.namespace in ("", self.namespace))

    def connection(self) -> Connection:
        return connection_to(kubeconfig=self.kubeconfig, context=self.context)

    def namespace_in(self, connection: Connection) -> str:
        """The namespace that is meant; empty for all."""
        if self.all_namespaces:
            return ""
        return self.namespace or connection.namespace

    @property
    def shows_namespaces(self) -> bool:
        """Whether objects of several namespaces may come."""
        return self.all_namespaces or bool(self.files and not self.namespace)


def on_cluster(connection: Connection, work: Callable[[Client], Awaitable[_Answer]]) -> _Answer:
    """Does something with a cluster, and waits for it."""
    return asyncio.run(_on_cluster(connection, work))


async def _on_cluster(
    connection: Connection, work: Callable[[Client], Awaitable[_Answer]]
) -> _Answer:
    from dryrack.client.client import Client
    from dryrack.client.endpoints import NODES
    from dryrack.client.errors import TransportError
    from dryrack.client.https import connected
    from dryrack.cluster import remedy

    async with connected(connection) as transport:
        try:
            return await work(Client(transport, agent=AGENT))
        except TransportError as error:
            raise DryrackError(f"{error}; {remedy(error, NODES)}") from None
