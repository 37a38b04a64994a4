"""
NICs with the names, variables and parameters of Kubernetes' example driver.

Many claims share one: each has a virtual function, and the bandwidth that it asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import msgspec

from dryrack.kinds.quantity import Quantity
from dryrack.kinds.resource import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Device,
    DeviceAttribute,
    DeviceCapacity,
)
from dryrack.kubeletplugin.device_kind import ContainerEdits
from dryrack.kubeletplugin.kinds import example

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kubeletplugin.device_kind import AllocatedDevice, KindOptions, PreparingClaim

PROFILE = "net"
DRIVER = example.driver_of(PROFILE)
PARAMETERS_KIND = "NetConfig"
PARAMETERS_VERSION = "net.resource.example.com/v1alpha1"
# Bits, whose bytes the kernel's traffic control counts with 32 bits.
_Bits = Annotated[int, msgspec.Meta(ge=0, lt=8 * (2**32 - 1))]


class _Burst(msgspec.Struct, frozen=True, rename="camel"):
    ingress_burst: _Bits = 0
    egress_burst: _Bits = 0


class _Parameters(msgspec.Struct, frozen=True):
    burst: _Burst | None = msgspec.field(default=None, name="bwBurst")


@dataclass(frozen=True, slots=True)
class NetKind:
    """`nic-0` and so on."""

    count: int = example.COUNT
    driver: str = DRIVER
    device_class: str = DRIVER
    cdi_kind: str = f"k8s.{DRIVER}/{PROFILE}"

    def devices(self, node: str) -> tuple[Device, ...]:
        one = Quantity.parse("1")
        whole = Quantity.parse("100G")
        within = CapacityRequestPolicyRange(
            min=Quantity.parse("100M"), max=whole, step=Quantity.parse("1M")
        )
        by_rate = CapacityRequestPolicy(default=Quantity.parse("1G"), valid_range=within)
        bandwidth = DeviceCapacity(value=whole, request_policy=by_rate)
        one_each = CapacityRequestPolicy(default=one, valid_values=(one,))
        capacity = {
            "egressBandwidth": bandwidth,
            "ingressBandwidth": bandwidth,
            "vfs": DeviceCapacity(value=Quantity.parse("100"), request_policy=one_each),
        }
        return tuple(
            Device(
                name=f"nic-{index}",
                attributes={
                    "driverVersion": DeviceAttribute(version_value="1.0.0"),
                    "index": DeviceAttribute(int_value=index),
                    "model": DeviceAttribute(string_value="LATEST-NET-MODEL"),
                    "uuid": DeviceAttribute(string_value=example.uuid_of(PROFILE, node, index)),
                },
                capacity=capacity,
                allow_multiple_allocations=True,
            )
            for index in range(self.count)
        )

    def host_files(self) -> tuple[str, ...]:
        return ()

    def edits(self, device: AllocatedDevice, claim: PreparingClaim, number: int) -> ContainerEdits:
        variable = example.variable_of(PROFILE, device.device.removeprefix("nic-"))
        env = (
            (variable, device.device),
            *_burst_env(device, variable),
            *_rate_env(device, variable),
            *example.common_env(PROFILE, device, claim),
        )
        return ContainerEdits(env=env)


def net_kind(options: KindOptions) -> NetKind:
    """`net:2`."""
    options.take({})
    return NetKind(example.count_of(options))


def _burst_env(device: AllocatedDevice, variable: str) -> Iterator[tuple[str, str]]:
    parameters = example.parameters_of(device, PARAMETERS_KIND, PARAMETERS_VERSION, _Parameters)
    burst = parameters.burst or _Burst()
    if burst.ingress_burst:
        yield f"{variable}_INGRESS_BURST", str(burst.ingress_burst)
    if burst.egress_burst:
        yield f"{variable}_EGRESS_BURST", str(burst.egress_burst)


def _rate_env(device: AllocatedDevice, variable: str) -> Iterator[tuple[str, str]]:
    """Yield the bandwidth of the claim, in bits per second."""
    consumed = {name.rpartition("/")[2]: text for name, text in device.consumed_capacity.items()}
    for way in ("ingress", "egress"):
        text = consumed.get(f"{way}Bandwidth")
        if text is not None:
            yield f"{variable}_{way.upper()}_RATE", str(Quantity.parse(text).value())
