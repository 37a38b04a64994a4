"""
The labels of nodes with accelerators, as the feature discovery of the vendors sets them.

Charts of the vendors select nodes by these labels. Names and values follow NVIDIA's GPU feature
discovery, AMD's node labeller and GPU operator, Intel's rules for node feature discovery, and GKE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.hardware.catalogue.templates import fill
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.validation.names import label_value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dryrack.hardware.catalogue.values import Fitting

# PCI device ids of the virtual functions of AMD's GPUs, which have a label of their own.
_AMD_VIRTUAL_FUNCTIONS = ("0x74b5",)
_MEBIBYTE = 2**20
_GIBIBYTE = 2**30


def node_labels(fittings: Sequence[Fitting]) -> dict[str, str]:
    """Return the labels of a node with these devices; without values that are no valid labels."""
    labels: dict[str, str] = {}
    for driver, labels_of in _LABELS_OF.items():
        own = [each for each in fittings if each.model.driver == driver and each.slots]
        if own:
            count = sum(len(each.slots) for each in own)
            labels |= labels_of(own[0], count)
    return {name: value for name, value in labels.items() if value and not label_value(value)}


def _nvidia(gpus: Fitting, count: int) -> dict[str, str]:
    return {
        "feature.node.kubernetes.io/pci-10de.present": "true",
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.count": str(count),
        "nvidia.com/gpu.family": _text(gpus, "architecture").lower().replace(" ", "-"),
        "nvidia.com/gpu.memory": _amount(gpus, "memory", _MEBIBYTE),
        "nvidia.com/gpu.product": _text(gpus, "productName").replace(" ", "-"),
    }


def _amd(gpus: Fitting, _: int) -> dict[str, str]:
    device_id = _text(gpus, "deviceID")
    kind = "amd-vgpu" if device_id in _AMD_VIRTUAL_FUNCTIONS else "amd-gpu"
    memory = _amount(gpus, "memory", _GIBIBYTE)
    return {
        f"feature.node.kubernetes.io/{kind}": "true",
        "amd.com/gpu.cu-count": _amount(gpus, "computeUnits"),
        "amd.com/gpu.device-id": device_id.removeprefix("0x"),
        "amd.com/gpu.product-name": _text(gpus, "productName").replace(" ", "_"),
        "amd.com/gpu.simd-count": _amount(gpus, "simdUnits"),
        "amd.com/gpu.vram": f"{memory}G" if memory else "",
    }


def _intel(gpus: Fitting, count: int) -> dict[str, str]:
    # "Data Center Max" is the family Max_Series of the labels.
    _, _, series = _text(gpus, "family").partition("Data Center ")
    return {
        "intel.feature.node.kubernetes.io/gpu": "true",
        "gpu.intel.com/device.count": str(count),
        "gpu.intel.com/family": f"{series}_Series" if series else "",
        "gpu.intel.com/product": _text(gpus, "model").replace(" ", "_"),
    }


def _gaudi(_: Fitting, __: int) -> dict[str, str]:
    return {"intel.feature.node.kubernetes.io/gaudi": "true"}


def _tpu(chips: Fitting, count: int) -> dict[str, str]:
    return {
        "cloud.google.com/gke-accelerator-count": str(count),
        "cloud.google.com/gke-tpu-accelerator": _text(chips, "accelerator"),
        "cloud.google.com/gke-tpu-topology": _text(chips, "topology"),
    }


_LABELS_OF: dict[str, Callable[[Fitting, int], dict[str, str]]] = {
    "gpu.nvidia.com": _nvidia,
    "gpu.amd.com": _amd,
    "gpu.intel.com": _intel,
    "gaudi.intel.com": _gaudi,
    "tpu.google.com": _tpu,
}


def _text(fitting: Fitting, attribute: str) -> str:
    """Return a string attribute of the first device, or an empty text."""
    value = fill(fitting.model.attributes.get(attribute), fitting.slots[0])
    return str(value.get("string", "")) if isinstance(value, dict) else ""


def _amount(fitting: Fitting, capacity: str, unit: int = 1) -> str:
    """Return a capacity of the first device in whole units, rounded, or an empty text."""
    value = fill(fitting.model.capacity.get(capacity), fitting.slots[0])
    if not isinstance(value, dict) or "value" not in value:
        return ""
    return str(round(Quantity.parse(str(value["value"])).value() / unit))
