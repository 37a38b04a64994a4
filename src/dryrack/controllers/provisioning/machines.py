"""
The instance types from which nodes are created, and the labels of their nodes.

They are those of the hardware catalog, which have devices, and the generic types of Karpenter's
KWOK provider, such as `c-4x-amd64-linux`, which have none of their own. Documents in the cluster
can give nodes of any type further devices.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.hardware import INSTANCE_TYPE
from dryrack.kinds.expansion.virtual_nodes import CAPACITY
from dryrack.kinds.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dryrack.hardware.catalogue import InstanceType

ARCH = "kubernetes.io/arch"
OS = "kubernetes.io/os"
ZONE = "topology.kubernetes.io/zone"
CAPACITY_TYPES = ("on-demand", "spot")
ZONES = ("test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d")
"""The zones of Karpenter's KWOK provider."""

# The labels by which NodePools of Karpenter's KWOK provider select sizes.
_CPU = "karpenter.kwok.sh/instance-cpu"
_MEMORY = "karpenter.kwok.sh/instance-memory"
_SIZE = "karpenter.kwok.sh/instance-size"
_FAMILY = "karpenter.kwok.sh/instance-family"
_AWS_NAME = re.compile(r"\w+\.(nano|micro|small|medium|large|\d*xlarge|metal)")

# The labels of Karpenter's provider for AWS, by which public NodePools select types.
_AWS = "karpenter.k8s.aws/instance-"
_AWS_TYPE = re.compile(
    r"(?P<family>(?P<category>[a-z]++)(?P<generation>\d++)[a-z0-9-]*+)\.(?P<size>[\w-]++)"
)
# The category with as much memory for each CPU as a generic family.
_AWS_CATEGORIES = {"c": "c", "s": "m", "m": "r"}

# The generic types: GiB of memory for each CPU, and the numbers of CPUs.
_FAMILIES = {"c": 2, "s": 4, "m": 8}
_CPUS = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256)
_PODS_PER_CPU = 16
_PODS_MAX = 1024
# Prices of the generic types: for each CPU, and for each 10⁹ bytes of memory, per hour.
_CPU_PRICE = 0.025
_GIGABYTE_PRICE = 0.001
_GIBIBYTE = 2**30


@dataclass(frozen=True, slots=True)
class Machine:
    """An instance type: its labels, its capacity, and its price."""

    name: str
    labels: Mapping[str, str]
    capacity: Mapping[str, str]
    price: float | None = None
    """The price per hour; None if it is unknown."""
    zones: tuple[str, ...] = ZONES
    capacity_types: tuple[str, ...] = CAPACITY_TYPES
    """The first that a NodePool and its pods allow is used."""


def generic_machines() -> tuple[Machine, ...]:
    """Return the instance types of Karpenter's KWOK provider that run Linux."""
    return tuple(
        _generic(family, cpus, arch)
        for family in _FAMILIES
        for cpus in _CPUS
        for arch in ("amd64", "arm64")
    )


def _generic(family: str, cpus: int, arch: str) -> Machine:
    name = f"{family}-{cpus}x-{arch}-linux"
    memory = cpus * _FAMILIES[family]
    capacity = {
        "cpu": str(cpus),
        "memory": f"{memory}Gi",
        "ephemeral-storage": "20Gi",
        "pods": str(min(cpus * _PODS_PER_CPU, _PODS_MAX)),
    }
    labels = {
        INSTANCE_TYPE: name,
        ARCH: arch,
        OS: "linux",
        **size_labels(name, capacity),
        f"{_AWS}category": _AWS_CATEGORIES[family],
        **{f"{_AWS}{key}": value for key, value in _aws_sizes(capacity).items()},
    }
    price = round(cpus * _CPU_PRICE + memory * _GIBIBYTE / 1e9 * _GIGABYTE_PRICE, 3)
    return Machine(name, labels, capacity, price)


def size_labels(name: str, capacity: Mapping[str, str]) -> dict[str, str]:
    """Return the labels by which NodePools select sizes, as in Karpenter's KWOK provider."""
    of_aws = _AWS_NAME.fullmatch(name)
    return {
        _CPU: capacity["cpu"],
        _MEMORY: capacity["memory"],
        _SIZE: of_aws[1] if of_aws else capacity["cpu"],
        _FAMILY: re.split("[.-]", name)[0],
    }


def _aws_labels(
    name: str, labels: Mapping[str, str], capacity: Mapping[str, str]
) -> dict[str, str]:
    """Return the labels by which NodePools for AWS select an instance type, if it is of AWS."""
    of_aws = _AWS_TYPE.fullmatch(name)
    if of_aws is None:
        return {}
    found = {
        "category": of_aws["category"],
        "generation": of_aws["generation"],
        "family": of_aws["family"],
        "size": of_aws["size"],
        **_aws_sizes(capacity),
    }
    product = labels.get("nvidia.com/gpu.product")
    if product is not None:
        found |= {
            "gpu-manufacturer": "nvidia",
            "gpu-name": product.split("-")[1].lower(),
            "gpu-count": labels["nvidia.com/gpu.count"],
            "gpu-memory": labels["nvidia.com/gpu.memory"],
        }
    return {f"{_AWS}{key}": value for key, value in found.items()}


def _aws_sizes(capacity: Mapping[str, str]) -> dict[str, str]:
    """Return the CPUs, and the memory in MiB."""
    memory = Quantity.parse(capacity["memory"]).value() // 2**20
    return {"cpu": capacity["cpu"], "memory": str(int(memory))}


def catalogue_machines(
    types: Iterable[InstanceType], prices: Mapping[str, float]
) -> tuple[Machine, ...]:
    """Return the instance types of a catalog; a type without a size has that of a virtual node."""
    return tuple(_of_catalogue(each, prices.get(each.name)) for each in types)


def _of_catalogue(machine: InstanceType, price: float | None) -> Machine:
    capacity = {**CAPACITY, **machine.size}
    labels = {
        ARCH: "amd64",
        OS: "linux",
        **size_labels(machine.name, capacity),
        **_aws_labels(machine.name, machine.node_labels, capacity),
        **machine.node_labels,
    }
    return Machine(machine.name, labels, capacity, price)
