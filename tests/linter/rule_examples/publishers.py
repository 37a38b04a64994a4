"""Examples of the rules in `linter.rules.publishers`."""

from __future__ import annotations

from tests.linter.examples import broken

_SOUND = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: dra-kwok-configmap
  namespace: karpenter
data:
  config.yaml: |
    driver: gpu.example.com
    mappings:
    - name: t4
      nodeSelectorTerms:
      - matchExpressions:
        - {key: node.kubernetes.io/instance-type, operator: In, values: [g4dn.xlarge]}
      resourceSlice:
        driver: gpu.example.com
        devices:
        - name: t4-0
          attributes:
            model: {string: t4}
            compute_capability: {version: 7.5.0}
          capacity:
            memory: {value: 16Gi}
"""


_OVERLAY = """\
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata:
  name: t4
spec:
  requirements:
  - {key: node.kubernetes.io/instance-type, operator: In, values: [g4dn.xlarge]}
  capacity:
    gpu.example.com/device: "1"
  resourceSlices:
  - apiVersion: resource.k8s.io/v1
    kind: ResourceSlice
    spec:
      driver: gpu.example.com
      devices:
      - name: t4-0
        attributes:
          model: {string: t4}
"""


_DRIVER = "        driver: gpu.example.com\n"

# The sound file, what of it is replaced, and by what.
_EDITS = {
    "DR801": (_SOUND, "        driver: gpu.example.com", "        driver: example.com/gpu"),
    "DR802": (_SOUND, "compute_capability", "compute-capability"),
    "DR803": (_SOUND, "{string: t4}", "{String: t4}"),
    "DR804": (_SOUND, _DRIVER, f"{_DRIVER}        pool: {{resourceSliceCount: 3}}\n"),
    "DR805": (_SOUND, _DRIVER, f"{_DRIVER}        pool: {{name: t4-pool}}\n"),
    "DR806": (_SOUND, _DRIVER, f"{_DRIVER}        allNodes: true\n"),
    "DR807": (
        _SOUND,
        "          capacity:\n            memory: {value",
        "            memory: {string",
    ),
    "DR808": (_SOUND, "{version: 7.5.0}", '{version: "7.5"}'),
    "DR809": (_OVERLAY, 'gpu.example.com/device: "1"', 'gpu.example.com/device: "8"'),
    "DR810": (_SOUND, "        - name: t4-0", "        - name: t4\n          count: 1"),
}
EXAMPLES = {code: broken(sound, (old, new)) for code, (sound, old, new) in _EDITS.items()}
