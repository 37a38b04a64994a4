"""
GPUs that do not exist, as those of Kubernetes' own example driver: names, variables, parameters.

Opaque parameters of kind GpuConfig say how a GPU is shared by the containers of a claim. With
`shared=true` a GPU is handed out to many claims, each with a part of its memory and compute.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import msgspec

from dryrack.kinds.quantity import Quantity
from dryrack.kinds.resource import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Device,
    DeviceAttribute,
    DeviceCapacity,
)
from dryrack.kubeletplugin.device_kind import ContainerEdits, DevicesError, PrepareError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kubeletplugin.device_kind import AllocatedDevice, KindOptions, PreparingClaim

DRIVER = "gpu.example.com"
PARAMETERS_KIND = "GpuConfig"
PARAMETERS_VERSION = "gpu.resource.example.com/v1alpha1"
COUNT = 8
COUNT_MAX = 10_000
# What there is of each, and the smallest part that can be asked for.
CAPACITY = {"memory": ("80Gi", "1Gi"), "compute": ("100", "1")}


class _TimeSlicing(msgspec.Struct, frozen=True, rename="camel"):
    interval: Literal["Default", "Short", "Medium", "Long"] = "Default"


class _SpacePartitioning(msgspec.Struct, frozen=True, rename="camel"):
    partition_count: int = 1


class _Sharing(msgspec.Struct, frozen=True, rename="camel"):
    strategy: Literal["TimeSlicing", "SpacePartitioning"] = "TimeSlicing"
    time_slicing_config: _TimeSlicing = _TimeSlicing()
    space_partitioning_config: _SpacePartitioning = _SpacePartitioning()


class _Parameters(msgspec.Struct, frozen=True):
    sharing: _Sharing = _Sharing()


@dataclass(frozen=True, slots=True)
class GpuKind:
    """`gpu-0`, `gpu-1` and so on, all of one model."""

    count: int = COUNT
    is_shared: bool = False
    driver: str = DRIVER
    device_class: str = DRIVER
    cdi_kind: str = f"k8s.{DRIVER}/gpu"

    def devices(self, node: str) -> tuple[Device, ...]:
        capacity = {name: self._capacity(*amounts) for name, amounts in CAPACITY.items()}
        return tuple(
            Device(
                name=f"gpu-{index}",
                attributes={
                    "driverVersion": DeviceAttribute(version_value="1.0.0"),
                    "index": DeviceAttribute(int_value=index),
                    "model": DeviceAttribute(string_value="LATEST-GPU-MODEL"),
                    "uuid": DeviceAttribute(string_value=_uuid(node, index)),
                },
                capacity=capacity,
                allow_multiple_allocations=True if self.is_shared else None,
            )
            for index in range(self.count)
        )

    def host_files(self) -> tuple[str, ...]:
        return ()

    def edits(self, device: AllocatedDevice, claim: PreparingClaim, number: int) -> ContainerEdits:
        env = (
            ("KUBERNETES_NODE_NAME", claim.node),
            ("DRA_RESOURCE_DRIVER_NAME", self.driver),
            *_variables(device, claim),
        )
        return ContainerEdits(env=env)

    def _capacity(self, whole: str, step: str) -> DeviceCapacity:
        value, least = Quantity.parse(whole), Quantity.parse(step)
        if not self.is_shared:
            return DeviceCapacity(value=value)
        valid = CapacityRequestPolicyRange(min=least, max=value, step=least)
        policy = CapacityRequestPolicy(default=value, valid_range=valid)
        return DeviceCapacity(value=value, request_policy=policy)


def gpu_kind(options: KindOptions) -> GpuKind:
    """`gpu:8`, `gpu:8,shared=true`."""
    taken = options.take({"shared": "false"})
    count = COUNT if options.count is None else options.count
    if count > COUNT_MAX:
        raise DevicesError(f"--devices gpu:{count}: a node has {COUNT_MAX} at most")
    if taken["shared"] not in ("true", "false"):
        raise DevicesError(f"--devices gpu: shared={taken['shared']!r}; true or false")
    return GpuKind(count, taken["shared"] == "true")


def _variables(device: AllocatedDevice, claim: PreparingClaim) -> Iterator[tuple[str, str]]:
    index = device.device.removeprefix("gpu-")
    prefix = f"GPU_DEVICE_{index}"
    sharing = _sharing(device)
    yield prefix, device.device
    yield f"{prefix}_SHARING_STRATEGY", sharing.strategy
    if sharing.strategy == "TimeSlicing":
        yield f"{prefix}_TIMESLICE_INTERVAL", sharing.time_slicing_config.interval
    else:
        count = sharing.space_partitioning_config.partition_count
        yield f"{prefix}_PARTITION_COUNT", str(count)
    yield f"GPU_DEVICE_GPU_{index}_RESOURCE_CLAIM", claim.uid
    for name, amount in sorted(device.consumed_capacity.items()):
        yield f"{prefix}_{name.rpartition('/')[2].upper()}", amount
    if device.has_admin_access:
        yield "DRA_ADMIN_ACCESS", "true"


def _sharing(device: AllocatedDevice) -> _Sharing:
    """What was said last; fields that are not known are ignored, as the example driver does."""
    if not device.parameters:
        return _Sharing()
    whole = device.parameters[-1]
    where = f"request {device.request}, opaque parameters"
    given = (whole.get("apiVersion"), whole.get("kind")) if isinstance(whole, dict) else whole
    if given != (PARAMETERS_VERSION, PARAMETERS_KIND):
        raise PrepareError(f"{where}: {given!r}; it is {PARAMETERS_KIND} of {PARAMETERS_VERSION}")
    try:
        sharing = msgspec.convert(whole, _Parameters).sharing
    except msgspec.ValidationError as error:
        raise PrepareError(f"{where}: {error}") from None
    if sharing.space_partitioning_config.partition_count < 0:
        raise PrepareError(f"{where}: partitionCount is negative; 0 or more")
    return sharing


def _uuid(node: str, index: int) -> str:
    digest = hashlib.sha256("\0".join((DRIVER, node, str(index))).encode()).hexdigest()
    parts = (digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:32])
    return f"gpu-{'-'.join(parts)}"
