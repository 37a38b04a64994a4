"""
Whether an expression can see that quantities change by being used.

Upstream keeps large numbers in another form than others. To compare a quantity with a large one
changes its form, and then it is no integer; to add to a large one changes the large one itself.
Few expressions can tell, and of those most only if there is a large number. Where none can tell,
quantities are shared by all evaluations and nothing is changed.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from dryrack.cel import ast
from dryrack.cel.depth import children
from dryrack.kinds.quantity import Quantity, QuantityError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.cel.checker import Checked

_COMPARE = frozenset({"quantity_is_greater_than", "quantity_is_less_than", "quantity_compare_to"})
_COMPUTE = frozenset({"quantity_add", "quantity_add_int", "quantity_sub", "quantity_sub_int"})
_ASK = frozenset({"quantity_get_int", "quantity_is_integer"})


class Change(Enum):
    """When an expression can tell that a quantity was changed."""

    NEVER = 0
    # If the device has a large one.
    LARGE = 1
    ALWAYS = 2


def change_in(checked: Checked) -> Change:
    """When the expression can tell."""
    used = {name for each in checked.references.values() for name in each.overload_ids}
    computes, asks = bool(used & _COMPUTE), bool(used & _ASK)
    if not computes and not (asks and used & _COMPARE):
        return Change.NEVER
    nodes = list(_nodes(checked.expr))
    # Only what has a name is used twice.
    named = any(isinstance(node, ast.Comprehension) for node in nodes)
    if (computes and (named or asks)) or any(map(_makes_large, nodes)):
        return Change.ALWAYS
    return Change.LARGE


def _nodes(expr: ast.Expr) -> Iterator[ast.Expr]:
    waiting = [expr]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(children(node))


def _makes_large(node: ast.Expr) -> bool:
    """Whether a large quantity may come out of a text."""
    if not isinstance(node, ast.Call) or node.function != "quantity" or not node.args:
        return False
    [text, *_] = node.args
    if not isinstance(text, ast.Literal) or not isinstance(text.value, str):
        return True
    try:
        return Quantity.parse(text.value).big
    except QuantityError:
        return False
