"""`"…".format([…])`, with the verbs and the messages of the second strings library."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

from dryrack.base.numbers import read_int64
from dryrack.cel.evaluation.values import (
    CIDR,
    IP,
    TEXT_SIZE_MAX,
    Duration,
    Err,
    Optional,
    Timestamp,
    TypeValue,
    Value,
    decode_key,
    too_large,
    type_name,
)
from dryrack.cel.functions import go_numbers
from dryrack.cel.functions.conversions import duration_text, timestamp_text, to_text
from dryrack.cel.parsing.ast import Uint
from dryrack.kinds.text.quoting import quoted

if TYPE_CHECKING:
    from collections.abc import Callable

# What a list or map is written as, known by where it is: it may be in very many places.
Written: TypeAlias = "dict[int, str]"

_DEFAULT_PRECISION = 6
_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class _FormatError(Exception):
    """The format and its arguments do not go together."""


def format_string(template: str, arguments: list[Value]) -> Value:
    try:
        return _format(template, arguments)
    except _FormatError as error:
        return Err(str(error))


def _format(template: str, arguments: list[Value]) -> str:
    written: list[str] = []
    position = 0
    used = 0
    size = len(template)
    while position < len(template):
        percent = template.find("%", position)
        if percent < 0:
            break
        written.append(template[position:percent])
        if template.startswith("%%", percent):
            written.append("%")
            position = percent + 2
            continue
        if used >= len(arguments):
            raise _FormatError(f"index {used} out of range")
        position, text = _clause(template, percent + 1, arguments[used])
        written.append(text)
        used += 1
        size += len(text)
        if size > TEXT_SIZE_MAX:
            raise _FormatError(too_large("format", TEXT_SIZE_MAX).message)
    return "".join(written) + template[position:]


def _clause(template: str, position: int, argument: Value) -> tuple[int, str]:
    if position >= len(template):
        raise _FormatError("unexpected end of string")
    position, precision = _precision(template, position)
    if position >= len(template):
        raise _FormatError("internal error: runtime error: index out of range")
    verb = template[position]
    clause = _CLAUSES.get(verb)
    if clause is None:
        raise _FormatError(
            "could not parse formatting clause: "
            f'unrecognized formatting clause "{chr(verb.encode()[0])}"'
        )
    try:
        return position + 1, clause(argument, precision)
    except _FormatError as error:
        raise _FormatError(f"error during formatting: {error}") from None


def _precision(template: str, position: int) -> tuple[int, int]:
    if template[position] != ".":
        return position, _DEFAULT_PRECISION
    end = position + 1
    while end < len(template) and template[end] in "0123456789":
        end += 1
    problem = "could not parse formatting clause: error while parsing precision: "
    if end >= len(template):
        raise _FormatError(problem + "could not find end of precision specifier")
    digits = template[position + 1 : end]
    precision = read_int64(digits)
    if precision is None:
        problem += "error while converting precision to integer: strconv.Atoi: parsing "
        problem += f'"{digits}": '
        raise _FormatError(problem + ("value out of range" if digits else "invalid syntax"))
    return end, precision


def _string(value: Value, _precision: int = 0) -> str:
    if isinstance(value, (list, dict)):
        return _contents(value, {})
    text = to_text(value)
    if text is not None:
        return text
    if type(value) is bytes:
        raise _FormatError(
            'could not convert argument "invalid UTF-8 in bytes, cannot convert to string"'
            " to string"
        )
    raise _FormatError(
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, "
        f"types, durations, and timestamps, was given {type_name(value)}"
    )


def _contents(value: list[Value] | dict[object, Value], written: Written) -> str:
    text = written.get(id(value))
    if text is None:
        text = _list(value, written) if isinstance(value, list) else _map(value, written)
        if len(text) > TEXT_SIZE_MAX:
            raise _FormatError(too_large("format", TEXT_SIZE_MAX).message)
        written[id(value)] = text
    return text


def _list(value: list[Value], written: Written) -> str:
    # Lists, not generators: what nests deeply must not nest in C as well.
    return "[" + ", ".join([_element(item, written) for item in value]) + "]"


def _map(value: dict[object, Value], written: Written) -> str:
    pairs = [
        (_key(decode_key(key), written), _element(item, written)) for key, item in value.items()
    ]
    pairs.sort()
    return "{" + ", ".join(f"{key}:{item}" for key, item in pairs) + "}"


def _key(key: Value, written: Written) -> str:
    if type(key) not in (str, bool, int, Uint):
        raise _FormatError(f"no formatting function for map key of type {type_name(key)}")
    return _element(key, written)


def _element(value: Value, written: Written) -> str:
    kind = type(value)
    if kind is str:
        return quoted(value)
    if kind is bytes:
        return "b" + quoted(_string(value))
    if kind is Timestamp:
        return f"timestamp({quoted(timestamp_text(value))})"
    if kind is Duration:
        return f"duration({quoted(duration_text(value))})"
    if kind is float:
        return f"{value:.6f}" if math.isfinite(value) else quoted(_special(value))
    if isinstance(value, (list, dict)):
        return _contents(value, written)
    if kind in (bool, int, Uint, type(None), TypeValue):
        return _string(value)
    raise _FormatError(f"no formatting function for {type_name(value)}")


def _special(value: float) -> str:
    if value != value:
        return "NaN"
    return "+Inf" if value > 0 else "-Inf"


def _decimal(value: Value, _precision: int) -> str:
    if type(value) is int or type(value) is Uint:
        return str(_plain(value))
    raise _FormatError(f"decimal clause can only be used on integers, was given {type_name(value)}")


def _plain(value: Value) -> int:
    return value.value if type(value) is Uint else int(value)


def _double(value: Value, clause: str) -> float:
    if type(value) is float:
        return value
    if type(value) is str and value in _SPECIAL:
        return _SPECIAL[value]
    raise _FormatError(f"{clause} clause can only be used on doubles, was given {type_name(value)}")


def _check_width(precision: int) -> None:
    """Refuse a precision that alone makes the text too long, before it is made."""
    if precision > TEXT_SIZE_MAX:
        raise _FormatError(too_large("format", TEXT_SIZE_MAX).message)


def _fixed_point(value: Value, precision: int) -> str:
    number = _double(value, "fixed-point")
    _check_width(precision)
    return f"{number:,.{precision}f}" if math.isfinite(number) else _locale_special(number)


def _locale_special(number: float) -> str:
    if number != number:
        return "NaN"
    return "∞" if number > 0 else "-∞"


def _scientific(value: Value, precision: int) -> str:
    number = _double(value, "scientific")
    _check_width(precision)
    if not math.isfinite(number):
        return _locale_special(number)
    mantissa, exponent = f"{number:.{_DEFAULT_PRECISION}e}".split("e")
    sign = "-" if exponent[0] == "-" else ""
    raised = str(int(exponent.lstrip("+-"))).zfill(2)
    return f"{mantissa} × 10{(sign + raised).translate(_RAISED)}".rjust(precision)


_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def _binary(value: Value, _precision: int) -> str:
    if type(value) is bool:
        return "1" if value else "0"
    if type(value) is int or type(value) is Uint:
        return format(_plain(value), "b")
    raise _FormatError(
        f"only integers and bools can be formatted as binary, was given {type_name(value)}"
    )


def _octal(value: Value, _precision: int) -> str:
    if type(value) is int or type(value) is Uint:
        return format(_plain(value), "o")
    raise _FormatError(f"octal clause can only be used on integers, was given {type_name(value)}")


def _hexadecimal(value: Value, _precision: int) -> str:
    if type(value) is str:
        return value.encode().hex()
    if type(value) is bytes:
        return value.hex()
    if type(value) is int or type(value) is Uint:
        return format(_plain(value), "x")
    raise _FormatError(
        "only integers, byte buffers, and strings can be formatted as hex, "
        f"was given {type_name(value)}"
    )


def _upper_hexadecimal(value: Value, precision: int) -> str:
    return _hexadecimal(value, precision).upper()


_CLAUSES: dict[str, Callable[[Value, int], str]] = {
    "s": _string,
    "d": _decimal,
    "f": _fixed_point,
    "e": _scientific,
    "b": _binary,
    "o": _octal,
    "x": _hexadecimal,
    "X": _upper_hexadecimal,
}


def go_text(value: Value) -> str:
    """Return a value as Go prints it in the middle of a message (`%v`)."""
    return _print(value, {})


def _print(value: Value, written: Written) -> str:
    if isinstance(value, (list, dict)):
        text = written.get(id(value))
        if text is None:
            text = written[id(value)] = _printed_contents(value, written)
        return text
    if type(value) is Optional:
        return f"optional({_print(value.value, written)})" if value.present else "optional.none()"
    if type(value) in _PRINTED:
        return _PRINTED[type(value)](value)
    text = to_text(value)
    return str(value) if text is None else text


def _printed_contents(value: list[Value] | dict[object, Value], written: Written) -> str:
    if isinstance(value, list):
        text = "[" + ", ".join([_print(item, written) for item in value]) + "]"
    else:
        pairs = [
            f"{_print(decode_key(key), written)}: {_print(item, written)}"
            for key, item in value.items()
        ]
        text = "{" + ", ".join(pairs) + "}"
    # What is in a message for people need not be complete.
    return text if len(text) <= TEXT_SIZE_MAX else "…"


_PRINTED: dict[type, Callable[[Any], str]] = {
    type(None): lambda _: "0",
    Err: lambda error: error.message,
    Timestamp: lambda moment: go_numbers.time_text(moment.nanos, moment.offset_seconds),
    Duration: lambda duration: go_numbers.duration_text(duration.nanos),
    IP: lambda ip: str(ip.address),
    CIDR: lambda cidr: f"{cidr.address}/{cidr.bits}",
}
