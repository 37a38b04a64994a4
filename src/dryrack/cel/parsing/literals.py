"""
The values of literals.

Strings are unescaped code point by code point; in bytes, `\\x` and octal escapes stand for one
byte each and `\\u` has no meaning. All line ends read as `\\n`.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from dryrack.cel.parsing.ast import Constant, Uint

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# The lexer has seen to it that every escape is complete.
_ESCAPE = re.compile(
    r"\\[xX](?P<x>.{2})|\\u(?P<u>.{4})|\\U(?P<U>.{8})|\\(?P<octal>[0-3]..)|\\(?P<one>.)"
)
_NAMED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}

INT_MIN = -(2**63)
INT_MAX = 2**63 - 1
UINT_MAX = 2**64 - 1
_SURROGATES = range(0xD800, 0xE000)
_CODE_POINT_MAX = 0x10FFFF


class LiteralError(ValueError):
    """The literal is well formed as a token but has no value."""


def read_int(text: str) -> int:
    """Read an optionally signed decimal or hexadecimal int."""
    value = _read_integer(text)
    if not INT_MIN <= value <= INT_MAX:
        raise LiteralError("invalid int literal")
    return value


def read_uint(text: str) -> int:
    """Read an unsigned literal with its `u`."""
    value = _read_integer(text[:-1])
    if value > UINT_MAX:
        raise LiteralError("invalid uint literal")
    return value


def _read_integer(text: str) -> int:
    # Python refuses to read very long decimals; none of them is in range anyway.
    digits = text.lstrip("-")
    if len(digits.removeprefix("0x").lstrip("0")) > 20:
        return UINT_MAX + 1
    value = int(digits, 16 if digits.startswith("0x") else 10)
    return -value if text.startswith("-") else value


def read_double(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise LiteralError("invalid double literal")
    return value


def read_string(text: str) -> str:
    body, raw = _unquote(text)
    return body if raw else _ESCAPE.sub(_code_point, body)


def read_bytes(text: str) -> bytes:
    body, raw = _unquote(text[1:])
    if raw:
        return body.encode()
    parts: list[bytes] = []
    end = 0
    for escape in _ESCAPE.finditer(body):
        parts += (body[end : escape.start()].encode(), _byte(escape))
        end = escape.end()
    return b"".join((*parts, body[end:].encode()))


def _unquote(text: str) -> tuple[str, bool]:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    raw = text[0] in "rR"
    quoted = text[1:] if raw else text
    width = 3 if len(quoted) >= 6 and quoted[:3] in ('"""', "'''") else 1
    return quoted[width:-width], raw


def _code_point(escape: re.Match[str]) -> str:
    if escape["one"] is not None:
        return _NAMED.get(escape["one"], escape["one"])
    value = _number(escape)
    if value > _CODE_POINT_MAX or value in _SURROGATES:
        raise LiteralError("invalid unicode code point")
    return chr(value)


def _byte(escape: re.Match[str]) -> bytes:
    if escape["one"] is not None:
        return _NAMED.get(escape["one"], escape["one"]).encode()
    if escape["u"] is not None or escape["U"] is not None:
        raise LiteralError("unable to unescape string")
    return bytes([_number(escape)])


def _number(escape: re.Match[str]) -> int:
    if escape["octal"] is not None:
        return int(escape["octal"], 8)
    return int(escape["x"] or escape["u"] or escape["U"], 16)


def _uint(text: str) -> Uint:
    return Uint(read_uint(text))


_CONSTANTS: Mapping[str, Constant] = {"true": True, "false": False, "null": None}
# By the kind of token.
READERS: Mapping[str, Callable[[str], Constant]] = {
    "int": read_int,
    "uint": _uint,
    "float": read_double,
    "string": read_string,
    "bytes": read_bytes,
    **dict.fromkeys(_CONSTANTS, _CONSTANTS.__getitem__),
}
