"""The labels of nodes with accelerators of the catalog."""

from __future__ import annotations

import pytest
from tests.hardware.catalogue.packaged import catalogue

from dryrack.cluster import load_catalogue, virtual_node
from dryrack.hardware.catalogue import parse
from dryrack.kinds.validation.names import label_value

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
NVIDIA = {"feature.node.kubernetes.io/pci-10de.present": "true", "nvidia.com/gpu.present": "true"}
MAX_1100 = b"""
apiVersion: dryrack.dev/v1alpha1
kind: Catalogue
instanceTypes:
- names: [max]
  devices:
  - {model: max-1100, each: {pci: ["0000:01:00.0", "0000:02:00.0"]}}
"""
UNUSUAL = b"""
apiVersion: dryrack.dev/v1alpha1
kind: Catalogue
models:
- name: card
  driver: gpu.nvidia.com
  device: gpu-{index}
  attributes:
    productName: {string: "{product}"}
instanceTypes:
- {names: [plain], devices: [{model: card, each: {product: [Card (2nd)]}}]}
- {names: [slots], devices: [{model: card, each: {product: [X1 Pro, X2]}}]}
"""


@pytest.mark.parametrize(
    ("type_", "labels"),
    [
        (
            "p5.48xlarge",
            {
                **NVIDIA,
                "nvidia.com/gpu.count": "8",
                "nvidia.com/gpu.family": "hopper",
                "nvidia.com/gpu.memory": "81559",
                "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
            },
        ),
        (
            "g6.xlarge",
            {
                **NVIDIA,
                "nvidia.com/gpu.count": "1",
                "nvidia.com/gpu.family": "ada-lovelace",
                "nvidia.com/gpu.memory": "23034",
                "nvidia.com/gpu.product": "NVIDIA-L4",
            },
        ),
        (
            "Standard_ND96isr_MI300X_v5",
            {
                "feature.node.kubernetes.io/amd-vgpu": "true",
                "amd.com/gpu.cu-count": "304",
                "amd.com/gpu.device-id": "74b5",
                "amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM",
                "amd.com/gpu.simd-count": "1216",
                "amd.com/gpu.vram": "192G",
            },
        ),
        ("dl1.24xlarge", {"intel.feature.node.kubernetes.io/gaudi": "true"}),
        (
            "ct5lp-hightpu-4t",
            {
                "cloud.google.com/gke-accelerator-count": "4",
                "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice",
                "cloud.google.com/gke-tpu-topology": "2x2",
            },
        ),
        ("trn1.32xlarge", {}),
    ],
)
def test_labels_follow_from_the_devices_of_the_instance_type(
    type_: str, labels: dict[str, str]
) -> None:
    """Names and values are those of the feature discovery of the vendor."""
    machine = catalogue().instance_types[type_]
    assert machine.node_labels == {INSTANCE_TYPE: type_, **labels}


def test_gpus_of_intel_have_the_labels_of_its_feature_rules() -> None:
    """The family of the labels is the series of the product line."""
    machine = parse({"max.yaml": MAX_1100}, load_catalogue()).instance_types["max"]
    assert machine.node_labels == {
        INSTANCE_TYPE: "max",
        "intel.feature.node.kubernetes.io/gpu": "true",
        "gpu.intel.com/device.count": "2",
        "gpu.intel.com/family": "Max_Series",
        "gpu.intel.com/product": "Max_1100",
    }


def test_values_that_are_missing_or_no_labels_are_left_out() -> None:
    """A model without memory has no memory label; the first device gives the product."""
    types = parse({"own.yaml": UNUSUAL}).instance_types
    present = {**NVIDIA, "nvidia.com/gpu.count": "1"}
    product = {"nvidia.com/gpu.count": "2", "nvidia.com/gpu.product": "X1-Pro"}
    assert types["plain"].node_labels == {INSTANCE_TYPE: "plain", **present}
    assert types["slots"].node_labels == {INSTANCE_TYPE: "slots", **NVIDIA, **product}


def test_labels_of_all_packaged_types_are_valid_and_on_their_nodes() -> None:
    """A virtual node has the labels of its type."""
    for machine in catalogue().instance_types.values():
        labels = machine.node_labels
        assert not [value for value in labels.values() if label_value(value)]
        assert labels.items() <= virtual_node("n", machine)["metadata"]["labels"].items()
