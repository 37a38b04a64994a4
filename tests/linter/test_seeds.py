"""
Configurations as people publish them, and what lint says about each line.

The texts have the faults of examples found in the wild: a slash in a driver name, a hyphen in
an attribute, an amount as text, a pool for all nodes of a mapping.
"""

from __future__ import annotations

from dryrack.linter import lint

CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: dra-kwok-configmap
  namespace: karpenter
data:
  config.yaml: |
    driver: example.com/dra-kwok-driver
    mappings:
      - name: gpu-t4-mapping
        nodeSelectorTerms:
          - matchExpressions:
              - key: node.kubernetes.io/instance-type
                operator: In
                values: ["c-4x-amd64-linux"]
        resourceSlice:
          driver: example.com/dra-kwok-driver
          pool:
            name: t4-gpu-pool
            resourceSliceCount: 1
          devices:
            - name: nvidia-t4-0
              attributes:
                type:
                  String: nvidia-tesla-t4
                memory:
                  String: 16Gi
                compute-capability:
                  String: "7.5"
      - name: cluster-wide-resource
        nodeSelectorTerms:
          - matchExpressions:
              - {key: has-shared-storage, operator: In, values: ["true"]}
        resourceSlice:
          driver: dra-kwok-driver.example.com
          allNodes: true
          pool:
            name: shared-storage-pool
            resourceSliceCount: 3
          devices:
            - name: shared-nvme-0
"""

NODE_OVERLAY = """\
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata:
  name: gpu-dra-config
spec:
  weight: 10
  requirements:
  - {key: node.kubernetes.io/instance-type, operator: In, values: [g5.48xlarge]}
  resourceSlices:
  - apiVersion: resource.k8s.io/v1
    kind: ResourceSlice
    spec:
      driver: karpenter.sh.dra-kwok-driver
      devices:
      - name: nvidia-h100-0
        driver: karpenter.sh/dra-kwok-driver
        attributes:
          memory: "80Gi"
          compute-capability: "9.0"
          vendor: "nvidia"
"""


def found(text: str) -> list[tuple[int, str]]:
    return [(finding.line, finding.code) for finding in lint([("seed.yaml", text.encode())])]


def test_a_config_map_is_judged_line_by_line() -> None:
    """Findings inside the text of a ConfigMap carry the line of the file, not of the text."""
    assert found(CONFIG_MAP) == [
        (8, "DR801"),
        (17, "DR801"),
        (19, "DR805"),
        (24, "DR803"),
        (26, "DR803"),
        (26, "DR807"),
        (28, "DR802"),
        (28, "DR803"),
        (36, "DR806"),
        (39, "DR804"),
    ]


def test_a_node_overlay_is_judged_line_by_line() -> None:
    """Slices embedded in an overlay are read in the dialect that people write them in."""
    assert found(NODE_OVERLAY) == [
        (16, "DR801"),
        (16, "DR810"),
        (18, "DR803"),
        (18, "DR807"),
        (19, "DR802"),
        (19, "DR803"),
        (20, "DR803"),
    ]


def test_a_quoted_text_is_judged_at_its_key() -> None:
    """The lines inside a text that is not a block are not lines of the file."""
    text = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n"
        '  config: "driver: a/b\\nmappings:\\n- name: a\\n  nodeSelector: {matchLabels: {a: b}}\\n'
        '  resourceSlice: {devices: [{name: a}]}\\n"\n'
    )

    assert found(text) == [(5, "DR801")]
