"""
Add the fields that Go writes even when they are unset.

Objects of the real server are Go structs: an embedded struct is present even if it is empty, and so
are some lists. The owners of fields are computed from such objects, so these fields are added to
an object before it is compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.kinds.schemas.node import Schema
    from dryrack.kinds.schemas.structs import GoField


def skeleton(schema: Schema | None) -> dict[str, Any]:
    """Return an empty object of the kind; do not change it."""
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
    """Return the JSON of an unset field."""
    return skeleton(schema.named(field.name)) if field.is_struct else field.unset


def fill_unset(schema: Schema | None, value: Any) -> Any:
    """Return the value with all unset fields that Go writes."""
    return _fill(schema, value, whole=True)


def fill_unset_to_atoms(schema: Schema | None, value: Any) -> Any:
    """
    Return the value with these unset fields, but not inside atomic lists and maps.

    This is enough to compare two objects that were both decoded and defaulted: inside atomic parts,
    either both have these fields or neither has.
    """
    return _fill(schema, value, whole=False)


@dataclass(frozen=True, slots=True)
class _Plan:
    """The facts about a schema that filling needs, computed once."""

    skeleton: dict[str, Any] | None
    # The fields with objects or lists, by name.
    containers: Mapping[str, Schema]
    items: Schema | None
    values: Schema | None
    is_atomic_list: bool
    is_atomic_map: bool


def _make_plan(schema: Schema) -> _Plan:
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


def _fill(schema: Schema | None, value: Any, *, whole: bool) -> Any:
    if schema is None or not isinstance(value, dict | list):
        return value
    plan = schema.derived.get("plan")
    if plan is None:
        plan = schema.derived["plan"] = _make_plan(schema)
    assert isinstance(plan, _Plan)
    if isinstance(value, list):
        if plan.items is None or (plan.is_atomic_list and not whole):
            return value
        return [_fill(plan.items, item, whole=whole) for item in value]
    if plan.is_atomic_map and not whole:
        return value
    return _fill_object(plan, value, whole=whole)


def _fill_object(plan: _Plan, value: dict[str, Any], *, whole: bool) -> dict[str, Any]:
    if plan.values is not None:
        return {name: _fill(plan.values, inner, whole=whole) for name, inner in value.items()}
    if plan.skeleton is None and not plan.containers:
        return value
    made = dict(value)
    if plan.skeleton is not None:
        # In a struct, null is the same as no value; in a free map it is a value.
        made = {name: inner for name, inner in value.items() if inner is not None}
        made = {**plan.skeleton, **made}
    for name, inner in value.items():
        if isinstance(inner, dict | list) and name in plan.containers:
            made[name] = _fill(plan.containers[name], inner, whole=whole)
    return made
