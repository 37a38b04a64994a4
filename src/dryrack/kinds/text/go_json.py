"""
What Go says about text that is no JSON.

Clients see these sentences in refusals, so they are made here as Go's scanner makes them: it
reads byte by byte and complains about the first one that cannot be.
"""

from __future__ import annotations

import re
from typing import Any

_DIGITS = b"0123456789"
_SPACE = b" \t\r\n"
_DEPTH_MAX = 10_000
_LITERALS = {ord("t"): b"true", ord("f"): b"false", ord("n"): b"null"}
_string = re.compile(rb'[^"\\\x00-\x1f]*').match
_END = "unexpected end of JSON input"


class GoSyntaxError(ValueError):
    """The text is Go's."""


class YamlError(GoSyntaxError):
    """YAML that is none; said without looking for JSON in it."""


def syntax_error(data: bytes) -> str:
    """The complaint about a text; "" if there is none."""
    try:
        _Scanner(data).document()
    except GoSyntaxError as error:
        return str(error)
    return ""


def type_name(value: Any) -> str:
    """What Go's decoder calls the type of a JSON value."""
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list() | tuple():
            return "array"
        case _:
            return "object"


class _Scanner:
    """A stack machine, so that depth costs memory and not frames."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.open: list[int] = []

    def document(self) -> None:
        self._value()
        while self.open:
            self._after_element()
        self._skip()
        if self.at < len(self.data):
            self._refuse("after top-level value")

    def _value(self) -> None:
        """Reads a scalar whole, or opens an object or array and reads up to its first value."""
        while True:
            char = self._next()
            if char == ord("{"):
                if not self._opens(b"{", b"}"):
                    return
                self._key()
            elif char == ord("["):
                if not self._opens(b"[", b"]"):
                    return
            else:
                self._scalar(char)
                return

    def _opens(self, opening: bytes, closing: bytes) -> bool:
        self.at += 1
        if self._next() == closing[0]:
            self.at += 1
            return False
        self.open.append(opening[0])
        if len(self.open) > _DEPTH_MAX:
            raise GoSyntaxError("exceeded max depth")
        return True

    def _after_element(self) -> None:
        char, in_object = self._next(), self.open[-1] == ord("{")
        if char == ord(","):
            self.at += 1
            if in_object:
                self._key()
            self._value()
        elif char == (ord("}") if in_object else ord("]")):
            self.at += 1
            self.open.pop()
        else:
            self._refuse("after object key:value pair" if in_object else "after array element")

    def _key(self) -> None:
        if self._next() != ord('"'):
            self._refuse("looking for beginning of object key string")
        self._text()
        if self._next() != ord(":"):
            self._refuse("after object key")
        self.at += 1

    def _scalar(self, char: int) -> None:
        if char == ord('"'):
            self._text()
        elif char in _LITERALS:
            self._literal(_LITERALS[char])
        elif char == ord("-") or char in _DIGITS:
            self._number()
        else:
            self._refuse("looking for beginning of value")

    def _literal(self, word: bytes) -> None:
        for expected in word:
            if self._peek() != expected:
                detail = f"in literal {word.decode()} (expecting {chr(expected)!r})"
                self._refuse(detail)
            self.at += 1

    def _number(self) -> None:
        if self._peek() == ord("-"):
            self.at += 1
            self._digit("in numeric literal")
        if self.data[self.at] == ord("0"):
            self.at += 1
        else:
            self._digits()
        if self._is(b"."):
            self.at += 1
            self._digit("after decimal point in numeric literal")
            self._digits()
        if self._is(b"eE"):
            self.at += 1
            if self._is(b"+-"):
                self.at += 1
            self._digit("in exponent of numeric literal")
            self._digits()

    def _digit(self, context: str) -> None:
        if self._peek() not in _DIGITS:
            self._refuse(context)

    def _digits(self) -> None:
        while self._is(_DIGITS):
            self.at += 1

    def _text(self) -> None:
        self.at += 1
        while True:
            found = _string(self.data, self.at)
            self.at = found.end() if found else self.at
            char = self._peek()
            if char == ord('"'):
                self.at += 1
                return
            if char != ord("\\"):
                self._refuse("in string literal")
            self.at += 1
            self._escape()

    def _escape(self) -> None:
        char = self._peek()
        if char == ord("u"):
            for _ in range(4):
                self.at += 1
                if chr(self._peek()) not in "0123456789abcdefABCDEF":
                    self._refuse("in \\u hexadecimal character escape")
        elif chr(char) not in 'bfnrt\\/"':
            self._refuse("in string escape code")
        self.at += 1

    def _is(self, chars: bytes) -> bool:
        return self.at < len(self.data) and self.data[self.at] in chars

    def _skip(self) -> None:
        while self.at < len(self.data) and self.data[self.at] in _SPACE:
            self.at += 1

    def _next(self) -> int:
        self._skip()
        return self._peek()

    def _peek(self) -> int:
        if self.at >= len(self.data):
            raise GoSyntaxError(_END)
        return self.data[self.at]

    def _refuse(self, context: str) -> None:
        shown = _quoted(self.data[self.at])
        raise GoSyntaxError(f"invalid character {shown} {context}")


_NAMED = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r"}


def _quoted(byte: int) -> str:
    """A byte as the scanner quotes it: as the character of that number."""
    char = chr(byte)
    if char == "'":
        return "'\\''"
    if char == '"':
        return "'\"'"
    if byte in _NAMED:
        return f"'{_NAMED[byte]}'"
    if char == "\\":
        return "'\\\\'"
    if char.isprintable():
        return f"'{char}'"
    return f"'\\x{byte:02x}'" if byte < 0x80 else f"'\\u{byte:04x}'"
