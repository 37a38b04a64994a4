"""
Checks that several kinds share, with the messages of the API server.

They complete those of `kinds.validation`, which are about devices. Each yields problems of a field.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dryrack.kinds.paths import get
from dryrack.kinds.validation.names import (
    DRIVER_NAME_BYTES_MAX,
    checked,
    label_key,
    label_value,
    subdomain,
)
from dryrack.kinds.validation.problems import (
    Token,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.kinds.quantity import Quantity
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem


PORT_MAX = 65535
INT32_MAX = 2**31 - 1
NON_NEGATIVE = "must be greater than or equal to 0"
_PORT_NAME_CHARS_MAX = 15
_KEY_CHARS_MAX = 253
_KEY = re.compile(r"[-._a-zA-Z0-9]+").fullmatch
_KEY_SYNTAX = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
    "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_COUNTED = (
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
)
_TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def one_of(field: str, value: str, known: Sequence[str]) -> Iterator[FieldProblem]:
    """Check a required value of a closed set."""
    if not value:
        yield required(field)
    elif value not in known:
        yield not_supported(field, value, known)


def non_negative(field: str, value: int | None) -> Iterator[FieldProblem]:
    if value is not None and value < 0:
        yield invalid(field, value, NON_NEGATIVE)


def in_range(field: str, value: int, low: int, high: int) -> Iterator[FieldProblem]:
    if not low <= value <= high:
        yield invalid(field, value, f"must be between {low} and {high}, inclusive")


def port_number(field: str, value: int) -> Iterator[FieldProblem]:
    return in_range(field, value, 1, PORT_MAX)


def port_name(name: str) -> tuple[str, ...]:
    """Return the complaints about the name of a port."""
    return tuple(_port_name(name))


def _port_name(name: str) -> Iterator[str]:
    if len(name) > _PORT_NAME_CHARS_MAX:
        yield f"must be no more than {_PORT_NAME_CHARS_MAX} characters"
    if not re.fullmatch("[-a-z0-9]+", name):
        yield "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
    if not re.search("[a-z]", name):
        yield "must contain at least one letter (a-z)"
    if "--" in name:
        yield "must not contain consecutive hyphens"
    if name.startswith("-") or name.endswith("-"):
        yield "must not begin or end with a hyphen"


def port(field: str, value: int | str) -> Iterator[FieldProblem]:
    """Check a port number or a port name."""
    if isinstance(value, int):
        yield from port_number(field, value)
    else:
        yield from checked(field, value, port_name)


def config_key(name: str) -> tuple[str, ...]:
    """Return the complaints about a key of a ConfigMap or a Secret."""
    return tuple(_config_key(name))


def _config_key(name: str) -> Iterator[str]:
    if len(name) > _KEY_CHARS_MAX:
        yield f"must be no more than {_KEY_CHARS_MAX} characters"
    if not _KEY(name):
        yield _KEY_SYNTAX
    if name in (".", ".."):
        yield f"must not be '{name}'"
    elif name.startswith(".."):
        yield "must not start with '..'"


def changed_paths(at: str, now: Any, before: Any) -> Iterator[str]:
    """Yield the paths below `at` at which two values differ."""
    if isinstance(now, dict) and isinstance(before, dict):
        for key in sorted(now.keys() | before.keys()):
            yield from changed_paths(f"{at}.{key}", now.get(key), before.get(key))
    elif isinstance(now, list) and isinstance(before, list) and len(now) == len(before):
        for position, pair in enumerate(zip(now, before, strict=True)):
            yield from changed_paths(f"{at}[{position}]", *pair)
    elif now != before:
        yield at


def labels_of(field: str, values: Raw | None) -> Iterator[FieldProblem]:
    for key in sorted(values or {}):
        yield from checked(field, key, label_key)
        yield from checked(field, (values or {})[key], label_value)


def qualified_name(field: str, name: str) -> Iterator[FieldProblem]:
    return checked(field, name, label_key)


def driver_name(at: str, driver: str) -> Iterator[FieldProblem]:
    """Check the name of a CSI driver."""
    if not driver:
        yield required(at)
        return
    if len(driver) > DRIVER_NAME_BYTES_MAX:
        yield too_long(at, DRIVER_NAME_BYTES_MAX)
    yield from checked(at, driver, lambda text: subdomain(text.lower()))


def taint_effect(field: str, effect: str, *, may_be_empty: bool) -> Iterator[FieldProblem]:
    if not effect and may_be_empty:
        yield not_supported(field, effect, _TAINT_EFFECTS)
    elif effect not in _TAINT_EFFECTS:
        yield not_supported(field, effect, _TAINT_EFFECTS) if effect else required(field)


def quantity_problems(field: str, name: str, amount: Quantity) -> Iterator[FieldProblem]:
    """Check an amount of a resource: not negative, and an integer if it must be one."""
    if amount.sign < 0:
        yield invalid(field, str(amount), NON_NEGATIVE)
    if is_whole(name) and amount.milli_value() % 1000:
        yield invalid(field, str(amount), "must be an integer")


def is_native(name: str) -> bool:
    """Return whether Kubernetes itself defines the resource."""
    return "/" not in name or "kubernetes.io/" in name


def is_whole(name: str) -> bool:
    """Return whether amounts of the resource must be integers."""
    return name in _COUNTED or not is_native(name)


def selector_problems(field: str, selector: Raw | None) -> Iterator[FieldProblem]:
    """Check a label selector."""
    for key, value in sorted(get(selector or {}, "matchLabels", {}).items()):
        yield from checked(f"{field}.matchLabels", key, label_key)
        yield from checked(f"{field}.matchLabels", value, label_value)
    for position, given in enumerate(get(selector or {}, "matchExpressions", ())):
        yield from _requirement(f"{field}.matchExpressions[{position}]", given)


_SET_OPERATORS = ("In", "NotIn")
_BARE_OPERATORS = ("Exists", "DoesNotExist")


def _requirement(field: str, given: Raw) -> Iterator[FieldProblem]:
    operator = given.get("operator") or ""
    values = get(given, "values", [])
    if operator in _SET_OPERATORS and not values:
        yield required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in _BARE_OPERATORS and values:
        detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        yield forbidden(f"{field}.values", detail)
    elif operator not in (*_SET_OPERATORS, *_BARE_OPERATORS):
        yield invalid(f"{field}.operator", Token(operator), "not a valid selector operator")
    yield from checked(f"{field}.key", given.get("key") or "", label_key)
    for position, value in enumerate(values):
        yield from checked(f"{field}.values[{position}]", value, label_value)


def steps_back(path: str) -> bool:
    """Return whether a path contains `..`."""
    return ".." in path.split("/")


def relative_path(at: str, path: str) -> Iterator[FieldProblem]:
    """Check a relative path without `..`."""
    if path.startswith("/"):
        yield invalid(at, path, "must be a relative path")
    if steps_back(path):
        yield invalid(at, path, "must not contain '..'")


def not_reserved(at: str, path: str) -> Iterator[FieldProblem]:
    """Check a relative path of a file; names with two dots are reserved for the kubelet."""
    yield from relative_path(at, path)
    if path.startswith("..") and not path.startswith("../"):
        yield invalid(at, path, "must not start with '..'")
