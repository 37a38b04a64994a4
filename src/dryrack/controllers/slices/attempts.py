"""
What was written about a key and may not be in the cache yet.

A plan made from a cache that lags could begin a generation beside one that is there already. So
when a write came to an unknown end, or the cache does not follow, the server itself is asked what
has become of the slices that were written, until the cache knows as much.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.client.client import Selection
from dryrack.client.endpoints import SLICES
from dryrack.client.informer import name_of
from dryrack.controllers.objects import uid_of
from dryrack.controllers.slices.pools import is_ours
from dryrack.controllers.writes import Create, Delete, Update

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dryrack.client.client import Client
    from dryrack.client.informer import Name
    from dryrack.controllers.writes import Plan, Write

Raw = dict[str, Any]


class Attempts:
    """Remembers the names that a key has written since it was last as it should be."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._names: dict[str, set[Name]] = {}
        self._doubtful: set[str] = set()

    def note(self, key: str, plan: Plan) -> None:
        """These writes are about to be made."""
        self._names.setdefault(key, set()).update(map(_name, _slice_writes(plan.writes)))

    def doubt(self, key: str) -> None:
        """Nobody knows what has become of them."""
        self._doubtful.add(key)

    def followed(self, key: str, plan: Plan, cache: Mapping[Name, Raw]) -> None:
        """They are made; if the cache does not have them, it is not to be relied on."""
        if any(_is_behind(write, cache) for write in _slice_writes(plan.writes)):
            self.doubt(key)

    async def observed(self, key: str, cached: Sequence[Raw]) -> Sequence[Raw]:
        """The slices of a key, with what the server knows better."""
        if key not in self._doubtful:
            return cached
        slices = {name_of(each): each for each in cached}
        for name in sorted(self._names.get(key, ())):
            slices.pop(name, None)
            selection = Selection(fields=f"metadata.name={name.name}")
            found = (await self._client.list(SLICES, selection)).items
            slices.update((name_of(each), each) for each in found if is_ours(each))
        return tuple(slices[name] for name in sorted(slices))

    def settle(self, key: str, *, cached: Sequence[Raw], observed: Sequence[Raw]) -> None:
        """All is as it should be; if the cache says so too, it can be relied on again."""
        if _revisions(cached) == _revisions(observed):
            self._names.pop(key, None)
            self._doubtful.discard(key)


def _slice_writes(writes: Iterable[Write]) -> list[Create | Update | Delete]:
    return [write for write in writes if isinstance(write, Create | Update | Delete)]


def _name(write: Create | Update | Delete) -> Name:
    return write.name if isinstance(write, Delete) else name_of(write.object)


def _is_behind(write: Create | Update | Delete, cache: Mapping[Name, Raw]) -> bool:
    cached = cache.get(_name(write))
    if isinstance(write, Delete):
        return cached is not None and uid_of(cached) == write.uid
    if cached is None:
        return True
    before = write.object["metadata"].get("resourceVersion")
    return bool(cached["metadata"]["resourceVersion"] == before)


def _revisions(slices: Iterable[Raw]) -> dict[Name, str]:
    return {name_of(each): each["metadata"]["resourceVersion"] for each in slices}
