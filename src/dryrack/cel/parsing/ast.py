"""
The shape of a CEL expression after macros are expanded.

Every node has an `id`, unique in its expression, under which the checker records its type
and what it refers to, and a `position`, the offset of the character that an error about it
points at. Nodes are frozen: a pass that learns something about a node writes it into a
table beside the tree, never into the tree. They are made by the thousand, and msgspec makes
them several times faster than a dataclass does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import msgspec


@dataclass(frozen=True, slots=True)
class Uint:
    """An unsigned literal or value; Python has one integer, CEL has two."""

    value: int


Constant: TypeAlias = bool | int | Uint | float | str | bytes | None


class Literal(msgspec.Struct, frozen=True):
    id: int
    position: int
    value: Constant


class Ident(msgspec.Struct, frozen=True):
    id: int
    position: int
    name: str


class Select(msgspec.Struct, frozen=True):
    """`operand.field`; with `test_only`, the expansion of `has(operand.field)`."""

    id: int
    position: int
    operand: Expr
    field: str
    test_only: bool = False


class Call(msgspec.Struct, frozen=True):
    """`function(args)` or `target.function(args)`; operators carry cel-go's names (`_&&_`)."""

    id: int
    position: int
    function: str
    args: tuple[Expr, ...]
    target: Expr | None = None


class ListLiteral(msgspec.Struct, frozen=True):
    id: int
    position: int
    elements: tuple[Expr, ...]
    optional_indices: tuple[int, ...] = ()


class MapEntry(msgspec.Struct, frozen=True):
    id: int
    position: int
    key: Expr
    value: Expr
    optional: bool = False


class MapLiteral(msgspec.Struct, frozen=True):
    id: int
    position: int
    entries: tuple[MapEntry, ...]


class StructField(msgspec.Struct, frozen=True):
    id: int
    position: int
    name: str
    value: Expr
    optional: bool = False


class StructLiteral(msgspec.Struct, frozen=True):
    """`Name{field: value}`: parsed so that the checker can refuse it by name."""

    id: int
    position: int
    type_name: str
    fields: tuple[StructField, ...]


class Comprehension(msgspec.Struct, frozen=True):
    """The expansion of every comprehension macro; `iter_var2` is empty for one variable."""

    id: int
    position: int
    iter_range: Expr
    iter_var: str
    iter_var2: str
    accu_var: str
    accu_init: Expr
    loop_condition: Expr
    loop_step: Expr
    result: Expr


Expr: TypeAlias = (
    Literal | Ident | Select | Call | ListLiteral | MapLiteral | StructLiteral | Comprehension
)
