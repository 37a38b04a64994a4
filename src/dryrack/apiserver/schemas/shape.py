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
    from dryrack.apiserver.schemas.structs import GoField


def skeleton(schema: Schema | None) -> dict[str, Any]:
    """An object of the kind that nobody has written anything to; not to be changed."""
    if schema is None:
        return {}
    known = schema.derived.get("skeleton")
    if known is None:
        fields = (schema.struct or {}).values()
        known = {each.name: unset(schema, each) for each in fields if each.is_written_unset}
        schema.derived["skeleton"] = known
    assert isinstance(known, dict)
    return known


def unset(schema: Schema, field: GoField) -> Any:
    """What is written of a field that nobody set."""
    return skeleton(schema.named(field.name)) if field.is_struct else field.unset


def filled(schema: Schema | None, value: Any) -> Any:
    """The value with all that Go writes of it, whether somebody set it or not."""
    return _filled(schema, value, whole=True)


def filled_to_atoms(schema: Schema | None, value: Any) -> Any:
    """
    The same, but not inside of what has one owner.

    Enough to compare two objects that were both read and defaulted: inside, either both have
    what is always written or neither has.
    """
    return _filled(schema, value, whole=False)


def _filled(schema: Schema | None, value: Any, *, whole: bool) -> Any:
    if schema is None or not isinstance(value, dict | list):
        return value
    if isinstance(value, list):
        items = schema.items
        if items is None or not (whole or schema.list_type != "atomic"):
            return value
        return [_filled(items, item, whole=whole) for item in value]
    if not whole and schema.is_atomic_map:
        return value
    if schema.struct is None:
        return _filled_map(schema, value, whole=whole)
    # In a struct null is the same as nothing, whoever wrote it; in a free map it is a value.
    made = {name: inner for name, inner in value.items() if inner is not None}
    for name, below in _containers(schema).items():
        if name in made:
            made[name] = _filled(below, made[name], whole=whole)
    return {**skeleton(schema), **made}


def _filled_map(schema: Schema, value: dict[str, Any], *, whole: bool) -> dict[str, Any]:
    values = schema.values
    if values is not None and values.is_scalar:
        return value
    return {name: _filled(schema.child(name), inner, whole=whole) for name, inner in value.items()}


def _containers(schema: Schema) -> dict[str, Schema]:
    """The fields of a struct in which something may be missing."""
    known = schema.derived.get("containers")
    if known is None:
        fields = ((name, schema.named(name)) for name in schema.property_names)
        known = {name: each for name, each in fields if each is not None and not each.is_scalar}
        schema.derived["containers"] = known
    assert isinstance(known, dict)
    return known
