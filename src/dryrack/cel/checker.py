"""
What the checker says about an expression, kept beside the tree and not in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.cel.ast import Constant, Expr
    from dryrack.cel.types import Type


@dataclass(frozen=True, slots=True)
class Reference:
    """
    What a node refers to: a variable or type by `name`, or the overloads that a call may mean.

    A call with several ids is dispatched by the types of its arguments at run time.
    """

    name: str = ""
    overload_ids: tuple[str, ...] = ()
    constant: Constant = None


@dataclass(frozen=True, slots=True)
class Checked:
    """
    An expression that compiles: names resolved in `expr`, types and references by node id.

    In `expr` a qualified name is one `Ident` (`net.IP`), and a call of a function in a
    namespace (`sets.contains(a, b)`) has no target and the full name as its function.
    """

    expr: Expr
    types: Mapping[int, Type]
    references: Mapping[int, Reference]

    @property
    def output_type(self) -> Type:
        return self.types[self.expr.id]
