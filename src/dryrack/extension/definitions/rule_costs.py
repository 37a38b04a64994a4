"""
The estimated cost of the rules of a schema, without any object.

The server refuses a rule whose highest estimate is above a limit, and a schema whose rules are
above another together, so that no object can make it work for long. Sizes come from the schema:
what has no bound is as large as a request can be. A rule below a list or a map is tried as often
as that has entries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dryrack.cel.estimation import ITEMS, KEYS, VALUES, Path, SizeEstimate, SizeHints, estimate_by
from dryrack.extension.definitions.rule_types import spellings, with_identity
from dryrack.kinds.paths import get
from dryrack.kinds.validation.problems import FieldProblem, forbidden

if TYPE_CHECKING:
    from dryrack.extension.definitions.rules import Rule

Schema = Mapping[str, Any]

_REQUEST_BYTES_MAX = 3 * 1024 * 1024
_RULE_COST_MAX = 10_000_000
_SCHEMA_COST_MAX = 100_000_000
_COST_MAX = 2**64 - 1
_BYTES_PER_CHARACTER = 4
_NAMED_AS_EXPENSIVE = 4
# The least and the most bytes of what has a fixed form.
_FORMS = {"duration": (3, 32), "date": (12, 12), "date-time": (21, 32)}
_SCALARS = {"boolean": 4, "number": 1, "integer": 1}


@dataclass(frozen=True, slots=True)
class Sized:
    """One place of a schema: the least bytes it takes, and the most entries it has."""

    bytes_min: int
    size_max: int = 0
    key: Sized | None = None
    element: Sized | None = None
    fields: Mapping[str, Sized] = field(default_factory=dict)


def sized(schema: Schema, *, is_root: bool = False) -> Sized | None:
    """Return what is known of the sizes of values; None for values without a type."""
    if schema.get("x-kubernetes-int-or-string"):
        return Sized(1, _text_max(schema))
    match schema.get("type"):
        case "array":
            return _list(schema)
        case "object":
            return _object(with_identity(schema) if is_root else schema)
        case "string":
            form = schema.get("format") or ""
            if form in _FORMS:
                least, most = _FORMS[form]
                return Sized(least, most)
            if form == "byte":
                return Sized(2, schema.get("maxLength", _REQUEST_BYTES_MAX - 2))
            if "maxLength" not in schema and schema.get("enum"):
                texts = [each for each in schema["enum"] if isinstance(each, str)]
                return Sized(2, max((len(each.encode()) for each in texts), default=0))
            return Sized(2, _text_max(schema))
        case str() as scalar if scalar in _SCALARS:
            return Sized(_SCALARS[scalar])
        case _:
            return None


def _text_max(schema: Schema) -> int:
    if "maxLength" in schema:
        return max(int(schema["maxLength"]), 0) * _BYTES_PER_CHARACTER
    return _REQUEST_BYTES_MAX - 2


def _inner(schema: Any) -> Sized | None:
    if not isinstance(schema, dict):
        return None
    return sized(schema, is_root=bool(schema.get("x-kubernetes-embedded-resource")))


def _list(schema: Schema) -> Sized | None:
    item = _inner(schema.get("items"))
    if item is None:
        return None
    most = (_REQUEST_BYTES_MAX - 2) // (item.bytes_min + 1)
    return Sized(2, max(schema.get("maxItems", most), 0), element=item)


def _object(schema: Schema) -> Sized | None:
    if isinstance(schema.get("additionalProperties"), dict):
        value = _inner(schema["additionalProperties"])
        if value is None:
            return None
        most = (_REQUEST_BYTES_MAX - 2) // (value.bytes_min + 6)
        return Sized(2, max(schema.get("maxProperties", most), 0), key=Sized(2), element=value)
    required = set(get(schema, "required", ()))
    bytes_min = 2
    fields = {}
    for name, place in get(schema, "properties", {}).items():
        sizes = _inner(place)
        if sizes is None:
            continue
        # The escaped name alone decides the cost of a rule.
        fields.update(dict.fromkeys(spellings(name)[:1], sizes))
        if name in required and place.get("default") is None:
            bytes_min += len(name.encode()) + sizes.bytes_min + 4
    return Sized(bytes_min, fields=fields)


class _SchemaSizes(SizeHints):
    """The sizes of everything that can be reached from `self` and `oldSelf`."""

    __slots__ = ("_root",)

    def __init__(self, root: Sized) -> None:
        self._root = root

    def size(self, path: Path) -> SizeEstimate | None:
        names = list(path)
        if not names:
            return None
        at: Sized | None = self._root
        for name in names[1:]:
            at = _step(at, name) if at else None
        return SizeEstimate(0, at.size_max) if at else None


def _step(at: Sized, name: str) -> Sized | None:
    if name in (ITEMS, VALUES):
        return at.element
    return at.key if name == KEYS else at.fields.get(name)


@dataclass(frozen=True, slots=True)
class Within:
    """Return how often a place occurs in an object at most; None without a bound."""

    times_max: int | None
    is_root: bool = True

    def below(self, schema: Schema) -> Within:
        """Yield the same for the schemas right below a schema."""
        entries: int | None = 1
        match schema.get("type"):
            case "object" if schema.get("additionalProperties") is not None:
                entries = schema.get("maxProperties")
            case "array":
                entries = schema.get("maxItems")
        if entries is None or self.times_max is None:
            return Within(None, is_root=False)
        return Within(_times(self.times_max, max(entries, 0)), is_root=False)


def _times(cost: int, often: int) -> int:
    return min(cost * often, _COST_MAX)


@dataclass(slots=True)
class Spent:
    """Return the highest cost of the rules of one schema together."""

    total: int = 0
    expensive: list[tuple[int, str]] = field(default_factory=list)

    def observe(
        self, rule: Rule, schema: Schema, within: Within, *, at: str
    ) -> Iterator[FieldProblem]:
        """Counts a rule, and refuses it if it alone is too expensive."""
        root = sized(schema, is_root=within.is_root)
        if root is None:
            return
        cost = estimate_by(rule.checked, _SchemaSizes(root)).max
        # Without a bound, as often as the least of it fits into a request.
        often = within.times_max
        if often is None:
            often = _REQUEST_BYTES_MAX // (root.bytes_min + 1)
        cost = _times(cost, often)
        self.total = min(self.total + cost, _COST_MAX)
        if cost >= _SCHEMA_COST_MAX // 100:
            self.expensive.append((cost, at))
        if cost > _RULE_COST_MAX:
            yield forbidden(at, _too_expensive("estimated rule cost", cost, _RULE_COST_MAX))

    def problems(self, path: str) -> Iterator[FieldProblem]:
        """Refuses the schema if its rules are too expensive together."""
        if self.total <= _SCHEMA_COST_MAX:
            return
        most = sorted(self.expensive, key=lambda each: -each[0])[:_NAMED_AS_EXPENSIVE]
        for _, at in most:
            detail = "contributed to estimated rule cost total exceeding cost limit for entire "
            yield forbidden(at, detail + "OpenAPIv3 schema")
        what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        yield forbidden(path, _too_expensive(what, self.total, _SCHEMA_COST_MAX))


def _too_expensive(what: str, cost: int, cost_max: int) -> str:
    factor = cost / cost_max
    if factor > 100:
        shown = "more than 100x"
    else:
        shown = f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return (
        f"{what} exceeds budget by factor of {shown} (try simplifying the rule, or adding "
        "maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
