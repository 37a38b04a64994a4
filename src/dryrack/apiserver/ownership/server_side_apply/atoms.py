"""
Atoms: the unit in which values are owned and merged.

An `Atom` follows from the schema of a value. A scalar is owned as one, and so is an atomic list or
map; a granular map is owned field by field, and an associative list item by item. Without a schema
the atom is deduced from the value: maps are granular, lists are atomic.
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
    """A list. Items of an atomic list have no path elements of their own; a set has no keys."""

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
    """By name; the atom of the values of a map is under None."""

    def has_field(self, name: str) -> bool:
        return self.schema is not None and self.schema.named(name) is not None

    def child(self, name: str) -> Atom | None:
        """Return the atom of a key; None if the schema has no such field."""
        child = self._children.get(name)
        if child is not None:
            return child
        if self.schema is None:
            return UNTYPED_ATOM if self.atomic else DEDUCED
        field_schema = self.schema.named(name)
        if field_schema is not None:
            self._children[name] = atom_of(field_schema)
            return self._children[name]
        if None not in self._children:
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
    """The types that a value may have; a value without a type may have any of the three."""

    scalar: str = ""
    list: ListAtom | None = None
    map: MapAtom | None = None

    def handling(self, value: Any) -> str:
        """Return whether the value is treated as a `scalar`, a `list` or a `map`."""
        if isinstance(value, dict):
            handling = "map"
        elif isinstance(value, list):
            handling = "list"
        else:
            handling = "scalar" if value is not None else ""
        if handling and getattr(self, handling):
            return handling
        if self.map is not None:
            return "map"
        return "scalar" if self.scalar else "list"


# A value that no schema describes: it is owned as one.
UNTYPED_ATOM = Atom(UNTYPED, ListAtom(None), MapAtom(None, atomic=True))
# An object without a schema: its fields have owners, its lists are whole.
DEDUCED = Atom(UNTYPED, ListAtom(None), MapAtom(None))
_QUANTITY_ATOM = Atom(UNTYPED)


def atom_of(schema: Schema | None) -> Atom:
    """Return the atom of a schema, which is computed once."""
    if schema is None:
        return DEDUCED
    atom = schema.derived.get("atom")
    if atom is None:
        atom = schema.derived["atom"] = _compute_atom(schema)
    assert isinstance(atom, Atom)
    return atom


def _compute_atom(schema: Schema) -> Atom:
    if schema.name == QUANTITY:
        return _QUANTITY_ATOM
    if schema.name == RAW_EXTENSION:
        return UNTYPED_ATOM
    list_atom = ListAtom(schema)
    if schema.list_type != "atomic":
        list_atom = ListAtom(schema, associative=True, keys=schema.list_keys)
    match schema.type:
        case "object":
            return Atom(map=MapAtom(schema, schema.is_atomic_map))
        case "array":
            return Atom(list=list_atom)
        case "":
            return Atom(UNTYPED, list_atom, MapAtom(schema, schema.is_atomic_map))
        case "string":
            return Atom("string" if schema.format in ("", "byte") else UNTYPED)
        case kind:
            return Atom(_SCALARS.get(kind, UNTYPED))
