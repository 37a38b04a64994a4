"""Examples of the rules in `linter.rules.counters`."""

from __future__ import annotations

from tests.linter import examples
from tests.linter.examples import Example, broken

_SECOND_SET = """\
  - name: gpu-1
    counters:
      memory: {value: 80Gi}
"""

_MORE = (
    examples.COUNTERS.split("---\n")[0]
    .replace("rack-2-counters", "rack-2-more")
    .replace("name: gpu-0", "name: gpu-1")
)

_DRAWN = """\
    - counterSet: gpu-1
      counters:
        memory: {value: 40Gi}
"""

_ALL_SETS = examples.join(examples.COUNTERS + _DRAWN, _MORE).replace("Count: 2", "Count: 3")

EXAMPLES = {
    "DR221": Example(_ALL_SETS + _SECOND_SET.replace("gpu-1", "gpu-0"), _ALL_SETS),
    "DR222": broken(examples.COUNTERS, ("counterSet: gpu-0", "counterSet: gpu-7")),
    "DR223": broken(examples.COUNTERS, ("memory: {value: 40Gi}", "memory: {value: 96Gi}")),
    "DR224": broken(
        examples.COUNTERS,
        ("  sharedCounters:\n", "  sharedCounters:\n" + _SECOND_SET),
    ),
}
