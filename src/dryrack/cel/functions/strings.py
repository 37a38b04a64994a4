"""Functions on strings, and regular expressions as RE2 has them."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

import re2

from dryrack.cel.evaluation.values import TEXT_SIZE_MAX, Err, Value, too_large
from dryrack.cel.functions import formatting
from dryrack.cel.functions.arithmetic import lacking

if TYPE_CHECKING:
    from collections.abc import Callable

_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_UPPER = {value: key for key, value in _LOWER.items()}
# What Go calls white space; Python adds four separators of its own.
_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"  # noqa: E501


def _textual(holds: Callable[[str, str], bool]) -> Callable[[Value, Value], Value]:
    """These three have no guard before them and look at their arguments themselves."""

    def checked(text: Value, part: Value) -> Value:
        if type(text) is not str or type(part) is not str:
            return Err("no such overload")
        return holds(text, part)

    return checked


def _out_of_range(index: int) -> Err:
    return Err(f"index out of range: {index}")


def _char_at(text: str, index: int) -> Value:
    return text[index : index + 1] if 0 <= index <= len(text) else _out_of_range(index)


def _index_of(text: str, part: str, offset: int = 0) -> Value:
    if not part:
        return offset
    return text.find(part, offset) if offset >= 0 else _out_of_range(offset)


def _last_index_of(text: str, part: str) -> Value:
    if not part:
        return len(text)
    if len(text.encode()) < len(part.encode()):
        return -1
    return _last_index_before(text, part, len(text) - 1)


def _last_index_before(text: str, part: str, offset: int) -> Value:
    if not part:
        return offset
    if offset < 0:
        return _out_of_range(offset)
    if offset >= len(text):
        return -1
    return text.rfind(part, 0, offset + len(part))


def _last_index_within(text: str, part: str, offset: int) -> Value:
    if not part and offset >= 0:
        return min(offset, len(text))
    return _last_index_before(text, part, offset) if offset >= 0 else _out_of_range(offset)


def _substring(text: str, start: int, end: int | None = None) -> Value:
    stop = len(text) if end is None else end
    if end is not None and start > end:
        return Err(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, stop):
        if not 0 <= index <= len(text):
            return _out_of_range(index)
    return text[start:stop]


def _split(text: str, separator: str, limit: int = -1) -> Value:
    if limit == 0:
        return []
    if not separator:
        if limit < 0 or limit > len(text):
            return list(text)
        return [*text[: limit - 1], text[limit - 1 :]]
    return text.split(separator, limit - 1 if limit > 0 else -1)


def _join(parts: list[Value], separator: str = "") -> Value:
    for part in parts:
        if type(part) is not str:
            return Err(f"join: invalid input: {formatting.go_text(part)}")
    return separator.join(parts)


def _replace(text: str, old: str, new: str, limit: int = -1) -> Value:
    times = text.count(old) if limit < 0 else min(limit, text.count(old))
    if len(text) + times * (len(new) - len(old)) > TEXT_SIZE_MAX:
        return too_large("replace", TEXT_SIZE_MAX)
    return text.replace(old, new, times)


_QUOTED = str.maketrans({
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
    "\\": "\\\\", '"': '\\"',
})  # fmt: skip


# RE2 can match a single byte of a character; Go, where strings are bytes anyway, refuses it.
_ANY_BYTE = re.compile(r"(?<!\\)(?:\\\\)*\\C")


# Enough for every pattern that fits into an expression and that Go compiles.
_PATTERN_BYTES_MAX = 2**26


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _PATTERN_BYTES_MAX
    return options


_OPTIONS = _options()
# `re2.compile` copies all options for each pattern, which takes longer than to compile one.
_Pattern: Any = type(re2.compile(""))


@functools.lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Any:
    """Compile a pattern, or return an `Err` with the reason why it cannot be compiled."""
    if _ANY_BYTE.search(pattern):
        return Err("error parsing regexp: invalid escape sequence: `\\C`")
    try:
        return _Pattern(pattern, _OPTIONS)
    except re2.error as error:
        return Err(_refusal(error, pattern))


# RE2 and Go have the same syntax and different words for what is wrong with a pattern.
_REFUSALS = (
    ("missing ]", "missing closing ]: `{rest}`"),
    ("missing )", "missing closing ): `{pattern}`"),
    ("unexpected )", "unexpected ): `{pattern}`"),
    ("no argument for repetition operator", "missing argument to repetition operator: `{rest}`"),
    ("bad repetition operator", "invalid nested repetition operator: `{rest}`"),
    ("invalid repetition size", "invalid repeat count: `{rest}`"),
    ("invalid character class range", "invalid character class range: `{rest}`"),
    ("invalid escape sequence", "invalid escape sequence: `{rest}`"),
    ("trailing \\", "trailing backslash at end of expression: ``"),
    ("invalid perl operator", "invalid or unsupported Perl syntax: `{rest}`"),
    ("invalid named capture group", "invalid named capture: `{rest}`"),
)


def _refusal(error: Exception, pattern: str) -> str:
    raw = error.args[0]
    text = raw.decode(errors="replace") if isinstance(raw, bytes) else str(raw)
    what, _, rest = text.partition(": ")
    for theirs, ours in _REFUSALS:
        if what == theirs:
            return f"error parsing regexp: {ours.format(rest=rest, pattern=pattern)}"
    return f"error parsing regexp: {text}"


def matches(text: Value, pattern: Value) -> Value:
    if type(text) is not str:
        return lacking("matches", text)
    if type(pattern) is not str:
        return Err("no such overload")
    compiled = compile_pattern(pattern)
    return compiled if isinstance(compiled, Err) else compiled.search(text) is not None


class PatternMemo(dict[str, bool]):
    """
    A memory of which texts match a pattern.

    Few texts are matched against a pattern, each on very many devices; a lookup is a tenth of
    a match. What is not a text raises.
    """

    TEXTS_MAX = 10_000

    def __init__(self, compiled: Any) -> None:
        super().__init__()
        self._search = compiled.search

    def __missing__(self, text: str) -> bool:
        if type(text) is not str:
            raise TypeError("only strings can match")
        if len(self) >= self.TEXTS_MAX:
            self.clear()
        self[text] = matched = self._search(text) is not None
        return matched


def search_first(compiled: Any, text: Value) -> Value:
    if type(text) is not str:
        return Err("no such overload")
    match = compiled.search(text)
    return match.group(0) if match else ""


def search_all(compiled: Any, text: Value, limit: Value = -1) -> Value:
    """All matches as Go finds them: no empty match directly after another match."""
    if type(text) is not str or type(limit) is not int:
        return Err("no such overload")
    return list(_all_matches(compiled, text, limit))


@functools.lru_cache(maxsize=64)
def _all_matches(compiled: Any, text: str, limit: int) -> tuple[str, ...]:
    found: list[str] = []
    previous_end = -1
    # Where a character is a byte, positions need not be worked out for each match.
    for match in compiled.finditer(text.encode() if text.isascii() else text):
        if 0 <= limit <= len(found):
            break
        start, end = match.span()
        if start != end or start != previous_end:
            found.append(text[start:end])
        previous_end = end
    return tuple(found)


def _find(text: str, pattern: str) -> Value:
    compiled = compile_pattern(pattern)
    if isinstance(compiled, Err):
        return Err(f"Illegal regex: {compiled.message}")
    return search_first(compiled, text)


def _find_all(text: str, pattern: str, limit: int = -1) -> Value:
    compiled = compile_pattern(pattern)
    if isinstance(compiled, Err):
        return Err(f"Illegal regex: {compiled.message}")
    return search_all(compiled, text, limit)


OVERLOADS: dict[str, Callable[..., Value]] = {
    "contains_string": _textual(lambda text, part: part in text),
    **dict.fromkeys(
        ("starts_with_string", "starts_with_string_by_argument"),
        _textual(lambda text, part: text.startswith(part)),
    ),
    **dict.fromkeys(
        ("ends_with_string", "ends_with_string_by_argument"),
        _textual(lambda text, part: text.endswith(part)),
    ),
    "string_char_at_int": _char_at,
    "string_index_of_string": _index_of,
    "string_index_of_string_int": _index_of,
    "string_last_index_of_string": _last_index_of,
    "string_last_index_of_string_int": _last_index_before,
    "string_last_index_within": _last_index_within,
    "string_lower_ascii": lambda text: text.translate(_LOWER),
    "string_upper_ascii": lambda text: text.translate(_UPPER),
    "string_replace_string_string": _replace,
    "string_replace_string_string_int": _replace,
    "string_split_string": _split,
    "string_split_string_int": _split,
    "string_substring_int": _substring,
    "string_substring_int_int": _substring,
    "string_trim": lambda text: text.strip(_SPACE),
    "string_format": formatting.format_string,
    "strings_quote": lambda text: f'"{text.translate(_QUOTED)}"',
    "list_join": _join,
    "list_join_string": _join,
    "string_find_string": _find,
    "string_find_all_string": _find_all,
    "string_find_all_string_int": _find_all,
}

FUNCTIONS: dict[str, Callable[..., Value]] = {"matches": matches}
