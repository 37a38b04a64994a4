"""Examples of the rules in `linter.rules.devices`."""

from __future__ import annotations

from tests.linter import examples
from tests.linter.examples import broken

EXAMPLES = {
    "DR301": broken(
        examples.SLICE.replace(
            "numa: {int: 1}\n    capacity:\n      memory: {value: 80Gi}", "numa: {int: 1}"
        ),
        (
            "numa: {int: 0}\n    capacity:\n      memory: {value: 80Gi}",
            "numa: {int: 0}\n      memory: {string: 80Gi}",
        ),
    ),
    "DR302": broken(
        examples.SLICE.replace("numa: {int: 0}", "numa: {int: 0}\n      cores: {int: 2560}"),
        ("cores: {int: 2560}", 'cores: {string: "2560"}'),
    ),
    "DR303": broken(examples.SLICE, ("numa: {int: 1}", "numa: {string: one}")),
    "DR304": broken(
        examples.SLICE,
        ("numa: {int: 0}", "numa: {int: 0}\n      gpu.example.com/model: {string: h200}"),
    ),
    "DR305": broken(
        examples.SLICE.replace(
            "numa: {int: 1}\n    capacity:\n      memory: {value: 80Gi}", "numa: {int: 1}"
        ),
        ("memory: {value: 80Gi}", "memory: {value: -80Gi}"),
    ),
}
