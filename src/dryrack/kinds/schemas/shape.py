"""
Which fields an object has though nobody wrote them.

The real server's objects are Go structs: a struct inside a struct is there, empty, and so is a
list that is always written. Owners are worked out against such objects, so an object is given
these fields before it is compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.kinds.schemas.node import Schema
    from dryrack.kinds.schemas.structs import GoField


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


@dataclass(frozen=True, slots=True)
class _Plan:
    """What filling has to know about a place, worked out once."""

    skeleton: dict[str, Any] | None
    # By name, the fields that have something inside.
    containers: Mapping[str, Schema]
    items: Schema | None
    values: Schema | None
    is_atomic_list: bool
    is_atomic_map: bool


def _planned(schema: Schema) -> _Plan:
    fields = ((name, schema.named(name)) for name in schema.property_names)
    values = schema.values
    return _Plan(
        skeleton=None if schema.struct is None else skeleton(schema),
        containers={name: each for name, each in fields if each and not each.is_scalar},
        items=schema.items,
        values=None if values is None or values.is_scalar else values,
        is_atomic_list=schema.list_type == "atomic",
        is_atomic_map=schema.is_atomic_map,
    )


def _filled(schema: Schema | None, value: Any, *, whole: bool) -> Any:
    if schema is None or not isinstance(value, dict | list):
        return value
    known = schema.derived.get("plan")
    if known is None:
        known = schema.derived["plan"] = _planned(schema)
    assert isinstance(known, _Plan)
    plan = known
    if isinstance(value, list):
        if plan.items is None or (plan.is_atomic_list and not whole):
            return value
        return [_filled(plan.items, item, whole=whole) for item in value]
    if plan.is_atomic_map and not whole:
        return value
    return _filled_object(plan, value, whole=whole)


def _filled_object(plan: _Plan, value: dict[str, Any], *, whole: bool) -> dict[str, Any]:
    if plan.values is not None:
        return {name: _filled(plan.values, inner, whole=whole) for name, inner in value.items()}
    if plan.skeleton is None and not plan.containers:
        return value
    made = dict(value)
    if plan.skeleton is not None:
        # In a struct null is the same as nothing, whoever wrote it; in a free map it is a value.
        made = {name: inner for name, inner in value.items() if inner is not None}
        made = {**plan.skeleton, **made}
    for name, inner in value.items():
        if isinstance(inner, dict | list) and name in plan.containers:
            made[name] = _filled(plan.containers[name], inner, whole=whole)
    return made
