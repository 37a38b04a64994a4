"""The fields of a custom kind that field selectors may name, checked as kube-apiserver does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dryrack.extension.definitions.jsonpath import JsonPathError
from dryrack.kinds.validation.problems import FieldProblem, duplicate, invalid, required, too_many

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dryrack.kinds.raw import Raw

_FIELDS_MAX = 8
_TYPES = ("boolean", "integer", "string")
_NO_TYPE = (
    "must point to a field of type string, boolean or integer. Enum string fields and strings with "
    "formats are allowed."
)
_NO_FIELD = "does not refer to a valid field"
_DELIMITER = re.compile(r"[.\[\]]")
_QUOTE_END = re.compile(r"(?<!\\)'")


def selectable_field_problems(
    entries: Sequence[Raw], schema: Mapping[str, Any], at: str
) -> Iterator[FieldProblem]:
    """Yield what is wrong with `selectableFields` of a version that has this schema."""
    known: set[tuple[str, ...]] = set()
    for index, entry in enumerate(entries):
        where = f"{at}[{index}].jsonPath"
        text = entry.get("jsonPath") or ""
        if not text:
            yield required(where)
            continue
        try:
            path, field = _field_at(text, schema)
        except JsonPathError as error:
            yield invalid(where, text, f"is an invalid path: {error}")
            continue
        if path[:1] == ("metadata",):
            yield invalid(where, text, "must not point to fields in metadata")
        if not isinstance(field, dict) or field.get("type") not in _TYPES:
            yield invalid(where, text, _NO_TYPE)
        if path in known:
            yield duplicate(where, text)
        known.add(path)
    if len(known) > _FIELDS_MAX:
        yield too_many(at, len(known), _FIELDS_MAX)


def _field_at(text: str, schema: Any) -> tuple[tuple[str, ...], Any]:
    """Return the names in a path of fields, and the schema of the last one."""
    path: list[str] = []
    tokens = _tokens(text)
    for token in tokens:
        if token == "[":
            raise JsonPathError("array notation is not allowed")
        if token != ".":
            raise JsonPathError(f"expected [ or . but got: {token}")
        name = next(tokens, None)
        if name is None:
            raise JsonPathError("unexpected end of JSON path")
        properties = schema.get("properties") if isinstance(schema, dict) else None
        others = schema.get("additionalProperties") if isinstance(schema, dict) else None
        if (properties and name not in properties) or not (properties or others):
            raise JsonPathError(_NO_FIELD)
        schema = properties[name] if properties else others
        path.append(name)
    return tuple(path), schema


def _tokens(text: str) -> Iterator[str]:
    """Yield dots, brackets, and what stands between them; quotes keep a text together."""
    position = 0
    while position < len(text):
        if text[position] == "'":
            found = _QUOTE_END.search(text, position + 1)
            end = found.end() if found else len(text)
        else:
            found = _DELIMITER.search(text, position)
            end = found.start() if found else len(text)
            end = end if end > position else position + 1
        yield text[position:end]
        position = end
