"""
The Go structs of the built-in kinds.

A field has a Go type, which error messages contain, and Go omits it or not when it is empty.
OpenAPI has neither.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from dryrack.kinds.releases import Release

# Types that are structs only in Go, with the JSON of an unset value.
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
    """The path of embedded structs, each with a dot."""

    @property
    def is_struct(self) -> bool:
        """True for a struct by value that has fields."""
        return not self.is_pointer and self.kind == "struct" and self.type not in UNSET

    @property
    def is_written_unset(self) -> bool:
        """True if Go writes the field even when it is unset; a struct is never empty."""
        if self.omits_zero:
            return False
        return not self.omits_empty or (self.kind == "struct" and not self.is_pointer)

    def is_left_out(self, value: Any) -> bool:
        """Return whether Go omits a set value because it is empty."""
        if not self.omits_empty or self.is_pointer or self.kind == "struct":
            return False
        return value in ("", 0, False) if self.kind in _SCALARS else not value

    @property
    def unset(self) -> Any:
        """The JSON of an unset field, without the fields of a struct."""
        if self.is_pointer:
            return None
        if self.kind == "struct":
            return UNSET.get(self.type, {})
        return _SCALARS.get(self.kind)


Struct = dict[str, GoField]


@cache
def structs(release: Release) -> dict[str, Struct]:
    """Return the fields of each definition, in the order in which Go writes them."""
    name = f"structs-{release.value}.json.gz"
    data = resources.files("dryrack.kinds.schemas").joinpath(name).read_bytes()
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
