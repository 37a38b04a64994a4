"""
Which results may stand for others that are made in the same way.

Upstream holds some values by pointer: as a key of a map such a value is equal to itself alone,
and a quantity that was computed with may have changed. Where an expression could tell, it gets
a new one each time.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from dryrack.cel import ast
from dryrack.cel.depth import nodes_of
from dryrack.cel.forms import Change, change_in, computes

if TYPE_CHECKING:
    from dryrack.cel.checker import Checked


class Sharing(Enum):
    """What is not made again."""

    ALL = 0
    # What is nothing but its value: neither changed nor told from an equal one.
    VALUES = 1
    NOTHING = 2


def sharing_in(checked: Checked) -> Sharing:
    """What the expression does not notice."""
    if change_in(checked) is not Change.NEVER:
        return Sharing.NOTHING
    maps = any(isinstance(node, ast.MapLiteral) for node in nodes_of(checked.expr))
    return Sharing.VALUES if maps or computes(checked) else Sharing.ALL
