"""All rules, by code."""

from __future__ import annotations

from dryrack.hardware.lint import (
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
from dryrack.hardware.lint.registry import Rule, merged

RULES: tuple[Rule, ...] = merged(
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
