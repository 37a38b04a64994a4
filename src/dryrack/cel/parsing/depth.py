"""
The depth of an expression, measured without recursion, and Python's limit for it.

A chain such as `1 + 1 + …` is thousands of levels deep. Steps call each other directly, so it
takes no more of the machine's stack; only Python's own count of frames has to allow it.

That count has one limit for all threads of a process, so it is not set but moved: up by what an
expression needs and down again by the same. Other threads that evaluate at
the same time keep their share, and in the end the limit is where it was. It does not stay raised,
because it also stops a document that nests without end from running through the stack.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, get_args

from dryrack.cel.parsing import ast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

# An attribute within an attribute is the deepest a single level of the tree goes.
_FRAMES_PER_LEVEL = 6
# So many levels fit into half of what Python allows by default.
SHALLOW = 80


@contextmanager
def raised_recursion_limit(depth: int) -> Iterator[None]:
    """Let Python nest as deeply as the expression does."""
    if depth <= SHALLOW:
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
    # in between. A lock is not needed.
    next(map(sys.setrecursionlimit, map(frames.__add__, iter(sys.getrecursionlimit, None))))


def depth_of(expr: ast.Expr) -> int:
    depth = 0
    level: list[ast.Expr] = [expr]
    while level:
        depth += 1
        level = [child for node in level for child in _CHILDREN[type(node)](node)]
    return depth


def evaluation_depth(expr: ast.Expr) -> int:
    """
    Return how deeply an evaluation may nest.

    A variable that is bound is worked out inside of what first asks for it, and so is one that
    it is made of, so where there are any the parts may all be inside of each other.
    """
    depth = 0
    count = 0
    binds = False
    level: list[ast.Expr] = [expr]
    while level:
        depth += 1
        count += len(level)
        binds = binds or ast.Comprehension in map(type, level)
        level = [child for node in level for child in _CHILDREN[type(node)](node)]
    return count if binds else depth


def children(expr: ast.Expr) -> Sequence[ast.Expr]:
    """The nodes right below one, in the order of evaluation."""
    return _CHILDREN[type(expr)](expr)


def _none(_expr: ast.Literal | ast.Ident) -> Sequence[ast.Expr]:
    return ()


def _of_select(expr: ast.Select) -> Sequence[ast.Expr]:
    return (expr.operand,)


def _of_call(expr: ast.Call) -> Sequence[ast.Expr]:
    return expr.args if expr.target is None else (expr.target, *expr.args)


def _of_list(expr: ast.ListLiteral) -> Sequence[ast.Expr]:
    return expr.elements


def _of_map(expr: ast.MapLiteral) -> Sequence[ast.Expr]:
    return [part for entry in expr.entries for part in (entry.key, entry.value)]


def _of_struct(expr: ast.StructLiteral) -> Sequence[ast.Expr]:
    return [field.value for field in expr.fields]


def _of_comprehension(expr: ast.Comprehension) -> Sequence[ast.Expr]:
    return (expr.iter_range, expr.accu_init, expr.loop_condition, expr.loop_step, expr.result)


# By class: a tree has thousands of nodes, and each is asked several times.
_CHILDREN: dict[type, Callable[[Any], Sequence[ast.Expr]]] = {
    ast.Literal: _none,
    ast.Ident: _none,
    ast.Select: _of_select,
    ast.Call: _of_call,
    ast.ListLiteral: _of_list,
    ast.MapLiteral: _of_map,
    ast.StructLiteral: _of_struct,
    ast.Comprehension: _of_comprehension,
}
assert set(_CHILDREN) == set(get_args(ast.Expr)), "every node has its children"
