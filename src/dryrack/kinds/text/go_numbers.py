"""
JSON values as Go prints them.

Some of the server's refusals show a value the way Go's `%v`, `%T` and `%#v` do. People search for
these sentences, so they are printed here the same way.
"""

from __future__ import annotations

from typing import Any, assert_never

from dryrack.kinds.text.quoting import quoted

_EXPONENT_MIN, _EXPONENT_MAX = -4, 21
Json = dict[str, Any] | list[Any] | str | int | float | bool | None


def plain(value: Json) -> str:
    """`%v`."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case float():
            return number(value)
        case int() | str():
            return str(value)
        case list():
            return f"[{' '.join(plain(each) for each in value)}]"
        case dict():
            shown = " ".join(f"{key}:{plain(value[key])}" for key in sorted(value))
            return f"map[{shown}]"
        case _:
            assert_never(value)


def type_name(value: Json) -> str:
    """`%T`."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "bool"
        case int():
            return "int64"
        case float():
            return "float64"
        case str():
            return "string"
        case list():
            return "[]interface {}"
        case dict():
            return "map[string]interface {}"
        case _:
            assert_never(value)


def kind_name(value: Json) -> str:
    """What Go's reflection calls the kind of the value."""
    match value:
        case dict():
            return "map"
        case list():
            return "slice"
        case _:
            return type_name(value)


def literal(value: Json) -> str:
    """`%#v`."""
    match value:
        case None:
            return "interface {}(nil)"
        case str():
            return quoted(value)
        case bool() | int() | float():
            return plain(value)
        case list():
            return f"[]interface {{}}{{{', '.join(literal(each) for each in value)}}}"
        case dict():
            shown = ", ".join(f"{quoted(key)}:{literal(value[key])}" for key in sorted(value))
            return f"map[string]interface {{}}{{{shown}}}"
        case _:
            assert_never(value)


def number(value: float) -> str:
    """The shortest digits that tell the number, with an exponent where Go has one."""
    mantissa, _, exponent = f"{value!r}e0".partition("e")
    if value == int(value) and abs(value) < 10**_EXPONENT_MAX:
        return str(int(value))
    if "e" not in repr(value):
        return repr(value)
    power = int(exponent.removesuffix("e0"))
    if _EXPONENT_MIN <= power < _EXPONENT_MAX:
        return f"{value:f}".rstrip("0").rstrip(".")
    return f"{mantissa.removesuffix('.0')}e{'-' if power < 0 else '+'}{abs(power):02d}"
