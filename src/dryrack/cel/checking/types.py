"""
The types of CEL, as the checker sees them.

A type is a kind with parameters: `list(int)`, `map(string, dyn)`, `optional_type(A)`. The kinds
OPAQUE, STRUCT and TYPE_PARAM carry a name of their own; for the others the name follows from
the kind, but for wrappers: `wrapper(int)` is an int that may be null.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field


class Kind(enum.Enum):
    """The kind of a type; its value is the name of such values at run time."""

    DYN = "dyn"
    ANY = "google.protobuf.Any"
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


_NAMED = (Kind.TYPE_PARAM, Kind.OPAQUE, Kind.STRUCT)


@dataclass(frozen=True, slots=True)
class Type:
    kind: Kind
    name: str
    parameters: tuple[Type, ...] = ()
    depth: int = field(init=False, repr=False, compare=False, default=1)
    """How many levels of parameters the type has, itself included."""
    closed: bool = field(init=False, repr=False, compare=False, default=True)
    """Return whether no type parameter occurs in it."""

    def __post_init__(self) -> None:
        if self.parameters:
            object.__setattr__(self, "depth", 1 + max(p.depth for p in self.parameters))
            object.__setattr__(self, "closed", all(p.closed for p in self.parameters))
        elif self.kind is Kind.TYPE_PARAM:
            object.__setattr__(self, "closed", False)

    def __str__(self) -> str:
        """Give the name that errors of the checker use."""
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(str(p) for p in self.parameters)})"

    @property
    def runtime_name(self) -> str:
        """The name without parameters and without a wrapper: `int`, `google.protobuf.Duration`."""
        return self.name if self.kind in _NAMED else self.kind.value

    @property
    def nullable(self) -> bool:
        """Return whether this is a wrapper: a primitive that may be null."""
        return self.name.startswith("wrapper(")

    def qualified(self) -> str:
        """Give the name that the refusal of an expression's result type uses."""
        name = self.name if self.nullable else self.runtime_name
        if not self.parameters:
            return name
        return f"{name}({', '.join(p.qualified() for p in self.parameters)})"


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
TYPE = Type(Kind.TYPE, "type")
ERROR = Type(Kind.ERROR, "!error!")

QUANTITY = Type(Kind.STRUCT, "kubernetes.Quantity")
SEMVER = Type(Kind.STRUCT, "kubernetes.Semver")
IP = Type(Kind.OPAQUE, "net.IP")
CIDR = Type(Kind.OPAQUE, "net.CIDR")
URL = Type(Kind.STRUCT, "kubernetes.URL")
FORMAT = Type(Kind.STRUCT, "kubernetes.NamedFormat")
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


def struct(name: str) -> Type:
    return Type(Kind.STRUCT, name)


def wrapper(value: Type) -> Type:
    return Type(value.kind, f"wrapper({value.name})")
