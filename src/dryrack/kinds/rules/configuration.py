"""ConfigMaps and Secrets."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from dryrack.kinds.paths import get
from dryrack.kinds.rules.checks import config_key
from dryrack.kinds.rules.json_edit import set_defaults, without
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.text.go_json import GoSyntaxError, read_text
from dryrack.kinds.validation.names import checked
from dryrack.kinds.validation.problems import (
    byte_length,
    invalid,
    required,
    too_long,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

VALUES_BYTES_MAX = 1024 * 1024
_OPAQUE = "Opaque"
# By type of secret: the keys that it must have, all of them.
_NEEDED = {"kubernetes.io/tls": ("tls.crt", "tls.key")}
_JSON = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}
_ACCOUNT = "kubernetes.io/service-account.name"


class ConfigMapRules(KindRules):
    """ConfigMap."""

    def __init__(self) -> None:
        super().__init__(namespaced=True)

    def problems(self, obj: Raw) -> Iterator[FieldProblem]:
        data = get(obj, "data", {})
        binary = get(obj, "binaryData", {})
        for key in sorted(data):
            yield from checked(f"data[{key}]", key, config_key)
            if key in binary:
                yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
        for key in sorted(binary):
            yield from checked(f"binaryData[{key}]", key, config_key)
        size = sum(map(byte_length, data.values())) + sum(map(_decoded_length, binary.values()))
        if size > VALUES_BYTES_MAX:
            yield too_long("[]", VALUES_BYTES_MAX)


class SecretRules(KindRules):
    """Secret; its type determines the required keys."""

    def __init__(self) -> None:
        super().__init__(namespaced=True)

    def default(self, obj: Raw) -> Raw:
        texts = get(obj, "stringData", {})
        made = without(set_defaults(obj, {"type": _OPAQUE}), "stringData")
        if not texts:
            return made
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
        return {**made, "data": dict(sorted({**get(obj, "data", {}), **encoded}.items()))}

    def problems(self, obj: Raw) -> Iterator[FieldProblem]:
        data = get(obj, "data", {})
        for key in sorted(data):
            yield from checked(f"data[{key}]", key, config_key)
        if sum(map(_decoded_length, data.values())) > VALUES_BYTES_MAX:
            yield too_long("data", VALUES_BYTES_MAX)
        kind = obj.get("type") or ""
        yield from (required(f"data[{key}]") for key in _NEEDED.get(kind, ()) if key not in data)
        if kind in _JSON:
            yield from _json(_JSON[kind], data)
        if kind == "kubernetes.io/basic-auth" and not data.keys() & {"username", "password"}:
            yield from (required(f"data[{key}]") for key in ("username", "password"))
        if kind == "kubernetes.io/ssh-auth" and not data.get("ssh-privatekey"):
            yield required("data[ssh-privatekey]")
        annotations = get(obj["metadata"], "annotations", {})
        if kind == "kubernetes.io/service-account-token" and not annotations.get(_ACCOUNT):
            yield required(f"metadata.annotations[{_ACCOUNT}]")


def _json(key: str, data: Raw) -> Iterator[FieldProblem]:
    if key not in data:
        yield required(f"data[{key}]")
        return
    try:
        read_text(base64.b64decode(data[key]))
    except GoSyntaxError as error:
        yield invalid(f"data[{key}]", "<secret contents redacted>", str(error))


def _decoded_length(encoded: str) -> int:
    return len(encoded) * 3 // 4 - encoded.count("=", -2)
