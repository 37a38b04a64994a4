"""
Documents as the API server decodes them.

The server reads a body before it completes or validates anything, so lint reads a document the
same way, in the version that it is written for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.kinds.releases import Release
from dryrack.kinds.schemas import schema_of
from dryrack.kinds.schemas.strict_decode import conform

if TYPE_CHECKING:
    from dryrack.kinds.documents import Document
    from dryrack.kinds.schemas import Schema
    from dryrack.kinds.schemas.strict_decode import Conformed
    from dryrack.kinds.shape import Path

# Go writes a float below this without an exponent, so that an integer field takes it.
_PLAIN_FLOAT_MAX = 1e21


def built_in_schema(document: Document, release: Release) -> Schema | None:
    """Return the schema of the document's kind; None if the release has no such kind."""
    group, _, version = document.api_version.rpartition("/")
    return schema_of(group, version, document.kind, release)


def releases_with_field(document: Document, path: Path) -> tuple[Release, ...]:
    """Return the releases in which the document's kind has the field."""
    name = str(path[-1])
    schemas = {each: built_in_schema(document, each) for each in Release}
    return tuple(
        release
        for release, schema in schemas.items()
        if schema is not None and name in field_names(schema, path[:-1])
    )


def decode_document(document: Document, schema: Schema) -> Conformed:
    """Return what the API server reads from the document when kubectl sends it."""
    conformed = conform(schema, document.raw)
    return conform(schema, _as_sent(document.raw)) if conformed.mismatch else conformed


def field_names(schema: Schema, path: Path) -> tuple[str, ...]:
    """Return the fields that the object at the path may have."""
    for step in path:
        below = schema.items if isinstance(step, int) else schema.child(step)
        if below is None:
            return ()
        schema = below
    return tuple(schema.property_names)


def field_home(schema: Schema, path: Path) -> str:
    """
    Return where a field belongs that its object does not have; empty if that is not clear.

    The field may belong one level down or up. Below, exactly one object, or one list of objects,
    must have a field of that name.
    """
    above = [schema]
    name = str(path[-1])
    for step in path[:-1]:
        below = above[-1].items if isinstance(step, int) else above[-1].child(step)
        if below is None:
            return ""
        above.append(below)
    parent = above[-1]
    inside = [each for each in parent.property_names if _has(parent.named(each), name)]
    if len(inside) == 1:
        return f"move it under `{inside[0]}`"
    lists = [each for each in parent.property_names if _has(_items(parent.named(each)), name)]
    if len(lists) == 1 and not inside:
        return f"move it into an item of `{lists[0]}`"
    for levels, holder in enumerate(reversed(above[:-1]), start=1):
        if holder.struct is not None and name in holder.property_names:
            where = next((each for each in reversed(path[:-levels]) if isinstance(each, str)), "")
            return f"move it up, next to `{where}`" if where else ""
    return ""


def _has(schema: Schema | None, name: str) -> bool:
    return schema is not None and schema.struct is not None and name in schema.property_names


def _items(schema: Schema | None) -> Schema | None:
    return schema.items if schema is not None else None


def _as_sent(value: Any) -> Any:
    """Return the value as kubectl sends it: it writes 8.0 as 8."""
    if isinstance(value, dict):
        return {key: _as_sent(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_as_sent(each) for each in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < _PLAIN_FLOAT_MAX:
        return int(value)
    return value
