"""
The structure of typed models, as values that can be walked.

msgspec stops at the first mismatch, does not report the key of a map, and ignores unknown fields.
The walks here are slower and report all mismatches and all unknown fields.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from dryrack.base.errors import InternalError
from dryrack.kinds.quantity import Quantity, QuantityError
from dryrack.kinds.releases import FIELD_GATES

Path = tuple[str | int, ...]

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_SHOWN_MAX = 60


# Where a bare value was once enough, or looks as if it were, and the key that it needs now.
_KEYS = {"capacity": "value", "counters": "value", "attributes": "string", "claims": "name"}
_WRAPPED = re.compile(rf'({"|".join(_KEYS)})(?:\.\w+|\["[^"]+"\]|\[[0-9]+\])$')
_SCALAR = re.compile(r'the string "[^"…]+"|the number \S+')


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One value of the wrong type."""

    path: str
    expected: str
    got: str

    def __str__(self) -> str:
        return f"{self.path or 'document'}: expected {self.expected}, got {self.got}"

    @property
    def fix(self) -> str:
        """Return a fix, if it says more than the expected type."""
        is_text = self.got.startswith("the string")
        if self.expected == "a string" and self.got.startswith(("the number", "true", "false")):
            return "put it in quotes: YAML reads on, no, 5 and 1.10 without quotes as other types"
        if is_text and self.expected in ("a 64-bit integer", "a 32-bit integer", "true or false"):
            return f"write {self.expected}, without quotes"
        within = _WRAPPED.search(self.path)
        if within is not None and self.expected == "an object" and _SCALAR.fullmatch(self.got):
            key = _KEYS[within[1]]
            key = "int" if key == "string" and not is_text else key
            return f"write {{{key}: {self.got.partition(' ')[2].partition(' ')[2]}}}"
        return ""


