"""
The configuration in a ConfigMap: under which key it is, and where its lines are.

A ConfigMap without any data says that there are no devices. One that has data, but none that could
be meant, is a mistake, and told in upstream's words.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dryrack.hardware.config_formats.text import is_configuration, parsed
from dryrack.hardware.names import quoted
from dryrack.kinds.shape import described
from dryrack.kinds.text.parsed import Parsed

if TYPE_CHECKING:
    from dryrack.kinds.shape import Path


@dataclass(frozen=True, slots=True)
class Found:
    """The text, and the key that it is under."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class Missing:
    """There is no text, and why."""

    path: Path
    what: str
    fix: str


@dataclass(frozen=True, slots=True)
class Emptied:
    """There is no data, and that is what is meant."""


def configuration(raw: Mapping[str, Any], key: str) -> Found | Missing | Emptied:
    """The configuration under the key, or under the only other one."""
    data = _fields(raw.get("data"))
    binary = _fields(raw.get("binaryData"))
    for field in ("data", "binaryData"):
        if raw.get(field) is not None and not isinstance(raw[field], Mapping):
            what = f"expected an object, got {described(raw[field])}"
            return Missing((field,), what, f"put the text under {field}.{key}")
    if not data and not binary:
        return Emptied()
    if key in binary and key not in data:
        return _decoded(key, binary[key])
    if key in data:
        return _text(key, data[key])
    return _other(key, data, (*data, *binary))


def _text(key: str, value: Any) -> Found | Missing:
    if isinstance(value, str):
        return Found(key, value)
    fix = f"write {key}: | and the text below it, indented"
    return Missing(("data", key), f"expected a string, got {described(value)}", fix)


def _decoded(key: str, value: Any) -> Found | Missing:
    try:
        return Found(key, base64.b64decode(str(value), validate=True).decode())
    except binascii.Error:
        return Missing(("binaryData", key), "expected base64", f"put the text under data.{key}")
    except UnicodeDecodeError as error:
        what = f"byte 0x{error.object[error.start]:02x} at {error.start} is not UTF-8"
        return Missing(("binaryData", key), what, "save the file as UTF-8 and create it again")


def _other(key: str, data: Mapping[str, Any], keys: tuple[str, ...]) -> Found | Missing:
    if len(keys) == 1 and isinstance(data.get(keys[0]), str):
        found = parsed(data[keys[0]])
        # What cannot be parsed may have been meant, if it speaks of mappings at all.
        meant = (
            is_configuration(found.value)
            if isinstance(found, Parsed)
            else ("mappings" in data[keys[0]])
        )
        if meant:
            return Found(keys[0], data[keys[0]])
    what = f"no configuration found in configmap, expected key: {key}"
    return Missing(("data",), what, f"rename the key that has it; there is {quoted(keys)}")


def _fields(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
