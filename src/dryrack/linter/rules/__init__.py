"""All rules, by code."""

from __future__ import annotations

from dryrack.linter.registry import Rule, merge_rules
from dryrack.linter.rules import (
    api,
    claims,
    constraints,
    counters,
    devices,
    nodes,
    pods,
    policy,
    pools,
    publishers,
    reading,
    selectors,
    supply,
)

RULES: tuple[Rule, ...] = merge_rules(
    [
        module.RULES
        for module in (
            reading,
            api,
            pools,
            counters,
            nodes,
            devices,
            selectors,
            claims,
            constraints,
            supply,
            pods,
            policy,
            publishers,
        )
    ]
)
