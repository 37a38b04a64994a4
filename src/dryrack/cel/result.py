"""The end of an evaluation: a bool, or the words for why the result is not one."""

from __future__ import annotations

from dryrack.cel.ast import Uint
from dryrack.cel.values import (
    CIDR,
    IP,
    URL,
    Duration,
    Err,
    NamedFormat,
    Optional,
    Timestamp,
    TypeValue,
    Value,
    Version,
    type_name,
)
from dryrack.kinds.quantity import Quantity

_REFUSALS: tuple[tuple[type, str], ...] = (
    (int, "unsupported type conversion from 'int' to bool"),
    (Uint, "unsupported type conversion from 'uint' to bool"),
    (float, "type conversion error from Double to 'bool'"),
    (str, "unsupported native conversion from string to 'bool'"),
    (bytes, "type conversion error from Bytes to 'bool'"),
    (list, "type conversion error from list to 'bool'"),
    (dict, "type conversion error from map to 'bool'"),
    (type(None), "type conversion error from 'null_type' to 'bool'"),
    (Duration, "type conversion error from 'Duration' to 'bool'"),
    (Timestamp, "type conversion error from 'Timestamp' to 'bool'"),
    (TypeValue, "type conversion not supported for 'type'"),
    (Quantity, "type conversion error from 'Quantity' to 'bool'"),
    (Version, "type conversion error from 'Semver' to 'bool'"),
    (IP, "type conversion error from 'IP' to 'bool'"),
    (CIDR, "type conversion error from 'CIDR' to 'bool'"),
    (URL, "type conversion error from 'URL' to 'bool'"),
    (NamedFormat, "type conversion error from 'Format' to 'bool'"),
)


def to_bool(value: Value) -> bool | Err:
    """The verdict of an evaluation that did not fail; an optional's value counts as its own."""
    if type(value) is bool:
        return value
    inner = value
    while type(inner) is Optional and inner.present:
        inner = inner.value
    if type(inner) is bool:
        return inner
    return Err(
        f"CEL result of type {type_name(value)} could not be converted to bool: {_refusal(inner)}"
    )


def _refusal(value: Value) -> str:
    if type(value) is Optional:
        return "optional.none() dereference"
    if type(value) is Err:
        return str(value.message)
    return next(words for kind, words in _REFUSALS if isinstance(value, kind))
