"""
OpenAPI v2 as protobuf, the form in which kubectl reads it.

`to_wire` writes a document in the messages of gnostic, which Kubernetes has for it. Each writer
turns the JSON of one message into its content. Keys that start with `x-` become extensions, whose
values go as text; what is zero is left out, as protobuf does, and so is any other key that a
message does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from dryrack.apiserver.protobuf.wire import Value, encode_field

MEDIA_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
# By the letter the second is no media type; it is the name of old, and kubectl still asks for it.
MEDIA_TYPES = (MEDIA_TYPE, MEDIA_TYPE.replace("v2.v1.0", "v2@v1.0"))

Raw = Mapping[str, Any]
Writer = Callable[[Any], Value]


class _Field(NamedTuple):
    number: int
    write: Writer
    is_repeated: bool = False


class _Message(NamedTuple):
    fields: Mapping[str, _Field]
    extensions: int


def to_wire(document: Raw) -> bytes:
    """A document as one message."""
    return _content(_DOCUMENT, document)


def _content(message: _Message, raw: Raw) -> bytes:
    parts: list[bytes] = []
    for key, value in raw.items():
        field = message.fields.get(key)
        if field is not None:
            parts += _encode_document(field, value)
        elif key.startswith("x-"):
            parts.append(encode_field(message.extensions, _named_schema(key, _any_value(value))))
    return b"".join(parts)


def _encode_document(field: _Field, value: Any) -> list[bytes]:
    if field.is_repeated:
        return [encode_field(field.number, field.write(each)) for each in value]
    content = field.write(value)
    # A message with nothing in it is still there, a scalar that is zero is not.
    return [encode_field(field.number, content)] if content or isinstance(content, bytes) else []


def _message(message: _Message) -> Writer:
    return lambda raw: _content(message, raw)


def _named_schema(name: str, value: Value) -> bytes:
    return encode_field(1, name) + encode_field(2, value)


def _map(number: int, write: Writer) -> Writer:
    """A message that is a list of names with values."""
    return lambda raw: b"".join(
        encode_field(number, _named_schema(name, write(value))) for name, value in raw.items()
    )


def _in(number: int, write: Writer) -> Writer:
    """A message whose one field of interest is this."""
    return lambda value: encode_field(number, write(value))


def _text(value: Any) -> str:
    return str(value)


def _flag(value: Any) -> bool:
    return bool(value)


def _whole(value: Any) -> int:
    return int(value)


def _real(value: Any) -> float:
    return float(value)


def _any_value(value: Any) -> bytes:
    """Any value, as YAML; all JSON is."""
    return encode_field(2, msgspec.json.encode(value).decode())


def _texts(value: Any) -> bytes:
    many = value if isinstance(value, list) else [value]
    return b"".join(encode_field(1, str(each)) for each in many)


def _schema(value: Any) -> bytes:
    return _content(_SCHEMA, value)


def _additional(value: Any) -> bytes:
    return encode_field(2, value) if isinstance(value, bool) else encode_field(1, _schema(value))


def _schemas(value: Any) -> bytes:
    many = value if isinstance(value, list) else [value]
    return b"".join(encode_field(1, _schema(each)) for each in many)


_SCHEMA = _Message(
    {
        "$ref": _Field(1, _text),
        "format": _Field(2, _text),
        "title": _Field(3, _text),
        "description": _Field(4, _text),
        "default": _Field(5, _any_value),
        "multipleOf": _Field(6, _real),
        "maximum": _Field(7, _real),
        "exclusiveMaximum": _Field(8, _flag),
        "minimum": _Field(9, _real),
        "exclusiveMinimum": _Field(10, _flag),
        "maxLength": _Field(11, _whole),
        "minLength": _Field(12, _whole),
        "pattern": _Field(13, _text),
        "maxItems": _Field(14, _whole),
        "minItems": _Field(15, _whole),
        "uniqueItems": _Field(16, _flag),
        "maxProperties": _Field(17, _whole),
        "minProperties": _Field(18, _whole),
        "required": _Field(19, _text, is_repeated=True),
        "enum": _Field(20, _any_value, is_repeated=True),
        "additionalProperties": _Field(21, _additional),
        "type": _Field(22, _texts),
        "items": _Field(23, _schemas),
        "allOf": _Field(24, _schema, is_repeated=True),
        "properties": _Field(25, _map(1, _schema)),
        "discriminator": _Field(26, _text),
        "readOnly": _Field(27, _flag),
        "example": _Field(30, _any_value),
    },
    extensions=31,
)

_BODY = _Message(
    {
        "description": _Field(1, _text),
        "name": _Field(2, _text),
        "in": _Field(3, _text),
        "required": _Field(4, _flag),
        "schema": _Field(5, _schema),
    },
    extensions=6,
)
_PLACED = {
    "required": _Field(1, _flag),
    "in": _Field(2, _text),
    "description": _Field(3, _text),
    "name": _Field(4, _text),
}
_QUERY = _Message({**_PLACED, "type": _Field(6, _text), "format": _Field(7, _text)}, extensions=23)
_PATH = _Message({**_PLACED, "type": _Field(5, _text), "format": _Field(6, _text)}, extensions=22)


def _parameter(raw: Any) -> bytes:
    """One of three kinds of parameter: each is a choice within a choice."""
    match raw["in"]:
        case "body":
            chosen = encode_field(1, _content(_BODY, raw))
        case "query":
            chosen = encode_field(2, encode_field(3, _content(_QUERY, raw)))
        case place:
            assert place == "path", f"a parameter in {place!r}"
            chosen = encode_field(2, encode_field(4, _content(_PATH, raw)))
    return encode_field(1, chosen)


_RESPONSE = _Message(
    {"description": _Field(1, _text), "schema": _Field(2, _in(1, _schema))}, extensions=5
)
_OPERATION = _Message(
    {
        "tags": _Field(1, _text, is_repeated=True),
        "summary": _Field(2, _text),
        "description": _Field(3, _text),
        "operationId": _Field(5, _text),
        "produces": _Field(6, _text, is_repeated=True),
        "consumes": _Field(7, _text, is_repeated=True),
        "parameters": _Field(8, _parameter, is_repeated=True),
        "responses": _Field(9, _map(1, _in(1, _message(_RESPONSE)))),
        "schemes": _Field(10, _text, is_repeated=True),
        "deprecated": _Field(11, _flag),
    },
    extensions=13,
)
_METHODS = {"get": 2, "put": 3, "post": 4, "delete": 5, "options": 6, "head": 7, "patch": 8}
_PATH_ITEM = _Message(
    {
        **{name: _Field(number, _message(_OPERATION)) for name, number in _METHODS.items()},
        "parameters": _Field(9, _parameter, is_repeated=True),
    },
    extensions=10,
)
_INFO = _Message(
    {"title": _Field(1, _text), "version": _Field(2, _text), "description": _Field(3, _text)},
    extensions=7,
)
_API_KEY = _Message(
    {
        "type": _Field(1, _text),
        "name": _Field(2, _text),
        "in": _Field(3, _text),
        "description": _Field(4, _text),
    },
    extensions=5,
)
_DOCUMENT = _Message(
    {
        "swagger": _Field(1, _text),
        "info": _Field(2, _message(_INFO)),
        "paths": _Field(8, _map(2, _message(_PATH_ITEM))),
        "definitions": _Field(9, _map(1, _schema)),
        "security": _Field(12, _map(1, _texts), is_repeated=True),
        "securityDefinitions": _Field(13, _map(1, _in(2, _message(_API_KEY)))),
    },
    extensions=16,
)
