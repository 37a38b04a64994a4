"""
Syntax of names.

Kubernetes has a handful of name syntaxes and applies them everywhere. A checker here takes a
text and answers with every complaint about it, in the API server's words; the functions further
down apply the checkers to a field and answer with problems. Lengths are in bytes.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias

from dryrack.kinds.text.quoting import quoted
from dryrack.kinds.validation.problems import (
    FieldProblem,
    Token,
    byte_length,
    invalid,
    required,
    too_long,
)

Checker: TypeAlias = Callable[[str], tuple[str, ...]]

LABEL_BYTES_MAX = 63
SUBDOMAIN_BYTES_MAX = 253
DRIVER_NAME_BYTES_MAX = 63
POOL_NAME_BYTES_MAX = 253
IDENTIFIER_BYTES_MAX = 32

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_KEY})?"
_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_NUMBER = "(0|[1-9][0-9]*)"
_PRERELEASE = "(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
_BUILD = "[0-9a-zA-Z-]+"

_is_label = re.compile(_LABEL).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
# Go takes two more letters for "k" and "s" if it ignores the case.
_is_caseless_name = re.compile(
    _SUBDOMAIN.replace("a-z", "a-z\u017f\u212a"), re.IGNORECASE | re.ASCII
).fullmatch
_is_identifier = re.compile(_IDENTIFIER).fullmatch
_is_key = re.compile(_KEY).fullmatch
_is_label_value = re.compile(_LABEL_VALUE).fullmatch
_is_semver = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}"
    rf"(-{_PRERELEASE}(\.{_PRERELEASE})*)?(\+{_BUILD}(\.{_BUILD})*)?"
).fullmatch
_is_reason = re.compile(_REASON).fullmatch
_is_hex = re.compile("[0-9a-fA-F]*").fullmatch


def _syntax(what: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{what} (e.g. {shown}regex used for validation is '{pattern}')"


_LABEL_SYNTAX = _syntax(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character",
    _LABEL,
    "my-name",
    "123-abc",
)
_SUBDOMAIN_SYNTAX = _syntax(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
    "'-' or '.', and must start and end with an alphanumeric character",
    _SUBDOMAIN,
    "example.com",
)
_CASELESS_SYNTAX = _syntax(
    "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character",
    _SUBDOMAIN,
    "Example.com",
)
_IDENTIFIER_SYNTAX = _syntax(
    "a valid C identifier must start with alphabetic character or '_', "
    "followed by a string of alphanumeric characters or '_'",
    _IDENTIFIER,
    "my_name",
    "MY_NAME",
    "MyName",
)
_KEY_SYNTAX = _syntax(
    "must consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character",
    _KEY,
    "MyName",
    "my.name",
    "123-abc",
)
_LABEL_VALUE_SYNTAX = _syntax(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' "
    "or '.', and must start and end with an alphanumeric character",
    _LABEL_VALUE,
    "MyValue",
    "my_value",
    "12345",
)
_REASON_SYNTAX = _syntax(
    "a condition reason must start with alphabetic character, optionally followed by a string "
    "of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'",
    _REASON,
    "my_name",
    "MY_NAME",
    "MyName",
    "ReasonA,ReasonB",
    "ReasonA:ReasonB",
)


def _length(text: str, bytes_max: int, unit: str) -> Iterator[str]:
    # Bytes are counted in any case, but half of the server still says characters.
    if byte_length(text) > bytes_max:
        yield f"must be no more than {bytes_max} {unit}"


def label(text: str) -> tuple[str, ...]:
    """A DNS label: devices, requests, counters, namespaces."""
    return _label(text, "characters")


def subdomain(text: str) -> tuple[str, ...]:
    """A DNS subdomain: most objects, nodes, drivers."""
    return _subdomain(text, "characters")


def long_name(text: str) -> tuple[str, ...]:
    """A DNS subdomain where the server counts in bytes: device classes, prefixes of labels."""
    return _subdomain(text, "bytes")


def caseless_name(text: str) -> tuple[str, ...]:
    """A DNS subdomain in lower or upper case: drivers in configuration and results."""
    complaints = [*_length(text, SUBDOMAIN_BYTES_MAX, "bytes")]
    if not _is_caseless_name(text):
        complaints.append(_CASELESS_SYNTAX)
    return tuple(complaints)


def short_name(text: str) -> tuple[str, ...]:
    """A DNS label where the server counts in bytes: counters and compatibility groups."""
    return _label(text, "bytes")


def _label(text: str, unit: str) -> tuple[str, ...]:
    complaints = [*_length(text, LABEL_BYTES_MAX, unit)]
    if not _is_label(text):
        complaints.append("must not contain dots" if _is_subdomain(text) else _LABEL_SYNTAX)
    return tuple(complaints)


def _subdomain(text: str, unit: str) -> tuple[str, ...]:
    complaints = [*_length(text, SUBDOMAIN_BYTES_MAX, unit)]
    if not _is_subdomain(text):
        complaints.append(_SUBDOMAIN_SYNTAX)
    return tuple(complaints)


def c_identifier(text: str) -> tuple[str, ...]:
    """The last part of an attribute or capacity name."""
    return () if _is_identifier(text) else (_IDENTIFIER_SYNTAX,)


# The same few keys and values are on every object of a cluster, and on every device.
_KNOWN_MAX = 4096


@lru_cache(maxsize=_KNOWN_MAX)
def label_key(text: str) -> tuple[str, ...]:
    """A label key: a name, with an optional DNS subdomain before a slash."""
    parts = text.split("/")
    if len(parts) > 2:
        optional = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return (f"a valid label key {_KEY_SYNTAX}{optional}",)
    return (*_key_prefix(parts[:-1]), *_key_name(parts[-1]))


def _key_prefix(prefixes: list[str]) -> Iterator[str]:
    for prefix in prefixes:
        if not prefix:
            yield "prefix part must be non-empty"
        else:
            yield from (f"prefix part {complaint}" for complaint in long_name(prefix))


def _key_name(name: str) -> Iterator[str]:
    if not name:
        yield "name part must be non-empty"
    yield from (f"name part {complaint}" for complaint in _length(name, LABEL_BYTES_MAX, "bytes"))
    if not _is_key(name):
        yield f"name part {_KEY_SYNTAX}"


@lru_cache(maxsize=_KNOWN_MAX)
def label_value(text: str) -> tuple[str, ...]:
    complaints = [*_length(text, LABEL_BYTES_MAX, "bytes")]
    if not _is_label_value(text):
        complaints.append(_LABEL_VALUE_SYNTAX)
    return tuple(complaints)


def condition_reason(text: str) -> tuple[str, ...]:
    return () if _is_reason(text) else (_REASON_SYNTAX,)


def path_segment(text: str) -> tuple[str, ...]:
    """Return complaints about a name that cannot be part of a URL."""
    if text in (".", ".."):
        return (f"may not be '{text}'",)
    return path_segment_prefix(text)


def path_segment_prefix(text: str) -> tuple[str, ...]:
    return tuple(f"may not contain '{char}'" for char in "/%" if char in text)


def subdomain_prefix(text: str) -> tuple[str, ...]:
    """A `generateName`: what is made of it may be a subdomain though it ends in a dash."""
    if len(text) < 2 or not text.endswith("-"):
        return subdomain(text)
    # The server replaces the last two bytes by one letter.
    return subdomain((text.encode()[:-2] + b"a").decode("utf-8", "replace"))


def is_semver(text: str) -> bool:
    """Strict semver 2.0.0, which is more than what comparing versions needs."""
    return _is_semver(text) is not None


def checked(
    field: str, value: str, checker: Checker, *, suggest: Callable[[str], str] | None = None
) -> Iterator[FieldProblem]:
    """One problem per complaint."""
    for complaint in checker(value):
        yield invalid(field, value, complaint, fix=suggest(value) if suggest else "")


def device_label(field: str, value: str) -> Iterator[FieldProblem]:
    """A name that must be a DNS label, with a suggestion."""
    return checked(field, value, label, suggest=_suggested_label)


def driver_name(field: str, name: str) -> Iterator[FieldProblem]:
    """Check the name of a driver: a short DNS subdomain in upper or lower case."""
    if not name:
        yield required(field)
        return
    if byte_length(name) > DRIVER_NAME_BYTES_MAX:
        yield too_long(field, DRIVER_NAME_BYTES_MAX)
    for complaint in subdomain(lowered(name)):
        yield invalid(field, name, complaint, fix=_suggested_driver(name))


def pool_name(field: str, name: str) -> Iterator[FieldProblem]:
    """A pool's name: DNS subdomains joined by slashes."""
    if not name:
        yield required(field)
        return
    if byte_length(name) > POOL_NAME_BYTES_MAX:
        yield too_long(field, POOL_NAME_BYTES_MAX)
    for part in name.split("/"):
        yield from checked(field, part, subdomain)


