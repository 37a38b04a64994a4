"""
CPUs by NUMA node, with the names and variables of Kubernetes' example driver.

Claims ask for CPUs as capacity. The node's own count of CPUs stays as it is: the field by which
a device says that it is a part of that is behind a feature gate, and most servers drop it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.kinds.quantity import Quantity
from dryrack.kinds.resource import Device, DeviceAttribute, DeviceCapacity
from dryrack.kubeletplugin.device_kind import ContainerEdits, PrepareError
from dryrack.kubeletplugin.kinds import example

if TYPE_CHECKING:
    from dryrack.kubeletplugin.device_kind import AllocatedDevice, KindOptions, PreparingClaim

PROFILE = "cpu"
DRIVER = example.driver_of(PROFILE)
CAPACITY = f"{DRIVER}/cpu"
CPUS = 4
CPUS_MAX = 1_024


@dataclass(frozen=True, slots=True)
class CpuKind:
    """`numa-0` and so on, each with as many CPUs."""

    count: int = example.COUNT
    cpus: int = CPUS
    driver: str = DRIVER
    device_class: str = DRIVER
    cdi_kind: str = f"k8s.{DRIVER}/{PROFILE}"

    def devices(self, node: str) -> tuple[Device, ...]:
        cpus = DeviceCapacity(value=Quantity.parse(str(self.cpus)))
        return tuple(
            Device(
                name=f"numa-{index}",
                attributes={
                    "numaNodeID": DeviceAttribute(int_value=index),
                    # The name by which devices of several drivers are aligned.
                    "resource.kubernetes.io/numaNode": DeviceAttribute(int_value=index),
                },
                capacity={CAPACITY: cpus},
                allow_multiple_allocations=True,
            )
            for index in range(self.count)
        )

    def host_files(self) -> tuple[str, ...]:
        return ()

    def edits(self, device: AllocatedDevice, claim: PreparingClaim, number: int) -> ContainerEdits:
        if device.parameters:
            raise PrepareError(
                f"request {device.request}: {DRIVER} accepts no opaque parameters; remove them"
            )
        variable = example.variable_of(PROFILE, device.device.removeprefix("numa-"))
        consumed = device.consumed_capacity.get(CAPACITY)
        env = (
            (variable, device.device),
            *(((f"{variable}_CONSUMED_CPU", consumed),) if consumed is not None else ()),
            *example.common_env(PROFILE, device, claim),
        )
        return ContainerEdits(env=env)


def cpu_kind(options: KindOptions) -> CpuKind:
    """`cpu:2,cpus=32`: two NUMA nodes."""
    taken = options.take({"cpus": str(CPUS)})
    cpus = example.number_of(options, "cpus", taken["cpus"], 1, CPUS_MAX)
    return CpuKind(example.count_of(options), cpus)
