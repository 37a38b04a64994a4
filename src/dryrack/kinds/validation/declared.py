"""
Checks that a release declares with its types.

From 1.37 on, the API server generates checks from markers on the fields of its types. Where such
a check and a handwritten one find the same problem, the server drops the handwritten one. The
problems of the declared checks come last, in the order of the fields, and no problem is repeated.

A type maps its fields to words. A word is a check, or the type of the value: `Type` is an object,
`*Type` an object that can be missing, `[]Type` a list, and `{}Type` a map. A change of a field that
the update does not make is not checked again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from dryrack.kinds.releases import DECLARED_TYPES, Release
from dryrack.kinds.text.quoting import quoted
from dryrack.kinds.validation.names import (
    IDENTIFIER_BYTES_MAX,
    POOL_NAME_BYTES_MAX,
    Checker,
    c_identifier,
    caseless_name,
    label_key,
    long_name,
    short_name,
)
from dryrack.kinds.validation.problems import (
    FieldProblem,
    Reason,
    byte_length,
    duplicate,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

Check: TypeAlias = Callable[[str, Any], Iterator[FieldProblem]]

_DOMAIN_BYTES_MAX = 63
_is_uuid = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch
_NATIVE_DOMAIN = "kubernetes.io/"
_QUOTA_PREFIX = "requests."
_NODE_OPERATIONS = ("*", "NodePrepareResources", "NodeUnprepareResources")
_EMPTY: tuple[object, ...] = (None, "", [], {})
# The beginnings of handwritten problems that no declared check replaces.
_OTHER_TEXTS = (
    *("may not contain '", "may not be '", "must be referenced by "),
    "may only be set on a slice ",
)
_UPDATE_TEXTS = {
    "immutable": "field is immutable",
    "no-modify": "field cannot be modified once set",
}


def _problems_of(checker: Checker, prefix: str = "") -> Check:
    """Return a check that reports each complaint about the text."""

    def check(field: str, value: str) -> Iterator[FieldProblem]:
        return (invalid(field, value, f"{prefix}{each}") for each in checker(value))

    return check


def _pool_name(field: str, value: str) -> Iterator[FieldProblem]:
    if byte_length(value) > POOL_NAME_BYTES_MAX:
        yield too_long(field, POOL_NAME_BYTES_MAX)
    for position, part in enumerate(value.split("/")):
        if part:
            yield from _problems_of(long_name, f"segment {position}: ")(field, part)
        else:
            yield invalid(field, value, f"segment {position}: must not be empty")


def _uuid(field: str, value: str) -> Iterator[FieldProblem]:
    if not _is_uuid(value):
        yield invalid(field, value, "must be a lowercase UUID in 8-4-4-4-12 format")


def _extended_resource_name(field: str, value: str) -> Iterator[FieldProblem]:
    if "/" not in value:
        detail = "a name must be a domain-prefixed path, such as 'example.com/my-prop'"
        yield invalid(field, value, detail, fix="write '<your domain>/<name>'")
    elif _NATIVE_DOMAIN in value:
        yield invalid(field, value, f"must not have {quoted(_NATIVE_DOMAIN)} domain")
    if value.startswith(_QUOTA_PREFIX):
        yield invalid(field, value, f"must not have {quoted(_QUOTA_PREFIX)} prefix")
    for complaint in label_key(f"{_QUOTA_PREFIX}{value}"):
        yield invalid(field, value, complaint)


def _fully_qualified_name(field: str, value: str) -> Iterator[FieldProblem]:
    parts = value.split("/")
    if len(parts) == 1:
        yield from _identifier(field, value)
    elif len(parts) == 2:
        domain, name = parts
        if not domain:
            yield invalid(field, "", "prefix must not be empty")
        else:
            if byte_length(domain) > _DOMAIN_BYTES_MAX:
                yield too_long(field, _DOMAIN_BYTES_MAX)
            yield from _problems_of(long_name, "prefix: ")(field, domain)
        if not name:
            yield invalid(field, "", "name must not be empty")
        else:
            yield from _identifier(field, name)
    if len(parts) == 1:
        detail = "a fully qualified name must be a domain and a name separated by a slash"
        yield invalid(field, value, detail)


def _identifier(field: str, name: str) -> Iterator[FieldProblem]:
    if byte_length(name) > IDENTIFIER_BYTES_MAX:
        yield too_long(field, IDENTIFIER_BYTES_MAX)
    yield from _problems_of(c_identifier)(field, name)


def _skip_node_operation(field: str, value: str) -> Iterator[FieldProblem]:
    if value not in _NODE_OPERATIONS:
        yield not_supported(field, value, _NODE_OPERATIONS)


_FORMATS: Mapping[str, Check] = {
    "skip-node-operation": _skip_node_operation,
    "short-name": _problems_of(short_name),
    "long-name": _problems_of(long_name),
    "caseless-name": _problems_of(caseless_name),
    "label-key": _problems_of(label_key),
    "pool-name": _pool_name,
    "uuid": _uuid,
    "extended-resource-name": _extended_resource_name,
    "fully-qualified-name": _fully_qualified_name,
}


def _limit(word: str) -> Check | None:
    """Return the check of a word such as `max=32`; None if the word is none."""
    name, _, text = word.partition("=")
    if name == "one-of":
        known = tuple(text.split(","))
        return lambda field, value: iter(
            () if value in known else (not_supported(field, value, known),)
        )
    if name == "each":
        return lambda field, value: (
            problem
            for position, each in enumerate(value)
            for problem in _FORMATS[text](f"{field}[{position}]", each)
        )
    if name == "keys":
        return lambda field, value: (
            problem for key in sorted(value) for problem in _FORMATS[text](field, key)
        )
    if name == "bytes":
        return lambda field, value: iter(
            (too_long(field, int(text)),) if byte_length(value) > int(text) else ()
        )
    if name == "length":
        detail = f"may not be more than {text} characters"
        return lambda field, value: iter(
            (FieldProblem(Reason.TOO_LONG, field, "", detail),) if len(value) > int(text) else ()
        )
    if name == "min":
        detail = f"must be greater than or equal to {text}"
        return lambda field, value: iter(
            (invalid(field, value, detail),) if value < int(text) else ()
        )
    return None


@dataclass(frozen=True, slots=True)
class _Field:
    """Checks that a type declares for one of its fields."""

    is_required: bool
    # Whether an empty text or object is a value.
    is_pointer: bool
    # The text about a change; "" if the field can change.
    update_text: str
    # Whether a value that is set can be removed, and another be set.
    only_modified: bool
    items_max: int | None
    # The names that make an item of a list unique; empty: the whole item; None: not unique.
    key: tuple[str, ...] | None
    checks: tuple[Check, ...]
    # The type of the value, of an item, or of a value in the map, with its form.
    form: str
    type: str

    def is_empty(self, value: Any) -> bool:
        """Return whether Go takes the value for one that is not set."""
        return value is None or (not self.is_pointer and value in _EMPTY)


@cache
def _parse(words: str) -> _Field:
    given = words.split()
    options = dict(word.partition("=")[::2] for word in given)
    found = re.fullmatch(r"(\*|\[\]|\{\})?([A-Z]\w*)", given[-1]) if given else None
    updates = [_UPDATE_TEXTS[word] for word in given if word in _UPDATE_TEXTS]
    limits = (_FORMATS.get(word) or _limit(word) for word in given)
    return _Field(
        is_required="required" in options,
        is_pointer="pointer" in options or (found is not None and found[1] == "*"),
        update_text=updates[0] if updates else "",
        only_modified="no-modify" in options,
        items_max=int(options["max"]) if "max" in options else None,
        key=tuple(filter(None, options["unique"].split(","))) if "unique" in options else None,
        checks=tuple(filter(None, limits)),
        form=(found[1] or "") if found else "",
        type=found[2] if found else "",
    )


@dataclass(frozen=True, slots=True)
class Declared:
    """The declared checks of one kind."""

    types: Mapping[str, Mapping[str, str]]
    kind: str

    def problems(self, new: Raw, old: Raw | None = None) -> tuple[FieldProblem, ...]:
        """Return the problems of an object, in the order of its fields; `old` is what is stored."""
        return tuple(self._object("", self.kind, new, old))

    def _object(self, field: str, type_: str, new: Raw, old: Raw | None) -> Iterator[FieldProblem]:
        for name, words in self.types[type_].items():
            if not name:
                yield from _union(field, words.split(), new, old)
            else:
                at = f"{field}.{name}" if field else name
                before = None if old is None else old.get(name)
                yield from self._field(
                    at, _parse(words), new.get(name), before, correlated=old is not None
                )

    def _field(
        self, at: str, field: _Field, value: Any, old: Any, *, correlated: bool
    ) -> Iterator[FieldProblem]:
        is_empty = field.is_empty(value)
        if correlated and (value == old or (is_empty and field.is_empty(old))):
            return
        if is_empty and field.is_required:
            yield required(at)
        stops = False
        if correlated and field.update_text:
            stops = not field.only_modified or not (is_empty or field.is_empty(old))
            if stops:
                yield invalid(at, None, field.update_text)
        if is_empty:
            if field.type and not field.form and not stops:
                yield from self._object(at, field.type, {}, old)
            return
        if field.items_max is not None and len(value) > field.items_max:
            yield too_many(at, len(value), field.items_max)
            stops = True
        if stops:
            return
        if field.key is not None:
            yield from _repeats(at, field.key, value)
        for check in field.checks:
            yield from check(at, value)
        yield from self._inner(at, field, value, old)

    def _inner(self, at: str, field: _Field, value: Any, old: Any) -> Iterator[FieldProblem]:
        match field.form:
            case "[]":
                for position, item in enumerate(value):
                    before = _counterpart(field.key, item, old or ())
                    if before is None or before != item:
                        yield from self._object(f"{at}[{position}]", field.type, item or {}, before)
            case "{}":
                for key in sorted(value):
                    before = (old or {}).get(key)
                    if before is None or before != value[key]:
                        yield from self._object(
                            f"{at}[{key}]", field.type, value[key] or {}, before
                        )
            case _ if field.type:
                yield from self._object(at, field.type, value, old)


def _union(field: str, members: Sequence[str], new: Raw, old: Raw | None) -> Iterator[FieldProblem]:
    """Yield a problem unless exactly one of the fields is set."""
    given = [name for name in members if new.get(name) not in (None, [])]
    if len(given) == 1:
        return
    if old is not None and given == [name for name in members if old.get(name) not in (None, [])]:
        return
    names = ", ".join(f"`{name}`" for name in members)
    if given:
        yield invalid(field, f"{{{', '.join(given)}}}", f"must specify exactly one of: {names}")
    else:
        yield invalid(field, "", f"must specify one of: {names}")


def _repeats(field: str, key: Sequence[str], items: Sequence[Any]) -> Iterator[FieldProblem]:
    seen: set[object] = set()
    for position, item in enumerate(items):
        found = _key_of(key, item)
        if found in seen:
            yield duplicate(f"{field}[{position}]", item)
        seen.add(found)


def _key_of(key: Sequence[str], item: Any) -> object:
    return tuple((item or {}).get(name) for name in key) if key else item


def _counterpart(key: Sequence[str] | None, item: Any, old: Iterable[Any]) -> Any:
    """Return the stored item of a list with keys; None if the list has none."""
    if not key:
        return None
    found = _key_of(key, item)
    return next((each for each in old if _key_of(key, each) == found), None)


def declared_of(kind: str, release: Release) -> Declared | None:
    """Return the declared checks of a kind; None if the release declares none."""
    types = DECLARED_TYPES[release]
    return Declared(types, kind) if kind in types else None


def merge(
    handwritten: Iterable[FieldProblem],
    declared: Sequence[FieldProblem],
    path: Callable[[str], str] = str,
) -> tuple[FieldProblem, ...]:
    """
    Return all problems as the server reports them: each once, and the declared ones last.

    `path` returns the path of a declared problem in the version that was written.
    """
    found = {(each.reason, each.field, _origin(each)) for each in declared}
    fixes: dict[tuple[Reason, str], str] = {}
    kept: dict[str, FieldProblem] = {}
    for problem in handwritten:
        if (problem.reason, problem.field, _origin(problem)) in found:
            fixes.setdefault((problem.reason, problem.field), problem.fix)
        else:
            kept.setdefault(str(problem), problem)
    for problem in declared:
        fix = problem.fix or fixes.get((problem.reason, problem.field), "")
        shown = replace(problem, field=path(problem.field), fix=fix)
        kept.setdefault(str(shown), shown)
    return tuple(kept.values())


def _origin(problem: FieldProblem) -> str:
    """Return the kind of check where a field can have invalid values for several reasons."""
    if problem.detail in _UPDATE_TEXTS.values():
        return "change"
    return "other" if problem.detail.startswith(_OTHER_TEXTS) else ""
