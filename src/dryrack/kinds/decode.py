"""
The boundary: untyped documents in, typed objects out, and back.

The common case runs in msgspec's compiled decoder. Only when that refuses a document is it
walked in Python, to tell every mistake with its exact path, and to do what Kubernetes does
with documents that are not quite regular: a null stands for a field that is not set, and a
whole number written with a fraction (8.0) is an integer.

Nothing is validated here beyond the types of the fields.
"""

from typing import Any, TypeVar

import msgspec

from dryrack.base.errors import DryrackError
from dryrack.kinds import shape
from dryrack.kinds.meta import KubernetesObject, kind_of
from dryrack.kinds.quantity import Quantity

T = TypeVar("T", bound=msgspec.Struct)


class DecodeError(DryrackError, ValueError):
    """A document does not have the types its kind asks for: the first mismatch, and all of them."""

    def __init__(self, mismatches: tuple[shape.Mismatch, ...]) -> None:
        super().__init__("; ".join(str(mismatch) for mismatch in mismatches))
        self.mismatches = mismatches
        self.expected = mismatches[0].expected
        self.got = mismatches[0].got
        self.path = mismatches[0].path


def decode(raw: Any, type: type[T]) -> T:
    """The typed object of a document of builtins, or `DecodeError` with all that is wrong."""
    try:
        return msgspec.convert(raw, type, dec_hook=_read)
    except msgspec.ValidationError:
        pass
    return _decode_irregular(raw, type)


def to_builtins(value: msgspec.Struct) -> dict[str, Any]:
    """
    The document of a typed object: unset fields left out, quantities in canonical form.

    An object made here, and not read, gets the version and kind of its class.
    """
    # By way of JSON, because that turns every tuple into a list, in compiled code.
    document: dict[str, Any] = msgspec.json.decode(to_json(value))
    if isinstance(value, KubernetesObject):
        defaults = {"apiVersion": value.API_VERSION, "kind": kind_of(value.__class__)}
        return {**defaults, **document}
    return document


def to_json(value: msgspec.Struct) -> bytes:
    """The JSON text of a typed object, without the version and kind it was not given."""
    return msgspec.json.encode(value, enc_hook=_write)


def unknown_fields(raw: Any, type: type[T]) -> tuple[str, ...]:
    """Paths of the fields that the kind does not have in Kubernetes 1.36, in document order."""
    return tuple(shape.render(path) for path in shape.unknown(raw, shape.of(type)))


def _decode_irregular(raw: Any, type: type[T]) -> T:
    regular = shape.regular(raw, shape.of(type))
    mismatches = tuple(shape.mismatches(regular, shape.of(type)))
    if mismatches:
        raise DecodeError(mismatches)
    return msgspec.convert(regular, type, dec_hook=_read)


def _read(type: type[Any], value: Any) -> Any:
    assert type is Quantity, f"no reader for {type}"
    return Quantity.from_json(value)


def _write(value: Any) -> str:
    assert isinstance(value, Quantity), f"no writer for {value!r}"
    return str(value)
