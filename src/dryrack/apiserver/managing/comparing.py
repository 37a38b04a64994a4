"""What a write changed: which fields it removed, modified and added."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dryrack.apiserver.managing import fieldsets
from dryrack.apiserver.managing.typed import (
    ABSENT,
    ItemError,
    TypeViolationError,
    Violation,
    item_element,
    same,
    scalar_problem,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.apiserver.managing.atoms import Atom, ListAtom, MapAtom
    from dryrack.apiserver.managing.fieldsets import FieldSet


@dataclass(frozen=True, slots=True)
class Comparison:
    """The fields in which two values differ."""

    removed: FieldSet = field(default_factory=dict)
    modified: FieldSet = field(default_factory=dict)
    added: FieldSet = field(default_factory=dict)

    def without(self, ignored: FieldSet) -> Comparison:
        """The comparison without some fields and all that is below them."""
        if not ignored:
            return self
        return replace(
            self,
            removed=fieldsets.without(self.removed, ignored),
            modified=fieldsets.without(self.modified, ignored),
            added=fieldsets.without(self.added, ignored),
        )

    @property
    def written(self) -> FieldSet:
        """What has a new value."""
        return fieldsets.union(self.modified, self.added)


def everything(atom: Atom, value: Any, path: Sequence[str]) -> FieldSet:
    """All that a new value has, below the place where it is; the place itself is meant too."""
    if isinstance(value, dict) and value and atom.map is not None and not atom.map.atomic:
        made: FieldSet = {fieldsets.SELF: {}}
        for name, inner in value.items():
            element = fieldsets.field(name)
            below = (*path, element)
            made[element] = everything(_child(atom.map, name, below), inner, below)
        return made
    if isinstance(value, list) and value and atom.list is not None and atom.list.associative:
        made = {fieldsets.SELF: {}}
        for element, items in _by_element(atom.list, value, path).items():
            below = (*path, element)
            # Items that cannot be told apart are one thing.
            is_one = len(items) == 1
            made[element] = everything(atom.list.element, items[0], below) if is_one else {}
        return made
    return {}


def _child(atom: MapAtom, name: str, below: tuple[str, ...]) -> Atom:
    child = atom.child(name)
    if child is None:
        raise TypeViolationError([Violation(below, "field not declared in schema")])
    return child


def _by_element(atom: ListAtom, items: list[Any], path: Sequence[str]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for index, item in enumerate(items):
        try:
            found.setdefault(item_element(atom, item), []).append(item)
        except ItemError as error:
            violation = Violation(tuple(path), f"element {index}: {error}")
            raise TypeViolationError([violation]) from error
    return found


def compare(atom: Atom, left: Any, right: Any) -> Comparison:
    """How the right value differs from the left one; raises `TypeViolationError`."""
    found = Comparison()
    _Comparing(found, []).visit(atom, left, right)
    return found


@dataclass(frozen=True, slots=True)
class _Comparing:
    found: Comparison
    path: list[str]

    def visit(self, atom: Atom, left: Any, right: Any) -> None:
        if left is right or (type(left) is type(right) is str and left == right):
            return
        if left is ABSENT:
            fieldsets.graft(self.found.added, self.path, everything(atom, right, self.path))
            return
        if not self._dispatch(atom, left, right) and right is ABSENT:
            fieldsets.insert(self.found.removed, self.path)

    def _dispatch(self, atom: Atom, left: Any, right: Any) -> bool:
        """Compares, and says whether the place was compared as one."""
        of_left = atom.handling(left)
        if right is ABSENT:
            return self._as(of_left, atom, left, right)
        of_right = atom.handling(right)
        if of_left != of_right:
            # The kind of value changed: what was there is gone, and something else is there.
            self._as(of_left, atom, left, right)
        return self._as(of_right, atom, left, right)

    def _as(self, handling: str, atom: Atom, left: Any, right: Any) -> bool:
        match handling:
            case "map":
                assert atom.map is not None
                return self._maps(atom.map, left, right)
            case "list":
                assert atom.list is not None
                return self._lists(atom.list, left, right)
            case _:
                self._check_scalars(atom.scalar, left, right)
                return self._leaf(left, right)

    def _check_scalars(self, scalar: str, left: Any, right: Any) -> None:
        problems = [scalar_problem(scalar, value) for value in (left, right) if value is not ABSENT]
        if all(problems):
            raise TypeViolationError([Violation(tuple(self.path), each) for each in problems])

    def _leaf(self, left: Any, right: Any) -> bool:
        if right is ABSENT:
            fieldsets.insert(self.found.removed, self.path)
        elif not same(left, right):
            fieldsets.insert(self.found.modified, self.path)
        return True

    def _maps(self, atom: MapAtom, left: Any, right: Any) -> bool:
        mine = left if isinstance(left, dict) else {}
        yours = right if isinstance(right, dict) else {}
        if atom.atomic or (not mine and not yours):
            return self._leaf(left, right)
        for name in (*mine, *(name for name in yours if name not in mine)):
            element = fieldsets.field(name)
            child = _child(atom, name, (*self.path, element))
            self._below(element, child, mine.get(name, ABSENT), yours.get(name, ABSENT))
        return False

    def _lists(self, atom: ListAtom, left: Any, right: Any) -> bool:
        mine = left if isinstance(left, list) else []
        yours = right if isinstance(right, list) else []
        if not atom.associative or (not mine and not yours):
            return self._leaf(left, right)
        lefts = _by_element(atom, mine, self.path)
        rights = _by_element(atom, yours, self.path)
        for element in (*lefts, *(each for each in rights if each not in lefts)):
            self._items(atom, element, lefts.get(element, []), rights.get(element, []))
        return False

    def _items(self, atom: ListAtom, element: str, lefts: list[Any], rights: list[Any]) -> None:
        """Items that cannot be told apart are one thing that is there, or is not, or changed."""
        if len(lefts) <= 1 and len(rights) <= 1:
            left = lefts[0] if lefts else ABSENT
            self._below(element, atom.element, left, rights[0] if rights else ABSENT)
            return
        here = (*self.path, element)
        if len(lefts) > 1 and len(rights) > 1:
            if not same(lefts, rights):
                fieldsets.insert(self.found.modified, here)
        elif len(lefts) > 1:
            if rights:
                self._below(element, atom.element, ABSENT, rights[0])
            fieldsets.insert(self.found.removed, here)
        else:
            if lefts:
                self._below(element, atom.element, lefts[0], ABSENT)
            fieldsets.insert(self.found.added, here)

    def _below(self, element: str, atom: Atom, left: Any, right: Any) -> None:
        self.path.append(element)
        self.visit(atom, left, right)
        self.path.pop()
