"""
The shape of a CEL expression after macros are expanded.

Every node has an `id`, unique in its expression, under which the checker records its type
and what it refers to, and a `position`, the offset of the character that an error about it
points at. Nodes are frozen: a pass that learns something about a node writes it into a
table beside the tree, never into the tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Uint:
    """An unsigned literal or value; Python has one integer, CEL has two."""

    value: int


Constant: TypeAlias = bool | int | Uint | float | str | bytes | None


@dataclass(frozen=True, slots=True)
class Literal:
    id: int
    position: int
    value: Constant


@dataclass(frozen=True, slots=True)
class Ident:
    id: int
    position: int
    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """`operand.field`; with `test_only`, the expansion of `has(operand.field)`."""

    id: int
    position: int
    operand: Expr
    field: str
    test_only: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """`function(args)` or `target.function(args)`; operators carry cel-go's names (`_&&_`)."""

    id: int
    position: int
    function: str
    args: tuple[Expr, ...]
    target: Expr | None = None


@dataclass(frozen=True, slots=True)
class ListLiteral:
    id: int
    position: int
    elements: tuple[Expr, ...]
    optional_indices: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MapEntry:
    id: int
    position: int
    key: Expr
    value: Expr
    optional: bool = False


@dataclass(frozen=True, slots=True)
class MapLiteral:
    id: int
    position: int
    entries: tuple[MapEntry, ...]


@dataclass(frozen=True, slots=True)
class StructField:
    id: int
    position: int
    name: str
    value: Expr
    optional: bool = False


@dataclass(frozen=True, slots=True)
class StructLiteral:
    """`Name{field: value}`: parsed so that the checker can refuse it by name."""

    id: int
    position: int
    type_name: str
    fields: tuple[StructField, ...]


@dataclass(frozen=True, slots=True)
class Comprehension:
    """What every comprehension macro becomes; `iter_var2` is empty for one-variable ones."""

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
