"""
Reads objects that are as they should be, swiftly.

`strictness` reads any object and tells what is wrong with it, which costs more than the reading
itself. Here each struct is turned once into a table of its fields; whatever is not as it should
be raises `UnusualError`, and the object is read again by those who can tell why. Both give the
same object where this one gives any.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dryrack.kinds.schemas import go_scalars as scalars
from dryrack.kinds.schemas.structs import UNSET

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.kinds.schemas import Schema
    from dryrack.kinds.schemas.structs import GoField

    Read = Callable[[Any], Any]
    Unset = Callable[[Schema, GoField], Any]

_LEFT_OUT: Any = object()
_INT32 = range(-(2**31), 2**31)
_INT64 = range(-(2**63), 2**63)
_special = lru_cache(maxsize=4096)(scalars.special)


class UnusualError(Exception):
    """Somebody else has to look at it."""


def reader(schema: Schema, unset: Unset) -> Read:
    """What reads a struct; `unset` says what is written of a field that nobody set, if anything."""
    known = schema.derived.get("reader")
    if known is None:
        known = schema.derived["reader"] = _StructReader(schema, unset).read
    assert callable(known)
    return known


class _StructReader:
    """The table of a struct; filled when it is first used, because structs may hold themselves."""

    def __init__(self, schema: Schema, unset: Unset) -> None:
        self._schema = schema
        self._unset = unset
        self._reads: dict[str, Read] = {}
        self._place: dict[str, int] = {}
        self._always: dict[str, Any] = {}
        self._is_ready = False

    def _prepare(self) -> None:
        schema = self._schema
        assert schema.struct is not None, f"{schema.name} is no struct"
        for at, (name, known) in enumerate(schema.struct.items()):
            below = schema.named(name)
            assert below is not None, f"{schema.name} has a field {name} in Go alone"
            self._place[name] = at
            self._reads[name] = _leaving_out(known, _read(below, known.type, self._unset))
            nothing = self._unset(schema, known)
            if nothing is not _LEFT_OUT:
                self._always[name] = nothing
        self._is_ready = True

    def read(self, value: Any) -> Any:
        if not self._is_ready:
            self._prepare()
        if type(value) is not dict:
            raise UnusualError
        reads = self._reads
        made = dict(self._always)
        for name, inner in value.items():
            read = reads.get(name)
            if read is None:
                raise UnusualError
            if inner is not None:
                kept = read(inner)
                if kept is not _LEFT_OUT:
                    made[name] = kept
        place = self._place
        return {name: made[name] for name in sorted(made, key=place.__getitem__)}


def not_written() -> Any:
    """What `unset` answers of a field that is not written."""
    return _LEFT_OUT


def _leaving_out(known: GoField, read: Read) -> Read:
    if not known.omits_empty or known.is_pointer or known.kind == "struct":
        return read

    def kept(value: Any) -> Any:
        found = read(value)
        # Empty is whatever Go calls so: no text, nothing, false, and what has no items.
        return found or _LEFT_OUT

    return kept


def _read(schema: Schema, go_type: str, unset: Unset) -> Read:
    if go_type in UNSET:
        return _special_reader(go_type)
    match schema.type:
        case "array":
            return _list_reader(schema, go_type, unset)
        case "object":
            return _object_reader(schema, go_type, unset)
        case "string":
            return _binary if go_type == "[]uint8" else _text
        case "boolean":
            return _truth
        case "integer":
            return _int32 if schema.format == "int32" else _int64
        case "number":
            return _number
        case _:
            return _anything


def _special_reader(go_type: str) -> Read:
    if go_type == "runtime.RawExtension":
        return _anything

    def read(value: Any) -> Any:
        # Texts repeat; numbers and what is no scalar are read one by one.
        if type(value) is not str and go_type != "intstr.IntOrString":
            raise UnusualError
        try:
            return _special(go_type, value) if type(value) is str else _int32(value)
        except scalars.MismatchError:
            raise UnusualError from None

    return read


def _list_reader(schema: Schema, go_type: str, unset: Unset) -> Read:
    items = schema.items
    item = _anything if items is None else _read(items, element_type(go_type, items), unset)

    def read(value: Any) -> Any:
        if type(value) is not list or None in value:
            raise UnusualError
        return [item(each) for each in value]

    return read


def _object_reader(schema: Schema, go_type: str, unset: Unset) -> Read:
    if schema.struct is not None:
        return reader(schema, unset)
    values = schema.values
    each = _anything if values is None else _read(values, element_type(go_type, values), unset)
    is_sorted = values is not None

    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise UnusualError
        if not is_sorted:
            return value
        return {name: each(_present(value[name])) for name in sorted(value)}

    return read


def element_type(go_type: str, items: Schema) -> str:
    """The Go type of the items of a list or the values of a map."""
    if go_type.startswith("[]"):
        return go_type[2:]
    if go_type.startswith("map["):
        return go_type.partition("]")[2]
    return "resource.Quantity" if items.name.endswith(".Quantity") else items.type


def _present(value: Any) -> Any:
    if value is None:
        raise UnusualError
    return value


def _anything(value: Any) -> Any:
    return value


def _text(value: Any) -> Any:
    if type(value) is not str:
        raise UnusualError
    return value


def _truth(value: Any) -> Any:
    if type(value) is not bool:
        raise UnusualError
    return value


def _int32(value: Any) -> Any:
    if type(value) is not int or value not in _INT32:
        raise UnusualError
    return value


def _int64(value: Any) -> Any:
    if type(value) is not int or value not in _INT64:
        raise UnusualError
    return value


def _number(value: Any) -> Any:
    if type(value) is not int and type(value) is not float:
        raise UnusualError
    return value


def _binary(value: Any) -> Any:
    if type(value) is not str:
        raise UnusualError
    try:
        return scalars.binary(value, "")
    except scalars.MismatchError:
        raise UnusualError from None
