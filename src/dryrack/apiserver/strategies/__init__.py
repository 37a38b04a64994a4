"""
The strategies of the built-in kinds: their defaults, validation and update rules.

A strategy is loaded with the first request that needs it: a new cluster has dozens of kinds, and
the first commands use few of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.base.lazy import late
from dryrack.kinds.releases import FeatureSet

if TYPE_CHECKING:
    from dryrack.apiserver.strategy import Strategy
    from dryrack.kinds.registry import Kind


def strategy_of(kind: Kind, features: FeatureSet | None = None) -> Strategy:
    """Return the strategy of a built-in kind, which is loaded when it is first used."""
    followed = features or FeatureSet()
    return late(lambda: _load_strategy(kind, followed))


def _load_strategy(kind: Kind, features: FeatureSet) -> Strategy:
    from dryrack.apiserver.strategies.catalog import strategy_of as made

    return made(kind, features)
