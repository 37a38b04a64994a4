"""Pieces of generated Python, the names they use, and the few functions they call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.cel.evaluation.attributes import look_up, look_up_if_present
from dryrack.cel.evaluation.values import Err, Value
from dryrack.cel.functions.arithmetic import list_contains

if TYPE_CHECKING:
    from collections.abc import Callable

_UNKNOWN = object()


class Unsupported(Exception):  # noqa: N818 - it is an answer, and stays inside
    """The exact tier has to do it."""


class Emitted:
    """A piece of Python; with a `value`, one that is the same on every device."""

    __slots__ = ("_value", "code")

    def __init__(self, code: str, value: Any = _UNKNOWN) -> None:
        self.code = code
        self._value = value

    @property
    def constant(self) -> bool:
        return self._value is not _UNKNOWN

    @property
    def value(self) -> Value:
        return self._value


class Names:
    """Python names that no expression can collide with, and the constants some stand for."""

    def __init__(self) -> None:
        self.constants: dict[str, Any] = {}
        self._count = 0

    def temporary(self) -> str:
        self._count += 1
        return f"t{self._count}"

    def constant(self, value: Any) -> str:
        self._count += 1
        name = f"c{self._count}"
        self.constants[name] = value
        return name

    def literal(self, value: Value) -> Emitted:
        return Emitted(self.literal_or_constant(value), value)

    def literal_or_constant(self, value: Any) -> str:
        if value is None or type(value) in (bool, int, str):
            return repr(value)
        return self.constant(value)


def fast_call(run: Callable[..., Value]) -> Callable[..., Value]:
    def call(*args: Value) -> Value:
        value = run(*args)
        if type(value) is Err:
            raise ValueError(value.message)
        return value

    return call


def look_up_or_raise(container: Value, key: Value) -> Value:
    value = look_up(container, key)
    if type(value) is Err:
        raise ValueError(value.message)
    return value


def presence_or_raise(container: Value, key: Value) -> bool:
    _, present, error = look_up_if_present(container, key)
    if error is not None:
        raise ValueError(error.message)
    return present


def truth(value: Value) -> bool:
    raise TypeError(f"not a bool: {type(value)}")


def in_list(values: list[Value]) -> Callable[[Value], bool]:
    """Membership of a bool, int or string in a list of constants."""

    def contained(item: Value) -> bool:
        if type(item) not in (bool, int, str):
            raise TypeError("the exact tier has all operations")
        return list_contains(values, item)

    return contained
