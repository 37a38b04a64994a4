"""
Who owns whom, over all kinds.

The graph is told of every object of every watched kind. It knows what exists only as far as it
was told: that an owner is missing in it is a question for the server, never an answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dryrack.client.endpoints import Endpoint
from dryrack.client.informer import Name, name_of
from dryrack.controllers.objects import finalizers_of, is_deleted, owners_of, uid_of
from dryrack.kinds.raw import Raw

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


@dataclass(frozen=True, slots=True)
class Item:
    """What the graph keeps of an object."""

    endpoint: Endpoint
    name: Name
    uid: str
    revision: str
    owners: tuple[Raw, ...]
    finalizers: tuple[str, ...]
    is_deleted: bool

    @property
    def waits_for_dependents(self) -> bool:
        """Whether its deletion goes from the leaves to the root."""
        return self.is_deleted and FOREGROUND in self.finalizers

    @property
    def orphans_dependents(self) -> bool:
        return self.is_deleted and ORPHAN in self.finalizers

    @property
    def blocks(self) -> bool:
        """Whether any owner's deletion in the foreground waits for it."""
        return any(owner.get("blockOwnerDeletion") for owner in self.owners)

    def is_blocking(self, owner: str) -> bool:
        """Whether an owner's deletion in the foreground waits for it."""
        return any(o["uid"] == owner and o.get("blockOwnerDeletion") for o in self.owners)


def item_of(endpoint: Endpoint, obj: Raw) -> Item:
    return Item(
        endpoint,
        name_of(obj),
        uid_of(obj),
        str(obj["metadata"].get("resourceVersion", "")),
        tuple(owners_of(obj)),
        tuple(finalizers_of(obj)),
        is_deleted(obj),
    )


class Graph:
    """Items by uid, and the dependents of each."""

    def __init__(self) -> None:
        self._items: dict[str, Item] = {}
        self._dependents: dict[str, dict[str, None]] = {}

    def get(self, uid: str) -> Item | None:
        return self._items.get(uid)

    def dependents(self, uid: str) -> Sequence[Item]:
        """What names that uid as an owner, whether the owner is known or not; by uid."""
        return [self._items[each] for each in sorted(self._dependents.get(uid, ()))]

    def put(self, item: Item) -> None:
        self.remove(item.uid)
        self._items[item.uid] = item
        for owner in item.owners:
            self._dependents.setdefault(owner["uid"], {})[item.uid] = None

    def remove(self, uid: str) -> None:
        item = self._items.pop(uid, None)
        for owner in item.owners if item else ():
            siblings = self._dependents.get(owner["uid"], {})
            siblings.pop(uid, None)
            if not siblings:
                self._dependents.pop(owner["uid"], None)
