"""
Values against their atoms: is the value of its type, and which fields does it have?

Both walk a value and its atom side by side. What is wrong is told with its path, in the words of
the real server.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dryrack.apiserver.ownership.server_side_apply import fieldsets
from dryrack.kinds.text.go_json import compact, type_name
from dryrack.kinds.text.quoting import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.apiserver.ownership.server_side_apply.atoms import Atom, ListAtom, MapAtom
    from dryrack.apiserver.ownership.server_side_apply.fieldsets import FieldSet, Path

ABSENT: Any = object()
"""Where there is no value; null is a value."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One place whose value is not of its type."""

    path: Path
    message: str

    def __str__(self) -> str:
        shown = fieldsets.path_text(self.path)
        return f"{shown}: {self.message}" if shown else self.message


class TypeViolationError(ValueError):
    """A value is not of its type; in the server's words."""

    def __init__(self, violations: Sequence[Violation]) -> None:
        lines = [str(each) for each in violations]
        super().__init__(lines[0] if len(lines) == 1 else "\n  ".join(["errors:", *lines]))


class ItemError(ValueError):
    """An item of a list that cannot be told apart from the others."""


def same(left: Any, right: Any) -> bool:
    """Equal as JSON: a truth value is not a number."""
    if left is right:
        return True
    if isinstance(left, bool) or isinstance(right, bool):
        return isinstance(left, bool) and isinstance(right, bool) and left == right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def item_element(atom: ListAtom, item: Any) -> str:
    """The path element of an item of an associative list."""
    if atom.keys:
        return fieldsets.item_by_keys(_item_keys(atom, item))
    if isinstance(item, dict):
        raise ItemError("associative list without keys has an element that's a map type")
    if isinstance(item, list):
        raise ItemError("not supported: associative list with lists as elements")
    if item is None:
        raise ItemError("associative list without keys has an element that's an explicit null")
    return fieldsets.item_by_value(item)


def _item_keys(atom: ListAtom, item: Any) -> dict[str, Any]:
    if item is None:
        raise ItemError("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise ItemError("associative list with keys may not have non-map elements")
    keys: dict[str, Any] = {}
    for name in atom.keys:
        value = item[name] if name in item else atom.key_default(name)
        if name in item or value is not None:
            keys[name] = value
    if not keys:
        names = " ".join(quoted(name) for name in atom.keys)
        raise ItemError(
            f"associative list with keys has an element that omits all key fields [{names}]"
            " (and doesn't have default values for any key fields)"
        )
    return keys


def check(atom: Atom, value: Any, *, allow_duplicates: bool) -> None:
    """Raises `TypeViolationError` unless the value is of its type."""
    found = _Checking(allow_duplicates).visit(atom, value, ())
    if found:
        raise TypeViolationError(found)


@dataclass(frozen=True, slots=True)
class _Checking:
    allow_duplicates: bool

    def visit(self, atom: Atom, value: Any, path: Path) -> list[Violation]:
        match atom.handling(value):
            case "map":
                assert atom.map is not None
                return self._map(atom.map, value, path)
            case "list":
                assert atom.list is not None
                return self._list(atom.list, value, path)
            case _:
                message = scalar_problem(atom.scalar, value)
                return [Violation(path, message)] if message else []

    def _map(self, atom: MapAtom, value: Any, path: Path) -> list[Violation]:
        if value is None:
            return []
        if not isinstance(value, dict):
            return [Violation(path, f"expected map, got {compact(value)}")]
        found: list[Violation] = []
        for name, inner in value.items():
            below = (*path, fieldsets.field(name))
            child = atom.child(name)
            if child is None:
                return [*found, Violation(below, "field not declared in schema")]
            found += self.visit(child, inner, below)
        return found

    def _list(self, atom: ListAtom, value: Any, path: Path) -> list[Violation]:
        if value is None:
            return []
        if not isinstance(value, list):
            return [Violation(path, f"expected list, got {compact(value)}")]
        found: list[Violation] = []
        seen: set[str] = set()
        for index, item in enumerate(value):
            element = f"i:{index}"
            if atom.associative:
                try:
                    element = item_element(atom, item)
                except ItemError as error:
                    return [*found, Violation(path, f"element {index}: {error}")]
                if element in seen and not self.allow_duplicates:
                    shown = fieldsets.element_text(element)
                    found.append(Violation(path, f"duplicate entries for key {shown}"))
                seen.add(element)
            found += self.visit(atom.element, item, (*path, element))
        return found


def scalar_problem(scalar: str, value: Any) -> str:
    """What is wrong with a value at the place of a scalar; empty if nothing is."""
    if value is None:
        return ""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match scalar:
        case "numeric" if not is_number:
            return f"expected numeric (int or float), got {type_name(value)}"
        case "string" if not isinstance(value, str):
            return f"expected string, got {compact(value)}"
        case "boolean" if not isinstance(value, bool):
            return f"expected boolean, got {compact(value)}"
        case "untyped" if isinstance(value, dict | list):
            return f"expected any scalar, got {compact(value)}"
        case _:
            return ""


def field_set(atom: Atom, value: Any) -> FieldSet:
    """Every leaf and every item that the value has."""
    made: FieldSet = {}
    _collect(atom, value, [], made)
    return made


def _collect(atom: Atom, value: Any, path: list[str], made: FieldSet) -> None:
    match atom.handling(value):
        case "map":
            assert atom.map is not None
            _collect_map(atom.map, value, path, made)
        case "list":
            assert atom.list is not None
            _collect_list(atom.list, value, path, made)
        case _:
            fieldsets.insert(made, path)


def _collect_map(atom: MapAtom, value: Any, path: list[str], made: FieldSet) -> None:
    if atom.atomic:
        fieldsets.insert(made, path)
        return
    for name, inner in (value or {}).items():
        path.append(fieldsets.field(name))
        child = atom.child(name)
        if child is not None:
            _collect(child, inner, path, made)
        # A key that the schema does not name exists because somebody wrote it.
        if inner is None or inner == {} or not atom.has_field(name):
            fieldsets.insert(made, path)
        path.pop()


def _collect_list(atom: ListAtom, value: Any, path: list[str], made: FieldSet) -> None:
    if not atom.associative:
        fieldsets.insert(made, path)
        return
    items = value or []
    elements = [item_element(atom, item) for item in items]
    times = Counter(elements)
    for element, item in zip(elements, items, strict=True):
        path.append(element)
        # Items that cannot be told apart are owned together, and not field by field.
        if times[element] == 1:
            _collect(atom.element, item, path, made)
        fieldsets.insert(made, path)
        path.pop()
