"""
Custom kinds, from the first definition on.

Most clusters have no definitions when they start, and the modules for them take a while to load;
so the write of the first definition loads them.
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
    """Serves the kinds of the definitions in a store."""

    def __init__(self) -> None:
        self._serving: Serving | None = None

    def shape(self, resource: Resource) -> Shape | None:
        """Return the table of a custom kind, or None."""
        return self._serving.shape(resource) if self._serving else None

    def attach(self, server: ApiServer) -> None:
        """Follow the store of a server, beginning with the stored definitions."""
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
