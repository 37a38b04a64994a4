"""NICs and CPUs as those of Kubernetes' example driver."""

from __future__ import annotations

from typing import Any

import pytest
from tests.kubeletplugin.nodes import NODE

from dryrack.kubeletplugin import (
    AllocatedDevice,
    DeviceKind,
    DevicesError,
    PrepareError,
    PreparingClaim,
    read_devices,
)
from dryrack.kubeletplugin.kinds.cpu import CpuKind
from dryrack.kubeletplugin.kinds.net import NetKind

CLAIM = PreparingClaim("default", "mine", "uid-1", NODE, ("pod0",))
CONFIG = {"apiVersion": "net.resource.example.com/v1alpha1", "kind": "NetConfig"}


def variables(kind: DeviceKind, device: str, **more: Any) -> dict[str, str]:
    return dict(kind.edits(AllocatedDevice("r", NODE, device, **more), CLAIM, 0).env)


def test_a_container_learns_its_nic_with_rates_and_bursts() -> None:
    """Rates are in bits per second; where there is no burst, there is no variable."""
    consumed = {"vfs": "1", "ingressBandwidth": "10G", "egressBandwidth": "1500M"}
    burst = CONFIG | {"bwBurst": {"ingressBurst": 8000, "egressBurst": 0}}

    assert variables(
        NetKind(), "nic-1", consumed_capacity=consumed, parameters=(CONFIG, burst)
    ) == {
        "NET_DEVICE_1": "nic-1",
        "NET_DEVICE_1_INGRESS_BURST": "8000",
        "NET_DEVICE_1_INGRESS_RATE": "10000000000",
        "NET_DEVICE_1_EGRESS_RATE": "1500000000",
        "NET_DEVICE_NIC_1_RESOURCE_CLAIM": "uid-1",
        "DRA_ADMIN_ACCESS": "false",
        "KUBERNETES_NODE_NAME": NODE,
        "DRA_RESOURCE_DRIVER_NAME": "net.example.com",
    }


def test_a_container_learns_its_numa_node_and_cpus() -> None:
    """The amount is there if there is one."""
    consumed = {"cpu.example.com/cpu": "3"}

    assert variables(CpuKind(), "numa-1", consumed_capacity=consumed) == {
        "CPU_DEVICE_1": "numa-1",
        "CPU_DEVICE_1_CONSUMED_CPU": "3",
        "CPU_DEVICE_NUMA_1_RESOURCE_CLAIM": "uid-1",
        "DRA_ADMIN_ACCESS": "false",
        "KUBERNETES_NODE_NAME": NODE,
        "DRA_RESOURCE_DRIVER_NAME": "cpu.example.com",
    }
    assert "CPU_DEVICE_1_CONSUMED_CPU" not in variables(CpuKind(), "numa-1")


@pytest.mark.parametrize(
    ("kind", "parameters", "complaint"),
    [
        (
            NetKind(),
            CONFIG | {"kind": "GpuConfig"},
            "expected NetConfig of net.resource.example.com",
        ),
        (NetKind(), CONFIG | {"bwBurst": {"ingressBurst": -1}}, r"`\$.bwBurst.ingressBurst`"),
        (NetKind(), CONFIG | {"bwBurst": {"egressBurst": 2**36}}, r"`\$.bwBurst.egressBurst`"),
        (CpuKind(), CONFIG, "cpu.example.com accepts no opaque parameters"),
    ],
)
def test_parameters_that_make_no_sense_are_told(
    kind: DeviceKind, parameters: dict[str, Any], complaint: str
) -> None:
    """The request is named, and the field."""
    with pytest.raises(PrepareError, match=f"^request r.*{complaint}"):
        variables(kind, kind.devices(NODE)[0].name, parameters=(parameters,))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("net:10001", "a node has at most 10000 of these"),
        ("net,model=x", "no option 'model'; it has no options"),
        ("cpu,cpus=0", "cpus='0': use a number from 1 to 1024"),
        ("cpu,cpus=many", "cpus='many': use a number from 1 to 1024"),
    ],
)
def test_options_that_make_no_sense_are_told(text: str, complaint: str) -> None:
    """The error of an invalid value of --devices names a valid one."""
    with pytest.raises(DevicesError, match=complaint):
        read_devices([text], [])
