"""GPUs as those of Kubernetes' example driver."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from tests.kubeletplugin.nodes import NODE, bench, environment

from dryrack.kinds.decode import decode
from dryrack.kinds.resource import ResourceClaim
from dryrack.kinds.validation.device_rules import validate
from dryrack.kubeletplugin import (
    AllocatedDevice,
    DevicesError,
    PrepareError,
    PreparingClaim,
    node_slices,
    read_devices,
)
from dryrack.kubeletplugin.kinds.gpu import GpuKind
from dryrack.kubeletplugin.prepare import NodeDevices, allocated_devices

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = {"apiVersion": "gpu.resource.example.com/v1alpha1", "kind": "GpuConfig"}
CLAIM = PreparingClaim("default", "mine", "uid-1", NODE, ("pod0",))


def variables(device: AllocatedDevice) -> dict[str, str]:
    return dict(GpuKind().edits(device, CLAIM, 0).env)


def test_a_container_learns_its_gpu_node_and_driver(tmp_path: Path) -> None:
    """The variables of a plain claim, from the CDI spec of its claim."""

    async def scenario() -> tuple[dict[str, str], str]:
        world = bench(tmp_path, GpuKind())
        claim = await world.claim("mine", ["gpu-3"])
        plugin = world.plugin()
        plugin.recover()
        await plugin.prepare([claim])
        return environment(world, claim.uid), claim.uid

    found, uid = asyncio.run(scenario())

    assert found == {
        "KUBERNETES_NODE_NAME": NODE,
        "DRA_RESOURCE_DRIVER_NAME": "gpu.example.com",
        "GPU_DEVICE_3": "gpu-3",
        "GPU_DEVICE_3_SHARING_STRATEGY": "TimeSlicing",
        "GPU_DEVICE_3_TIMESLICE_INTERVAL": "Default",
        "GPU_DEVICE_GPU_3_RESOURCE_CLAIM": uid,
        "DRA_ADMIN_ACCESS": "false",
    }


def test_parameters_say_how_a_gpu_is_shared_and_the_claims_come_last() -> None:
    """Parameters of the claim count more than those of the class."""
    slicing = {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}}
    cutting = {"strategy": "SpacePartitioning", "spacePartitioningConfig": {"partitionCount": 10}}
    of_class, of_claim = [CONFIG | {"sharing": each} for each in (slicing, cutting)]
    by_class = variables(AllocatedDevice("r", NODE, "gpu-0", parameters=(of_class,)))
    by_claim = variables(AllocatedDevice("r", NODE, "gpu-0", parameters=(of_class, of_claim)))

    assert by_class["GPU_DEVICE_0_TIMESLICE_INTERVAL"] == "Long"
    assert by_claim["GPU_DEVICE_0_SHARING_STRATEGY"] == "SpacePartitioning"
    assert by_claim["GPU_DEVICE_0_PARTITION_COUNT"] == "10"
    assert "GPU_DEVICE_0_TIMESLICE_INTERVAL" not in by_claim


def test_a_part_of_a_gpu_and_admin_access_are_told() -> None:
    """The environment shows the consumed capacity and admin access."""
    part = {"gpu.example.com/memory": "16Gi", "compute": "20"}
    found = variables(
        AllocatedDevice("r", NODE, "gpu-1", share_id="s", consumed_capacity=part)
    ) | variables(AllocatedDevice("r", NODE, "gpu-2", has_admin_access=True))

    assert found["GPU_DEVICE_1_MEMORY"] == "16Gi"
    assert found["GPU_DEVICE_1_COMPUTE"] == "20"
    assert found["DRA_ADMIN_ACCESS"] == "true"


@pytest.mark.parametrize(
    ("parameters", "complaint"),
    [
        ({"kind": "NetConfig"}, "expected GpuConfig of gpu.resource.example.com/v1alpha1"),
        (CONFIG | {"sharing": {"strategy": "Luck"}}, r"Invalid enum value 'Luck'"),
        (
            CONFIG | {"sharing": {"spacePartitioningConfig": {"partitionCount": -1}}},
            "partitionCount is negative",
        ),
        (
            CONFIG | {"sharing": {"strategy": "TimeSlicing", "spacePartitioningConfig": {}}},
            "spacePartitioningConfig conflicts with strategy TimeSlicing; remove one of the two",
        ),
    ],
)
def test_parameters_that_make_no_sense_are_told(
    tmp_path: Path, parameters: dict[str, Any], complaint: str
) -> None:
    """The kubelet's event names the claim and what is wrong."""

    async def scenario() -> str:
        world = bench(tmp_path, GpuKind())
        claim = await world.claim("odd", ["gpu-0"], parameters=parameters)
        plugin = world.plugin()
        plugin.recover()
        return str((await plugin.prepare([claim]))[claim.uid])

    told = asyncio.run(scenario())

    assert told.startswith("claim default/odd: ")
    assert complaint in told


