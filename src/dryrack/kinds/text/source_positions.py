"""
Where things are in a file.

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
    """Whoever can tell the place of a path."""

    def locate(self, path: Path) -> Place:
        """The place of the value at the path, or of its nearest parent that exists."""
        ...


# A place as one number: a file has many, and plain numbers cost the garbage collector nothing.
Spot = NewType("Spot", int)
_COLUMNS = 2**32
# More digits than the index of any list has.
_INDEX_DIGITS_MAX = 10


def spot(line: int, column: int) -> Spot:
    """The place in short."""
    return Spot(line * _COLUMNS + column)


def place_of(spot: Spot) -> Place:
    """The place at length."""
    return Place(*divmod(spot, _COLUMNS))


@dataclass(slots=True)
class Tree:
    """
    The places of one value and of all that is in it.

    Built up while the file is read and not changed afterwards. `spots` has each child by its key
    or index; the field of an object is where its key stands. `inner` has the trees of those
    children that have children themselves.
    """

    spot: Spot
    spots: dict[str | int, Spot] = field(default_factory=dict)
    inner: dict[str | int, "Tree"] = field(default_factory=dict)

    def locate(self, path: Path) -> Place:
        """The place of the value at the path, or of its nearest parent that exists."""
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
    The steps of a path as validation or a person writes it.

    Keys in brackets may be quoted (`["a/b"]`) or not (`[a/b]`). What cannot be read ends the
    path: the place of the parent is then the best answer.
    """
    steps: list[str | int] = []
    rest = text
    while rest:
        step, rest = _bracketed(rest) if rest[0] == "[" else _dotted(rest.removeprefix("."))
        if step == "":
            break
        steps.append(step)
    return tuple(steps)


def _dotted(text: str) -> tuple[str, str]:
    ends = [index for index in (text.find("."), text.find("[")) if index >= 0]
    end = min(ends, default=len(text))
    return text[:end], text[end:]


def _bracketed(text: str) -> tuple[str | int, str]:
    if text[1:2] == '"':
        try:
            key, end = json.JSONDecoder().raw_decode(text, 1)
        except ValueError:
            return "", ""
        return str(key), text[end + 1 :]
    inner, _, rest = text[1:].partition("]")
    return int(inner) if inner.isascii() and inner.isdigit() and len(inner) < 10 else inner, rest
