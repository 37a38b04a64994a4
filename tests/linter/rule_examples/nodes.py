"""Examples of the rules in `linter.rules.nodes`."""

from __future__ import annotations

from tests.linter import examples
from tests.linter.examples import broken

_NODE = """\
apiVersion: v1
kind: Node
metadata:
  name: rack-1
  labels:
    example.com/row: a
"""

_TERM = "{matchExpressions: [{key: example.com/row, operator: In, values: [a]}]}"

_BY_LABEL = examples.SLICE.replace(
    "nodeName: rack-1",
    f"nodeSelector:\n    nodeSelectorTerms:\n    - {_TERM}",
)

_PER_DEVICE = (
    examples.SLICE.replace("nodeName: rack-1", "perDeviceNodeSelection: true")
    .replace(
        "  - name: gpu-0\n",
        f"  - name: gpu-0\n    nodeSelector:\n      nodeSelectorTerms:\n      - {_TERM}\n",
    )
    .replace("  - name: gpu-1\n", "  - name: gpu-1\n    nodeName: rack-1\n")
)

EXAMPLES = {
    "DR231": broken(_PER_DEVICE, (f"      - {_TERM}\n", f"      - {_TERM}\n      - {_TERM}\n")),
    "DR232": broken(
        examples.join(_NODE, examples.SLICE), ("nodeName: rack-1", "nodeName: rack-01")
    ),
    "DR233": broken(examples.join(_NODE, _BY_LABEL), ("example.com/row: a", "example.com/row: b")),
}
