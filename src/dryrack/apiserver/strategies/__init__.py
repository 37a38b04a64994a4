"""
What is particular about each built-in kind.

A kind's strategy is loaded with the first request that needs it: a cluster that was just started
has dozens of kinds, and whoever waits for it mostly asks for one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.base.lazy import late

if TYPE_CHECKING:
    from dryrack.apiserver.strategy import Strategy
    from dryrack.kinds.registry import Kind


def strategy_of(kind: Kind) -> Strategy:
    """The strategy of a built-in kind; a plain one for those that need no other."""
    return late(lambda: _loaded(kind))


def _loaded(kind: Kind) -> Strategy:
    from dryrack.apiserver.strategies.catalog import strategy_of as made

    return made(kind)
