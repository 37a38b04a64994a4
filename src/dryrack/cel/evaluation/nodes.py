"""
Makes nodes with fresh ids.

Ids rise in the order in which nodes are finished, and every node that a macro adds points at
the call that it came from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from dryrack.cel.evaluation.trampoline import run
from dryrack.cel.parsing import ast

if TYPE_CHECKING:
    from dryrack.cel.evaluation.trampoline import Steps

ACCUMULATOR = "@result"
# `a.optMap(v, f)` holds its target twice, so a chain of them doubles with each link. Kubernetes
# has no bound and runs out of memory; nothing that a person writes comes near this one.
NODES_MAX = 20_000


class ExpansionError(Exception):
    """The macros of an expression multiply into more nodes than anybody could mean."""


class Ids:
    def __init__(self) -> None:
        self._next = 1

    def take(self) -> int:
        taken = self._next
        if taken > NODES_MAX:
            raise ExpansionError(f"expression expands to more than {NODES_MAX} nodes")
        self._next += 1
        return taken

    def give_back(self, last: int) -> None:
        """Return an id if it was the last one taken."""
        if last == self._next - 1:
            self._next = last


class MacroNodes:
    """Makes the nodes that one expansion adds; arguments are made before the node itself."""

    def __init__(self, ids: Ids, position: int) -> None:
        self._ids = ids
        self._position = position

    def literal(self, value: ast.Constant) -> ast.Literal:
        return ast.Literal(self._ids.take(), self._position, value)

    def ident(self, name: str) -> ast.Ident:
        return ast.Ident(self._ids.take(), self._position, name)

    def accumulator(self) -> ast.Ident:
        return self.ident(ACCUMULATOR)

    def presence(self, select: ast.Select) -> ast.Select:
        taken = self._ids.take()
        return ast.Select(taken, self._position, select.operand, select.field, test_only=True)

    def call(self, function: str, *args: ast.Expr) -> ast.Call:
        return ast.Call(self._ids.take(), self._position, function, args)

    def member(self, target: ast.Expr, function: str, *args: ast.Expr) -> ast.Call:
        return ast.Call(self._ids.take(), self._position, function, args, target)

    def list(self, *elements: ast.Expr) -> ast.ListLiteral:
        return ast.ListLiteral(self._ids.take(), self._position, elements)

    def map(self) -> ast.MapLiteral:
        return ast.MapLiteral(self._ids.take(), self._position, ())

    def fold(
        self,
        over: ast.Expr,
        variables: tuple[str, str],
        accumulator: str,
        *,
        start: ast.Expr,
        condition: ast.Expr,
        step: ast.Expr,
        result: ast.Expr,
    ) -> ast.Comprehension:
        return ast.Comprehension(
            id=self._ids.take(),
            position=self._position,
            iter_range=over,
            iter_var=variables[0],
            iter_var2=variables[1],
            accu_var=accumulator,
            accu_init=start,
            loop_condition=condition,
            loop_step=step,
            result=result,
        )

    def copy(self, expr: ast.Expr) -> ast.Expr:
        """Copy a subtree, with ids of its own."""
        return run(self._copy(expr))

    def _copy(self, expr: ast.Expr) -> Steps[ast.Expr]:
        taken = self._ids.take()
        match expr:
            case ast.Literal() | ast.Ident():
                return _done(replace(expr, id=taken))
            case ast.Select():
                return self._copy_select(expr, taken)
            case ast.Call():
                return self._copy_call(expr, taken)
            case ast.ListLiteral():
                return self._copy_list(expr, taken)
            case ast.MapLiteral():
                return self._copy_map(expr, taken)
            case ast.StructLiteral():
                return self._copy_struct(expr, taken)
            case ast.Comprehension():
                return self._copy_comprehension(expr, taken)

    def _copy_select(self, select: ast.Select, taken: int) -> Steps[ast.Expr]:
        operand = yield self._copy(select.operand)
        return replace(select, id=taken, operand=operand)

    def _copy_list(self, literal: ast.ListLiteral, taken: int) -> Steps[ast.Expr]:
        elements = yield self._copy_all(literal.elements)
        return replace(literal, id=taken, elements=elements)

    def _copy_all(self, exprs: tuple[ast.Expr, ...]) -> Steps[tuple[ast.Expr, ...]]:
        copies: list[ast.Expr] = []
        for expr in exprs:
            copies.append((yield self._copy(expr)))  # noqa: PERF401 - it yields
        return tuple(copies)

    def _copy_call(self, call: ast.Call, taken: int) -> Steps[ast.Expr]:
        args = yield self._copy_all(call.args)
        target = None if call.target is None else (yield self._copy(call.target))
        return replace(call, id=taken, args=args, target=target)

    def _copy_map(self, literal: ast.MapLiteral, taken: int) -> Steps[ast.Expr]:
        entries: list[ast.MapEntry] = []
        for entry in literal.entries:
            entry_id = self._ids.take()
            key = yield self._copy(entry.key)
            value = yield self._copy(entry.value)
            copy = replace(entry, id=entry_id, position=self._position, key=key, value=value)
            entries.append(copy)
        return replace(literal, id=taken, entries=tuple(entries))

    def _copy_struct(self, literal: ast.StructLiteral, taken: int) -> Steps[ast.Expr]:
        fields: list[ast.StructField] = []
        for field in literal.fields:
            field_id = self._ids.take()
            value = yield self._copy(field.value)
            fields.append(replace(field, id=field_id, position=self._position, value=value))
        return replace(literal, id=taken, fields=tuple(fields))

    def _copy_comprehension(self, fold: ast.Comprehension, taken: int) -> Steps[ast.Expr]:
        iter_range = yield self._copy(fold.iter_range)
        accu_init = yield self._copy(fold.accu_init)
        condition = yield self._copy(fold.loop_condition)
        step = yield self._copy(fold.loop_step)
        result = yield self._copy(fold.result)
        return replace(
            fold,
            id=taken,
            iter_range=iter_range,
            accu_init=accu_init,
            loop_condition=condition,
            loop_step=step,
            result=result,
        )


def _done(expr: ast.Expr) -> Steps[ast.Expr]:
    yield from ()
    return expr