@pytest.mark.parametrize(
    "text",
    [
        "gpu:300",
        "gpu:300,shared=true",
        "net:300",
        "cpu:300",
        "gpu:9,partitions=7",
        "gpu,partitions=40,shared=true",
        "gpu:300,binding=true",
        "fake:300",
        "fake:9,split=7",
        "file:2,shared=true",
    ],
)
def test_the_slices_of_every_kind_are_ones_that_an_api_server_takes(text: str) -> None:
    """Nothing is published that would be refused."""
    [kind] = read_devices([text], [])

    assert [p for each in node_slices(kind, NODE) for p in validate(each)] == []


def test_a_partition_is_in_the_names_of_its_variables() -> None:
    """Variables have no hyphens."""
    found = variables(AllocatedDevice("r", NODE, "gpu-1-partition-3"))

    assert found["GPU_DEVICE_1_PARTITION_3"] == "gpu-1-partition-3"
    assert found["GPU_DEVICE_GPU_1_PARTITION_3_RESOURCE_CLAIM"] == "uid-1"


@pytest.mark.parametrize(
    "kind",
    [
        GpuKind(9, partitions=7),
        GpuKind(1, partitions=100),
        GpuKind(is_shared=True),
        GpuKind(1, is_shared=True, partitions=7),
        GpuKind(2, is_shared=True, partitions=40),
    ],
)
def test_partitions_take_what_is_there_to_be_taken(kind: GpuKind) -> None:
    """Each GPU has counters, and all its partitions together fit into them."""
    slices = node_slices(kind, NODE)
    totals = {each.name: each.counters for slice_ in slices for each in slice_.spec.shared_counters}
    partitions = [d for d in kind.devices(NODE) if "-partition-" in d.name]

    assert len(totals) == (kind.count if kind.partitions else 0)
    assert len(partitions) == kind.count * kind.partitions
    for device in partitions:
        [taken] = device.consumes_counters
        for name, counter in taken.counters.items():
            part = counter.value
            total = totals[taken.counter_set][name].value
            assert 0 < part.value() * kind.partitions <= total.value()


def test_no_two_gpus_have_one_uuid() -> None:
    """Nor do those of two nodes; after every start they are the same."""
    uuids = [
        device.attributes["uuid"].string_value
        for node in (NODE, "node-2")
        for device in GpuKind().devices(node)
    ]

    assert len(set(uuids)) == 16
    assert GpuKind().devices(NODE) == GpuKind().devices(NODE)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("gpu:10001", "gpu:10001: a node has at most 10000 of these"),
        ("gpu:5000,partitions=4", "a node has at most 2000 of these"),
        ("gpu,partitions=x", "partitions='x': use a number from 0 to 100"),
        ("gpu,partitions=101", "partitions='101': use a number from 0 to 100"),
        ("gpu,partitions=41,shared=true", "partitions='41': use a number from 0 to 40"),
        ("gpu,shared=yes", "shared='yes': use true or false"),
        ("gpu,model=x", "no option 'model'; use one of: binding, partitions, shared"),
    ],
)
def test_options_that_make_no_sense_are_told(text: str, complaint: str) -> None:
    """The error of an invalid value of --devices names a valid one."""
    with pytest.raises(DevicesError, match=complaint):
        read_devices([text], [])


@pytest.mark.parametrize("name", ["a\nb", "LD_PRELOAD=/x", "", "a/b/c=d"])
def test_consumed_capacity_sets_no_other_variable(name: str) -> None:
    """A real API server takes any name; a claim with such a name is not prepared."""
    claim = decode(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "c", "namespace": "default", "uid": "u"},
            "spec": {},
            "status": {
                "allocation": {
                    "devices": {
                        "results": [
                            {
                                "request": "r",
                                "driver": GpuKind().driver,
                                "pool": NODE,
                                "device": "gpu-0",
                                "consumedCapacity": {name: "1"},
                            }
                        ]
                    }
                }
            },
        },
        ResourceClaim,
    )
    devices = NodeDevices.of(GpuKind(), NODE)
    with pytest.raises(PrepareError, match="not the name of a capacity"):
        list(allocated_devices(claim, devices))
