r"""
The JSONPath of printer columns, selectable fields and scale.

The language is the simple part of kubectl's: names, also in quotes and with escaped dots
(`.metadata.labels.example\.com/x`), indices, `*`, and filters that compare a value with a
constant (`[?(@.type=="Ready")]`). What goes beyond is refused where the definition is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

_NAME = re.compile(r"\.((?:[^.\[\]\\'\"{}()\s]|\\.)+)")
_QUOTED = re.compile(r"\[\s*(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\")\s*\]")
_INDEX = re.compile(r"\[\s*(-?\d+)\s*\]")
_STAR_ITEMS = re.compile(r"\[\s*\*\s*\]")
_STAR = re.compile(r"\.\*")
_FILTER = re.compile(r"\[\?\(\s*@((?:\.(?:[^.\[\]\\\s=!<>]|\\.)+)*)\s*(==|!=)\s*([^)]*?)\s*\)\]")
_ESCAPED = re.compile(r"\\(.)")

Step = Callable[[Any], Iterator[Any]]


class JsonPathError(ValueError):
    """A path that cannot be read."""


@dataclass(frozen=True, slots=True)
class JsonPath:
    steps: tuple[Step, ...]

    def first(self, value: Any) -> tuple[Any] | None:
        """The first value that the path leads to, in a tuple, since it may be null."""
        found = next(self._walk(value, 0), _NOTHING)
        return None if found is _NOTHING else (found,)

    def _walk(self, value: Any, at: int) -> Iterator[Any]:
        if at == len(self.steps):
            yield value
            return
        for inner in self.steps[at](value):
            yield from self._walk(inner, at + 1)


_NOTHING = object()


def parse(text: str) -> JsonPath:
    """Reads a path such as `.spec.slots`."""
    steps: list[Step] = []
    position = 0
    while position < len(text):
        step, position = _step(text, position)
        steps.append(step)
    return JsonPath(tuple(steps))


def _step(text: str, position: int) -> tuple[Step, int]:
    for pattern, made in _READERS:
        if found := pattern.match(text, position):
            return made(found), found.end()
    raise JsonPathError(f"cannot read {text[position:]!r} in {text!r}")


def _named(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _indexed(index: int) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]

    return step


def _items(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        yield from value


def _every(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        yield from value
    elif isinstance(value, dict):
        yield from (value[key] for key in sorted(value))


def _filtered(path: str, operator: str, constant: str) -> Step:
    inner, wanted = parse(path), _constant(constant)

    def step(value: Any) -> Iterator[Any]:
        for entry in value if isinstance(value, list) else ():
            found = inner.first(entry)
            if found is not None and (found[0] == wanted) == (operator == "=="):
                yield entry

    return step


def _constant(text: str) -> Any:
    if len(text) > 1 and text[0] == text[-1] == "'":
        return _ESCAPED.sub(r"\1", text[1:-1])
    try:
        return json.loads(text)
    except ValueError as error:
        raise JsonPathError(f"cannot compare with {text!r}") from error


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)


_READERS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Step]], ...] = (
    (_STAR_ITEMS, lambda found: _items),
    (_STAR, lambda found: _every),
    (_NAME, lambda found: _named(_unescaped(found[1]))),
    (_QUOTED, lambda found: _named(_unescaped(found[1] if found[1] is not None else found[2]))),
    (_INDEX, lambda found: _indexed(int(found[1]))),
    (_FILTER, lambda found: _filtered(found[1], found[2], found[3])),
)
