"""Examples of the rules in `linter.rules.api`."""

from __future__ import annotations

from tests.linter import examples
from tests.linter.examples import broken

_DEVICES = examples.SLICE[examples.SLICE.index("  devices:") :]

_SOUND = examples.join(examples.CLASS, examples.CLAIM)

_MODEL = 'device.attributes["gpu.example.com"].model == "h100"'

_ALTERNATIVES = "".join(
    f"      - {{name: n{count}, deviceClassName: gpu, count: {count}}}\n"
    for count in range(9, 1, -1)
)

_KEYS = 'device.attributes["gpu.example.com"]'

_MANY = "  devices:\n" + "".join(f"  - name: gpu-{index}\n" for index in range(128))

_DROPPED = """\
    nodeAllocatableResources:
      memory: {mapping: {capacityKey: memory, capacityMultiplier: 1}}
"""

_WITH_POD = examples.join(examples.CLASS, examples.TEMPLATE, examples.POD)

EXAMPLES = {
    "DR101": broken(examples.SLICE, ("    name: rack-1\n", "")),
    "DR102": broken(examples.SLICE, ("name: gpu-0", "name: GPU_0")),
    "DR103": broken(
        _SOUND.replace("count: 2", "allocationMode: All"),
        ("allocationMode: All", "allocationMode: all"),
    ),
    "DR104": broken(examples.SLICE, ("name: gpu-1", "name: gpu-0")),
    "DR105": broken(
        examples.join(
            examples.CLASS,
            examples.TEMPLATE.replace(
                "spec:\n  spec:", "spec:\n  metadata: {labels: {team: a}}\n  spec:"
            ),
        ),
        ("metadata: {labels: {team: a}}", "metadata: {name: training}"),
    ),
    "DR106": broken(
        examples.SLICE.replace(
            "numa: {int: 0}", "numa: {int: 0}\n      note: {string: cold aisle}"
        ),
        ("note: {string: cold aisle}", f"note: {{string: {'very ' * 13}long}}"),
    ),
    "DR107": broken(
        examples.join(examples.CLASS, examples.CLAIM[: examples.CLAIM.index("      exactly:")])
        + "      firstAvailable:\n"
        + _ALTERNATIVES,
        (_ALTERNATIVES, _ALTERNATIVES + "      - {name: n1, deviceClassName: gpu, count: 1}\n"),
    ),
    "DR111": broken(
        examples.SLICE.replace("driver: gpu.example.com", "driver: example.com.gpu"),
        ("driver: example.com.gpu", "driver: example.com/gpu"),
    ),
    "DR112": broken(
        examples.SLICE.replace(
            "numa: {int: 0}", "numa: {int: 0}\n      compute_capability: {version: 9.0.0}"
        ),
        ("compute_capability", "compute-capability"),
    ),
    "DR113": broken(_SOUND, (_MODEL, _MODEL.replace("attributes", "attribute"))),
    "DR114": broken(
        _SOUND,
        (
            _MODEL,
            f"{_KEYS}.exists(a, {_KEYS}.exists(b, {_KEYS}.exists(c, {_KEYS}.exists(d, a == d))))",
        ),
    ),
    "DR115": broken(
        examples.SLICE.replace(_DEVICES, _MANY),
        ("  - name: gpu-127\n", "  - name: gpu-127\n  - name: gpu-128\n"),
    ),
    "DR116": broken(
        examples.join(
            examples.NAMESPACE,
            examples.CLASS,
            examples.CLAIM.replace("count: 2", "allocationMode: All\n        adminAccess: true"),
        ),
        ('resource.kubernetes.io/admin-access: "true"', 'example.com/team: "a"'),
    ),
    "DR117": broken(
        _WITH_POD.replace(
            "      - name: gpu\n  resourceClaims",
            "      - name: gpu\n        request: gpu\n  resourceClaims",
        ),
        (
            "      - name: gpu\n        request: gpu\n  resourceClaims",
            "      - name: gpu\n        request: gpu\n      - name: one-gpu\n  resourceClaims",
        ),
    ),
    "DR118": broken(
        examples.SLICE, ("  nodeName: rack-1\n", "  nodeName: rack-1\n  allNodes: true\n")
    ),
    "DR121": broken(
        examples.SLICE,
        (
            "  - name: gpu-1\n",
            f"  - name: gpu-1\n{_DROPPED}",
        ),
    ),
    "DR122": broken(examples.SLICE, ("driver: gpu.example.com", "driver: GPU.example.com")),
}
