"""
How deeply an expression nests, measured without nesting, and room for that in Python.

A chain such as `1 + 1 + …` is thousands of levels deep. Steps call each other directly, so it
takes no more of the machine's stack; only Python's own count of frames has to allow it.

That count has one limit for all threads of a process, so it is not set but moved: up by what an
expression needs and down again by the same. Whoever else evaluates meanwhile keeps the room
that it asked for, and when all are done the limit is where it was. It does not stay raised,
because it also stops a document that nests without end from running through the stack.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, assert_never

from dryrack.cel import ast

if TYPE_CHECKING:
    from collections.abc import Iterator

# An attribute within an attribute is the deepest a single level of the tree goes.
_FRAMES_PER_LEVEL = 6
# So many levels fit into half of what Python allows by default.
_SHALLOW = 80


@contextmanager
def room_for(depth: int) -> Iterator[None]:
    """Let Python nest as deeply as the expression does."""
    if depth <= _SHALLOW:
        yield
        return
    frames = depth * _FRAMES_PER_LEVEL
    _move_limit(frames)
    try:
        yield
    finally:
        _move_limit(-frames)


def _move_limit(frames: int) -> None:
    # One call that reads, adds and sets without running any bytecode: no other thread can come
    # in between. A lock would do as well, but this room has none.
    next(map(sys.setrecursionlimit, map(frames.__add__, iter(sys.getrecursionlimit, None))))


def depth_of(expr: ast.Expr) -> int:
    deepest = 0
    waiting: list[tuple[ast.Expr, int]] = [(expr, 1)]
    while waiting:
        node, depth = waiting.pop()
        deepest = max(deepest, depth)
        waiting.extend((child, depth + 1) for child in children(node))
    return deepest


def children(expr: ast.Expr) -> tuple[ast.Expr, ...]:
    """The nodes right below one, in the order of evaluation."""
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
