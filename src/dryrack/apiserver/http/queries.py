"""
The query of a request, and the options in it.

The rules are the server's: an invalid number is a bad request, any value but "false" and "0" is
true, and options that contradict each other are refused as an invalid object of their kind.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs

import msgspec

from dryrack.apiserver.answer.status import Subject, bad_request, invalid
from dryrack.kinds.text.quoting import quoted
from dryrack.kinds.validation import FieldProblem, Reason
from dryrack.kinds.validation.problems import (
    byte_length,
    forbidden,
    not_supported,
    required,
    too_long,
)
from dryrack.kinds.validation.problems import invalid as invalid_value

Query = Mapping[str, list[str]]

_META = "meta.k8s.io"
_MANAGER_BYTES_MAX = 128
_INT64_MAX = 2**63 - 1
_FIELD_VALIDATION = ("", "Ignore", "Strict", "Warn")
_EXACT = "Exact"
_NOT_OLDER = "NotOlderThan"
_NOTHING: Query = {}


def parse(query: str) -> Query:
    """The parameters; what is percent-encoded badly stays as it is."""
    return parse_qs(query, keep_blank_values=True) if query else _NOTHING


def text_of(query: Query, name: str) -> str:
    values = query.get(name)
    return values[0] if values else ""


def truth_of(query: Query, name: str) -> bool:
    values = query.get(name)
    return values[0].lower() not in ("false", "0") if values else False


def integer_of(query: Query, name: str) -> int | None:
    values = query.get(name)
    return parse_int(values[0]) if values else None


def parse_int(text: str) -> int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        raise bad_request(f"strconv.ParseInt: parsing {quoted(text)}: invalid syntax")
    value = int(digits) * (-1 if text[0] == "-" else 1) if len(digits) < 20 else _INT64_MAX + 1
    if not -_INT64_MAX - 1 <= value <= _INT64_MAX:
        raise bad_request(f"strconv.ParseInt: parsing {quoted(text)}: value out of range")
    return value


class WriteOptions(msgspec.Struct, frozen=True):
    """The options of a create, an update or a patch."""

    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = "Warn"
    force: bool = False


DEFAULT_WRITE = WriteOptions()


def write_options(query: Query, kind: str, *, is_apply: bool = False) -> WriteOptions:
    """`kind` is CreateOptions, UpdateOptions or PatchOptions."""
    if not query and not is_apply:
        return DEFAULT_WRITE
    problems = tuple(_write_problems(query, kind, is_apply=is_apply))
    if problems:
        raise invalid(Subject(_META, kind), "", problems)
    return WriteOptions(
        dry_run="dryRun" in query,
        field_manager=text_of(query, "fieldManager"),
        field_validation=text_of(query, "fieldValidation") or "Warn",
        force=truth_of(query, "force"),
    )


def _write_problems(query: Query, kind: str, *, is_apply: bool) -> Iterator[FieldProblem]:
    manager = text_of(query, "fieldManager")
    if is_apply and not manager:
        yield required("fieldManager", "is required for apply patch")
    if kind == "PatchOptions" and not is_apply and "force" in query:
        yield forbidden("force", "may not be specified for non-apply patch")
    if byte_length(manager) > _MANAGER_BYTES_MAX:
        yield too_long("fieldManager", _MANAGER_BYTES_MAX)
    position = 0
    for char in manager:
        if not char.isprintable():
            shown = f"U+{ord(char):04X}"
            detail = f"invalid character {shown} (at position {position})"
            yield invalid_value("fieldManager", manager, detail)
        position += byte_length(char)
    yield from dry_run_problems(query.get("dryRun", []))
    validation = text_of(query, "fieldValidation")
    if validation not in _FIELD_VALIDATION:
        yield not_supported("fieldValidation", validation, _FIELD_VALIDATION)


def dry_run_problems(values: list[str]) -> Iterator[FieldProblem]:
    if any(value != "All" for value in values):
        detail = 'supported values: "All"'
        yield FieldProblem(Reason.NOT_SUPPORTED, "dryRun", list(values), detail)


@dataclass(frozen=True, slots=True)
class ListOptions:
    """The options of a list, a watch or the deletion of a collection."""

    label_selector: str = ""
    field_selector: str = ""
    watch: bool = False
    bookmarks: bool = False
    resource_version: str = ""
    match: str = ""
    timeout_seconds: int | None = None
    limit: int = 0
    continue_token: str = ""
    initial_events: bool | None = None


_DEFAULT_LIST = ListOptions()


def list_options(query: Query) -> ListOptions:
    if not query:
        return _DEFAULT_LIST
    options = ListOptions(
        label_selector=text_of(query, "labelSelector"),
        field_selector=text_of(query, "fieldSelector"),
        watch=truth_of(query, "watch"),
        bookmarks=truth_of(query, "allowWatchBookmarks"),
        resource_version=text_of(query, "resourceVersion"),
        match=text_of(query, "resourceVersionMatch"),
        timeout_seconds=integer_of(query, "timeoutSeconds"),
        limit=integer_of(query, "limit") or 0,
        continue_token=text_of(query, "continue"),
        initial_events=truth_of(query, "sendInitialEvents")
        if "sendInitialEvents" in query
        else None,
    )
    problems = tuple(_watch_problems(options) if options.watch else _list_problems(options))
    if problems:
        raise invalid(Subject(_META, "ListOptions"), "", problems)
    return options


def _list_problems(options: ListOptions) -> Iterator[FieldProblem]:
    field = "resourceVersionMatch"
    if options.match:
        if not options.resource_version:
            yield forbidden(field, f"{field} is forbidden unless resourceVersion is provided")
        if options.continue_token:
            yield forbidden(field, f"{field} is forbidden when continue is provided")
        if options.match not in (_EXACT, _NOT_OLDER):
            yield not_supported(field, options.match, (_EXACT, _NOT_OLDER, ""))
        if options.match == _EXACT and options.resource_version == "0":
            yield forbidden(field, f'{field} "exact" is forbidden for resourceVersion "0"')
    if options.initial_events is not None:
        yield forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")


def _watch_problems(options: ListOptions) -> Iterator[FieldProblem]:
    field = "resourceVersionMatch"
    if options.initial_events is not None and options.match != _NOT_OLDER:
        yield forbidden(field, f"sendInitialEvents requires setting {field} to {_NOT_OLDER}")
    if options.match:
        if options.initial_events is None:
            detail = f"{field} is forbidden for watch unless sendInitialEvents is provided"
            yield forbidden(field, detail)
        if options.match != _NOT_OLDER:
            yield not_supported(field, options.match, (_NOT_OLDER,))
        if options.continue_token:
            yield forbidden(field, f"{field} is forbidden when continue is provided")


def parse_revision(text: str) -> int:
    """Return the revision in a resourceVersion ("" is 0), or raise a `RevisionError`."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()):
        raise RevisionError(f"strconv.ParseUint: parsing {quoted(text)}: invalid syntax", text)
    if len(text) > 20 or int(text) >= 2**64:
        raise RevisionError(f"strconv.ParseUint: parsing {quoted(text)}: value out of range", text)
    return int(text)


class RevisionError(ValueError):
    """A resourceVersion that is no number; `field_message` is the text of the server."""

    def __init__(self, message: str, given: str) -> None:
        super().__init__(message)
        self.field_message = f"resourceVersion: Invalid value: {quoted(given)}: {message}"
