r"""
The JSONPath of printer columns and selectable fields, as client-go reads it.

Names, also with escaped dots (`.metadata.labels.example\.com/x`), indices and slices, unions,
`*`, `..`, and filters (`[?(@.type=="Ready")]`). The text is scanned once, from left to right; the
errors are those of client-go. Evaluating visits a limited number of values, because `..` and
unions multiply them.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

# A column leads to one value over a few others. Go on a path like `..*..*..*` does not end.
VALUES_MAX = 10_000
_INT64 = range(-(2**63), 2**63)
_INT64_TEXT_MAX = 20
# A filter in the quotes of a filter in the quotes of a filter is as deep as quotes allow.
_DEPTH_MAX = 8

_NAME = re.compile(r"(?:[^ \t\r\n.,\[\]$@{}\\]++|\\.?)*+", re.DOTALL)
_WORD = re.compile(r"[^ \t\r\n.,\[\]$@{}]*+")
_NUMBER = re.compile(r"[+-]?+[0-9.]*+")
_ARRAY_END = re.compile(r"[\]\n]")
_QUOTE_MARK = re.compile(r"[\"'\n]")
_FILTER_MARK = re.compile(r"[\"')\n]")
_SLICE = re.compile(r"(-?+[0-9]*+)(:-?+[0-9]*+)?(:-?+[0-9]*+)?")
_COMPARISON = re.compile(r"([^!<>=]++)([!<>=]+)(.+)", re.DOTALL)
_ESCAPE = re.compile(
    r"\\(?:([abfnrtv\\'\"])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3}))|(\\)"
)
_LETTERS = {
    **dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True)),
    **{each: each for each in "\\'\""},
}

Values = list[Any]
Step = Callable[[Values], Values]


class JsonPathError(ValueError):
    """A path that cannot be read; the message is client-go's."""


