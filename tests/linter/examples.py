"""
A small sound world, in pieces, from which the rules' examples are cut.

Each piece is one document that lint has nothing to say about, alone or with the others.
An example joins the pieces it needs and breaks one of them.
"""

from __future__ import annotations

from dataclasses import dataclass

SLICE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata:
  name: rack-1-gpus
spec:
  driver: gpu.example.com
  nodeName: rack-1
  pool:
    name: rack-1
    generation: 1
    resourceSliceCount: 1
  devices:
  - name: gpu-0
    attributes:
      model: {string: h100}
      numa: {int: 0}
    capacity:
      memory: {value: 80Gi}
  - name: gpu-1
    attributes:
      model: {string: h100}
      numa: {int: 1}
    capacity:
      memory: {value: 80Gi}
"""

COUNTERS = """\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata:
  name: rack-2-counters
spec:
  driver: mig.example.com
  nodeName: rack-2
  pool:
    name: rack-2
    generation: 1
    resourceSliceCount: 2
  sharedCounters:
  - name: gpu-0
    counters:
      memory: {value: 80Gi}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata:
  name: rack-2-partitions
spec:
  driver: mig.example.com
  nodeName: rack-2
  pool:
    name: rack-2
    generation: 1
    resourceSliceCount: 2
  devices:
  - name: half
    consumesCounters:
    - counterSet: gpu-0
      counters:
        memory: {value: 40Gi}
"""

CLASS = """\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata:
  name: gpu
spec:
  selectors:
  - cel:
      expression: device.driver == "gpu.example.com"
"""

CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: training
  namespace: team-a
spec:
  devices:
    requests:
    - name: gpus
      exactly:
        deviceClassName: gpu
        count: 2
        selectors:
        - cel:
            expression: device.attributes["gpu.example.com"].model == "h100"
"""

TEMPLATE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata:
  name: one-gpu
  namespace: team-a
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly:
          deviceClassName: gpu
"""

POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: trainer
  namespace: team-a
spec:
  containers:
  - name: main
    image: example.com/train:1
    resources:
      claims:
      - name: gpu
  resourceClaims:
  - name: gpu
    resourceClaimTemplateName: one-gpu
"""

NAMESPACE = """\
apiVersion: v1
kind: Namespace
metadata:
  name: team-a
  labels:
    resource.kubernetes.io/admin-access: "true"
"""

TAINT_RULE = """\
apiVersion: resource.k8s.io/v1beta2
kind: DeviceTaintRule
metadata:
  name: broken-gpu
spec:
  deviceSelector:
    driver: gpu.example.com
    pool: rack-1
    device: gpu-1
  taint:
    key: example.com/broken
    effect: NoSchedule
"""


def join(*pieces: str) -> str:
    """One file of several documents."""
    return "---\n".join(pieces)


@dataclass(frozen=True, slots=True)
class Example:
    """A file with the fault, and the same file without."""

    bad: str
    fixed: str


def broken(sound: str, *edits: tuple[str, str]) -> Example:
    """The example that has its fault from replacing text in a sound file."""
    bad = sound
    for old, new in edits:
        if bad.count(old) != 1:
            raise ValueError(f"the example has {bad.count(old)} places with {old!r}, not one")
        bad = bad.replace(old, new)
    return Example(bad, sound)
