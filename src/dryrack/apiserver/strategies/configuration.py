"""Configmaps and secrets: values by key, which may be frozen."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from dryrack.apiserver.strategies.checks import config_key
from dryrack.apiserver.strategies.copies import filled, without
from dryrack.apiserver.strategies.validated_as_new import WholeStrategy
from dryrack.kinds.text.go_json import syntax_error
from dryrack.kinds.validation.names import checked
from dryrack.kinds.validation.problems import (
    Token,
    byte_length,
    forbidden,
    invalid,
    required,
    too_long,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

VALUES_BYTES_MAX = 1024 * 1024
_FROZEN = "field is immutable when `immutable` is set"
_OPAQUE = "Opaque"
# By type of secret: the keys that it must have, all of them.
_NEEDED = {"kubernetes.io/tls": ("tls.crt", "tls.key")}
_JSON = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}
_ACCOUNT = "kubernetes.io/service-account.name"


class ConfigMapStrategy(WholeStrategy):
    """Text and bytes by key."""

    def __init__(self) -> None:
        super().__init__(namespaced=True)

    def problems(self, obj: Raw, write: Write) -> Sequence[FieldProblem]:
        return list(_values(obj))

    def changes(self, obj: Raw, old: Raw) -> Iterator[FieldProblem]:
        return _thawed(obj, old, ("data", "binaryData"))


def _values(obj: Raw) -> Iterator[FieldProblem]:
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    for key in sorted(data):
        yield from checked(f"data[{key}]", key, config_key)
        if key in binary:
            yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    for key in sorted(binary):
        yield from checked(f"binaryData[{key}]", key, config_key)
    size = sum(map(byte_length, data.values())) + sum(map(_decoded_length, binary.values()))
    if size > VALUES_BYTES_MAX:
        yield too_long("[]", VALUES_BYTES_MAX)


def _thawed(obj: Raw, old: Raw, parts: tuple[str, ...]) -> Iterator[FieldProblem]:
    """What is frozen stays frozen, and stays as it is."""
    if not old.get("immutable"):
        return
    if not obj.get("immutable"):
        yield forbidden("immutable", _FROZEN)
    for part in parts:
        if (obj.get(part) or {}) != (old.get(part) or {}):
            yield forbidden(part, _FROZEN)


class SecretStrategy(WholeStrategy):
    """Bytes by key, of a type that says which keys there have to be."""

    selectable_fields = ("type",)
    field_refusal = "field label not supported: {label}"

    def __init__(self) -> None:
        super().__init__(namespaced=True)

    def default(self, obj: Raw, write: Write) -> Raw:
        texts = obj.get("stringData") or {}
        made = without(filled(obj, {"type": _OPAQUE}), "stringData")
        if not texts:
            return made
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
        return {**made, "data": dict(sorted({**(obj.get("data") or {}), **encoded}.items()))}

    def problems(self, obj: Raw, write: Write) -> Sequence[FieldProblem]:
        return [*_secret_values(obj), *_of_type(obj)]

    def changes(self, obj: Raw, old: Raw) -> Iterator[FieldProblem]:
        kind = obj.get("type") or ""
        if kind != (old.get("type") or ""):
            yield invalid("type", Token(kind), "field is immutable")
        yield from _thawed(obj, old, ("data",))


def _secret_values(obj: Raw) -> Iterator[FieldProblem]:
    data = obj.get("data") or {}
    for key in sorted(data):
        yield from checked(f"data[{key}]", key, config_key)
    if sum(map(_decoded_length, data.values())) > VALUES_BYTES_MAX:
        yield too_long("data", VALUES_BYTES_MAX)


def _of_type(obj: Raw) -> Iterator[FieldProblem]:
    kind, data = obj.get("type") or "", obj.get("data") or {}
    yield from (required(f"data[{key}]") for key in _NEEDED.get(kind, ()) if key not in data)
    if kind in _JSON:
        yield from _json(_JSON[kind], data)
    if kind == "kubernetes.io/basic-auth" and not data.keys() & {"username", "password"}:
        yield from (required(f"data[{key}]") for key in ("username", "password"))
    if kind == "kubernetes.io/ssh-auth" and not data.get("ssh-privatekey"):
        yield required("data[ssh-privatekey]")
    annotations = obj["metadata"].get("annotations") or {}
    if kind == "kubernetes.io/service-account-token" and not annotations.get(_ACCOUNT):
        yield required(f"metadata.annotations[{_ACCOUNT}]")


def _json(key: str, data: Raw) -> Iterator[FieldProblem]:
    if key not in data:
        yield required(f"data[{key}]")
        return
    problem = syntax_error(base64.b64decode(data[key]))
    if problem:
        yield invalid(f"data[{key}]", "<secret contents redacted>", problem)


def _decoded_length(encoded: str) -> int:
    return len(encoded) * 3 // 4 - encoded.count("=", -2)