class _NoAnswerError(Exception):
    """The path does not fit the value, or visits too many values."""


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A path that was read."""

    steps: tuple[Step, ...]

    def first(self, value: Any) -> tuple[Any] | None:
        """Return the first value that the path leads to, in a tuple, since it may be null."""
        try:
            values = _follow(self.steps, [value])
        except _NoAnswerError:
            return None
        return (values[0],) if values else None


def parse_json_path(text: str) -> JsonPath:
    """Read a path such as `.spec.slots`, or raise `JsonPathError`."""
    return JsonPath(tuple(_actions(text, 0)))


def _follow(steps: tuple[Step, ...] | list[Step], values: Values) -> Values:
    visited = 0
    for step in steps:
        values = step(values)
        visited += 1 + len(values)
        if visited > VALUES_MAX:
            raise _NoAnswerError
    return values


def _actions(inner: str, depth: int) -> list[Step]:
    """Return the steps of the first action in `{inner}`; the others are read for their errors."""
    if depth > _DEPTH_MAX:
        raise JsonPathError("filters are nested too deeply")
    text = f"{{{inner}}}"
    actions: list[list[Step]] = []
    start = 0
    while start >= 0:
        steps, end = _Reader(text, start + 1, depth).read()
        actions.append(steps)
        start = text.find("{", end)
    return actions[0]


class _Reader:
    """Reads one action from left to right."""

    def __init__(self, text: str, position: int, depth: int) -> None:
        self.text = text
        self.position = position
        self.depth = depth
        self.steps: list[Step] = []
        self.is_after_descent = False

    def read(self) -> tuple[list[Step], int]:
        """Return the steps, and where the action ends."""
        while True:
            rest = self.text[self.position : self.position + 3]
            if not rest or rest[0] in "\r\n":
                raise JsonPathError("unclosed action")
            if rest[0] == "}":
                return self.steps, self.position + 1
            if rest[0] in " @$":
                self.position += 1
            else:
                was_after_descent = self.is_after_descent
                self.is_after_descent = False
                self._read_node(rest, is_after_descent=was_after_descent)

    def _read_node(self, rest: str, *, is_after_descent: bool) -> None:
        first = rest[0]
        if rest == "[?(":
            self._read_filter()
        elif rest[:2] == "..":
            if is_after_descent:
                raise JsonPathError("invalid multiple recursive descent")
            self.position += 2
            self.steps.append(_descend)
            if _is_word(self.text[self.position : self.position + 1]):
                self._read_field()
            else:
                self.is_after_descent = True
        elif first == "[":
            self._read_array()
        elif first in "\"'":
            self._read_quote(first)
        elif first == ".":
            self.position += 1
            self._read_field()
        elif first in "+-" or first.isdecimal():
            self._read_number()
        elif _is_word(first):
            name = self._take(_WORD)
            if name in ("true", "false"):
                self.steps.append(partial(_constant, name == "true"))
            else:
                # `range` and `end` are for templates.
                self.steps.append(_refuse)
        else:
            sign = f"U+{ord(first):04X} '{first}'"
            raise JsonPathError(f"unrecognized character in action: {sign}")

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.position)
        assert match is not None, "each of these patterns matches nothing, too"
        self.position = match.end()
        return match[0]

    def _read_field(self) -> None:
        name = self._take(_NAME)
        # A backslash takes what follows, also the end of the action.
        self.steps.append(_every if name == "*" else partial(_field, name.replace("\\", "")))

    def _read_number(self) -> None:
        text = self._take(_NUMBER)
        value = _integer(text)
        if value is None:
            try:
                self.steps.append(partial(_constant, float(text)))
            except ValueError:
                raise JsonPathError(f"cannot parse number {text}") from None
        else:
            self.steps.append(partial(_constant, value))

    def _read_quote(self, quote: str) -> None:
        end = self.position
        while True:
            mark = _QUOTE_MARK.search(self.text, end + 1)
            if mark is None or mark[0] == "\n":
                raise JsonPathError("unterminated quoted string")
            end = mark.start()
            if mark[0] == quote and self.text[end - 1] != "\\":
                break
        value = self.text[self.position : end + 1]
        self.position = end + 1
        self.steps.append(partial(_text, _unquoted(value)))

    def _read_array(self) -> None:
        end = _ARRAY_END.search(self.text, self.position)
        if end is None or end[0] == "\n":
            raise JsonPathError("unterminated array")
        inner = self.text[self.position + 1 : end.start()]
        self.position = end.end()
        inner = ":" if inner == "*" else inner
        parts = inner.split(",")
        if len(parts) > 1:
            union = [tuple(_actions(f"[{each.strip(' ')}]", self.depth + 1)) for each in parts]
            self.steps.append(partial(_union, union))
        elif len(inner) > 1 and inner[0] == inner[-1] == "'" and "'" not in inner[1:-1]:
            self.steps += _actions(f".{inner[1:-1]}", self.depth + 1)
        else:
            self.steps.append(partial(_slice, *_bounds(inner)))

    def _read_filter(self) -> None:
        start = self.position = self.position + 3
        opening = ""
        is_closed = False
        while True:
            mark = _FILTER_MARK.search(self.text, self.position)
            if mark is None or mark[0] == "\n":
                raise JsonPathError("unterminated filter")
            self.position = mark.end()
            if mark[0] == ")":
                if bool(opening) == is_closed:
                    break
            elif not opening:
                opening = mark[0]
            elif mark[0] == opening and self.text[mark.start() - 1] != "\\":
                is_closed = True
        inner = self.text[start : self.position - 1]
        if self.text[self.position : self.position + 1] != "]":
            raise JsonPathError("unclosed array expect ]")
        self.position += 1
        compared = _COMPARISON.fullmatch(inner)
        if compared is None:
            self.steps.append(partial(_filter_existing, _actions(inner, self.depth + 1)))
        else:
            left, right = (_actions(compared[each], self.depth + 1) for each in (1, 3))
            self.steps.append(partial(_filter, left, right, compared[2]))


def _is_word(sign: str) -> bool:
    return sign == "_" or sign.isalpha() or sign.isdecimal()


def _integer(text: str) -> int | None:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isdigit() or len(digits.lstrip("0")) > _INT64_TEXT_MAX:
        return None
    value = int(digits.lstrip("0") or "0") * (-1 if text[0] == "-" else 1)
    return value if value in _INT64 else None


def _unquoted(text: str) -> str:
    quote = text[0]
    inner = text[1:-1]
    if "\\" not in inner and quote not in inner:
        return inner

    def replace(found: re.Match[str]) -> str:
        letter, *codes, octal, lone = found.groups()
        if lone or (letter in ("'", '"') and letter != quote):
            raise JsonPathError(f"unquote string {text} error invalid syntax")
        code = int(octal, 8) if octal else int(next(filter(None, codes), "0"), 16)
        if code > 0x10FFFF or (octal and code > 0xFF):
            raise JsonPathError(f"unquote string {text} error invalid syntax")
        return _LETTERS[letter] if letter else chr(code)

    return _ESCAPE.sub(replace, inner)


def _bounds(inner: str) -> tuple[int | None, int | None, int | None, bool]:
    """Return begin, end and step of a slice, and whether the end follows from the begin."""
    match = _SLICE.fullmatch(inner)
    if match is None:
        raise JsonPathError(f"invalid array index {inner}")
    begin, end, step = (None if each is None else each.removeprefix(":") for each in match.groups())
    numbers = [_index(each) if each else None for each in (begin, end, step)]
    if end is None:
        return numbers[0], (numbers[0] or 0) + 1, numbers[2], True
    return numbers[0], numbers[1], numbers[2], False


def _index(text: str) -> int:
    number = _integer(text)
    if number is None:
        raise JsonPathError(f"array index {text} is not a number")
    return number


def _field(name: str, values: Values) -> Values:
    return [each[name] for each in values if isinstance(each, dict) and name in each]


def _text(text: str, values: Values) -> Values:
    return [text]


def _constant(value: float, values: Values) -> Values:
    return [value] * len(values)


def _refuse(values: Values) -> Values:
    raise _NoAnswerError


def _children(value: Any) -> Values:
    if isinstance(value, dict):
        return [value[key] for key in sorted(value)]
    return value if isinstance(value, list) else []


def _every(values: Values) -> Values:
    return [each for value in values for each in _children(value)]


def _descend(values: Values) -> Values:
    results: Values = []
    waiting = values[::-1]
    while waiting:
        value = waiting.pop()
        children = _children(value)
        if children:
            results.append(value)
            waiting += reversed(children)
        if len(results) > VALUES_MAX:
            raise _NoAnswerError
    return results


def _slice(
    begin: int | None, end: int | None, step: int | None, is_derived: bool, values: Values
) -> Values:
    results: Values = []
    for value in values:
        if value is None:
            continue
        if not isinstance(value, list):
            raise _NoAnswerError
        size = len(value)
        start = (begin or 0) + (size if (begin or 0) < 0 else 0)
        stop = size if end is None else end
        stop += size if stop < 0 or (stop == 0 and is_derived) else 0
        if start == stop:
            return results
        if not (0 <= start < size and start < stop <= size) or (step is not None and step <= 0):
            raise _NoAnswerError
        results += value[start : stop : step or 1]
    return results


def _union(paths: list[tuple[Step, ...]], values: Values) -> Values:
    results: Values = []
    for path in paths:
        results += _follow(path, values)
        if len(results) > VALUES_MAX:
            raise _NoAnswerError
    return results


def _filter_existing(path: list[Step], values: Values) -> Values:
    return [each for each in _entries(values) if _exists(path, each)]


def _exists(path: list[Step], value: Any) -> bool:
    try:
        return bool(_follow(path, [value]))
    except _NoAnswerError:
        return False


def _filter(left: list[Step], right: list[Step], sign: str, values: Values) -> Values:
    results: Values = []
    for each in _entries(values):
        lefts = _follow(left, [each])
        rights = _follow(right, [each])
        if len(lefts) > 1 or len(rights) > 1:
            raise _NoAnswerError
        if lefts and rights and _compare(lefts[0], rights[0], sign):
            results.append(each)
    return results


def _entries(values: Values) -> Values:
    if not all(isinstance(each, list) for each in values):
        raise _NoAnswerError
    return [each for value in values for each in value]


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


def _compare(left: Any, right: Any, sign: str) -> bool:
    """Compare as Go's templates do: values of the same kind alone, and truth has no order."""
    is_ordered = not isinstance(left, bool) or sign in ("==", "!=")
    if type(left) is not type(right) or not isinstance(left, bool | int | float | str):
        raise _NoAnswerError
    if sign not in _COMPARISONS or not is_ordered:
        raise _NoAnswerError
    return _COMPARISONS[sign](left, right)
