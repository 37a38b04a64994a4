"""The end of an evaluation: a bool, or the words for why the result is not one."""

from __future__ import annotations

from dryrack.cel.evaluation.values import (
    CIDR,
    IP,
    URL,
    Duration,
    EmptyMessage,
    Err,
    NamedFormat,
    Optional,
    Timestamp,
    TypeValue,
    Value,
    Version,
    type_name,
)
from dryrack.cel.parsing.ast import Uint
from dryrack.kinds.quantity import Quantity

_REFUSALS: tuple[tuple[type, str], ...] = (
    (int, "unsupported type conversion from 'int' to {go_type}"),
    (Uint, "unsupported type conversion from 'uint' to {go_type}"),
    (float, "type conversion error from Double to '{go_type}'"),
    (str, "unsupported native conversion from string to '{go_type}'"),
    (bytes, "type conversion error from Bytes to '{go_type}'"),
    (list, "type conversion error from list to '{go_type}'"),
    (dict, "type conversion error from map to '{go_type}'"),
    (type(None), "type conversion error from 'null_type' to '{go_type}'"),
    (Duration, "type conversion error from 'Duration' to '{go_type}'"),
    (Timestamp, "type conversion error from 'Timestamp' to '{go_type}'"),
    (TypeValue, "type conversion not supported for 'type'"),
    (Quantity, "type conversion error from 'Quantity' to '{go_type}'"),
    (Version, "type conversion error from 'Semver' to '{go_type}'"),
    (IP, "type conversion error from 'IP' to '{go_type}'"),
    (CIDR, "type conversion error from 'CIDR' to '{go_type}'"),
    (URL, "type conversion error from 'URL' to '{go_type}'"),
    (EmptyMessage, "type conversion error from '*dynamicpb.Message' to '{go_type}'"),
    (NamedFormat, "type conversion error from 'Format' to '{go_type}'"),
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
        f"CEL result of type {type_name(value)} could not be converted to bool: "
        f"{refusal(inner, 'bool')}"
    )


def refusal(value: Value, go_type: str) -> str:
    """Return why a value cannot be converted to a type of Go."""
    if type(value) is Optional:
        return "optional.none() dereference"
    if type(value) is Err:
        return str(value.message)
    if type(value) is bool:
        return f"type conversion error from bool to '{go_type}'"
    words = next(words for kind, words in _REFUSALS if isinstance(value, kind))
    return words.format(go_type=go_type)
