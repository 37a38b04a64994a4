"""Examples of the rules in `linter.rules.constraints`."""

from __future__ import annotations

from tests.linter import examples
from tests.linter.examples import broken

_CONSTRAINT = """\
    constraints:
    - requests: [gpus]
      matchAttribute: gpu.example.com/model
"""

_CONSTRAINED = examples.join(examples.SLICE, examples.CLASS, examples.CLAIM) + _CONSTRAINT

EXAMPLES = {
    "DR504": broken(_CONSTRAINED, ("gpu.example.com/model\n", "gpu.example.com/modle\n")),
    "DR505": broken(_CONSTRAINED, ("count: 2", "count: 1")),
    "DR506": broken(
        _CONSTRAINED,
        (
            "      matchAttribute: gpu.example.com/model\n",
            (
                "      matchAttribute: gpu.example.com/model\n"
                "      distinctAttribute: gpu.example.com/numa\n"
            ),
        ),
    ),
}
