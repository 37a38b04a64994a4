"""
Parse JSON text, and find the place of a value in it on request.

A file may hold several JSON documents one after the other, as kubectl allows. Values are read
by the compiled decoder, which knows no lines; a place is found afterwards by walking to it.
Half a character (`\\ud800` without its other half) reads as U+FFFD, as it does in Go.
"""

import json
import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dryrack.kinds.scalars import ScalarError, json_value
from dryrack.kinds.shape import Path
from dryrack.kinds.text.parsed import DEPTH_MAX, Fault, Parsed, RepeatedKey
from dryrack.kinds.text.source_positions import Place

_SPACE = " \t\n\r"
_LINE_END = re.compile("\n")
_HALF = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class NotJson(Fault):
    """A document that is not JSON, and the end of the previous one."""

    after: int = 0


class _RepeatedKeyError(ValueError):
    pass


def looks_like_json(text: str) -> bool:
    """Return whether the text begins like JSON, which a YAML flow mapping also does."""
    return text.lstrip(_SPACE).startswith("{")


def documents(text: str) -> Iterator[Parsed | Fault]:
    """Yield every document up to the first fault."""
    after = 0
    lines = _Lines(text)
    while (offset := _skip(text, after)) < len(text):
        try:
            value, end = _DECODER.raw_decode(text, offset)
        except _RepeatedKeyError:
            yield _repeated_key(text, offset)
            return
        except (ValueError, RecursionError) as error:
            yield _fault(text, offset, error, after=after)
            return
        if isinstance(value, dict | list) and _is_too_deep(value):
            yield _fault(text, offset, RecursionError(), after=after)
            return
        tree = LazyTree(text, offset, lines)
        yield Parsed(_replace_surrogates(value, text), tree, span=(offset, end))
        after = end


class LazyTree:
    """
    The places of a JSON document, found when asked for.

    A list of ten thousand objects is walked once, however many places in it are asked for.
    """

    def __init__(self, text: str, start: int, lines: "_Lines") -> None:
        self._text = text
        self._start = start
        self._lines = lines
        self._walked: dict[int, dict[str, tuple[int, int]]] = {}

    def locate(self, path: Path) -> Place:
        """Return the place of the value at the path, or of its nearest existing parent."""
        offset = at = self._start
        for step in path:
            found = self._children_at(offset).get(str(step))
            if found is None:
                break
            at, offset = found
        return self._lines.place_at(at)

    def _children_at(self, offset: int) -> dict[str, tuple[int, int]]:
        """Return the place and the begin of the value of each child, by key or index."""
        if offset not in self._walked:
            self._walked[offset] = {
                str(index) if key is None else key: (at, value)
                for index, (key, at, value) in enumerate(_children(self._text, offset))
            }
        return self._walked[offset]


class _Lines:
    """The lines of a text, shared by its documents and counted on the first use."""

    def __init__(self, text: str) -> None:
        self._text = text

    def place_at(self, offset: int) -> Place:
        line = bisect_left(self._ends, offset)
        return Place(line + 1, offset - (self._ends[line - 1] if line else -1))

    @cached_property
    def _ends(self) -> list[int]:
        return [found.start() for found in _LINE_END.finditer(self._text)]


def place_at(text: str, offset: int) -> Place:
    """Return the line and column of an offset."""
    return Place(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


def _children(text: str, offset: int) -> Iterator[tuple[str | None, int, int]]:
    """Yield key (for an object), place and value offset of each child of the value."""
    opening = text[offset : offset + 1]
    if opening not in ("{", "["):
        return
    offset = _skip(text, offset + 1)
    while text[offset] not in "}]":
        at = offset
        key = None
        if opening == "{":
            key, offset = _PLAIN_DECODER.raw_decode(text, offset)
            offset = _skip(text, _skip(text, offset) + 1)
        yield key, at, offset
        offset = _skip(text, _PLAIN_DECODER.raw_decode(text, offset)[1])
        if text[offset] == ",":
            offset = _skip(text, offset + 1)


def _repeated_key(text: str, offset: int) -> Fault:
    """Return the fault of the first repeated key."""
    seen: dict[str, int] = {}
    for key, at, value in _children(text, offset):
        if key is not None and key in seen:
            first = place_at(text, seen[key]).line
            message = f"the key {key!r} appears twice; the first is in line {first}"
            return RepeatedKey(place_at(text, at), message, "remove one of the two")
        if key is not None:
            seen[key] = at
        try:
            _DECODER.raw_decode(text, value)
        except _RepeatedKeyError:
            return _repeated_key(text, value)
    raise AssertionError("a repeated key that cannot be found again")


def _fault(text: str, offset: int, error: Exception, *, after: int) -> Fault:
    if isinstance(error, json.JSONDecodeError):
        return NotJson(place_at(text, error.pos), f"not JSON: {error.msg}", after=after)
    if isinstance(error, RecursionError):
        message = f"nested more than {DEPTH_MAX} levels deep"
        return NotJson(place_at(text, offset), message, after=after)
    fix = error.fix if isinstance(error, ScalarError) else ""
    place = place_at(text, _meaningless(text, offset))
    return NotJson(place, str(error), fix, after=after)


def _meaningless(text: str, offset: int) -> int:
    """Return the offset of the first number that JSON does not allow."""
    for _, _, value in _children(text, offset):
        try:
            _DECODER.raw_decode(text, value)
        except ScalarError:
            return _meaningless(text, value)
    return offset


def _is_too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEPTH_MAX + 1):
        opened = [each.values() if isinstance(each, dict) else each for each in level]
        level = [child for each in opened for child in each if isinstance(child, dict | list)]
        if not level:
            return False
    return True


def _replace_surrogates(value: Any, text: str) -> Any:
    """Return the value without lone surrogates, which only escapes can write."""
    return _whole(value) if "\\ud" in text or "\\uD" in text else value


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return _HALF.sub("\ufffd", value)
    if isinstance(value, list):
        return [_whole(each) for each in value]
    if isinstance(value, dict):
        return {_whole(key): _whole(each) for key, each in value.items()}
    return value


def _skip(text: str, offset: int) -> int:
    while text[offset : offset + 1] in tuple(_SPACE):
        offset += 1
    return offset


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _RepeatedKeyError
    return value


def _float(text: str) -> Any:
    return json_value(float(text))


def _integer(text: str) -> Any:
    # Longer than any number of Kubernetes; Python refuses to convert it.
    return int(text) if len(text) < 1000 else _float(text)


def _constant(text: str) -> Any:
    raise ScalarError(f"{text} is not JSON", "write it in quotes")


# Only finds the ends of values, in text that was parsed before.
_PLAIN_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)
_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_float, parse_int=_integer, parse_constant=_constant
)
