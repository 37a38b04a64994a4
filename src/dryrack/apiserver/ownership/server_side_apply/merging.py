"""
One value laid over another, and fields taken out of a value.

Neither changes what it is given. Merging takes nothing away: what the applied value does not
mention stays as it is in the live one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.apiserver.ownership.server_side_apply import fieldsets
from dryrack.apiserver.ownership.server_side_apply.atoms import DEDUCED
from dryrack.apiserver.ownership.server_side_apply.typed import ABSENT, ItemError, item_element

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.apiserver.ownership.server_side_apply.atoms import Atom, ListAtom, MapAtom
    from dryrack.apiserver.ownership.server_side_apply.fieldsets import FieldSet


def merge(atom: Atom, live: Any, applied: Any) -> Any:
    """The live value with the applied one laid over it; ABSENT if neither is there."""
    if applied is ABSENT:
        return live
    return _as(atom.handling(applied), atom, live, applied)


def _as(handling: str, atom: Atom, live: Any, applied: Any) -> Any:
    match handling:
        case "map":
            assert atom.map is not None
            return _maps(atom.map, live, applied)
        case "list":
            assert atom.list is not None
            return _lists(atom.list, live, applied)
        case _:
            return applied


def _maps(atom: MapAtom, live: Any, applied: Any) -> Any:
    mine = live if isinstance(live, dict) else {}
    yours = applied if isinstance(applied, dict) else {}
    if atom.atomic or (not mine and not yours):
        return applied
    made: dict[str, Any] = {}
    for name in (*mine, *(name for name in yours if name not in mine)):
        child = atom.child(name)
        assert child is not None, f"field {name} got past the check"
        merged = merge(child, mine.get(name, ABSENT), yours.get(name, ABSENT))
        if merged is not ABSENT:
            made[name] = merged
    return made or ABSENT


def _lists(atom: ListAtom, live: Any, applied: Any) -> Any:
    mine = live if isinstance(live, list) else []
    yours = applied if isinstance(applied, list) else []
    if not atom.associative or (not mine and not yours):
        return applied
    made = _Interleaving(atom, mine, yours).items()
    return made or ABSENT


class _Interleaving:
    """
    Items of both lists, in an order that pleases both.

    Items that only the live list has keep their place among their neighbours; those of the
    applied list come in its own order.
    """

    def __init__(self, atom: ListAtom, live: list[Any], applied: list[Any]) -> None:
        self.atom = atom
        self.live = _keyed(atom, live)
        self.applied = _keyed(atom, applied)
        self.theirs = dict(self.applied)
        mine = dict(self.live)
        # What both have, in the order of the applied list: the next one is waited for.
        self.shared = [element for element, _ in reversed(self.applied) if element in mine]
        self.merged: set[str] = set()
        self.left = self.right = 0
        self.made: list[Any] = []

    def items(self) -> list[Any]:
        while self.left < len(self.live) or self.right < len(self.applied):
            if self.left < len(self.live) and self._take_live():
                continue
            if self.right < len(self.applied):
                self._take_applied()
        return [item for item in self.made if item is not ABSENT]

    def _take_live(self) -> bool:
        """Goes on in the live list; False if it is the applied list's turn."""
        element, item = self.live[self.left]
        if self.right < len(self.applied):
            if element == self.applied[self.right][0]:
                self._take_applied()
                self.left += 1
                return True
            if element in self.theirs and self.shared and self.shared[-1] != element:
                self.left += 1
                return True
        if element not in self.theirs:
            self.made.append(merge(self.atom.element, item, ABSENT))
            self.left += 1
            return True
        self.left += element in self.merged
        return False

    def _take_applied(self) -> None:
        element, item = self.applied[self.right]
        self.made.append(merge(self.atom.element, self._live_item(element), item))
        self.merged.add(element)
        self.right += 1
        if self.shared and self.shared[-1] == element:
            self.shared.pop()

    def _live_item(self, element: str) -> Any:
        """The live item to merge with; items that cannot be told apart are not merged."""
        found = [item for key, item in self.live if key == element]
        if not found:
            return ABSENT
        return found[0] if len(found) == 1 else None


def _keyed(atom: ListAtom, items: Sequence[Any]) -> list[tuple[str, Any]]:
    return [(item_element(atom, item), item) for item in items]


def remove(atom: Atom, value: Any, unwanted: FieldSet) -> Any:
    """The value without some fields; null if nothing of it is left."""
    if not unwanted:
        return value
    match atom.handling(value):
        case "map":
            assert atom.map is not None
            return _remove_fields(atom.map, value, unwanted)
        case "list":
            assert atom.list is not None
            return _remove_items(atom.list, value, unwanted)
        case _:
            return value


def _remove_fields(atom: MapAtom, value: Any, unwanted: FieldSet) -> Any:
    if not isinstance(value, dict) or atom.atomic:
        return None
    made: dict[str, Any] = {}
    for name, inner in value.items():
        node = unwanted.get(fieldsets.field(name))
        if node is None:
            made[name] = inner
        elif not fieldsets.is_member(node):
            made[name] = remove(atom.child(name) or _nothing(name), inner, node)
    return made or None


def _remove_items(atom: ListAtom, value: Any, unwanted: FieldSet) -> Any:
    if not isinstance(value, list) or not atom.associative:
        return None
    made: list[Any] = []
    for item in value:
        try:
            node = unwanted.get(item_element(atom, item))
        except ItemError:
            node = None
        if node is None:
            made.append(item)
        elif not fieldsets.is_member(node):
            made.append(remove(atom.element, item, node))
    return made or None


def _nothing(name: str) -> Atom:
    raise AssertionError(f"field {name} is owned and not in the schema")


def with_named_fields(atom: Atom, owned: FieldSet) -> FieldSet:
    """
    The set, with the fields that lead to its members as members too.

    A struct's field is not owned by itself, as a key of a map is: whoever owns something in it
    owns it.
    """
    made: FieldSet = {}
    for element, node in owned.items():
        if element == fieldsets.SELF:
            made[element] = node
            continue
        inner = with_named_fields(_at(atom, element), node)
        is_field = element.startswith("f:") and _has_field(atom, element[2:])
        made[element] = {fieldsets.SELF: {}, **inner} if is_field and inner else inner
    return made


def _at(atom: Atom, element: str) -> Atom:
    if element.startswith("f:") and atom.map is not None:
        return atom.map.child(element[2:]) or DEDUCED
    if element.startswith("k:") and atom.list is not None:
        return atom.list.element
    return DEDUCED


def _has_field(atom: Atom, name: str) -> bool:
    return atom.map is not None and atom.map.has_field(name)
