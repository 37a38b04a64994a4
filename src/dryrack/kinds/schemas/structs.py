"""
How Go writes the structs of the built-in kinds.

A field has a Go type, which refusals name, and is left out, or not, when it is empty. OpenAPI
tells neither.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import msgspec

# By value these are structs to Go, but not to anybody else: an unset one is written so.
UNSET: dict[str, Any] = {
    "v1.Time": None,
    "v1.MicroTime": None,
    "runtime.RawExtension": None,
    "resource.Quantity": "0",
    "intstr.IntOrString": 0,
}
_SCALARS: dict[str, Any] = {
    "string": "",
    "bool": False,
    "int": 0,
    "int32": 0,
    "int64": 0,
    "float64": 0,
}


@dataclass(frozen=True, slots=True)
class GoField:
    """A field of a struct, by its JSON name."""

    name: str
    type: str
    kind: str
    is_pointer: bool
    omits_empty: bool
    omits_zero: bool
    inside: str
    """The embedded structs that lead to it, each with a dot."""

    @property
    def is_struct(self) -> bool:
        """Whether it is a struct by value, made of fields of its own."""
        return not self.is_pointer and self.kind == "struct" and self.type not in UNSET

    @property
    def is_written_unset(self) -> bool:
        """Whether it is there even if nobody set it. Go does not call a struct empty."""
        if self.omits_zero:
            return False
        return not self.omits_empty or (self.kind == "struct" and not self.is_pointer)

    def is_left_out(self, value: Any) -> bool:
        """Whether a value that was set is not written because it is empty."""
        if not self.omits_empty or self.is_pointer or self.kind == "struct":
            return False
        return value in ("", 0, False) if self.kind in _SCALARS else not value

    @property
    def unset(self) -> Any:
        """What is written if nobody set it; a struct's own fields are not included."""
        if self.is_pointer:
            return None
        if self.kind == "struct":
            return UNSET.get(self.type, {})
        return _SCALARS.get(self.kind)


Struct = dict[str, GoField]


@cache
def structs() -> dict[str, Struct]:
    """Name of the definition → its fields, in the order in which Go writes them."""
    data = resources.files("dryrack.kinds.schemas").joinpath("structs.json.gz").read_bytes()
    raw: dict[str, list[list[str]]] = msgspec.json.decode(gzip.decompress(data))
    return {name: {each[0]: _field(*each) for each in fields} for name, fields in raw.items()}


def _field(name: str, shown: str, omits: str, inside: str = "") -> GoField:
    is_pointer = shown.startswith("*")
    text, _, under = shown.removeprefix("*").partition("=")
    return GoField(
        name,
        text,
        _kind(text, under),
        is_pointer,
        omits_empty="e" in omits,
        omits_zero="z" in omits,
        inside=inside,
    )


def _kind(text: str, under: str) -> str:
    if under:
        return under
    if text.startswith("[]"):
        return "slice"
    if text.startswith("map["):
        return "map"
    return text if text in _SCALARS else "struct"
