"""Comparison of two values: the fields that a write removed, modified and added."""

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
        """Return the comparison without some fields and all fields below them."""
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
        """Return the fields that have a new value."""
        return fieldsets.union(self.modified, self.added)


def compare(atom: Atom, left: Any, right: Any) -> Comparison:
    """
    Return how the right value differs from the left one.

    Raises a `TypeViolationError` without a path; `typed.check` finds the path.
    """
    differences = _Differences()
    differences.compare(atom, left, right)
    return Comparison(differences.removed, differences.modified, differences.added)


class _Differences(msgspec.Struct, eq=False):
    """The differences below one place; the parent notes whether the place itself differs."""

    removed: FieldSet = msgspec.field(default_factory=dict)
    modified: FieldSet = msgspec.field(default_factory=dict)
    added: FieldSet = msgspec.field(default_factory=dict)

    def compare(self, atom: Atom, left: Any, right: Any) -> bool:
        """Compare two values that both exist; return whether the place as a whole changed."""
        left_handling = atom.handling(left)
        right_handling = atom.handling(right)
        is_modified = self._compare_as(right_handling, atom, left, right)
        if left_handling != right_handling:
            # The type of the value changed: the old value is removed, and the new one added.
            is_modified = self._compare_as(left_handling, atom, left, right) or is_modified
        return is_modified

    def _compare_as(self, handling: str, atom: Atom, left: Any, right: Any) -> bool:
        match handling:
            case "map":
                assert atom.map is not None
                return self._compare_maps(atom.map, left, right)
            case "list":
                assert atom.list is not None
                return self._compare_lists(atom.list, left, right)
            case _:
                problems = [scalar_problem(atom.scalar, value) for value in (left, right)]
                if all(problems):
                    raise TypeViolationError([Violation((), each) for each in problems])
                return not same(left, right)

    def _compare_maps(self, atom: MapAtom, left: Any, right: Any) -> bool:
        old = left if isinstance(left, dict) else {}
        new = right if isinstance(right, dict) else {}
        if atom.atomic or (not old and not new):
            return not same(left, right)
        for name, value in old.items():
            if name not in new:
                self.removed[f"f:{name}"] = everything(_child(atom, name), value)
        for name, value in new.items():
            child = _child(atom, name)
            if name in old:
                self._compare_below(f"f:{name}", child, old[name], value)
            elif name == "spec":
                # Objects that are made from one template have their spec in common.
                self.added["f:spec"] = _everything_of_json(child, _encode(value))
            else:
                self.added[f"f:{name}"] = everything(child, value)
        return False

    def _compare_lists(self, atom: ListAtom, left: Any, right: Any) -> bool:
        old = left if isinstance(left, list) else []
        new = right if isinstance(right, list) else []
        if not atom.associative or (not old and not new):
            return not same(left, right)
        old_items = _by_element(atom, old)
        new_items = _by_element(atom, new)
        for element in (*old_items, *(each for each in new_items if each not in old_items)):
            before = old_items.get(element, [])
            after = new_items.get(element, [])
            if len(before) == 1 and len(after) == 1:
                self._compare_below(element, atom.element, before[0], after[0])
            elif len(before) > 1 and len(after) > 1:
                # Items with equal keys are one value.
                if not same(before, after):
                    self.modified[element] = {}
            else:
                if before:
                    self.removed[element] = _everything_of_items(atom, before)
                if after:
                    self.added[element] = _everything_of_items(atom, after)
        return False

    def _compare_below(self, element: str, atom: Atom, left: Any, right: Any) -> None:
        if _is_same_text(left, right):
            return
        below = _Differences()
        if below.compare(atom, left, right):
            self.modified[element] = {SELF: {}, **below.modified} if below.modified else {}
        elif below.modified:
            self.modified[element] = below.modified
        if below.removed:
            self.removed[element] = below.removed
        if below.added:
            self.added[element] = below.added


def differing_parts(
    left: dict[str, Any], right: dict[str, Any], *, levels: int = 2
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return both objects without their equal parts, down to some levels."""
    old = dict(left)
    new = dict(right)
    for name, value in right.items():
        if name not in left:
            continue
        stored = left[name]
        if _is_same_text(stored, value):
            del old[name], new[name]
        elif levels > 1 and isinstance(value, dict) and isinstance(stored, dict):
            old[name], new[name] = differing_parts(stored, value, levels=levels - 1)
    return old, new


def _is_same_text(left: Any, right: Any) -> bool:
    return left is right or (left == right and _encode(left) == _encode(right))


@lru_cache(maxsize=64)
def _everything_of_json(atom: Atom, value: bytes) -> FieldSet:
    return everything(atom, msgspec.json.decode(value))


def everything(atom: Atom, value: Any) -> FieldSet:
    """Return the node of a new value: itself and all fields below it."""
    if isinstance(value, dict) and value and atom.map is not None and not atom.map.atomic:
        node: FieldSet = {SELF: {}}
        for name, inner in value.items():
            child = _child(atom.map, name)
            is_scalar = not isinstance(inner, dict | list)
            node[f"f:{name}"] = {} if is_scalar else everything(child, inner)
        return node
    if isinstance(value, list) and value and atom.list is not None and atom.list.associative:
        node = {SELF: {}}
        for element, items in _by_element(atom.list, value).items():
            node[element] = _everything_of_items(atom.list, items)
        return node
    return {}


def _everything_of_items(atom: ListAtom, items: list[Any]) -> FieldSet:
    return everything(atom.element, items[0]) if len(items) == 1 else {}


def _child(atom: MapAtom, name: str) -> Atom:
    child = atom.child(name)
    if child is None:
        raise TypeViolationError([Violation((), "field not declared in schema")])
    return child


def _by_element(atom: ListAtom, items: list[Any]) -> dict[str, list[Any]]:
    by_element: dict[str, list[Any]] = {}
    for item in items:
        try:
            by_element.setdefault(item_element(atom, item), []).append(item)
        except ItemError as error:
            raise TypeViolationError([Violation((), str(error))]) from error
    return by_element
