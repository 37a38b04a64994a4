"""
Objects that are nearly right: one field of a good one, made wrong in every way that people do.

A field is left out, emptied, said twice, in another type, too large, too long, or misspelt.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

Path = tuple[str | int, ...]

_LEFT_OUT: Any = object()
_ANYWHERE: tuple[Any, ...] = (_LEFT_OUT, None, "", -1, "x y", True, [], {})
_TOO_LONG = 300
# A text of bytes may be an array in Go, which nobody writes.
_BYTES = ("data", "binaryData")


@dataclass(frozen=True, slots=True)
class Slip:
    """An object, and what is wrong with it."""

    path: Path
    value: Any
    object: Any

    def __str__(self) -> str:
        shown = "left out" if self.value is _LEFT_OUT else repr(self.value)[:60]
        return f"{'.'.join(map(str, self.path))}: {shown}"


def slips(good: dict[str, Any]) -> Iterator[Slip]:
    """Every slip of an object, in the order of its fields; what it is stays."""
    for path, value in places(good):
        if not path or path[0] in ("apiVersion", "kind"):
            continue
        for wrong in _wrong(path, value):
            made = spoilt(good, path, wrong)
            # No labels and an empty map of them are one here, and two where the real server
            # refuses them.
            if not any(at[-1:] == ("labels",) and each == {} for at, each in places(made)):
                yield Slip(path, wrong, made)


def places(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The value and all that is in it, each with the way to it."""
    yield path, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    if isinstance(value, list):
        for position, inner in enumerate(value):
            yield from places(inner, (*path, position))


def _wrong(path: Path, value: Any) -> Iterator[Any]:
    is_bytes = len(path) > 1 and path[-2] in _BYTES
    yield from (wrong for wrong in _ANYWHERE if wrong != [] or not is_bytes)
    match value:
        case bool():
            yield from (not value, str(value).lower())
        case str():
            yield from (f"{value.upper()}_", 5, "a" * _TOO_LONG)
        case int():
            yield from (str(value), 2**31, 2**63, 1.5, 0)
        case [first, *_]:
            yield from ([*value, first], [None])
        case dict():
            yield {**value, "no such": 1}


def spoilt(good: dict[str, Any], path: Path, wrong: Any) -> Any:
    """A copy with something else at one place."""
    made: Any = copy.deepcopy(good)
    *way, last = path
    holder = made
    for step in way:
        holder = holder[step]
    if wrong is _LEFT_OUT:
        del holder[last]
    else:
        holder[last] = wrong
    return made
