"""
Text as Go writes and reads it: numbers, quoted strings, durations, times of day.

CEL's `string()`, `double()`, `duration()` and their kin are Go's own parsers and printers
underneath, so their corners (`1e+06`, `0x1p-2`, `1h30m`) are part of CEL's behaviour.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from dryrack.base.numbers import read_int64
from dryrack.cel.evaluation.values import INT_MAX, INT_MIN, UINT_MAX

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UINT = re.compile(r"[0-9]+")
_UINT_DIGITS_MAX = 20
_FLOAT = re.compile(
    r"[+-]?(?:(?:[0-9]++\.?+[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+"
    r"|(?P<hex>0[xX](?:[0-9a-fA-F]++\.?+[0-9a-fA-F]*+|\.[0-9a-fA-F]++)[pP][+-]?[0-9]++)"
    r"|(?:[iI][nN][fF](?:[iI][nN][iI][tT][yY])?)|(?:[nN][aA][nN]))"
)
_BAD_UNDERSCORE = re.compile(r"(?<![0-9a-fA-FxX])_|_(?![0-9a-fA-F])")
_BOOLS = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}
_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_DURATION_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_RFC3339 = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})T(\d{2}|\d(?=:)):(\d{2}):(\d{2})(?:[.,](\d+))?"
    r"(Z|[+-]\d{2}:\d{2})"
)


def parse_int(text: str) -> int | None:
    return read_int64(text)


def parse_uint(text: str) -> int | None:
    if not _UINT.fullmatch(text) or len(text.lstrip("0")) > _UINT_DIGITS_MAX:
        return None
    number = int(text.lstrip("0") or "0")
    return number if number <= UINT_MAX else None


def parse_float(text: str) -> float | None:
    if "_" in text:
        text = "" if _BAD_UNDERSCORE.search(text) else text.replace("_", "")
    match = _FLOAT.fullmatch(text)
    if not match:
        return None
    try:
        number = float.fromhex(text) if match["hex"] else float(text)
    except OverflowError:
        return None
    # A number that is too large is refused; an infinity that was asked for is not.
    return None if math.isinf(number) and not re.search("inf", text, re.I) else number


def parse_bool(text: str) -> bool | None:
    return _BOOLS.get(text)


def parse_duration(text: str) -> int | None:
    """Read Go's notation (`1h30m`, `-1.5s`) into nanoseconds."""
    negative = text.startswith("-")
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0
    nanos = 0
    position = 0
    while position < len(rest):
        part = _DURATION_PART.match(rest, position)
        if part is None or not (part[1] or part[2]):
            return None
        nanos += _part_nanos(part[1], part[2] or "", _UNITS[part[3]])
        position = part.end()
        if nanos > 2**63:
            return None
    if not rest:
        return None
    nanos = -nanos if negative else nanos
    return nanos if INT_MIN <= nanos <= INT_MAX else None


def _part_nanos(whole: str, fraction: str, unit: int) -> int:
    number = read_int64(whole or "0")
    if number is None:
        return 2**64
    nanos = number * unit
    if fraction:
        # Go keeps the fraction as digits and a float scale, and truncates the product.
        digits, scale = _leading_fraction(fraction)
        nanos += int(float(digits) * (float(unit) / scale))
    return nanos


def _leading_fraction(fraction: str) -> tuple[int, float]:
    digits = 0
    scale = 1.0
    for character in fraction:
        if digits > (2**63 - 1) // 10 or digits * 10 + int(character) > 2**63:
            break
        digits = digits * 10 + int(character)
        scale *= 10
    return digits, scale