@dataclass(frozen=True, slots=True)
class Anything:
    """Any JSON, which is not interpreted."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A string, boolean or quantity."""

    type: type
    nullable: bool


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number within bounds."""

    low: int
    high: int
    nullable: bool


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    item: "Shape"
    nullable: bool


@dataclass(frozen=True, slots=True)
class Entries:
    """A map with keys that the user chooses."""

    value: "Shape"
    nullable: bool


@dataclass(frozen=True, slots=True)
class Fields:
    """An object with known fields, by their JSON names."""

    model: type[msgspec.Struct]
    fields: Mapping[str, "Shape"]
    nullable: bool


Shape = Anything | Scalar | Integer | Items | Entries | Fields

_WORDS = {str: "a string", bool: "true or false", Quantity: "a quantity"}


@cache
def of(model: type[msgspec.Struct]) -> Shape:
    """The shape of a model."""
    return _shape(inspect.type_info(model), nullable=False)


def _shape(info: inspect.Type, *, nullable: bool) -> Shape:
    match info:
        case inspect.Metadata(type=inner):
            return _shape(inner, nullable=nullable)
        case inspect.UnionType(types=types):
            (inner,) = [t for t in types if not isinstance(t, inspect.NoneType)]
            return _shape(inner, nullable=True)
        case inspect.AnyType():
            return Anything()
        case inspect.StructType(cls=model, fields=fields):
            return Fields(
                model, {f.encode_name: _shape(f.type, nullable=False) for f in fields}, nullable
            )
        case inspect.VarTupleType(item_type=item):
            return Items(_shape(item, nullable=False), nullable)
        case inspect.DictType(value_type=value):
            return Entries(_shape(value, nullable=False), nullable)
        case _:
            return _scalar(info, nullable=nullable)


def _scalar(info: inspect.Type, *, nullable: bool) -> Shape:
    match info:
        case inspect.IntType(ge=int(low), le=int(high)):
            return Integer(low, high, nullable)
        case inspect.StrType():
            return Scalar(str, nullable)
        case inspect.BoolType():
            return Scalar(bool, nullable)
        case inspect.CustomType(cls=cls) if cls is Quantity:
            return Scalar(Quantity, nullable)
        case _:
            raise InternalError(f"a model uses {info}, which no shape describes")


def regular(raw: Any, shape: Shape) -> Any:
    """
    Return the document without nulls, and with whole floats as integers where the model has them.

    A null in a list stays, because leaving it out would move what follows.
    """
    match shape:
        case Fields(fields=fields) if isinstance(raw, dict):
            return {
                key: regular(value, fields[key]) if key in fields else value
                for key, value in raw.items()
                if value is not None
            }
        case Entries(value=inner) if isinstance(raw, dict):
            return {key: regular(_zero(value, inner), inner) for key, value in raw.items()}
        case Items(item=inner) if isinstance(raw, list | tuple):
            return [regular(_zero(value, inner), inner) for value in raw]
        case Integer() if isinstance(raw, float) and raw.is_integer():
            return int(raw)
        case _:
            return raw


def _zero(value: Any, shape: Shape) -> Any:
    """Return the zero value that Go reads from null in a list or a map."""
    if value is not None or isinstance(shape, Anything):
        return value
    match shape:
        case Fields() | Entries():
            return {}
        case Items():
            return []
        case Integer():
            return 0
        case Scalar(type=kind):
            return {str: "", bool: False, Quantity: "0"}[kind]


def mismatches(raw: Any, shape: Shape, path: Path = ()) -> Iterator[Mismatch]:
    """Every value of the wrong type, in document order."""
    if raw is None and (isinstance(shape, Anything) or shape.nullable):
        return
    match shape:
        case Anything():
            return
        case Fields(fields=fields) if isinstance(raw, dict):
            for key, value in raw.items():
                if key in fields:
                    yield from mismatches(value, fields[key], (*path, key))
        case Entries(value=inner) if isinstance(raw, dict):
            yield from _entry_mismatches(raw, inner, path)
        case Items(item=inner) if isinstance(raw, list | tuple):
            for index, value in enumerate(raw):
                yield from mismatches(value, inner, (*path, index))
        case Integer() | Scalar():
            yield from _scalar_mismatch(raw, shape, path)
        case _:
            yield Mismatch(render(path), _expected_type(shape), described(raw))


def _entry_mismatches(raw: dict[Any, Any], inner: Shape, path: Path) -> Iterator[Mismatch]:
    for key, value in raw.items():
        if isinstance(key, str):
            yield from mismatches(value, inner, (*path, key))
        else:
            yield Mismatch(render((*path, str(key))), "a string as key", described(key))


def _scalar_mismatch(raw: Any, shape: Integer | Scalar, path: Path) -> Iterator[Mismatch]:
    if isinstance(shape, Integer):
        is_number = isinstance(raw, int) and not isinstance(raw, bool)
        fits = is_number and shape.low <= raw <= shape.high
    elif shape.type is Quantity:
        yield from _quantity_mismatch(raw, path)
        return
    else:
        fits = isinstance(raw, shape.type)
    if not fits:
        yield Mismatch(render(path), _expected_type(shape), described(raw))


def _quantity_mismatch(raw: Any, path: Path) -> Iterator[Mismatch]:
    try:
        Quantity.from_json(raw)
    except QuantityError as error:
        yield Mismatch(render(path), "a quantity", f"{described(raw)} ({error})")


def _expected_type(shape: Shape) -> str:
    match shape:
        case Anything():
            return "anything"
        case Scalar(type=kind):
            return _WORDS[kind]
        case Integer(low=low):
            return "a 64-bit integer" if low < -(2**31) else "a 32-bit integer"
        case Items():
            return "a list"
        case Entries() | Fields():
            return "an object"


def unknown(raw: Any, shape: Shape, path: Path = ()) -> Iterator[Path]:
    """
    Yield the paths of fields that Kubernetes does not have, in document order.

    `FIELD_GATES` are among them, since not every release has these fields.
    """
    match shape:
        case Fields(model=model, fields=fields) if isinstance(raw, dict):
            legal: frozenset[str] = getattr(model, "UNMODELLED", frozenset())
            for key, value in raw.items():
                if key in fields and key not in FIELD_GATES:
                    yield from unknown(value, fields[key], (*path, key))
                elif key not in legal:
                    yield (*path, key)
        case Entries(value=inner) if isinstance(raw, dict):
            for key, value in raw.items():
                yield from unknown(value, inner, (*path, key))
        case Items(item=inner) if isinstance(raw, list | tuple):
            for index, value in enumerate(raw):
                yield from unknown(value, inner, (*path, index))
        case _:
            return


def render(path: Path) -> str:
    """Return a path as people write it: `spec.devices[2].attributes["a.b/c"].string`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{json.dumps(step, ensure_ascii=False)}]"
    return text


def described(raw: Any) -> str:
    """Describe a value in JSON terms, short enough for a message."""
    match raw:
        case None:
            return "null"
        case bool():
            return "true" if raw else "false"
        case dict():
            return "an object"
        case list() | tuple():
            return "a list"
        case str():
            shown = json.dumps(raw, ensure_ascii=False)
            return f"the string {shown if len(shown) <= _SHOWN_MAX else shown[:_SHOWN_MAX] + '…'}"
        case int() | float():
            return f"the number {raw}"
        case _:
            return type(raw).__name__
