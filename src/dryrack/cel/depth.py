"""How deeply an expression nests, measured without nesting."""

from __future__ import annotations

from typing import assert_never

from dryrack.cel import ast


def depth_of(expr: ast.Expr) -> int:
    deepest = 0
    waiting: list[tuple[ast.Expr, int]] = [(expr, 1)]
    while waiting:
        node, depth = waiting.pop()
        deepest = max(deepest, depth)
        waiting.extend((child, depth + 1) for child in children(node))
    return deepest


def children(expr: ast.Expr) -> tuple[ast.Expr, ...]:
    match expr:
        case ast.Literal() | ast.Ident():
            return ()
        case ast.Select():
            return (expr.operand,)
        case ast.Call():
            return expr.args if expr.target is None else (expr.target, *expr.args)
        case ast.ListLiteral():
            return expr.elements
        case ast.MapLiteral():
            return tuple(part for entry in expr.entries for part in (entry.key, entry.value))
        case ast.StructLiteral():
            return tuple(field.value for field in expr.fields)
        case ast.Comprehension():
            return (
                expr.iter_range,
                expr.accu_init,
                expr.loop_condition,
                expr.loop_step,
                expr.result,
            )
        case _:
            assert_never(expr)
