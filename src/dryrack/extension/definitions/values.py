"""
Problems of a value under the schema of its custom kind, in the words of the real server.

Each keyword of a schema is a check of its own, and they are tried in the server's order: type,
branches, text, format, number, list, enumeration, object. A few checks go wrong in ways that
clients have come to know, and do so here too: a fraction where an integer belongs is also no
multiple, and an integer is never a multiple of a fraction. Where the server walks a map in no
order, names are walked in theirs.

On an update nothing is said about a value that was there before and has not changed: a schema may
be made stricter without locking objects that already exist.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dryrack.cel import compile_pattern
from dryrack.extension.definitions.formats import has_format, known_format
from dryrack.kinds.paths import get
from dryrack.kinds.text.go_json import compact
from dryrack.kinds.text.quoting import quoted
from dryrack.kinds.validation.problems import (
    FieldProblem,
    Reason,
    Token,
    invalid,
    required,
    too_long,
    too_many,
)

Schema = Mapping[str, Any]

# How the server writes the path of a problem that it cannot place.
NOWHERE = "<nil>"
_INTEGER_BITS = {"int32": 32, "int64": 64}
_NUMBER_FORMS = {"integer": ("int32", "int64"), "number": ("float", "double")}
_FORMS = {int: "int64", float: "float64"}
NO_OLD = object()
_PLAIN_TYPES: dict[type, tuple[str, ...]] = {
    bool: ("boolean",),
    float: ("number",),
    int: ("integer", "number"),
    str: ("string",),
}
_NAMES: dict[type, str] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
_BRANCHES = frozenset(("allOf", "anyOf", "not", "oneOf"))
# What is asked of texts and numbers besides their type.
_RESTRICTING = frozenset(
    (
        *("allOf", "anyOf", "oneOf", "not", "enum", "format", "x-kubernetes-int-or-string"),
        *("maxLength", "minLength", "pattern"),
        *("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf"),
    )
)


@dataclass(frozen=True, slots=True)
class _Place:
    """A value's path, as messages name it and as fields do."""

    path: str
    prefix: str

    @property
    def field(self) -> str:
        path = self.path.removeprefix(".")
        if self.prefix and path:
            return f"{self.prefix}.{path}"
        return self.prefix or path or NOWHERE

    def below(self, name: str) -> _Place:
        return _Place(f"{self.path}.{name}" if self.path else name, self.prefix)

    def dotted(self, name: str) -> _Place:
        # The server begins with a dot here, also at the root.
        return _Place(f"{self.path}.{name}", self.prefix)

    def at(self, index: int) -> _Place:
        return _Place(f"{self.path}[{index}]", self.prefix)


def value_problems(
    schema: Schema, value: Any, *, old: Any = NO_OLD, prefix: str = ""
) -> Iterator[FieldProblem]:
    """All that the schema has against a value; `prefix` is the path at which it stands."""
    return _check(schema, value, _Place("", prefix), old=old)


def _check(
    schema: Schema, value: Any, place: _Place, *, old: Any = NO_OLD
) -> Iterator[FieldProblem]:
    if old is not NO_OLD and type(value) is type(old) and value == old:
        return
    if _NAMES.get(type(value)) != schema.get("type"):
        yield from _type(schema, value, place)
    if value is not None and not _BRANCHES.isdisjoint(schema):
        yield from _branches(schema, value, place)
    match value:
        case None | bool():
            pass
        case str():
            yield from _length_and_pattern(schema, value, place)
            name = known_format(schema)
            if name and not has_format(name, value):
                wanted = schema["format"]
                detail = f"{place.path} in body must be of type {wanted}: {quoted(value)}"
                yield FieldProblem(Reason.TYPE_INVALID, place.field, value, detail)
        case int() | float():
            yield from _range_of_format(schema, value, place)
            factor = schema.get("multipleOf")
            if factor is not None:
                yield from _multiple(factor, value, place)
            yield from _bounds(schema, value, place)
        case list():
            yield from _list(schema, value, place, old=old)
    if "enum" in schema:
        yield from _enumeration(schema, value, place)
    if isinstance(value, dict):
        yield from _object(schema, value, place, old=old if isinstance(old, dict) else {})


def _plainly_fits(schema: Schema, value: Any) -> bool:
    """Return whether the type is all that the schema requires, and the value has it."""
    kinds = _PLAIN_TYPES.get(type(value))
    return kinds is not None and schema.get("type") in kinds and _RESTRICTING.isdisjoint(schema)


def types(schema: Schema) -> tuple[str, ...]:
    if schema.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    return (schema["type"],) if schema.get("type") else ()


