"""
Which fields an object has though nobody wrote them.

The real server's objects are Go structs: a struct inside a struct is there, empty, and so is a
list that is always written. Owners are worked out against such objects, so an object is given
these fields before it is compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dryrack.apiserver.schemas.node import Schema


# A scalar that is written even if nobody set it has the value that says nothing as its default.
_ZEROS = ("", 0, False)


def skeleton(schema: Schema | None) -> dict[str, Any]:
    """An object of the kind that nobody has written anything to; not to be changed."""
    if schema is None:
        return {}
    known = schema.derived.get("skeleton")
    if known is None:
        known = schema.derived["skeleton"] = _made(schema)
    assert isinstance(known, dict)
    return known


def _made(schema: Schema) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name in schema.property_names:
        below = schema.named(name)
        assert below is not None
        if is_always_there(below):
            made[name] = skeleton(below)
        elif name in schema.required or below.default in _ZEROS:
            made[name] = below.default
    return made


def is_always_there(schema: Schema) -> bool:
    """Whether the place holds a struct that is written even if it is empty."""
    return schema.default == {} and schema.type == "object" and bool(schema.property_names)


def filled(schema: Schema | None, value: Any) -> Any:
    """The value with the structs that are always there; the value itself if it has them all."""
    if schema is None or not isinstance(value, dict | list):
        return value
    if isinstance(value, list):
        return _filled_list(schema.items, value)
    # In a struct null is the same as nothing, whoever wrote it; in a free map it is a value.
    made = {
        name: filled(schema.child(name), inner)
        for name, inner in value.items()
        if inner is not None or not schema.name
    }
    for name in _structs(schema):
        if made.get(name) is None:
            made[name] = filled(schema.named(name), {})
    return made


def _filled_list(items: Schema | None, value: list[Any]) -> list[Any]:
    return [filled(items, item) for item in value] if items is not None else value


def _structs(schema: Schema) -> tuple[str, ...]:
    known = schema.derived.get("structs")
    if known is None:
        nodes = ((name, schema.named(name)) for name in schema.property_names)
        known = tuple(name for name, node in nodes if node is not None and is_always_there(node))
        schema.derived["structs"] = known
    assert isinstance(known, tuple)
    return known
