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
from dryrack.cel.depth import nodes_of
from dryrack.kinds.quantity import Quantity, QuantityError

if TYPE_CHECKING:
    from dryrack.cel.checker import Checked

_COMPARE = frozenset({"quantity_is_greater_than", "quantity_is_less_than", "quantity_compare_to"})
_COMPUTE = frozenset({"quantity_add", "quantity_add_int", "quantity_sub", "quantity_sub_int"})
_MAKE = _COMPUTE | {"string_to_quantity"}
_ASK = frozenset({"quantity_get_int", "quantity_is_integer"})


class Change(Enum):
    """When an expression can tell that a quantity was changed."""

    NEVER = 0
    # If the device has a large one.
    LARGE = 1
    ALWAYS = 2


def change_in(checked: Checked) -> Change:
    """When the expression can tell."""
    used = _used(checked)
    asks, changes = bool(used & _ASK), computes(checked)
    if not changes and not (asks and used & _COMPARE):
        return Change.NEVER
    nodes = list(nodes_of(checked.expr))
    if not asks and not any(_changes_another(node, checked) for node in nodes):
        return Change.NEVER
    # Only what has a name is used twice.
    named = any(isinstance(node, ast.Comprehension) for node in nodes)
    if (changes and (named or asks)) or any(map(_makes_large, nodes)):
        return Change.ALWAYS
    return Change.LARGE


def computes(checked: Checked) -> bool:
    """Whether the expression adds to quantities, or takes from them."""
    return bool(_used(checked) & _COMPUTE)


def _used(checked: Checked) -> set[str]:
    return {name for each in checked.references.values() for name in each.overload_ids}


def _overloads(node: ast.Expr, checked: Checked) -> tuple[str, ...]:
    reference = checked.references.get(node.id)
    return () if reference is None else reference.overload_ids


def _changes_another(node: ast.Expr, checked: Checked) -> bool:
    """Whether it adds to a quantity that is used elsewhere, and was not made for this."""
    if not _COMPUTE.intersection(_overloads(node, checked)):
        return False
    assert isinstance(node, ast.Call)
    return node.target is None or not _is_new(node.target, checked)


def _is_new(node: ast.Expr, checked: Checked) -> bool:
    """Whether a quantity is made where it is used."""
    return _MAKE.issuperset(_overloads(node, checked)) and bool(_overloads(node, checked))


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