def _type(schema: Schema, value: Any, place: _Place) -> Iterator[FieldProblem]:
    wanted = types(schema)
    kind = type_of(value)
    if not wanted or kind in wanted:
        return
    if kind == "null" and schema.get("nullable"):
        return
    # A text with a format is left to the check of formats.
    has_known = known_format(schema) and not {"number", "integer"} & set(wanted)
    if isinstance(value, str | list) and has_known:
        return
    if isinstance(value, float) and value.is_integer() and "integer" in wanted:
        return
    if kind == "integer" and "number" in wanted:
        return
    form = _form(schema, wanted)
    if form and value is not None and not isinstance(value, str | list):
        # Of what has a format, the server compares formats, also where there are none.
        yield _type_problem(place, form, _FORMS.get(type(value), ""))
    else:
        yield _type_problem(place, ",".join(wanted), kind)


def _form(schema: Schema, wanted: tuple[str, ...]) -> str:
    """The format of a schema, if it is one that the server knows for its type."""
    form = str(schema.get("format") or "")
    if wanted == ("string",):
        return form if known_format(schema) else ""
    return form if form in _NUMBER_FORMS.get(",".join(wanted), ()) else ""


def type_of(value: Any) -> str:
    """The JSON type of a value."""
    return _NAMES.get(type(value), "object")


def _type_problem(place: _Place, wanted: str, shown: str) -> FieldProblem:
    detail = f"{place.path} in body must be of type {wanted}: {quoted(shown)}"
    return FieldProblem(Reason.TYPE_INVALID, place.field, shown, detail)


def _branches(schema: Schema, value: Any, place: _Place) -> Iterator[FieldProblem]:
    if branches := schema.get("anyOf"):
        problems = [list(_check(branch, value, place)) for branch in branches]
        if all(problems):
            yield _nowhere(f"{quoted(place.path)} must validate at least one schema (anyOf)")
            yield from problems[0]
    if branches := schema.get("oneOf"):
        yield from _one_of(branches, value, place)
    if branches := schema.get("allOf"):
        yield from _all_of(branches, value, place)
    negated = schema.get("not")
    if negated is not None and not list(_check(negated, value, place)):
        yield _nowhere(f"{quoted(place.path)} must not validate the schema (not)")


def _one_of(branches: list[Schema], value: Any, place: _Place) -> Iterator[FieldProblem]:
    problems = [list(_check(branch, value, place)) for branch in branches]
    valid = sum(not each for each in problems)
    if valid == 1:
        return
    detail = f"Found {valid} valid alternatives" if valid else "Found none valid"
    yield _nowhere(f"{quoted(place.path)} must validate one and only one schema (oneOf). {detail}")
    if not valid:
        yield from problems[0]


def _all_of(branches: list[Schema], value: Any, place: _Place) -> Iterator[FieldProblem]:
    problems = [list(_check(branch, value, place)) for branch in branches]
    for each in problems:
        yield from each
    if any(problems):
        more = "" if not all(problems) else ". None validated"
        yield _nowhere(f"{quoted(place.path)} must validate all the schemas (allOf){more}")


def _nowhere(detail: str) -> FieldProblem:
    return invalid(NOWHERE, "", detail)


def _length_and_pattern(schema: Schema, value: str, place: _Place) -> Iterator[FieldProblem]:
    """The first of these checks that fails; the server goes no further either."""
    maximum = schema.get("maxLength")
    minimum = schema.get("minLength")
    pattern = schema.get("pattern")
    if maximum is not None and len(value) > maximum:
        yield too_long(place.field, maximum)
    elif minimum is not None and len(value) < minimum:
        detail = f"{place.path} in body should be at least {minimum} chars long"
        yield invalid(place.field, value, detail)
    elif pattern and not compile_pattern(pattern).search(value):
        yield invalid(place.field, value, f"{place.path} in body should match '{pattern}'")


def _range_of_format(schema: Schema, value: float, place: _Place) -> Iterator[FieldProblem]:
    if schema.get("type") != "integer" or schema.get("x-kubernetes-int-or-string"):
        return
    bits = _INTEGER_BITS.get(schema.get("format") or "")
    is_whole = isinstance(value, int) or value.is_integer()
    fits = bits is None or -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)
    if not is_whole or not fits:
        detail = f"with format {schema['format']}" if bits else "(default format)"
        yield _nowhere(f"Checked value must be of type integer {detail} in {place.path}")


def _multiple(factor: float, value: float, place: _Place) -> Iterator[FieldProblem]:
    # The server compares an integer with the whole part of the factor.
    step = int(factor) if isinstance(value, int) else factor
    if step <= 0:
        detail = f"factor MultipleOf declared for {place.path} must be positive: {compact(step)}"
        yield invalid(place.field, step, detail)
        return
    quotient = value * (1 / step) if step < 1 else value / step
    is_multiple = value % step == 0 if isinstance(value, int) else quotient.is_integer()
    if not is_multiple:
        detail = f"{place.path} in body should be a multiple of {compact(step)}"
        yield invalid(place.field, value, detail)


