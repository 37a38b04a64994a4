"""Examples of the rules in `linter.rules.claims`."""

from __future__ import annotations

from tests.linter import examples
from tests.linter.examples import broken

_SOUND = examples.join(examples.SLICE, examples.CLASS, examples.CLAIM)

_CONFIG = """\
    config:
    - opaque:
        driver: gpu.example.com
        parameters: {kind: Sharing}
"""

EXAMPLES = {
    "DR501": broken(
        examples.join(examples.CLASS, examples.CLAIM),
        ("deviceClassName: gpu", "deviceClassName: gpus"),
    ),
    "DR503": broken(examples.join(examples.CLASS, examples.CLAIM), ("count: 2", "count: 33")),
    "DR507": broken(
        _SOUND + _CONFIG, ("        driver: gpu.example.com", "        driver: gpu.exampel.com")
    ),
    "DR510": broken(
        examples.join(
            examples.SLICE,
            examples.TAINT_RULE,
            examples.CLASS,
            examples.CLAIM.replace(
                "count: 2",
                "count: 2\n        tolerations:\n"
                "        - {key: example.com/broken, operator: Exists}",
            ),
        ),
        (
            "{key: example.com/broken, operator: Exists}",
            "{key: example.com/borken, operator: Exists}",
        ),
    ),
    "DR512": broken(
        examples.join(examples.CLASS, examples.CLAIM[: examples.CLAIM.index("      exactly:")])
        + """\
      firstAvailable:
      - name: two
        deviceClassName: gpu
        count: 2
      - name: one
        deviceClassName: gpu
        count: 1
""",
        (
            """\
      - name: two
        deviceClassName: gpu
        count: 2
      - name: one
        deviceClassName: gpu
        count: 1
""",
            """\
      - name: one
        deviceClassName: gpu
        count: 1
      - name: two
        deviceClassName: gpu
        count: 2
""",
        ),
    ),
}
