"""
Positions in files.

A path names a value inside a document (`spec.devices[2].attributes["a/b"].string`); a place is
a line and a column. A `Tree` remembers the place of every value of a YAML document.
"""

import json
from dataclasses import dataclass, field
from typing import NamedTuple, NewType, Protocol

from dryrack.kinds.shape import Path


class Place(NamedTuple):
    """A line and a column, both counted from one."""

    line: int
    column: int


class Places(Protocol):
    """The places of the values of a document."""

    def locate(self, path: Path) -> Place:
        """Return the place of the value at the path, or of its nearest existing parent."""
        ...


# A place as one number: a file has many, and plain numbers cost the garbage collector nothing.
Spot = NewType("Spot", int)
_COLUMNS = 2**32
# The index of a list never has more digits.
_INDEX_DIGITS_MAX = 10


def spot(line: int, column: int) -> Spot:
    """Return a place as one number."""
    return Spot(line * _COLUMNS + column)


def place_of(spot: Spot) -> Place:
    """Return the place of such a number."""
    return Place(*divmod(spot, _COLUMNS))


@dataclass(slots=True)
class Tree:
    """
    The places of one value and of its children.

    It is built while the file is read and does not change later. `spots` has each child by its key
    or index; the place of a field is that of its key. `inner` has the trees of the children that
    have children.
    """

    spot: Spot
    spots: dict[str | int, Spot] = field(default_factory=dict)
    inner: dict[str | int, "Tree"] = field(default_factory=dict)

    def locate(self, path: Path) -> Place:
        """Return the place of the value at the path, or of its nearest existing parent."""
        tree: Tree | None = self
        at = self.spot
        for step in path:
            key = None if tree is None else tree._key(str(step))
            if tree is None or key is None:
                break
            at = tree.spots[key]
            tree = tree.inner.get(key)
        return place_of(at)

    def _key(self, step: str) -> str | int | None:
        if step in self.spots:
            return step
        is_index = step.isascii() and step.isdigit() and len(step) <= _INDEX_DIGITS_MAX
        return int(step) if is_index and int(step) in self.spots else None


def parse_path(text: str) -> Path:
    """
    Return the steps of a path as validation or a person writes it.

    Keys in brackets may be quoted (`["a/b"]`) or not (`[a/b]`). An invalid part ends the path: then
    the place of the parent is the best answer.
    """
    steps: list[str | int] = []
    rest = text
    while rest:
        step, rest = _take_bracket(rest) if rest[0] == "[" else _take_name(rest.removeprefix("."))
        if step == "":
            break
        steps.append(step)
    return tuple(steps)


def _take_name(text: str) -> tuple[str, str]:
    ends = [index for index in (text.find("."), text.find("[")) if index >= 0]
    end = min(ends, default=len(text))
    return text[:end], text[end:]


def _take_bracket(text: str) -> tuple[str | int, str]:
    if text[1:2] == '"':
        try:
            key, end = json.JSONDecoder().raw_decode(text, 1)
        except ValueError:
            return "", ""
        return str(key), text[end + 1 :]
    inner, _, rest = text[1:].partition("]")
    return int(inner) if inner.isascii() and inner.isdigit() and len(inner) < 10 else inner, rest
