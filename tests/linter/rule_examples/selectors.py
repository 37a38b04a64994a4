"""Examples of the rules in `linter.rules.selectors`."""

from __future__ import annotations

from tests.linter import examples
from tests.linter.examples import broken

_SOUND = examples.join(examples.SLICE, examples.CLASS, examples.CLAIM)

_MODEL = 'device.attributes["gpu.example.com"].model == "h100"'

_DRIVER = 'device.driver == "gpu.example.com"'

_NIC = """\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata:
  name: rack-1-nics
spec:
  driver: nic.example.com
  nodeName: rack-1
  pool:
    name: rack-1
    generation: 1
    resourceSliceCount: 1
  devices:
  - name: nic-0
    attributes:
      speed: {int: 400}
"""

EXAMPLES = {
    "DR401": broken(
        examples.join(examples.SLICE, examples.CLASS),
        ('device.driver == "gpu.example.com"', 'device.driver == "gpus.example.com"'),
    ),
    "DR402": broken(_SOUND, (_MODEL, _MODEL.replace("h100", "H100"))),
    "DR403": broken(
        examples.join(
            examples.SLICE, _NIC, examples.CLASS.replace(_DRIVER, f"{_DRIVER} && {_MODEL}")
        ),
        (f"{_DRIVER} && {_MODEL}", _MODEL),
    ),
    "DR404": broken(_SOUND, (_MODEL, 'device.attributes["gpu.example.com"].model > 4')),
    "DR405": broken(
        examples.join(
            examples.CLASS,
            examples.CLAIM.replace(
                _MODEL,
                'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0',
            ),
        ),
        (
            'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0',
            'device.attributes["gpu.example.com"].memory >= "40Gi"',
        ),
    ),
    "DR408": broken(
        examples.CLASS,
        ('device.driver == "gpu.example.com"', 'device.driver == "example.com/gpu"'),
    ),
    "DR406": broken(
        examples.join(examples.SLICE, examples.CLASS),
        (examples.CLASS[examples.CLASS.index("spec:") :], "spec: {}\n"),
    ),
    "DR407": broken(
        examples.join(
            examples.CLASS + "  extendedResourceName: example.com/gpu\n",
            examples.CLASS.replace("name: gpu", "name: big-gpu")
            + "  extendedResourceName: example.com/big-gpu\n",
        ),
        ("extendedResourceName: example.com/big-gpu", "extendedResourceName: example.com/gpu"),
    ),
}
