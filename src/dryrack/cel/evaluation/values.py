"""
CEL values in Python, and the functions for all of them.

bool, int, double, string, bytes, null and list are Python's own. A map is a `dict` from encoded
keys (`encode_key`): strings, ints and uints stand for themselves, the rest are tagged, because
Python takes `True`, `1` and `1.0` for one key and CEL does not. Everything else has a class here.

An evaluation error is a value too (`Err`): CEL lets `&&`, `||` and the quantifiers look at an
error and decide that it does not matter, and cost is counted after one as before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from dryrack.cel import authorization, mutation
from dryrack.cel.parsing.ast import Uint
from dryrack.kinds.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from ipaddress import IPv4Address, IPv6Address
    from typing import Self

    from dryrack.kinds.semver import Semver

INT_MIN = -(2**63)
INT_MAX = 2**63 - 1
UINT_MAX = 2**64 - 1
# Nothing gets larger than this, in elements and in characters. Upstream goes on until memory is
# used up; but to make use of so much exceeds the cost limit.
LIST_SIZE_MAX = 2**20
TEXT_SIZE_MAX = 2**24

# The closed union of values is checked by the interpreter's own type rules at run time;
# spelling it for the type checker as well would only add casts to every function below.
Value: TypeAlias = Any


class Err:
    """An evaluation that went wrong, carried as a value."""

    __slots__ = ("message",)

    def __init__(self, message: str) -> None:
        self.message = message

    def __repr__(self) -> str:
        return f"Err({self.message!r})"


def no_such_overload(operand: Value = None) -> Err:
    """The operand does not fit; if it is an error itself, that is the reason."""
    return operand if type(operand) is Err else Err("no such overload")


def too_large(function: str, size_max: int) -> Err:
    """The error for values that would use up upstream's memory."""
    return Err(f"{function}: the result has more than {size_max} elements or characters")


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value, known by its run-time name alone."""

    name: str


SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Duration:
    nanos: int


@dataclass(frozen=True, slots=True)
class Timestamp:
    """A moment, and the offset from UTC with which it was written."""

    nanos: int
    offset_seconds: int = 0


class OwnQuantity(Quantity):
    """
    A quantity that one evaluation has to itself, because upstream changes those that it uses.

    One that is compared with a large number takes the form of large numbers, which is never an
    integer. In that form it is one number with what is computed from it: what is added to the
    one is added to the other.
    """

    __slots__ = ("_one",)

    _one: list[OwnQuantity]

    # Others of its kind cannot be changed.
    __setattr__ = object.__setattr__  # type: ignore[assignment]

    @classmethod
    def from_quantity(cls, plain: Quantity) -> Self:
        own = cls.__new__(cls)
        own.nanos = plain.nanos
        own.format = plain.format
        own.unscaled = plain.unscaled
        own.scale = plain.scale
        own.big = plain.big
        own.written = plain.written
        own.verbatim = plain.verbatim
        own._one = [own]
        return own

    def compared_with(self, other: Quantity) -> None:
        if other.big:
            self.big = True

    def computed(self, result: OwnQuantity) -> None:
        """The result was computed from this one."""
        if not self.big:
            return
        self._one.append(result)
        result._one = self._one
        for each in self._one:
            each.nanos = result.nanos
            each.unscaled = result.unscaled
            each.scale = result.scale


class ComputedQuantity(OwnQuantity):
    """The result of `add` or `sub`: upstream refuses it on the right of `==`."""

    __slots__ = ()


class Version:
    """A semantic version with its place in the order worked out once."""

    __slots__ = ("key", "semver")

    def __init__(self, semver: Semver) -> None:
        self.semver = semver
        self.key = semver.precedence()

    def __eq__(self, other: object) -> bool:
        # Generated code compares with Python's operator, and CEL has no such comparison.
        if type(other) is not Version:
            raise TypeError("a version is only comparable with a version")
        return bool(self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)


@dataclass(frozen=True, slots=True)
class IP:
    address: IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True)
class CIDR:
    address: IPv4Address | IPv6Address
    bits: int


@dataclass(frozen=True, slots=True)
class URL:
    scheme: str
    host: str
    path: str
    query: str
    text: str


@dataclass(frozen=True, slots=True)
class NamedFormat:
    name: str
    regex_size: int
    problems: Callable[[str], list[str]]


@dataclass(frozen=True, slots=True)
class EmptyMessage:
    """`google.protobuf.Empty{}`, the one message that stays a message."""


class _Absent:
    __slots__ = ()


_ABSENT = _Absent()


class Optional:
    """A value that may be absent."""

    __slots__ = ("value",)

    def __init__(self, value: Value = _ABSENT) -> None:
        self.value = value

    @property
    def present(self) -> bool:
        return self.value is not _ABSENT


NONE = Optional()


class DomainMap(dict[str, dict[str, Value]]):
    """`device.attributes` or `device.capacity`: a lookup never fails, it finds an empty map."""

    __slots__ = ()

    def __missing__(self, _domain: str) -> dict[str, Value]:
        return _EMPTY_MAP


class StringMap(dict[str, Value]):
    """The attributes of one domain of a device: only a string can be a key."""

    __slots__ = ()


class ConcatList(list[Value]):
    """The sum of two lists; unlike others, it compares unequal elements' errors as errors."""

    __slots__ = ()