def _bounds(schema: Schema, value: float, place: _Place) -> Iterator[FieldProblem]:
    minimum = schema.get("minimum")
    maximum = schema.get("maximum")
    if minimum is not None:
        least = int(minimum) if isinstance(value, int) else minimum
        is_exclusive = schema.get("exclusiveMinimum")
        if value < least or (is_exclusive and value == least):
            relation = "greater than" if is_exclusive else "greater than or equal to"
            yield invalid(
                place.field, value, f"{place.path} in body should be {relation} {compact(least)}"
            )
    if maximum is not None:
        most = int(maximum) if isinstance(value, int) else maximum
        is_exclusive = schema.get("exclusiveMaximum")
        if value > most or (is_exclusive and value == most):
            relation = "less than" if is_exclusive else "less than or equal to"
            yield invalid(
                place.field, value, f"{place.path} in body should be {relation} {compact(most)}"
            )


def _list(schema: Schema, value: list[Any], place: _Place, *, old: Any) -> Iterator[FieldProblem]:
    items = schema.get("items")
    if items is not None:
        before = items_by_key(schema, old)
        for index, item in enumerate(value):
            if _plainly_fits(items, item):
                continue
            known = before.get(item_key(schema, item), NO_OLD) if before else NO_OLD
            yield from _check(items, item, place.at(index), old=known)
    least = schema.get("minItems")
    most = schema.get("maxItems")
    if least is not None and len(value) < least:
        detail = f"{place.path} in body should have at least {least} items"
        yield invalid(place.field, len(value), detail)
    if most is not None and len(value) > most:
        yield too_many(place.field, len(value), most)


def item_key(schema: Schema, item: Any) -> tuple[str, ...] | None:
    """By what an item of a list is found again, if it can be."""
    names = get(schema, "x-kubernetes-list-map-keys", ())
    if not names or not isinstance(item, dict):
        return None
    return tuple(repr(item.get(name)) for name in names)


def items_by_key(schema: Schema, items: Any) -> dict[tuple[str, ...] | None, Any]:
    keyed = {item_key(schema, item): item for item in (items if isinstance(items, list) else ())}
    keyed.pop(None, None)
    return keyed


def _enumeration(schema: Schema, value: Any, place: _Place) -> Iterator[FieldProblem]:
    allowed = schema.get("enum")
    if not allowed or any(_equal(value, each) for each in allowed):
        return
    shown = ", ".join(quoted(each if isinstance(each, str) else _json(each)) for each in allowed)
    subject = Token(value) if isinstance(value, str) else value
    yield FieldProblem(Reason.NOT_SUPPORTED, place.field, subject, f"supported values: {shown}")


def _equal(value: Any, allowed: Any) -> bool:
    """Return whether two values are equal after Go converts the first to the type of the second."""
    if isinstance(value, bool) or isinstance(allowed, bool):
        return value is allowed
    match value, allowed:
        case float(), int():
            return int(value) == allowed
        case int(), str():
            return 0 <= value <= sys.maxunicode and chr(value) == allowed
        case _:
            return bool(value == allowed)


def _json(value: Any) -> str:
    return compact(value) if not isinstance(value, dict | list) else str(value)


def _object(
    schema: Schema, value: dict[str, Any], place: _Place, *, old: dict[str, Any]
) -> Iterator[FieldProblem]:
    yield from _size(schema, value, place)
    properties = get(schema, "properties", {})
    additional = schema.get("additionalProperties")
    others = value.keys() - properties.keys() if additional is not None else ()
    for name in sorted(others):
        if isinstance(additional, dict):
            if _plainly_fits(additional, value[name]):
                continue
            known = old.get(name, NO_OLD)
            yield from _check(additional, value[name], place.dotted(name), old=known)
        elif additional is False:
            detail = f"{place.path}.{name} in body is a forbidden property"
            yield invalid(place.dotted(name).field, "", detail)
    for name in sorted(properties.keys() & value.keys()):
        if _plainly_fits(properties[name], value[name]):
            continue
        known = old.get(name, NO_OLD)
        yield from _check(properties[name], value[name], place.below(name), old=known)
    for name in get(schema, "required", ()):
        if name not in value:
            yield required(place.dotted(name).field)


def _size(schema: Schema, value: dict[str, Any], place: _Place) -> Iterator[FieldProblem]:
    least = schema.get("minProperties")
    most = schema.get("maxProperties")
    if least is not None and len(value) < least:
        detail = f"{place.path} in body should have at least {least} properties"
        yield invalid(place.field, len(value), detail)
    if most is not None and len(value) > most:
        yield too_many(place.field, len(value), most)