def parse_timestamp(text: str) -> tuple[int, int] | None:
    """Read RFC 3339 into nanoseconds since the epoch and the offset in seconds."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(match[group]) for group in range(1, 7))
    offset = _offset_seconds(match[8])
    if offset is None:
        return None
    # Python's calendar begins with the year 1; the year 0 has the same days as the year 400.
    shift = 400 if year == 0 else 0
    try:
        moment = datetime(year + shift, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    elapsed = moment - _EPOCH
    seconds = elapsed.days * 86_400 + elapsed.seconds - offset
    if shift:
        seconds -= 146_097 * 86_400
    fraction = int((match[7] or "0")[:9].ljust(9, "0"))
    return seconds * 1_000_000_000 + fraction, offset


def _offset_seconds(zone: str) -> int | None:
    if zone == "Z":
        return 0
    hours = int(zone[1:3])
    minutes = int(zone[4:6])
    if hours > 24 or minutes > 60:
        return None
    seconds = hours * 3600 + minutes * 60
    return -seconds if zone[0] == "-" else seconds


def format_timestamp(nanos: int, offset: int) -> str:
    """Write RFC 3339 with as many decimals as it takes, in the zone of the offset."""
    seconds, fraction = divmod(nanos, 1_000_000_000)
    local = broken_down(seconds, offset)
    decimals = f".{fraction:09d}".rstrip("0") if fraction else ""
    if offset == 0:
        zone = "Z"
    else:
        minutes = abs(offset) // 60
        zone = f"{'-' if offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"
    return (
        f"{local.year:04d}-{local.month:02d}-{local.day:02d}T"
        f"{local.hour:02d}:{local.minute:02d}:{local.second:02d}{decimals}{zone}"
    )


def time_text(nanos: int, offset: int) -> str:
    """Return a moment in Go's default format: the zone by its offset and its name."""
    date, _, rest = format_timestamp(nanos, offset).partition("T")
    clock = rest.rstrip("Z") if offset == 0 else rest[:-6]
    zone = "+0000 UTC" if offset == 0 else " ".join([rest[-6:].replace(":", "")] * 2)
    return f"{date} {clock} {zone}"


def duration_text(nanos: int) -> str:
    """A duration as Go prints it: `1h30m0s`, and what is shorter than a second in its unit."""
    rest = abs(nanos)
    sign = "-" if nanos < 0 else ""
    if rest == 0:
        return "0s"
    if rest < _SECOND:
        unit, name = next(u for u in _SHORT_UNITS if rest >= u[0])
        return f"{sign}{_decimal(rest, unit)}{name}"
    minutes, seconds = divmod(rest, 60 * _SECOND)
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(seconds, _SECOND)}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    return f"{sign}{hours}h{text}" if hours else f"{sign}{text}"


_SECOND = 10**9
_SHORT_UNITS = ((10**6, "ms"), (10**3, "µs"), (1, "ns"))


def _decimal(number: int, unit: int) -> str:
    whole, rest = divmod(number, unit)
    digits = f"{rest:0{len(str(unit)) - 1}}".rstrip("0") if rest else ""
    return f"{whole}.{digits}" if digits else str(whole)


def broken_down(seconds: int, offset: int) -> datetime:
    """The calendar of a moment; out of Python's range, the same day 400 years away."""
    try:
        return _EPOCH + timedelta(seconds=seconds + offset)
    except OverflowError:
        raise OverflowError("the moment is outside the years 1 to 9999") from None


def format_general(number: float) -> str:
    """Write a double as Go's %g does: the shortest form, with an exponent from 1e+06 on."""
    if number != number:
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    if number == 0:
        return "-0" if math.copysign(1, number) < 0 else "0"
    digits, exponent = _shortest(number)
    sign = "-" if number < 0 else ""
    if exponent < -4 or exponent >= 6:
        tail = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{tail}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    return sign + _plain(digits, exponent)


def format_plain(number: float) -> str:
    """Write a finite double with the fewest digits and no exponent."""
    if number == 0:
        return "-0" if math.copysign(1, number) < 0 else "0"
    digits, exponent = _shortest(number)
    return ("-" if number < 0 else "") + _plain(digits, exponent)


def _shortest(number: float) -> tuple[str, int]:
    """The fewest digits that mean the number, and the power of ten of the first."""
    sign_digits_exponent = Decimal(repr(abs(number))).as_tuple()
    digits = "".join(map(str, sign_digits_exponent.digits))
    assert isinstance(sign_digits_exponent.exponent, int), "the number is finite"
    return digits.rstrip("0") or "0", len(digits) + sign_digits_exponent.exponent - 1


def _plain(digits: str, exponent: int) -> str:
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    if len(digits) <= exponent + 1:
        return digits + "0" * (exponent + 1 - len(digits))
    return f"{digits[: exponent + 1]}.{digits[exponent + 1 :]}"
