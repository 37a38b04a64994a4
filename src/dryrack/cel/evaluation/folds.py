"""
Recognizes what a comprehension was before its macro was expanded.

`cel.bind`, `all`, `exists` and `exists_one` have a counterpart in Python; other folds do not,
and stay with the exact tier.
"""

from __future__ import annotations

from dataclasses import dataclass

from dryrack.cel.evaluation.values import Optional, Value, keys_of
from dryrack.cel.parsing import ast


@dataclass(frozen=True, slots=True)
class Binding:
    variable: str
    value: ast.Expr
    result: ast.Expr


@dataclass(frozen=True, slots=True)
class Quantifier:
    """`function(predicate for variable in over)`."""

    function: str
    variable: str
    over: ast.Expr
    predicate: ast.Expr


def as_binding(fold: ast.Comprehension) -> Binding | None:
    over = fold.iter_range
    if not isinstance(over, ast.ListLiteral) or over.elements or fold.iter_var2:
        return None
    return Binding(fold.accu_var, fold.accu_init, fold.result)


def as_quantifier(fold: ast.Comprehension) -> Quantifier | None:
    """`all` and `exists` over one variable; their accumulator is the last word on its own."""
    step = fold.loop_step
    start = fold.accu_init
    if fold.iter_var2 or not isinstance(step, ast.Call) or not isinstance(start, ast.Literal):
        return None
    if not _is_ident(fold.result, fold.accu_var) or len(step.args) != 2:
        return None
    function = {("_&&_", True): "all", ("_||_", False): "any"}.get(
        (step.function, start.value is True)
    )
    if function is None or type(start.value) is not bool:
        return None
    if not _is_ident(step.args[0], fold.accu_var):
        return None
    return Quantifier(function, fold.iter_var, fold.iter_range, step.args[1])


def _is_ident(expr: ast.Expr, name: str) -> bool:
    return isinstance(expr, ast.Ident) and expr.name == name


def iterate_or_raise(value: Value) -> list[Value]:
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return keys_of(value)
    raise TypeError("not iterable")


def not_empty_or_raise(value: Value) -> Value:
    if isinstance(value, (list, dict)) and not value:
        raise ValueError("an empty list or map")
    return plain_or_raise(value)


def plain_or_raise(value: Value) -> Value:
    if type(value) is Optional:
        raise TypeError("an optional is taken apart when it is named or chosen")
    return value


def iterate_dyn_or_raise(value: Value) -> list[Value]:
    elements = iterate_or_raise(value)
    if Optional in map(type, elements):
        raise TypeError("an optional is taken apart when it is named")
    return elements
