"""An example of each rule: a file with the fault, and the same file without."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.linter.rule_examples import (
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

if TYPE_CHECKING:
    from tests.linter.examples import Example

_MODULES = (
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
EXAMPLES: dict[str, Example] = {
    code: example for module in _MODULES for code, example in module.EXAMPLES.items()
}
