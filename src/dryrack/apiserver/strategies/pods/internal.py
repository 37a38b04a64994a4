"""
The spec of a pod as the real server shows it in a refusal: by its own structs, all fields of them.

Whoever changes what is fixed is told what he changed by a difference of two such texts. The
structs are data, taken from Kubernetes' own sources and read when they are first needed.
"""

from __future__ import annotations

import difflib
import gzip
import json
from functools import cache
from importlib import resources
from typing import Any

import msgspec

Raw = dict[str, Any]

_CONTEXT_LINES = 3
# Comparing takes the square of this; a pod with all there is has some hundreds.
_LINES_MAX = 10_000
# The API has them in the spec, the server in its security context.
_OF_THE_HOST = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")
_ZEROES = {"string": "", "int": 0, "bool": False}


@cache
def _structs() -> dict[str, list[tuple[str, str, str]]]:
    data = resources.files("dryrack.apiserver.strategies.pods").joinpath("internal.json.gz")
    found: dict[str, list[tuple[str, str, str]]] = msgspec.json.decode(
        gzip.decompress(data.read_bytes())
    )
    return found


def difference(old: Raw, new: Raw, struct: str = "PodSpec") -> str:
    """The lines that differ, with a few around them, as the server prints them."""
    before, after = (_lines(each, struct) for each in (old, new))
    if max(len(before), len(after)) > _LINES_MAX:
        return "the specs are too long to compare line by line\n"
    _, _, *lines = difflib.unified_diff(before, after, n=_CONTEXT_LINES, lineterm="")
    return "".join(f"{line}\n" for line in lines)


def shown_spec(spec: Raw) -> Raw:
    """A spec by the names and with all the fields of the server's struct."""
    return _struct("PodSpec", _inside(spec))


def shown_template(template: Raw) -> Raw:
    """A template of pods; its metadata goes by the names of the API."""
    return {**(template.get("metadata") or {}), "Spec": shown_spec(template.get("spec") or {})}


def _lines(value: Raw, struct: str) -> list[str]:
    shown = shown_spec(value) if struct == "PodSpec" else _struct(struct, value)
    text = json.dumps(shown, indent=1, ensure_ascii=False)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text.split("\n")


def _inside(spec: Raw) -> Raw:
    """With fields where the server has them."""
    security = dict(spec.get("securityContext") or {})
    security |= {key: spec[key] for key in _OF_THE_HOST if key in spec}
    account = spec.get("serviceAccountName") or spec.get("serviceAccount") or ""
    return {**spec, "securityContext": security, "serviceAccountName": account}


def _struct(name: str, given: Raw) -> Raw:
    shown: Raw = {}
    for field, key, kind in _structs()[name]:
        if field:
            shown[field] = _value(kind, given.get(key))
        elif kind == "json":
            # Metadata, the one struct that goes by the names of the API.
            shown |= given.get("metadata") or {}
        else:
            shown |= _struct(kind, given)
    return shown


def _value(kind: str, value: Any) -> Any:
    if kind in _ZEROES:
        return _ZEROES[kind] if value is None else value
    if kind.startswith(("*", "[]", "<>")):
        return None if value is None else _held(kind, value)
    if kind == "json":
        return "0" if value is None else value
    return _struct(kind, value or {})


def _held(kind: str, value: Any) -> Any:
    if kind.startswith("[]"):
        return [_value(kind[2:], each) for each in value]
    if kind.startswith("<>"):
        return {key: _value(kind[2:], value[key]) for key in sorted(value)}
    return _value(kind[1:], value)
