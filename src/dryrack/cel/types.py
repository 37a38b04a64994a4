"""
The types of CEL, as the checker sees them.

A type is a kind with parameters: `list(int)`, `map(string, dyn)`, `optional_type(A)`. Named
abstract types (`kubernetes.Quantity`, `net.IP`, …) are of kind OPAQUE and carry their name.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Kind(enum.Enum):
    DYN = "dyn"
    ANY = "any"
    BOOL = "bool"
    INT = "int"
    UINT = "uint"
    DOUBLE = "double"
    STRING = "string"
    BYTES = "bytes"
    NULL = "null_type"
    DURATION = "google.protobuf.Duration"
    TIMESTAMP = "google.protobuf.Timestamp"
    LIST = "list"
    MAP = "map"
    TYPE = "type"
    TYPE_PARAM = "type_param"
    OPAQUE = "opaque"
    STRUCT = "struct"
    ERROR = "!error!"


@dataclass(frozen=True, slots=True)
class Type:
    kind: Kind
    name: str
    parameters: tuple[Type, ...] = ()

    def __str__(self) -> str:
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(str(p) for p in self.parameters)})"


DYN = Type(Kind.DYN, "dyn")
ANY = Type(Kind.ANY, "any")
BOOL = Type(Kind.BOOL, "bool")
INT = Type(Kind.INT, "int")
UINT = Type(Kind.UINT, "uint")
DOUBLE = Type(Kind.DOUBLE, "double")
STRING = Type(Kind.STRING, "string")
BYTES = Type(Kind.BYTES, "bytes")
NULL = Type(Kind.NULL, "null")
DURATION = Type(Kind.DURATION, "duration")
TIMESTAMP = Type(Kind.TIMESTAMP, "timestamp")
ERROR = Type(Kind.ERROR, "!error!")

QUANTITY = Type(Kind.OPAQUE, "kubernetes.Quantity")
SEMVER = Type(Kind.OPAQUE, "kubernetes.Semver")
IP = Type(Kind.OPAQUE, "net.IP")
CIDR = Type(Kind.OPAQUE, "net.CIDR")
URL = Type(Kind.OPAQUE, "kubernetes.URL")
FORMAT = Type(Kind.OPAQUE, "kubernetes.NamedFormat")
DEVICE = Type(Kind.STRUCT, "kubernetes.DRADevice")


def list_of(element: Type) -> Type:
    return Type(Kind.LIST, "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type(Kind.MAP, "map", (key, value))


def optional_of(value: Type) -> Type:
    return Type(Kind.OPAQUE, "optional_type", (value,))


def type_of(value: Type) -> Type:
    return Type(Kind.TYPE, "type", (value,))


def type_param(name: str) -> Type:
    return Type(Kind.TYPE_PARAM, name)
