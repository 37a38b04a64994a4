"""
GPUs with the names, variables and parameters of Kubernetes' example driver.

With `partitions=4`, each GPU is published as four partitions and as a whole, which share counters.
With `shared=true`, several claims can share a GPU by consumable capacity. With `binding=true`, pods
are bound when the status of their claim has the condition that the GPU is attached.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from dryrack.kinds.quantity import Quantity
from dryrack.kinds.resource import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
)
from dryrack.kubeletplugin.device_kind import ContainerEdits, PrepareError
from dryrack.kubeletplugin.kinds import example

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dryrack.kubeletplugin.device_kind import AllocatedDevice, KindOptions, PreparingClaim

PROFILE = "gpu"
DRIVER = example.driver_of(PROFILE)
PARAMETERS_KIND = "GpuConfig"
PARAMETERS_VERSION = "gpu.resource.example.com/v1alpha1"
ATTACHED = f"{DRIVER}/attached"
ATTACH_FAILED = f"{DRIVER}/attach-failed"
MEMORY_MIB = 80 * 1024
COMPUTE = 100
# The minimum of a request, and its step.
_UNITS = {"memory": "1Gi", "compute": "1"}


class Strategy(StrEnum):
    """The way in which containers share a GPU."""

    TIME_SLICING = "TimeSlicing"
    SPACE_PARTITIONING = "SpacePartitioning"


class Interval(StrEnum):
    """The time slice of each container."""

    DEFAULT = "Default"
    SHORT = "Short"
    MEDIUM = "Medium"
    LONG = "Long"


class _TimeSlicing(msgspec.Struct, frozen=True):
    interval: Interval = Interval.DEFAULT


class _SpacePartitioning(msgspec.Struct, frozen=True, rename="camel"):
    partition_count: int = 1


class _Sharing(msgspec.Struct, frozen=True, rename="camel"):
    strategy: Strategy = Strategy.TIME_SLICING
    time_slicing_config: _TimeSlicing | None = None
    space_partitioning_config: _SpacePartitioning | None = None


class _Parameters(msgspec.Struct, frozen=True):
    sharing: _Sharing | None = None


@dataclass(frozen=True, slots=True)
class GpuKind:
    """`gpu-0` and so on, or their partitions."""

    count: int = example.COUNT
    is_shared: bool = False
    partitions: int = 0
    is_attached_late: bool = False
    """Whether it takes the condition `ATTACHED` of a claim's device before a pod is bound."""
    driver: str = DRIVER
    device_class: str = DRIVER
    cdi_kind: str = f"k8s.{DRIVER}/{PROFILE}"

    def devices(self, node: str) -> tuple[Device, ...]:
        return tuple(each for index in range(self.count) for each in self._devices_of(node, index))

    def counter_sets(self) -> tuple[CounterSet, ...]:
        if not self.partitions:
            return ()
        counters = _counters(_amounts(1))
        return tuple(
            CounterSet(name=_counter_set(index), counters=counters) for index in range(self.count)
        )

    def host_files(self) -> tuple[str, ...]:
        return ()

    def edits(self, device: AllocatedDevice, claim: PreparingClaim, number: int) -> ContainerEdits:
        variable = example.variable_of(PROFILE, device.device.removeprefix("gpu-"))
        consumed = sorted(device.consumed_capacity.items())
        env = (
            (variable, device.device),
            *_sharing_env(device, variable),
            *(
                (f"{variable}_{name.rpartition('/')[2].upper()}", amount)
                for name, amount in consumed
            ),
            *example.common_env(PROFILE, device, claim),
        )
        return ContainerEdits(env=env)

    def _devices_of(self, node: str, index: int) -> Iterator[Device]:
        name = f"gpu-{index}"
        attributes = {
            "driverVersion": DeviceAttribute(version_value="1.0.0"),
            "index": DeviceAttribute(int_value=index),
            "model": DeviceAttribute(string_value="LATEST-GPU-MODEL"),
            "uuid": DeviceAttribute(string_value=example.uuid_of(PROFILE, node, index)),
        }
        if not self.partitions:
            yield self._device(name, attributes, _amounts(1))
            return
        attributes["partitionable"] = DeviceAttribute(bool_value=True)
        for place in range(self.partitions):
            own = attributes | {"partition": DeviceAttribute(int_value=place)}
            amounts = _amounts(self.partitions, in_steps=self.is_shared)
            yield self._device(f"{name}-partition-{place}", own, amounts, _counter_set(index))
        own = attributes | {"full": DeviceAttribute(bool_value=True)}
        yield self._device(f"{name}-full", own, _amounts(1), _counter_set(index))

    def _device(
        self,
        name: str,
        attributes: Mapping[str, DeviceAttribute],
        amounts: Mapping[str, Quantity],
        counter_set: str = "",
    ) -> Device:
        taken = DeviceCounterConsumption(counter_set=counter_set, counters=_counters(amounts))
        return Device(
            name=name,
            attributes=attributes,
            capacity={each: self._capacity(each, amounts[each]) for each in amounts},
            consumes_counters=(taken,) if counter_set else (),
            binding_conditions=(ATTACHED,) if self.is_attached_late else (),
            binding_failure_conditions=(ATTACH_FAILED,) if self.is_attached_late else (),
            allow_multiple_allocations=True if self.is_shared else None,
        )

    def _capacity(self, name: str, amount: Quantity) -> DeviceCapacity:
        if not self.is_shared:
            return DeviceCapacity(value=amount)
        unit = Quantity.parse(_UNITS[name])
        within = CapacityRequestPolicyRange(min=unit, max=amount, step=unit)
        policy = CapacityRequestPolicy(default=amount, valid_range=within)
        return DeviceCapacity(value=amount, request_policy=policy)


