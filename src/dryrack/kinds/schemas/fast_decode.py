"""
Decode valid objects fast.

`strict_decode` reads any object and reports its errors, which takes longer than reading. Here, each
struct becomes a table of its fields once. An unusual value raises `UnusualError`, and then
`strict_decode` reads the object again. For all other objects, both return the same result.
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
    """The object is unusual; `strict_decode` must read it."""


def reader(schema: Schema, unset: Unset) -> Read:
    """Return the reader of a struct; `unset` returns the JSON of an unset field, if any."""
    known = schema.derived.get("reader")
    if known is None:
        known = schema.derived["reader"] = _StructReader(schema, unset).read
    assert callable(known)
    return known


class _StructReader:
    """The table of a struct; filled on the first use, because structs may be recursive."""

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
                written = read(inner)
                if written is not _LEFT_OUT:
                    made[name] = written
        place = self._place
        return {name: made[name] for name in sorted(made, key=place.__getitem__)}


def not_written() -> Any:
    """Return the value of `unset` for a field that Go does not write."""
    return _LEFT_OUT


def _leaving_out(known: GoField, read: Read) -> Read:
    if not known.omits_empty or known.is_pointer or known.kind == "struct":
        return read

    def read_unless_empty(value: Any) -> Any:
        found = read(value)
        # Go calls these empty: "", 0, false, and lists and maps without items.
        return found or _LEFT_OUT

    return read_unless_empty


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
            return _any_value


def _special_reader(go_type: str) -> Read:
    if go_type == "runtime.RawExtension":
        return _any_value

    def read(value: Any) -> Any:
        # Texts repeat and are cached; other values are read one by one.
        if type(value) is not str and go_type != "intstr.IntOrString":
            raise UnusualError
        try:
            return _special(go_type, value) if type(value) is str else _int32(value)
        except scalars.MismatchError:
            raise UnusualError from None

    return read


def _list_reader(schema: Schema, go_type: str, unset: Unset) -> Read:
    items = schema.items
    item = _any_value if items is None else _read(items, element_type(go_type, items), unset)

    def read(value: Any) -> Any:
        if type(value) is not list or None in value:
            raise UnusualError
        return [item(each) for each in value]

    return read


def _object_reader(schema: Schema, go_type: str, unset: Unset) -> Read:
    if schema.struct is not None:
        return reader(schema, unset)
    values = schema.values
    each = _any_value if values is None else _read(values, element_type(go_type, values), unset)
    is_sorted = values is not None

    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise UnusualError
        if not is_sorted:
            return value
        return {name: each(_present(value[name])) for name in sorted(value)}

    return read


def element_type(go_type: str, items: Schema) -> str:
    """Return the Go type of the items of a list or the values of a map."""
    if go_type.startswith("[]"):
        return go_type[2:]
    if go_type.startswith("map["):
        return go_type.partition("]")[2]
    return "resource.Quantity" if items.name.endswith(".Quantity") else items.type


def _present(value: Any) -> Any:
    if value is None:
        raise UnusualError
    return value


def _any_value(value: Any) -> Any:
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
