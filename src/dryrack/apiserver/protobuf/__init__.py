"""
Objects that come as protobuf, as Go's typed clients send them.

`to_object` turns the body of such a request into the object that the same client would have sent
as JSON. Answers are always JSON: every client that sends protobuf also reads that. The numbers of
the fields are data, taken from Kubernetes' own sources and read when the first such body comes.
"""

import base64
import gzip
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import msgspec

from dryrack.apiserver.protobuf.wire import WireError, fields, integers
from dryrack.kinds.raw import Raw

_MAGIC = b"k8s\x00"
# Schemas of custom kinds nest in themselves; nothing that people write is deeper than this.
_DEPTH_MAX = 100

_META = "k8s.io.apimachinery.pkg.apis.meta.v1"
_UNKNOWN = "k8s.io.apimachinery.pkg.runtime.Unknown"
_EXTENSIONS = "k8s.io.apiextensions-apiserver.pkg.apis.apiextensions.v1"
# Groups whose kinds are not in the module of all others.
_ELSEWHERE = {
    "apiextensions.k8s.io": _EXTENSIONS,
    "apiregistration.k8s.io": "k8s.io.kube-aggregator.pkg.apis.apiregistration.v1",
}


class ProtobufError(Exception):
    """A body that is no object; the text says why."""


class _Field(NamedTuple):
    name: str
    type: str
    is_repeated: bool
    is_omitted: bool


@cache
def _messages() -> dict[str, dict[int, _Field]]:
    data = resources.files(__name__).joinpath("messages.json.gz").read_bytes()
    found = msgspec.json.decode(gzip.decompress(data))
    return {name: dict(_rows(rows)) for name, rows in found.items()}


def _rows(rows: list[tuple[int, str, str, str]]) -> Iterator[tuple[int, _Field]]:
    for number, name, kind, flags in rows:
        yield number, _Field(name, kind, "r" in flags, "o" in flags)


def to_object(body: bytes) -> Raw:
    """The object in a body; raises a `ProtobufError`."""
    if not body.startswith(_MAGIC):
        raise ProtobufError("provided data does not appear to be a protobuf message")
    try:
        envelope = _message(_UNKNOWN, memoryview(body)[len(_MAGIC) :], 0, bytes_as=bytes)
        kind = envelope.get("kind", ""), envelope.get("apiVersion", "")
        obj = _message(_message_of_kind(*kind), memoryview(envelope.get("-") or b""), 0)
    except (WireError, TypeError, ValueError, OverflowError) as error:
        raise ProtobufError(f"the protobuf message cannot be read: {error}") from None
    return {"kind": kind[0], "apiVersion": kind[1], **obj}


def _message_of_kind(kind: str, api_version: str) -> str:
    """The message of a kind; some kinds of the machinery belong to every group."""
    group, _, version = api_version.rpartition("/")
    usual = f"k8s.io.api.{group.partition('.')[0] or 'core'}.{version}"
    room = _ELSEWHERE.get(group, usual)
    for name in (f"{room}.{kind}", f"{_META}.{kind}"):
        if name in _messages():
            return name
    raise ProtobufError(f'no kind "{kind}" is registered for version "{api_version}"')


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _message(
    name: str, data: memoryview, depth: int, *, bytes_as: Callable[[bytes], Any] = _text
) -> Raw:
    if depth > _DEPTH_MAX:
        raise ProtobufError("the protobuf message is nested too deeply")
    found: Raw = {}
    known = _messages()[name]
    for number, wire_type, value in fields(data):
        field = known.get(number)
        if field is None:
            continue
        if field.type[0] == "<":
            key, item = _entry(field.type[1:], value, depth)
            found.setdefault(field.name, {})[key] = item
            continue
        decoded = _values(field, wire_type, value, depth, bytes_as)
        if not field.name:
            found.update(decoded[0])
        elif field.is_repeated:
            found.setdefault(field.name, []).extend(decoded)
        elif not (field.is_omitted and _is_empty(field, decoded[0])):
            found[field.name] = decoded[0]
    return found


