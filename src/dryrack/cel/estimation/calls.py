"""Input and result of the estimator of one function."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dryrack.cel.estimation.arithmetic import UNKNOWN, CostEstimate, Estimate, SizeEstimate
from dryrack.cel.estimation.paths import ITEMS
from dryrack.cel.parsing.ast import Literal

if TYPE_CHECKING:
    from dryrack.cel.checking.types import Type
    from dryrack.cel.estimation.paths import Path, SizeHints
    from dryrack.cel.parsing.ast import Constant, Expr


class Operand(msgspec.Struct, frozen=True):
    """A target or an argument; without known bounds it has no `size`."""

    expr: Expr
    type: Type
    path: Path
    size: SizeEstimate | None

    @property
    def size_or_unknown(self) -> SizeEstimate:
        return self.size or UNKNOWN

    @property
    def literal(self) -> Constant:
        """The value written in the expression; None also stands for "not a literal"."""
        return self.expr.value if isinstance(self.expr, Literal) else None


class CallSite(msgspec.Struct, frozen=True):
    """One overload of one call. A call whose types are dynamic has several."""

    function: str
    overload: str
    target: Operand | None
    arguments: tuple[Operand, ...]
    hints: SizeHints

    def size(self, operand: Operand) -> SizeEstimate:
        return operand.size or self.hints.size(operand.path) or UNKNOWN

    def element_size(self, operand: Operand) -> SizeEstimate:
        """The size of one element of a list that the expression does not spell out."""
        if not len(operand.path):
            return UNKNOWN
        return self.hints.size(operand.path.copy().extend(ITEMS)) or UNKNOWN


class CallEstimate(msgspec.Struct, frozen=True):
    """The cost of the call without that of its arguments, and the size of its result."""

    cost: CostEstimate
    result_size: SizeEstimate | None = None


def call_estimate(cost: int) -> CallEstimate:
    return CallEstimate(Estimate(cost, cost))
