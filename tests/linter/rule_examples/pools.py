"""Examples of the rules in `linter.rules.pools`."""

from __future__ import annotations

from tests.linter import examples
from tests.linter.examples import Example, broken

_OTHER_NODE = examples.SLICE.replace("rack-1", "rack-2")

_MORE = (
    examples.SLICE.replace("rack-1-gpus", "rack-1-more")
    .replace("name: gpu-0", "name: gpu-2")
    .replace("name: gpu-1", "name: gpu-3")
)

_TWO_SLICES = examples.join(examples.SLICE, _MORE).replace("Count: 1", "Count: 2")

EXAMPLES = {
    "DR201": broken(examples.SLICE, ("resourceSliceCount: 1", "resourceSliceCount: 3")),
    "DR202": Example(_TWO_SLICES.replace("Count: 2", "Count: 1"), _TWO_SLICES),
    "DR203": broken(
        examples.join(examples.SLICE, _OTHER_NODE), ("    name: rack-2\n", "    name: rack-1\n")
    ),
    "DR204": broken(
        _TWO_SLICES,
        (_MORE.replace("Count: 1", "Count: 2"), _MORE),
    ),
    "DR205": Example(
        examples.join(examples.SLICE.replace("generation: 1", "generation: 2"), _MORE),
        _TWO_SLICES.replace("generation: 1", "generation: 2"),
    ),
    "DR206": broken(_TWO_SLICES, ("name: gpu-2", "name: gpu-0")),
    "DR207": broken(
        examples.SLICE,
        (examples.SLICE[examples.SLICE.index("  devices:") :], "  devices: []\n"),
    ),
}