def _is_empty(field: _Field, value: Any) -> bool:
    """A message is only if nothing is in it: the port 0 is a port."""
    return value in (None, {}) if "." in field.type else not value


def _values(
    field: _Field, wire_type: int, value: Any, depth: int, bytes_as: Callable[[bytes], Any]
) -> list[Any]:
    match field.type:
        case "string":
            return [str(value, "utf-8")]
        case "bytes":
            return [bytes_as(bytes(value))]
        case "int" | "bool":
            found = integers(wire_type, value)
            return [bool(each) for each in found] if field.type == "bool" else found
        case "double":
            return [value]
        case message:
            return [_part(message, value, depth)]


def _entry(kind: str, data: memoryview, depth: int) -> tuple[str, Any]:
    key = ""
    item = None
    for number, wire_type, value in fields(data):
        if number == 1:
            key = str(value, "utf-8")
        else:
            field = _Field("value", kind, is_repeated=False, is_omitted=False)
            (item,) = _values(field, wire_type, value, depth, _text)
    return key, item if item is not None else ("" if "." not in kind else {})


def _part(name: str, data: memoryview, depth: int) -> Any:
    special = _SPECIAL.get(name)
    if special is not None:
        return special(_message(name, data, depth + 1, bytes_as=bytes))
    if name.endswith((".AttestationValue", ".ExtraValue", ".Verbs")):
        return _message(name, data, depth + 1).get("items", [])
    return _message(name, data, depth + 1)


def _quantity(parts: Raw) -> str:
    return str(parts.get("string", ""))


def _int_or_string(parts: Raw) -> int | str:
    is_string = parts.get("type", 0) == 1
    return str(parts.get("strVal", "")) if is_string else int(parts.get("intVal", 0))


def _time(parts: Raw) -> str | None:
    """None for the time that Go calls zero."""
    if "seconds" not in parts:
        return None
    return f"{_second(parts['seconds'])}Z"


def _micro_time(parts: Raw) -> str | None:
    if "seconds" not in parts:
        return None
    return f"{_second(parts['seconds'])}.{parts.get('nanos', 0) // 1000:06d}Z"


def _second(number: int) -> str:
    # A year has four digits, also an early one, which `strftime` writes as it comes.
    moment = datetime.fromtimestamp(number, UTC)
    return f"{moment.year:04d}-{moment:%m-%dT%H:%M:%S}"


def _json(parts: Raw) -> Any:
    """Decode a value that is JSON, or a raw value in one of several fields."""
    raw = next(iter(parts.values()), b"")
    return msgspec.json.decode(raw) if raw else None


def _schema_or_array(parts: Raw) -> Any:
    return parts.get("schema") or parts.get("jSONSchemas") or []


def _schema_or_bool(parts: Raw) -> Any:
    return parts["schema"] if "schema" in parts else bool(parts.get("allows"))


def _schema_or_strings(parts: Raw) -> Any:
    return parts["schema"] if "schema" in parts else parts.get("property", [])


_SPECIAL: dict[str, Callable[[Raw], Any]] = {
    "k8s.io.apimachinery.pkg.api.resource.Quantity": _quantity,
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": _int_or_string,
    "k8s.io.apimachinery.pkg.runtime.RawExtension": _json,
    f"{_META}.Time": _time,
    f"{_META}.MicroTime": _micro_time,
    f"{_META}.FieldsV1": _json,
    f"{_EXTENSIONS}.JSON": _json,
    f"{_EXTENSIONS}.JSONSchemaPropsOrArray": _schema_or_array,
    f"{_EXTENSIONS}.JSONSchemaPropsOrBool": _schema_or_bool,
    f"{_EXTENSIONS}.JSONSchemaPropsOrStringArray": _schema_or_strings,
}
