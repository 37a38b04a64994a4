"""
Values of unquoted words in YAML.

kubectl turns YAML into JSON before anything else looks at it, with the YAML 1.1 rules of
go-yaml v2: `on` is true, `017` is fifteen, `1_000` is a thousand, `1e3` is 1000, and a date is
a string. The meaning here is the same, so a file means the same to us and to the cluster.
"""

import base64
import math
import re
import struct
from decimal import Decimal
from typing import TypeAlias

from dryrack.kinds.quantity import INT64_MAX, INT64_MIN, number_text

Plain: TypeAlias = str | int | float | bool | None

_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(
        ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True
    ),
    **dict.fromkeys(
        ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False
    ),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
}
_NOT_NUMBERS = {
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
# Most words in a manifest begin with none of these and need no closer look.
_SUSPECT = frozenset("yYnNtTfFoO~.+-0123456789")
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_GROUPED = re.compile(r"\.[0-9]+(_[0-9]+)*([eE][-+]?[0-9]+(_[0-9]+)*)?")
_UINT64_MAX = 2**64 - 1
# No number of Kubernetes is longer; Python's own limit on digits would raise further up.
_NUMBER_LENGTH_MAX = 1000

_TAG = "tag:yaml.org,2002:"

# Digits that identify any 32-bit float, and the exponents that Go writes without a power.
_FLOAT32_DIGITS = 9
_PLAIN_EXPONENTS = (-4, 6)


class ScalarError(ValueError):
    """A word that contradicts its tag, or that JSON has no value for; and what would help."""

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.fix = fix


def plain(text: str) -> Plain:
    """Return the value of an unquoted word."""
    if text and text[0] not in _SUSPECT:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if text in _NOT_NUMBERS:
        return _NOT_NUMBERS[text]
    if text[0] not in "+-.0123456789" or len(text) > _NUMBER_LENGTH_MAX:
        return text
    # After a point an underscore may only stand between digits; elsewhere it is ignored.
    grouped = text[0] != "." or _GROUPED.fullmatch(text)
    return _number(text, text.replace("_", "") if grouped else text)


def tagged(text: str, tag: str) -> Plain:
    """Return the value of a word with a tag, such as `!!str 5`."""
    kind = tag.removeprefix(_TAG)
    if kind == "binary":
        return _binary(text)
    if kind not in ("int", "float", "bool", "null"):
        return text
    value = plain(text)
    if kind == "float" and isinstance(value, int) and not isinstance(value, bool):
        return value
    if _kind(value) != kind:
        raise ScalarError(f"cannot decode !!{_kind(value)} `{text}` as a !!{kind}")
    return value


def key(value: Plain) -> str:
    """Return the JSON key for a key of YAML."""
    match value:
        case None:
            raise ScalarError("a key may not be null", "give it a name, in quotes if need be")
        case bool():
            return "true" if value else "false"
        case int() if value > INT64_MAX:
            raise ScalarError(f"the number {value} is too large for a key", "put it in quotes")
        case int():
            return str(value)
        case float():
            return _float_key(value)
        case str():
            return value


def _float_key(value: float) -> str:
    """A number with a fraction as a key: what is left of it in 32 bits, as Go writes that."""
    short = _in_32_bits(value)
    if not math.isfinite(short):
        return ".nan" if math.isnan(short) else f"{'-' if short < 0 else ''}.inf"
    written = (f"{short:.{digits}e}" for digits in range(_FLOAT32_DIGITS))
    shortest = next(each for each in written if _in_32_bits(float(each)) == short)
    mantissa, _, exponent = shortest.partition("e")
    if _PLAIN_EXPONENTS[0] <= int(exponent) < _PLAIN_EXPONENTS[1]:
        return f"{Decimal(shortest):f}"
    return f"{mantissa}e{int(exponent):+03d}"


def _in_32_bits(value: float) -> float:
    try:
        (short,) = struct.unpack("f", struct.pack("f", value))
    except OverflowError:
        return math.copysign(math.inf, value)
    return float(short)


def json_value(value: Plain) -> Plain:
    """The value after the way through JSON: a float without a fraction is an integer."""
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        raise ScalarError(f"{value} is not a number that JSON can hold", "write it in quotes")
    text = number_text(value)
    return value if "." in text or "e" in text else int(text)


def _number(text: str, digits: str) -> Plain:
    integer = _INTEGER.fullmatch(digits)
    if integer and digits[0] != ".":
        value = _integer(*integer.groups())
        # Only a decimal that is too long for an integer has a second chance, as a float.
        if value is not None:
            return value
    if _FLOAT.fullmatch(digits):
        number = float(digits)
        return number if math.isfinite(number) else text
    return text


def _integer(
    sign: str, hexadecimal: str | None, binary: str | None, octal: str | None, decimal: str | None
) -> int | None:
    for digits, base in ((hexadecimal, 16), (binary, 2), (octal, 8), (decimal, 10)):
        if digits is not None:
            value = int(digits, base)
            fits = value <= (_UINT64_MAX if not sign else -INT64_MIN - (sign == "+"))
            return (-value if sign == "-" else value) if fits else None
    return None


def _binary(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode()
    except ValueError:
        raise ScalarError("!!binary must be base64 of UTF-8 text") from None


def _kind(value: Plain) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int():
            return "int"
        case float():
            return "float"
        case str():
            return "str"
