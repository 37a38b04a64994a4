"""
The messages that every environment knows: wrappers, times, JSON values.

The values of most of them are not messages: `google.protobuf.Int64Value{value: 1}` is an int that
may be null. A literal of such a type has the fields of its canonical message, so an `Int32Value`
has the fields of an `Int64Value`.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from dryrack.cel.checking import types as t
from dryrack.cel.checking.types import Kind, Type

if TYPE_CHECKING:
    from collections.abc import Mapping

_JSON_LIST = t.list_of(t.DYN)
_JSON_OBJECT = t.map_of(t.STRING, t.DYN)
_TIME = {"seconds": t.INT, "nanos": t.INT}
# Kubernetes lets these be looked up like messages, and then finds no fields in them.
_SCALARS = ("bool", "bytes", "double", "duration", "int", "list", "string", "timestamp", "uint")

MADE: Mapping[str, Type] = MappingProxyType(
    {
        "google.protobuf.Any": t.ANY,
        "google.protobuf.BoolValue": t.wrapper(t.BOOL),
        "google.protobuf.BytesValue": t.wrapper(t.BYTES),
        "google.protobuf.DoubleValue": t.wrapper(t.DOUBLE),
        "google.protobuf.Duration": t.DURATION,
        "google.protobuf.Empty": t.struct("google.protobuf.Empty"),
        "google.protobuf.FloatValue": t.wrapper(t.DOUBLE),
        "google.protobuf.Int32Value": t.wrapper(t.INT),
        "google.protobuf.Int64Value": t.wrapper(t.INT),
        "google.protobuf.ListValue": _JSON_LIST,
        "google.protobuf.StringValue": t.wrapper(t.STRING),
        "google.protobuf.Struct": _JSON_OBJECT,
        "google.protobuf.Timestamp": t.TIMESTAMP,
        "google.protobuf.UInt32Value": t.wrapper(t.UINT),
        "google.protobuf.UInt64Value": t.wrapper(t.UINT),
        "google.protobuf.Value": t.DYN,
    }
)
"""What a literal of each message makes."""

FIELDS: Mapping[str, Mapping[str, Type]] = MappingProxyType(
    {
        **{scalar: {} for scalar in _SCALARS},
        "google.protobuf.Any": {"type_url": t.STRING, "value": t.BYTES},
        "google.protobuf.BoolValue": {"value": t.BOOL},
        "google.protobuf.BytesValue": {"value": t.BYTES},
        "google.protobuf.DoubleValue": {"value": t.DOUBLE},
        "google.protobuf.Duration": _TIME,
        "google.protobuf.Empty": {},
        "google.protobuf.Int64Value": {"value": t.INT},
        "google.protobuf.ListValue": {"values": _JSON_LIST},
        "google.protobuf.StringValue": {"value": t.STRING},
        "google.protobuf.Struct": {"fields": _JSON_OBJECT},
        "google.protobuf.Timestamp": _TIME,
        "google.protobuf.UInt64Value": {"value": t.UINT},
        "google.protobuf.Value": {
            "null_value": t.INT,
            "number_value": t.DOUBLE,
            "string_value": t.STRING,
            "bool_value": t.BOOL,
            "struct_value": _JSON_OBJECT,
            "list_value": _JSON_LIST,
        },
    }
)

_CANONICAL = {
    Kind.ANY: "google.protobuf.Any",
    Kind.BOOL: "google.protobuf.BoolValue",
    Kind.BYTES: "google.protobuf.BytesValue",
    Kind.DOUBLE: "google.protobuf.DoubleValue",
    Kind.DURATION: "google.protobuf.Duration",
    Kind.DYN: "google.protobuf.Value",
    Kind.INT: "google.protobuf.Int64Value",
    Kind.LIST: "google.protobuf.ListValue",
    Kind.MAP: "google.protobuf.Struct",
    Kind.NULL: "google.protobuf.NullValue",
    Kind.STRING: "google.protobuf.StringValue",
    Kind.TIMESTAMP: "google.protobuf.Timestamp",
    Kind.UINT: "google.protobuf.UInt64Value",
}
_ALWAYS_MESSAGES = (Kind.ANY, Kind.TIMESTAMP, Kind.DURATION, Kind.DYN, Kind.NULL)


def message_of(made: Type) -> str | None:
    """Name the message whose literal makes a type, if there is one."""
    if made.kind is Kind.STRUCT:
        return made.name
    if made.nullable or made.kind in _ALWAYS_MESSAGES or made in (_JSON_LIST, _JSON_OBJECT):
        return _CANONICAL[made.kind]
    return None