def gpu_kind(options: KindOptions) -> GpuKind:
    """`gpu:8`, `gpu:2,partitions=4`, `gpu,shared=true`, `gpu,binding=true`."""
    taken = options.take({"binding": "false", "partitions": "0", "shared": "false"})
    is_shared = example.boolean_of(options, "shared", taken["shared"])
    # The API requires at least one step above the minimum.
    most = MEMORY_MIB // 1024 // 2 if is_shared else COMPUTE
    partitions = example.number_of(options, "partitions", taken["partitions"], 0, most)
    count = example.count_of(options, partitions + 1 if partitions else 1)
    is_attached_late = example.boolean_of(options, "binding", taken["binding"])
    return GpuKind(count, is_shared, partitions, is_attached_late)


def _counter_set(index: int) -> str:
    return f"gpu-{index}-counters"


def _amounts(parts: int, *, in_steps: bool = False) -> dict[str, Quantity]:
    """Return the amounts of one of several equal parts; `in_steps` rounds to whole units."""
    memory = f"{MEMORY_MIB // 1024 // parts}Gi" if in_steps else f"{MEMORY_MIB // parts}Mi"
    return {
        "compute": Quantity.parse(str(COMPUTE // parts)),
        "memory": Quantity.parse(memory),
    }


def _counters(amounts: Mapping[str, Quantity]) -> dict[str, Counter]:
    return {name: Counter(value=amount) for name, amount in amounts.items()}


def _sharing_env(device: AllocatedDevice, variable: str) -> Iterator[tuple[str, str]]:
    parameters = example.parameters_of(device, PARAMETERS_KIND, PARAMETERS_VERSION, _Parameters)
    sharing = parameters.sharing or _Sharing()
    slicing = sharing.time_slicing_config
    partitioning = sharing.space_partitioning_config
    where = f"request {device.request}, opaque parameters"
    if partitioning is not None and partitioning.partition_count < 0:
        raise PrepareError(f"{where}: partitionCount is negative; use 0 or more")
    unfit = partitioning if sharing.strategy is Strategy.TIME_SLICING else slicing
    if unfit is not None:
        other = next(each for each in Strategy if each is not sharing.strategy)
        field = f"{other[0].lower()}{other[1:]}Config"
        raise PrepareError(
            f"{where}: {field} conflicts with strategy {sharing.strategy}; remove one of the two"
        )
    yield f"{variable}_SHARING_STRATEGY", sharing.strategy
    if sharing.strategy is Strategy.TIME_SLICING:
        yield f"{variable}_TIMESLICE_INTERVAL", (slicing or _TimeSlicing()).interval
        return
    count = (partitioning or _SpacePartitioning()).partition_count
    yield f"{variable}_PARTITION_COUNT", str(count)
