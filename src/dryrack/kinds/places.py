"""
Where things are in a file.

A path names a value inside a document (`spec.devices[2].attributes["a/b"].string`); a place is
a line and a column. A `Tree` remembers the place of every value of a YAML document.
"""

import json
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

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


@dataclass(slots=True)
class Tree:
    """
    The places of one value and of all that is in it.

    Built up while the file is read and not changed afterwards. Each child is kept with its own
    place: for the field of an object that is where its key stands.
    """

    place: Place
    # Most values are words and have neither; those share these two.
    fields: dict[str, tuple[Place, "Tree"]] = field(default_factory=lambda: _NO_FIELDS)
    items: list["Tree"] = field(default_factory=lambda: _NO_ITEMS)

    def locate(self, path: Path) -> Place:
        """The place of the value at the path, or of its nearest parent that exists."""
        tree, place = self, self.place
        for step in path:
            found = tree.fields.get(str(step)) or tree._item(step)
            if found is None:
                return place
            place, tree = found
        return place

    def _item(self, step: str | int) -> tuple[Place, "Tree"] | None:
        index = int(step) if str(step).isascii() and str(step).isdigit() else len(self.items)
        if index >= len(self.items):
            return None
        return self.items[index].place, self.items[index]


_NO_FIELDS: dict[str, tuple[Place, Tree]] = {}
_NO_ITEMS: list[Tree] = []


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
