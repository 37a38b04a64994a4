"""
Merge of an applied value into a live one, and removal of fields from a value.

Neither changes its arguments. A merge removes nothing: fields that the applied value does not
have stay as they are in the live one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.apiserver.ownership.server_side_apply import fieldsets
from dryrack.apiserver.ownership.server_side_apply.atoms import DEDUCED
from dryrack.apiserver.ownership.server_side_apply.typed import ABSENT, ItemError, item_element

if TYPE_CHECKING:
    from dryrack.apiserver.ownership.server_side_apply.atoms import Atom, ListAtom, MapAtom
    from dryrack.apiserver.ownership.server_side_apply.fieldsets import FieldSet


def merge(atom: Atom, live: Any, applied: Any) -> Any:
    """Return the live value with the applied one merged into it; ABSENT if both are."""
    if applied is ABSENT:
        return live
    match atom.handling(applied):
        case "map":
            assert atom.map is not None
            return _merge_maps(atom.map, live, applied)
        case "list":
            assert atom.list is not None
            old_items = live if isinstance(live, list) else []
            new_items = applied if isinstance(applied, list) else []
            if not atom.list.associative or (not old_items and not new_items):
                return applied
            return _Interleaving(atom.list, old_items, new_items).items() or ABSENT
        case _:
            return applied


def _merge_maps(atom: MapAtom, live: Any, applied: Any) -> Any:
    old = live if isinstance(live, dict) else {}
    new = applied if isinstance(applied, dict) else {}
    if atom.atomic or (not old and not new):
        return applied
    result: dict[str, Any] = {}
    for name in (*old, *(name for name in new if name not in old)):
        child = atom.child(name)
        assert child is not None, f"field {name} got past the check"
        value = merge(child, old.get(name, ABSENT), new.get(name, ABSENT))
        if value is not ABSENT:
            result[name] = value
    return result or ABSENT


class _Interleaving:
    """
    The merged items of two lists.

    Items of the live list alone keep their place among their neighbours; those of the applied
    list come in its own order.
    """

    def __init__(self, atom: ListAtom, live: list[Any], applied: list[Any]) -> None:
        self.atom = atom
        self.live = [(item_element(atom, item), item) for item in live]
        self.applied = [(item_element(atom, item), item) for item in applied]
        self.applied_elements = {element for element, _ in self.applied}
        live_elements = {element for element, _ in self.live}
        # The common items in the order of the applied list; the last one is the next to come.
        self.common = [element for element, _ in reversed(self.applied) if element in live_elements]
        self.merged: set[str] = set()
        self.live_index = 0
        self.applied_index = 0
        self.result: list[Any] = []

    def items(self) -> list[Any]:
        while self.live_index < len(self.live) or self.applied_index < len(self.applied):
            if self.live_index < len(self.live) and self._take_live():
                continue
            if self.applied_index < len(self.applied):
                self._take_applied()
        return [item for item in self.result if item is not ABSENT]

    def _take_live(self) -> bool:
        """Advance in the live list; return False if the applied list is next."""
        element, item = self.live[self.live_index]
        if self.applied_index < len(self.applied):
            if element == self.applied[self.applied_index][0]:
                self._take_applied()
                self.live_index += 1
                return True
            if element in self.applied_elements and self.common and self.common[-1] != element:
                self.live_index += 1
                return True
        if element not in self.applied_elements:
            self.result.append(merge(self.atom.element, item, ABSENT))
            self.live_index += 1
            return True
        self.live_index += element in self.merged
        return False

    def _take_applied(self) -> None:
        element, item = self.applied[self.applied_index]
        live_items = [live for key, live in self.live if key == element]
        live_item = live_items[0] if live_items else ABSENT
        if len(live_items) > 1:
            # Items with equal keys are not merged.
            live_item = None
        self.result.append(merge(self.atom.element, live_item, item))
        self.merged.add(element)
        self.applied_index += 1
        if self.common and self.common[-1] == element:
            self.common.pop()


def remove(atom: Atom, value: Any, unwanted: FieldSet) -> Any:
    """Return the value without some fields; None if nothing is left."""
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
    result: dict[str, Any] = {}
    for name, inner in value.items():
        node = unwanted.get(fieldsets.field(name))
        if node is None:
            result[name] = inner
        elif not fieldsets.is_member(node):
            child = atom.child(name)
            assert child is not None, f"field {name} is owned and not in the schema"
            result[name] = remove(child, inner, node)
    return result or None


def _remove_items(atom: ListAtom, value: Any, unwanted: FieldSet) -> Any:
    if not isinstance(value, list) or not atom.associative:
        return None
    result: list[Any] = []
    for item in value:
        try:
            node = unwanted.get(item_element(atom, item))
        except ItemError:
            node = None
        if node is None:
            result.append(item)
        elif not fieldsets.is_member(node):
            result.append(remove(atom.element, item, node))
    return result or None


def with_named_fields(atom: Atom, owned: FieldSet) -> FieldSet:
    """
    Return the set with the struct fields above its members as members too.

    A struct's field is not owned by itself, as a key of a map is: the owner of something in it
    owns it.
    """
    result: FieldSet = {}
    for element, node in owned.items():
        if element == fieldsets.SELF:
            result[element] = node
            continue
        name = element[2:]
        child = DEDUCED
        is_struct_field = False
        if element.startswith("f:") and atom.map is not None:
            child = atom.map.child(name) or DEDUCED
            is_struct_field = atom.map.has_field(name)
        elif element.startswith("k:") and atom.list is not None:
            child = atom.list.element
        inner = with_named_fields(child, node)
        result[element] = {fieldsets.SELF: {}, **inner} if is_struct_field and inner else inner
    return result