class MutableList(list[Value]):
    """An accumulator that `+` extends in place."""

    __slots__ = ()


class MutableMap(dict[Any, Value]):
    """An accumulator that insertion extends in place."""

    __slots__ = ()


class PanicError(Exception):
    """Upstream's own code fails at this point; nothing absorbs that."""


def encode_key(key: Value) -> Any:
    kind = type(key)
    if kind is str or kind is int or kind is Uint:
        return key
    if kind in _UNHASHABLE:
        raise PanicError(f"runtime error: hash of unhashable type {go_name(key)}")
    if isinstance(key, (list, dict, Quantity, URL, EmptyMessage)):
        return _IdentityKey(key)
    return (kind, key)


class _IdentityKey:
    """A value that upstream holds by pointer, as a key: it is equal to itself alone."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is _IdentityKey and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def decode_key(key: Any) -> Value:
    if type(key) is tuple:
        return key[1]
    return key.value if type(key) is _IdentityKey else key


def keys_of(mapping: dict[Any, Value]) -> list[Value]:
    return [decode_key(key) for key in mapping]


_EMPTY_MAP: dict[Any, Value] = StringMap()
_UNHASHABLE = (bytes, Version, NamedFormat)
_MISSING = object()


def find(mapping: dict[Any, Value], key: Value) -> tuple[Value, bool]:
    """Look a key up; numbers of different types find each other."""
    for candidate in _candidates(mapping, key):
        value = mapping.get(candidate, _MISSING)
        if value is not _MISSING:
            return value, True
    if type(mapping) is DomainMap:
        return _EMPTY_MAP, True
    return None, False


def contains_key(mapping: dict[Any, Value], key: Value) -> bool:
    return any(candidate in mapping for candidate in _candidates(mapping, key))


def _candidates(mapping: dict[Any, Value], key: Value) -> Iterable[Any]:
    kind = type(key)
    if kind is str:
        return (key,)
    if not mapping or isinstance(mapping, (StringMap, DomainMap)):
        return ()
    if kind is int:
        return (key, Uint(key)) if key >= 0 else (key,)
    if kind is Uint:
        return (key, key.value) if key.value <= INT_MAX else (key,)
    if kind is float:
        if key != key or key in (float("inf"), float("-inf")) or key != int(key):
            return (encode_key(key),)
        whole = int(key)
        signed = (whole,) if INT_MIN <= whole < INT_MAX else ()
        unsigned = (Uint(whole),) if 0 <= whole < UINT_MAX else ()
        return (encode_key(key), *signed, *unsigned)
    return (encode_key(key),)


_TYPE_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    ConcatList: "list",
    MutableList: "list",
    dict: "map",
    MutableMap: "map",
    DomainMap: "map",
    StringMap: "map",
    TypeValue: "type",
    Duration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    Quantity: "kubernetes.Quantity",
    OwnQuantity: "kubernetes.Quantity",
    ComputedQuantity: "kubernetes.Quantity",
    Version: "kubernetes.Semver",
    IP: "net.IP",
    CIDR: "net.CIDR",
    URL: "kubernetes.URL",
    NamedFormat: "kubernetes.NamedFormat",
    EmptyMessage: "google.protobuf.Empty",
    Optional: "optional_type",
    Err: "error",
    **authorization.TYPE_NAMES,
    **mutation.TYPE_NAMES,
}


def type_name(value: Value) -> str:
    if type(value) is mutation.ObjectValue:
        return value.type_name
    return _TYPE_NAMES[type(value)]


_GO_NAMES: dict[type, str] = {
    bool: "types.Bool",
    int: "types.Int",
    Uint: "types.Uint",
    float: "types.Double",
    str: "types.String",
    bytes: "types.Bytes",
    type(None): "types.Null",
    list: "*types.baseList",
    ConcatList: "*types.concatList",
    MutableList: "*types.mutableList",
    dict: "*types.baseMap",
    MutableMap: "*types.mutableMap",
    DomainMap: "cel.mapper",
    StringMap: "*types.baseMap",
    TypeValue: "*types.Type",
    Duration: "types.Duration",
    Timestamp: "types.Timestamp",
    Quantity: "cel.Quantity",
    OwnQuantity: "cel.Quantity",
    ComputedQuantity: "*cel.Quantity",
    Version: "cel.Semver",
    IP: "cel.IP",
    CIDR: "cel.CIDR",
    URL: "cel.URL",
    NamedFormat: "cel.Format",
    EmptyMessage: "*types.protoObj",
    Optional: "*types.Optional",
    Err: "*types.Err",
    **authorization.GO_NAMES,
    **mutation.GO_NAMES,
}


def go_name(value: Value) -> str:
    """The name of the value's class in cel-go, which some of its messages show."""
    return _GO_NAMES[type(value)]


def size_of(value: Value) -> int:
    """Return the size for the cost: elements, characters, bytes; 1 for other values."""
    if isinstance(value, (str, bytes, list, dict)):
        return len(value)
    if type(value) is IP:
        return value.address.max_prefixlen // 8
    if type(value) is CIDR:
        return -(-value.bits // 8)
    return 1