def qualified_name(field: str, name: str) -> Iterator[FieldProblem]:
    """The name of an attribute or capacity; three or more parts pass, as in the server."""
    return (replace(problem, field=field) for problem in _qualified_name(name))


@lru_cache(maxsize=_KNOWN_MAX)
def _qualified_name(name: str) -> tuple[FieldProblem, ...]:
    parts = name.split("/")
    if len(parts) == 1:
        return tuple(_identifier("", name))
    if len(parts) == 2:
        return (*_domain("", parts[0]), *_identifier_after_domain("", parts[1]))
    return ()


def capacity_name(field: str, name: str) -> Iterator[FieldProblem]:
    """Check a name that becomes part of other texts, such as the name of a variable."""
    yield from qualified_name(field, name)
    if name.count("/") > 1:
        yield invalid(field, name, "must be a name, or a domain and a name separated by a slash")


def fully_qualified_name(field: str, name: str) -> Iterator[FieldProblem]:
    """An attribute named in a constraint: never without its domain."""
    yield from qualified_name(field, name)
    if "/" not in name:
        detail = "a fully qualified name must be a domain and a name separated by a slash"
        fix = f"put the driver's name before it: 'driver.example.com/{name}'"
        yield invalid(field, Token(name), detail, fix=fix)


def _domain(field: str, domain: str) -> Iterator[FieldProblem]:
    if not domain:
        yield invalid(field, "", "the domain must not be empty")
    else:
        yield from driver_name(field, domain)


