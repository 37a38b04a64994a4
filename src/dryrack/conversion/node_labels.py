"""
Labels of nodes with accelerators, as selectors of devices.

Feature discovery writes what a device is into labels of its node, with blanks replaced. A selector
reads the attribute of the device itself and compares it in the form of the label, so that no
spelling is guessed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class _Read:
    """
    The value of a label, read from a device.

    `text` is an expression with the text of the label; `number` is one with its number. `amount` is
    a capacity, and then `unit` is that of the label.
    """

    driver: str
    text: str = ""
    number: str = ""
    amount: str = ""
    unit: str = ""


_NVIDIA = 'device.attributes["gpu.nvidia.com"]'
_AMD = 'device.attributes["gpu.amd.com"]'
_INTEL = 'device.attributes["gpu.intel.com"]'
_TPU = 'device.attributes["tpu.google.com"]'
_DASHES = '.replace(" ", "-")'
_UNDERSCORES = '.replace(" ", "_")'
_LABELS = {
    "nvidia.com/gpu.product": _Read("gpu.nvidia.com", f"{_NVIDIA}.productName{_DASHES}"),
    "nvidia.com/gpu.family": _Read(
        "gpu.nvidia.com", f"{_NVIDIA}.architecture.lowerAscii(){_DASHES}"
    ),
    "nvidia.com/gpu.memory": _Read(
        "gpu.nvidia.com", amount='device.capacity["gpu.nvidia.com"].memory', unit="Mi"
    ),
    "nvidia.com/gpu.compute.major": _Read(
        "gpu.nvidia.com", number=f"{_NVIDIA}.cudaComputeCapability.major()"
    ),
    "nvidia.com/gpu.compute.minor": _Read(
        "gpu.nvidia.com", number=f"{_NVIDIA}.cudaComputeCapability.minor()"
    ),
    "amd.com/gpu.product-name": _Read("gpu.amd.com", f"{_AMD}.productName{_UNDERSCORES}"),
    "gpu.intel.com/product": _Read("gpu.intel.com", f"{_INTEL}.model{_UNDERSCORES}"),
    "cloud.google.com/gke-tpu-accelerator": _Read("tpu.google.com", f"{_TPU}.accelerator"),
    "cloud.google.com/gke-tpu-topology": _Read("tpu.google.com", f"{_TPU}.topology"),
}
# Labels that every node with such devices has: the claim says the same.
_IMPLIED = {
    "nvidia.com/gpu.present": "gpu.nvidia.com",
    "feature.node.kubernetes.io/pci-10de.present": "gpu.nvidia.com",
    "feature.node.kubernetes.io/amd-gpu": "gpu.amd.com",
    "intel.feature.node.kubernetes.io/gpu": "gpu.intel.com",
    "intel.feature.node.kubernetes.io/gaudi": "gaudi.intel.com",
}
# Labels about devices that no attribute of a device states.
_PREFIXES = {
    "nvidia.com/": "gpu.nvidia.com",
    "amd.com/gpu": "gpu.amd.com",
    "gpu.intel.com/": "gpu.intel.com",
    "cloud.google.com/gke-tpu": "tpu.google.com",
    "cloud.google.com/gke-accelerator": "gpu.nvidia.com",
}
_SHARED = "-SHARED"


def driver_of_label(label: str) -> str:
    """Return the driver whose devices a label is about; "" if it is about none."""
    if label in _LABELS:
        return _LABELS[label].driver
    if label in _IMPLIED:
        return _IMPLIED[label]
    return next((each for prefix, each in _PREFIXES.items() if label.startswith(prefix)), "")


def selector_of(label: str, operator: str, values: Sequence[str]) -> str | None:
    """
    Return the selector that requires the same of a device as the label of its node.

    It is "" if the claim requires it anyway, and None if no selector requires it.
    """
    if label in _IMPLIED:
        is_implied = operator == "Exists" or (operator == "In" and tuple(values) == ("true",))
        return "" if is_implied else None
    read = _LABELS.get(label)
    if read is None:
        return None
    if operator == "Exists":
        return ""
    if not values or operator not in ("In", "NotIn", "Gt", "Lt"):
        return None
    if read.text:
        # The discovery appends a suffix where devices are shared.
        words = [json.dumps(each.removesuffix(_SHARED)) for each in values]
        if operator in ("Gt", "Lt"):
            return None
        if len(words) == 1:
            return f"{read.text} {'==' if operator == 'In' else '!='} {words[0]}"
        test = f"{read.text} in [{', '.join(words)}]"
        return test if operator == "In" else f"!({test})"
    if not all(each.isascii() and each.isdigit() for each in values):
        return None
    sign = {"In": "==", "NotIn": "!=", "Gt": ">", "Lt": "<"}[operator]
    tests = [
        f'{read.amount}.compareTo(quantity("{each}{read.unit}")) {sign} 0'
        if read.amount
        else f"{read.number} {sign} {each}"
        for each in values
    ]
    return (" && " if operator == "NotIn" else " || ").join(tests)
