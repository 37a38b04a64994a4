"""
Type checks of values against their atoms, and the fields of a value.

Both walk a value and its atom side by side. A violation has a path, and the text of the real
server.
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
"""Stands for a missing value; null is a value."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One value that is not of its type."""

    path: Path
    message: str

    def __str__(self) -> str:
        shown = fieldsets.path_text(self.path)
        return f"{shown}: {self.message}" if shown else self.message


class TypeViolationError(ValueError):
    """A value is not of its type; the text is the server's."""

    def __init__(self, violations: Sequence[Violation]) -> None:
        lines = [str(each) for each in violations]
        super().__init__(lines[0] if len(lines) == 1 else "\n  ".join(["errors:", *lines]))


class ItemError(ValueError):
    """An item of an associative list without a usable key."""


def same(left: Any, right: Any) -> bool:
    """Return whether two values are equal as JSON: a boolean is not a number."""
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
    """Return the path element of an item of an associative list."""
    if not atom.keys:
        if isinstance(item, dict):
            raise ItemError("associative list without keys has an element that's a map type")
        if isinstance(item, list):
            raise ItemError("not supported: associative list with lists as elements")
        if item is None:
            raise ItemError("associative list without keys has an element that's an explicit null")
        return fieldsets.item_by_value(item)
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
    return fieldsets.item_by_keys(keys)


def check(atom: Atom, value: Any, *, allow_duplicates: bool) -> None:
    """Raise a `TypeViolationError` unless the value is of its type."""
    violations = _Check(allow_duplicates).visit(atom, value, ())
    if violations:
        raise TypeViolationError(violations)


@dataclass(frozen=True, slots=True)
class _Check:
    allow_duplicates: bool

    def visit(self, atom: Atom, value: Any, path: Path) -> list[Violation]:
        match atom.handling(value):
            case "map":
                assert atom.map is not None
                return self._visit_map(atom.map, value, path)
            case "list":
                assert atom.list is not None
                return self._visit_list(atom.list, value, path)
            case _:
                message = scalar_problem(atom.scalar, value)
                return [Violation(path, message)] if message else []

    def _visit_map(self, atom: MapAtom, value: Any, path: Path) -> list[Violation]:
        if value is None:
            return []
        if not isinstance(value, dict):
            return [Violation(path, f"expected map, got {compact(value)}")]
        violations: list[Violation] = []
        for name, inner in value.items():
            below = (*path, fieldsets.field(name))
            child = atom.child(name)
            if child is None:
                return [*violations, Violation(below, "field not declared in schema")]
            violations += self.visit(child, inner, below)
        return violations

    def _visit_list(self, atom: ListAtom, value: Any, path: Path) -> list[Violation]:
        if value is None:
            return []
        if not isinstance(value, list):
            return [Violation(path, f"expected list, got {compact(value)}")]
        violations: list[Violation] = []
        seen: set[str] = set()
        for index, item in enumerate(value):
            element = f"i:{index}"
            if atom.associative:
                try:
                    element = item_element(atom, item)
                except ItemError as error:
                    return [*violations, Violation(path, f"element {index}: {error}")]
                if element in seen and not self.allow_duplicates:
                    shown = fieldsets.element_text(element)
                    violations.append(Violation(path, f"duplicate entries for key {shown}"))
                seen.add(element)
            violations += self.visit(atom.element, item, (*path, element))
        return violations


def scalar_problem(scalar: str, value: Any) -> str:
    """Return why a value is not of the type of a scalar, or ""."""
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
    """Return every leaf and every item of the value."""
    fields: FieldSet = {}
    _collect(atom, value, [], fields)
    return fields


def _collect(atom: Atom, value: Any, path: list[str], fields: FieldSet) -> None:
    match atom.handling(value):
        case "map":
            assert atom.map is not None
            _collect_map(atom.map, value, path, fields)
        case "list":
            assert atom.list is not None
            _collect_list(atom.list, value, path, fields)
        case _:
            fieldsets.insert(fields, path)


def _collect_map(atom: MapAtom, value: Any, path: list[str], fields: FieldSet) -> None:
    if atom.atomic:
        fieldsets.insert(fields, path)
        return
    for name, inner in (value or {}).items():
        path.append(fieldsets.field(name))
        child = atom.child(name)
        if child is not None:
            _collect(child, inner, path, fields)
        # A key that the schema does not name is owned by the client that wrote it.
        if inner is None or inner == {} or not atom.has_field(name):
            fieldsets.insert(fields, path)
        path.pop()


def _collect_list(atom: ListAtom, value: Any, path: list[str], fields: FieldSet) -> None:
    if not atom.associative:
        fieldsets.insert(fields, path)
        return
    items = value or []
    elements = [item_element(atom, item) for item in items]
    times = Counter(elements)
    for element, item in zip(elements, items, strict=True):
        path.append(element)
        # Items with equal keys are owned as one, not field by field.
        if times[element] == 1:
            _collect(atom.element, item, path, fields)
        fieldsets.insert(fields, path)
        path.pop()