def _identifier_after_domain(field: str, identifier: str) -> Iterator[FieldProblem]:
    if not identifier:
        yield invalid(field, "", "the name must not be empty")
    else:
        yield from _identifier(field, identifier)


def _identifier(field: str, identifier: str) -> Iterator[FieldProblem]:
    if byte_length(identifier) > IDENTIFIER_BYTES_MAX:
        yield too_long(field, IDENTIFIER_BYTES_MAX)
    yield from checked(field, identifier, c_identifier, suggest=_suggested_identifier)


def share_id(field: str, uid: str) -> Iterator[FieldProblem]:
    """A UUID in its one normal form."""
    complaint = _uuid_complaint(uid)
    if complaint:
        yield invalid(field, uid, f"error validating uid: {complaint}")
    elif byte_length(uid) != 36 or uid != uid.lower():
        yield invalid(
            field,
            uid,
            "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` "
            "with lowercase hexadecimal characters",
        )


def _uuid_complaint(uid: str) -> str:
    length = byte_length(uid)
    if length == 45 and uid[:9].lower() == "urn:uuid:":
        return _uuid_digits(uid[9:])
    if length == 45:
        return f"invalid urn prefix: {quoted(uid[:9])}"
    if length == 38 and not (uid[0] == "{" and uid[-1] == "}"):
        return "invalid bracketed UUID format"
    if length == 38:
        return _uuid_digits(uid[1:-1])
    if length == 36:
        return _uuid_digits(uid)
    if length == 32:
        return "" if _is_hex(uid) else "invalid UUID format"
    return f"invalid UUID length: {length}"


def _uuid_digits(text: str) -> str:
    groups = text.split("-")
    right = [len(group) for group in groups] == [8, 4, 4, 4, 12]
    return "" if right and all(map(_is_hex, groups)) else "invalid UUID format"


def lowered(text: str) -> str:
    """Lower case as Go has it."""
    # Go maps U+0130 to one letter, Python to two; the only such letter, and it is accepted.
    return text.replace("\u0130", "i").lower()


def _suggested_label(name: str) -> str:
    return _suggestion(name, re.sub("[^a-z0-9]+", "-", name.lower()).strip("-"))


def _suggested_driver(name: str) -> str:
    return _suggestion(name, re.sub("[^a-z0-9.-]+", ".", name.lower()).strip("-."))


def _suggested_identifier(name: str) -> str:
    better = re.sub("[^A-Za-z0-9_]+", "_", name)
    return _suggestion(name, f"_{better}" if better[:1].isdigit() else better)


def _suggestion(name: str, better: str) -> str:
    """The nearest name without the characters that are not allowed, if there is one."""
    return f"use {better!r}" if better and better != name else ""


def repeated(keys: Iterable[str]) -> Iterator[int]:
    """The positions of keys that have been there before."""
    seen: set[str] = set()
    for position, key in enumerate(keys):
        if key in seen:
            yield position
        seen.add(key)
