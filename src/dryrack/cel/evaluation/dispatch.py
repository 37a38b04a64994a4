"""
From a call in the tree to the function that runs.

A call whose overload the checker settled goes to that overload, behind a guard: a `dyn` argument
may still be of another type. A call with several candidates tries every overload of the function
in order of declaration. The operators, and a few functions that look at their arguments
themselves, have one implementation for all types and no guard.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.cel import authorization, mutation
from dryrack.cel.checking import types as t
from dryrack.cel.evaluation.values import Err, Value, decode_key, type_name
from dryrack.cel.functions import (
    amounts,
    arithmetic,
    conversions,
    formats,
    lists,
    networks,
    strings,
    times,
    urls,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dryrack.cel.declarations import Overload

OVERLOADS: Mapping[str, Callable[..., Value]] = {
    **conversions.OVERLOADS,
    **times.OVERLOADS,
    **strings.OVERLOADS,
    **lists.OVERLOADS,
    **networks.OVERLOADS,
    **urls.OVERLOADS,
    **amounts.OVERLOADS,
    **formats.OVERLOADS,
    **authorization.OVERLOADS,
    **mutation.OVERLOADS,
}

FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    **arithmetic.OPERATORS,
    **conversions.FUNCTIONS,
    **strings.FUNCTIONS,
    **lists.FUNCTIONS,
}

_NON_STRICT = frozenset(("@not_strictly_false", "__not_strictly_false__"))
_UNGUARDED = frozenset(("flatten", "contains", "startsWith", "endsWith"))
# Declared with a variable number of arguments, and so evaluated like those that have one.
_VARIADIC = frozenset(("string_format",))


class Style(enum.Enum):
    """The evaluation of arguments after a failed one, which costs."""

    ALL = "evaluate all arguments"
    FIRST_FAILURE = "stop at the first failure"


@dataclass(frozen=True, slots=True)
class Binding:
    implementation: Callable[..., Value]
    style: Style
    strict: bool = True


_ANYTHING = (t.Kind.DYN, t.Kind.ANY, t.Kind.TYPE_PARAM)
_HOLDERS = (t.Kind.LIST, t.Kind.MAP)


def accepts(declared: t.Type, value: Value) -> bool:
    """Return whether a value may be passed; the first element of a list or map decides."""
    if declared.kind in _ANYTHING:
        return True
    if type_name(value) != declared.runtime_name:
        return False
    if declared.kind is t.Kind.LIST and value:
        return accepts(declared.parameters[0], value[0])
    if declared.kind is t.Kind.MAP and value:
        key, item = next(iter(value.items()))
        return accepts(declared.parameters[0], decode_key(key)) and accepts(
            declared.parameters[1], item
        )
    return True


def no_overload(function: str, args: Sequence[Value]) -> Err:
    for arg in args:
        if type(arg) is Err:
            return arg
    return Err(f"no such overload: {function}({', '.join(map(type_name, args))})")


def _matches(overload: Overload, args: Sequence[Value]) -> bool:
    if len(overload.args) != len(args):
        return False
    for declared, value in zip(overload.args, args, strict=True):
        if type(value) is Err or not accepts(declared, value):
            return False
    return True


def _never(*_args: Value) -> Value:
    raise AssertionError("the operator is planned, not called")


def _with_guard(function: str, overload: Overload) -> Callable[..., Value]:
    run = OVERLOADS.get(overload.id, _never)
    # Of lists and maps the contents decide; of anything else, what fitted once fits always.
    by_class = not any(declared.kind in _HOLDERS for declared in overload.args)
    fitting: set[tuple[type, ...]] = set()

    def run_guarded(*args: Value) -> Value:
        classes = (*map(type, args),)
        if classes in fitting:
            return run(*args)
        if not _matches(overload, args):
            return no_overload(function, args)
        if by_class:
            fitting.add(classes)
        return run(*args)

    return run_guarded


def _dispatcher(function: str, overloads: Sequence[Overload]) -> Callable[..., Value]:
    bound = [(overload, OVERLOADS.get(overload.id, _never)) for overload in overloads]

    def dispatch(*args: Value) -> Value:
        for overload, run in bound:
            if _matches(overload, args):
                return run(*args)
        return no_overload(function, args)

    return dispatch


def bind(function: str, overload_ids: Sequence[str], overloads: Sequence[Overload]) -> Binding:
    """Find what a call runs, given its candidates and all overloads of its function."""
    if function in FUNCTIONS:
        return Binding(FUNCTIONS[function], Style.ALL, strict=function not in _NON_STRICT)
    if len(overload_ids) == 1:
        return _bind_one(function, next(o for o in overloads if o.id == overload_ids[0]))
    if len(overloads) == 1:
        return _bind_one(function, overloads[0])
    if function in _UNGUARDED:
        return Binding(OVERLOADS[overloads[-1].id], Style.FIRST_FAILURE)
    return Binding(_dispatcher(function, overloads), Style.FIRST_FAILURE)


def _bind_one(function: str, overload: Overload) -> Binding:
    variadic = overload.id in _VARIADIC or len(overload.args) > 2
    style = Style.FIRST_FAILURE if variadic else Style.ALL
    if function in _UNGUARDED:
        return Binding(OVERLOADS[overload.id], style)
    return Binding(_with_guard(function, overload), style)
