"""What a write changed: which fields it removed, modified and added."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from dryrack.apiserver.ownership.server_side_apply import fieldsets
from dryrack.apiserver.ownership.server_side_apply.fieldsets import SELF
from dryrack.apiserver.ownership.server_side_apply.typed import (
    ItemError,
    TypeViolationError,
    Violation,
    item_element,
    same,
    scalar_problem,
)

if TYPE_CHECKING:
    from dryrack.apiserver.ownership.server_side_apply.atoms import Atom, ListAtom, MapAtom
    from dryrack.apiserver.ownership.server_side_apply.fieldsets import FieldSet


_encode = msgspec.json.Encoder().encode


class Comparison(msgspec.Struct, frozen=True):
    """The fields in which two values differ."""

    removed: FieldSet = msgspec.field(default_factory=dict)
    modified: FieldSet = msgspec.field(default_factory=dict)
    added: FieldSet = msgspec.field(default_factory=dict)

    def without(self, ignored: FieldSet) -> Comparison:
        """The comparison without some fields and all that is below them."""
        if not ignored:
            return self
        return msgspec.structs.replace(
            self,
            removed=fieldsets.without(self.removed, ignored),
            modified=fieldsets.without(self.modified, ignored),
            added=fieldsets.without(self.added, ignored),
        )

    @property
    def written(self) -> FieldSet:
        """What has a new value."""
        return fieldsets.union(self.modified, self.added)


def compare(atom: Atom, left: Any, right: Any) -> Comparison:
    """
    How the right value differs from the left one.

    Raises `TypeViolationError`, which does not tell where; `typed.check` does.
    """
    found = _Differences()
    found.at_place(atom, left, right)
    return Comparison(found.removed, found.modified, found.added)


class _Differences(msgspec.Struct, eq=False):
    """What differs below one place; whether the place itself does, is known to its parent."""

    removed: FieldSet = msgspec.field(default_factory=dict)
    modified: FieldSet = msgspec.field(default_factory=dict)
    added: FieldSet = msgspec.field(default_factory=dict)

    def at_place(self, atom: Atom, left: Any, right: Any) -> bool:
        """Compares two values that are both there; whether the place as one was modified."""
        of_left = atom.handling(left)
        of_right = atom.handling(right)
        is_modified = self._as(of_right, atom, left, right)
        if of_left != of_right:
            # The kind of value changed: what was there is gone, and something else is there.
            is_modified = self._as(of_left, atom, left, right) or is_modified
        return is_modified

    def _as(self, handling: str, atom: Atom, left: Any, right: Any) -> bool:
        match handling:
            case "map":
                assert atom.map is not None
                return self._maps(atom.map, left, right)
            case "list":
                assert atom.list is not None
                return self._lists(atom.list, left, right)
            case _:
                problems = [scalar_problem(atom.scalar, value) for value in (left, right)]
                if all(problems):
                    raise TypeViolationError([Violation((), each) for each in problems])
                return not same(left, right)

    def _maps(self, atom: MapAtom, left: Any, right: Any) -> bool:
        mine = left if isinstance(left, dict) else {}
        yours = right if isinstance(right, dict) else {}
        if atom.atomic or (not mine and not yours):
            return not same(left, right)
        for name, value in mine.items():
            if name not in yours:
                self.removed[f"f:{name}"] = everything(_child(atom, name), value)
        for name, value in yours.items():
            if name not in mine:
                made = _of_spec if name == "spec" else everything
                self.added[f"f:{name}"] = made(_child(atom, name), value)
            else:
                self._below(f"f:{name}", _child(atom, name), mine[name], value)
        return False

    def _lists(self, atom: ListAtom, left: Any, right: Any) -> bool:
        mine = left if isinstance(left, list) else []
        yours = right if isinstance(right, list) else []
        if not atom.associative or (not mine and not yours):
            return not same(left, right)
        lefts = _by_element(atom, mine)
        rights = _by_element(atom, yours)
        for element in (*lefts, *(each for each in rights if each not in lefts)):
            self._items(atom, element, lefts.get(element, []), rights.get(element, []))
        return False

    def _items(self, atom: ListAtom, element: str, lefts: list[Any], rights: list[Any]) -> None:
        """Items that cannot be told apart are one thing that is there, or is not, or changed."""
        if len(lefts) == 1 and len(rights) == 1:
            self._below(element, atom.element, lefts[0], rights[0])
        elif len(lefts) > 1 and len(rights) > 1:
            if not same(lefts, rights):
                self.modified[element] = {}
        else:
            if lefts:
                self.removed[element] = _one(atom, lefts)
            if rights:
                self.added[element] = _one(atom, rights)

    def _below(self, element: str, atom: Atom, left: Any, right: Any) -> None:
        if _is_same_text(left, right):
            return
        found = _Differences()
        if found.at_place(atom, left, right):
            self.modified[element] = {SELF: {}, **found.modified} if found.modified else {}
        elif found.modified:
            self.modified[element] = found.modified
        if found.removed:
            self.removed[element] = found.removed
        if found.added:
            self.added[element] = found.added


def differing_parts(
    left: dict[str, Any], right: dict[str, Any], *, levels: int = 2
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both without what they have in common, down to some levels; they differ as before."""
    mine = dict(left)
    yours = dict(right)
    for name, value in right.items():
        if name not in left:
            continue
        there = left[name]
        if _is_same_text(there, value):
            del mine[name], yours[name]
        elif levels > 1 and isinstance(value, dict) and isinstance(there, dict):
            mine[name], yours[name] = differing_parts(there, value, levels=levels - 1)
    return mine, yours


def _is_same_text(left: Any, right: Any) -> bool:
    return left is right or (left == right and _encode(left) == _encode(right))


def _of_spec(atom: Atom, value: Any) -> FieldSet:
    """As `everything`: objects that are made from one template have their spec in common."""
    return _of_json(atom, _encode(value))


@lru_cache(maxsize=64)
def _of_json(atom: Atom, value: bytes) -> FieldSet:
    return everything(atom, msgspec.json.decode(value))


def everything(atom: Atom, value: Any) -> FieldSet:
    """All that a new value has, below the place where it is; the place itself is meant too."""
    if isinstance(value, dict) and value and atom.map is not None and not atom.map.atomic:
        owner = atom.map
        made: FieldSet = {SELF: {}}
        for name, each in value.items():
            child = _child(owner, name)
            made[f"f:{name}"] = everything(child, each) if isinstance(each, dict | list) else {}
        return made
    if isinstance(value, list) and value and atom.list is not None and atom.list.associative:
        owned = atom.list
        found = _by_element(owned, value)
        return {SELF: {}, **{element: _one(owned, items) for element, items in found.items()}}
    return {}


def _one(atom: ListAtom, items: list[Any]) -> FieldSet:
    return everything(atom.element, items[0]) if len(items) == 1 else {}


def _child(atom: MapAtom, name: str) -> Atom:
    child = atom.child(name)
    if child is None:
        raise TypeViolationError([Violation((), "field not declared in schema")])
    return child


def _by_element(atom: ListAtom, items: list[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for item in items:
        try:
            found.setdefault(item_element(atom, item), []).append(item)
        except ItemError as error:
            raise TypeViolationError([Violation((), str(error))]) from error
    return found
