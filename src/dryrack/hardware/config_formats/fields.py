"""
Fields of loosely written objects, under the names that the API has for them.

Publishers decode with Go's JSON decoder, which accepts a key in any case: `String` is `string`. It
also ignores unknown fields, which hides every spelling mistake; here they are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from dryrack.hardware.config_formats.report import Topic
from dryrack.hardware.names import suggestion
from dryrack.kinds.shape import Anything, Entries, Fields, Integer, Items, Scalar, described

if TYPE_CHECKING:
    from collections.abc import Collection

    from dryrack.hardware.config_formats.report import Report
    from dryrack.kinds.shape import Path, Shape


# No list that a person writes is longer, and checking it would take too much time.
ITEMS_MAX = 10_000


class SourceValue(NamedTuple):
    """A value of a document, and its path in the document."""

    value: Any
    path: Path


def read_fields(
    source: SourceValue, known: Collection[str], report: Report, *, hint: str = ""
) -> dict[str, SourceValue]:
    """
    Return the fields of an object by the API's names, without those that are null.

    `hint` is the remedy for an unknown field.
    """
    if not isinstance(source.value, Mapping):
        if source.value is not None:
            what = f"expected an object, got {described(source.value)}"
            report.refuse(source.path, what, f"write an object with {', '.join(known)}")
        return {}
    by_lower_case = {name.lower(): name for name in known}
    fields: dict[str, SourceValue] = {}
    for key, value in source.value.items():
        path = (*source.path, key)
        name = key if key in known else by_lower_case.get(key.lower())
        if name is None:
            fix = suggestion(key, known) or hint or f"known here: {', '.join(known)}"
            report.refuse(path, f"unknown field {key!r}", fix)
        elif name in fields:
            other = str(fields[name].path[-1])
            report.refuse(path, f"{key!r} and {other!r} are one field", "remove one")
        else:
            if key != name:
                what = f"{key!r} is {name!r} in the API"
                report.remark(Topic.SPELLING, path, what, f"write {name!r}")
            fields[name] = SourceValue(value, path)
    return {name: field for name, field in fields.items() if field.value is not None}


def read_items(source: SourceValue | None, report: Report) -> list[SourceValue]:
    """Return the items of a list, or no items if there is no list."""
    if source is None:
        return []
    if not isinstance(source.value, list | tuple):
        fix = "write a list: each item after a dash"
        report.refuse(source.path, f"expected a list, got {described(source.value)}", fix)
        return []
    if len(source.value) > ITEMS_MAX:
        what = f"{len(source.value)} items, which is more than {ITEMS_MAX}"
        report.refuse(source.path, what, "write fewer; count makes many devices of one entry")
        return []
    return [SourceValue(value, (*source.path, index)) for index, value in enumerate(source.value)]


def read_entries(source: SourceValue | None, report: Report) -> list[tuple[str, SourceValue]]:
    """Return the entries of a map whose keys the user chooses."""
    if source is None:
        return []
    if not isinstance(source.value, Mapping):
        what = f"expected an object, got {described(source.value)}"
        report.refuse(source.path, what, "write a line with a key and a value for each entry")
        return []
    return [(key, SourceValue(value, (*source.path, key))) for key, value in source.value.items()]


def read_text(source: SourceValue | None, report: Report) -> str:
    """Return a string, or "" if the value is missing; refuse other types."""
    if source is None:
        return ""
    if isinstance(source.value, str):
        return source.value
    what = f"expected a string, got {described(source.value)}"
    report.refuse(source.path, what, quoting_fix(source))
    return ""


def quoting_fix(source: SourceValue) -> str:
    """Return the remedy for a value that YAML does not read as a string."""
    is_scalar = isinstance(source.value, bool | int | float)
    return "put it in quotes" if is_scalar else "write a string"


def normalize_keys(source: SourceValue, shape: Shape, report: Report) -> Any:
    """Return the value with the API's spelling of all keys that the shape knows."""
    value, path = source
    match shape:
        case Fields(fields=shapes) if isinstance(value, Mapping):
            fields = read_fields(source, shapes, report)
            return {
                name: normalize_keys(field, shapes[name], report) for name, field in fields.items()
            }
        case Entries(value=shape_of_value) if isinstance(value, Mapping):
            return {
                key: normalize_keys(SourceValue(each, (*path, key)), shape_of_value, report)
                for key, each in value.items()
            }
        case Items(item=shape_of_item) if isinstance(value, list | tuple):
            return [
                normalize_keys(SourceValue(each, (*path, index)), shape_of_item, report)
                for index, each in enumerate(value)
            ]
        case Anything() | Scalar() | Integer() | Fields() | Entries() | Items():
            return value
