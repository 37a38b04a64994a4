"""Examples of the rules in `linter.rules.supply`."""

from __future__ import annotations

from tests.linter import examples
from tests.linter.examples import broken

_SOUND = examples.join(examples.SLICE, examples.CLASS, examples.CLAIM)

_TAINT = """\
    taints:
    - {key: example.com/broken, effect: NoSchedule}
"""

EXAMPLES = {
    "DR502": broken(_SOUND, ("count: 2", "count: 4")),
    "DR511": broken(
        examples.join(
            examples.SLICE,
            examples.CLASS,
            examples.CLAIM.replace("count: 2", "count: 1"),
        ).replace(
            "      numa: {int: 1}\n    capacity:\n      memory: {value: 80Gi}\n",
            "      numa: {int: 1}\n    capacity:\n      memory: {value: 80Gi}\n" + _TAINT,
        ),
        (
            "      numa: {int: 0}\n    capacity:\n      memory: {value: 80Gi}\n",
            "      numa: {int: 0}\n    capacity:\n      memory: {value: 80Gi}\n" + _TAINT,
        ),
    ),
    "DR508": broken(
        _SOUND.replace(
            "count: 2", "count: 2\n        capacity:\n          requests: {memory: 40Gi}"
        ),
        ("requests: {memory: 40Gi}", "requests: {gpu.example.com/memory: 40Gi}"),
    ),
    "DR509": broken(
        _SOUND.replace(
            "count: 2", "count: 2\n        capacity:\n          requests: {memory: 40Gi}"
        ),
        ("requests: {memory: 40Gi}", "requests: {memory: 400Gi}"),
    ),
}
