"""What strategies and handlers may read of other objects than the one at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.store import Key

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw
    from dryrack.store import Store


class StoreLookup:
    """What strategies may read."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, resource: str, namespace: str, name: str) -> Raw | None:
        stored = self._store.get(Key(resource, namespace, name))
        return stored.object if stored else None

    def list(self, resource: str, namespace: str | None) -> tuple[Raw, ...]:
        return tuple(each.object for each in self._store.list(resource, namespace)[0])
