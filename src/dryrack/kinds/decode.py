"""
Decoding of documents into typed objects, and back.

msgspec's compiled decoder reads regular documents. A document that it refuses is walked in Python,
to report every mismatch with its path, and to read irregular values as Kubernetes does: null means
unset, and 8.0 is an integer.

Only the types of fields are checked here.
"""

from typing import Any, TypeVar

import msgspec

from dryrack.base.errors import DryrackError
from dryrack.kinds import shape
from dryrack.kinds.meta import KubernetesObject, kind_of
from dryrack.kinds.quantity import Quantity

T = TypeVar("T", bound=msgspec.Struct)


class DecodeError(DryrackError, ValueError):
    """A document has values of the wrong type: the first mismatch, and all of them."""

    def __init__(self, mismatches: tuple[shape.Mismatch, ...]) -> None:
        super().__init__("; ".join(str(mismatch) for mismatch in mismatches))
        self.mismatches = mismatches
        self.expected = mismatches[0].expected
        self.got = mismatches[0].got
        self.path = mismatches[0].path


def decode(raw: Any, type: type[T]) -> T:
    """Return the typed object of a document; raise `DecodeError` with all mismatches."""
    try:
        return msgspec.convert(raw, type, dec_hook=_read)
    except msgspec.ValidationError:
        pass
    return _decode_irregular(raw, type)


def to_builtins(value: msgspec.Struct) -> dict[str, Any]:
    """
    Return the document of a typed object, without unset fields.

    An object made here, and not read, gets the version and kind of its class.
    """
    # By way of JSON, because that turns every tuple into a list, in compiled code.
    document: dict[str, Any] = msgspec.json.decode(to_json(value))
    if isinstance(value, KubernetesObject):
        defaults = {"apiVersion": value.API_VERSION, "kind": kind_of(value.__class__)}
        return {**defaults, **document}
    return document


def to_json(value: msgspec.Struct) -> bytes:
    """Return the JSON text of a typed object."""
    return msgspec.json.encode(value, enc_hook=_write)


def unknown_fields(raw: Any, type: type[T]) -> tuple[str, ...]:
    """Paths of the fields that the kind does not have, as `shape.unknown` yields them."""
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
