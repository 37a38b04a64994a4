"""
How a place is owned and merged.

A schema says what may be at a place; an `Atom` says what that means for those who own it: a
scalar is owned as one, an atomic list or map too; a granular map is owned field by field, and an
associative list item by item. Where there is no schema the atom is deduced from the value: maps
are granular, lists are atomic.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dryrack.kinds.schemas.node import QUANTITY

if TYPE_CHECKING:
    from dryrack.kinds.schemas import Schema

RAW_EXTENSION = "io.k8s.apimachinery.pkg.runtime.RawExtension"
UNTYPED = "untyped"
_SCALARS = {"integer": "numeric", "number": "numeric", "boolean": "boolean"}


@dataclass(frozen=True, slots=True, eq=False)
class ListAtom:
    """A list. An atomic one has no way to tell its items apart; a set has no keys."""

    schema: Schema | None
    associative: bool = False
    keys: tuple[str, ...] = ()

    @property
    def element(self) -> Atom:
        items = None if self.schema is None else self.schema.items
        return UNTYPED_ATOM if items is None else atom_of(items)

    def key_default(self, name: str) -> Any:
        items = None if self.schema is None else self.schema.items
        found = None if items is None else items.named(name)
        return None if found is None else found.default


@dataclass(frozen=True, slots=True, eq=False)
class MapAtom:
    """A map or a struct."""

    schema: Schema | None
    atomic: bool = False
    _children: dict[str | None, Atom] = field(default_factory=dict)
    """By name, and the values of a map under no name."""

    def has_field(self, name: str) -> bool:
        return self.schema is not None and self.schema.named(name) is not None

    def child(self, name: str) -> Atom | None:
        """What is at a key; None if the schema has no such field."""
        known = self._children.get(name)
        if known is not None:
            return known
        if self.schema is None:
            return UNTYPED_ATOM if self.atomic else DEDUCED
        found = self.schema.named(name)
        if found is not None:
            self._children[name] = atom_of(found)
            return self._children[name]
        return self._value()

    def _value(self) -> Atom | None:
        known = self._children.get(None)
        if known is not None or self.schema is None:
            return known
        values = self.schema.values
        if values is not None:
            self._children[None] = atom_of(values)
        elif self._is_open(self.schema):
            self._children[None] = DEDUCED
        return self._children.get(None)

    @staticmethod
    def _is_open(schema: Schema) -> bool:
        additional = schema.raw.get("additionalProperties")
        if additional is not None:
            return additional is True
        return schema.keeps_unknown or not schema.property_names


@dataclass(frozen=True, slots=True, eq=False)
class Atom:
    """What a place may hold; a place without a type may hold any of the three."""

    scalar: str = ""
    list: ListAtom | None = None
    map: MapAtom | None = None

    def handling(self, value: Any) -> str:
        """`scalar`, `list` or `map`: as what the value is treated here."""
        if isinstance(value, dict):
            wanted = "map"
        elif isinstance(value, list):
            wanted = "list"
        else:
            wanted = "scalar" if value is not None else ""
        return wanted if wanted and getattr(self, wanted) else self._preferred

    @property
    def _preferred(self) -> str:
        if self.map is not None:
            return "map"
        return "scalar" if self.scalar else "list"


# What no schema describes: nothing inside it has an owner of its own.
UNTYPED_ATOM = Atom(UNTYPED, ListAtom(None), MapAtom(None, atomic=True))
# An object without a schema: its fields have owners, its lists are whole.
DEDUCED = Atom(UNTYPED, ListAtom(None), MapAtom(None))
_QUANTITY_ATOM = Atom(UNTYPED)


def atom_of(schema: Schema | None) -> Atom:
    """The atom of a schema, made once for each."""
    if schema is None:
        return DEDUCED
    known = schema.derived.get("atom")
    if known is None:
        known = schema.derived["atom"] = _made(schema)
    assert isinstance(known, Atom)
    return known


def _made(schema: Schema) -> Atom:
    if schema.name == QUANTITY:
        return _QUANTITY_ATOM
    if schema.name == RAW_EXTENSION:
        return UNTYPED_ATOM
    match schema.type:
        case "object":
            return Atom(map=MapAtom(schema, schema.is_atomic_map))
        case "array":
            return Atom(list=_list(schema))
        case "":
            return Atom(UNTYPED, _list(schema), MapAtom(schema, schema.is_atomic_map))
        case "string":
            return Atom("string" if schema.format in ("", "byte") else UNTYPED)
        case kind:
            return Atom(_SCALARS.get(kind, UNTYPED))


def _list(schema: Schema) -> ListAtom:
    if schema.list_type == "atomic":
        return ListAtom(schema)
    return ListAtom(schema, associative=True, keys=schema.list_keys)
