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
    """The value with the structs that are always there."""
    if schema is None or not isinstance(value, dict | list):
        return value
    if isinstance(value, list):
        items = schema.items
        return value if items is None else [filled(items, item) for item in value]
    struct = schema.struct
    if struct is None:
        return {name: filled(schema.child(name), inner) for name, inner in value.items()}
    # In a struct null is the same as nothing, whoever wrote it; in a free map it is a value.
    made = {
        name: filled(schema.named(name), inner)
        for name, inner in value.items()
        if inner is not None
    }
    for each in struct.values():
        if each.is_struct and not each.omits_zero and each.name not in made:
            made[each.name] = filled(schema.named(each.name), {})
    return made
