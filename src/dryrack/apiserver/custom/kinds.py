"""
Custom kinds, from the first definition on.

Most clusters have no definitions when they start, and what reads one takes a while to load; so
it is loaded with the first of them, within the write that brings it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dryrack.apiserver.custom.serving import Serving
    from dryrack.apiserver.registry import Resource
    from dryrack.apiserver.server import ApiServer
    from dryrack.apiserver.tables.columns import Shape

STORAGE = "customresourcedefinitions.apiextensions.k8s.io"


class CustomKinds:
    """Serves what the definitions in a store define."""

    def __init__(self) -> None:
        self._serving: Serving | None = None

    def shape(self, resource: Resource) -> Shape | None:
        """The table of a custom kind; None for all others."""
        return self._serving.shape(resource) if self._serving else None

    def attach(self, server: ApiServer) -> None:
        """Follows the store of a server from now on, beginning with what is there."""
        if server.store.count(STORAGE):
            self._begin(server)
            return

        def begin(_: object) -> None:
            unsubscribe()
            self._begin(server)

        unsubscribe = server.store.subscribe(STORAGE, begin)

    def _begin(self, server: ApiServer) -> None:
        from dryrack.apiserver.custom.serving import Serving

        self._serving = Serving(server)
