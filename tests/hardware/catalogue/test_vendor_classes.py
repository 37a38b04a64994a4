"""Vendors' own DeviceClasses, and what people write about their devices, find what is published."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from tests.allocation.builders import claim, given, node, refused
from tests.hardware.catalogue.packaged import NODE, allocator, catalogue, slices_on

from dryrack.hardware.catalogue import Cards

if TYPE_CHECKING:
    from dryrack.hardware.catalogue.values import Fitting

# By driver: the classes one of whose devices every node with that driver must have.
BY_DRIVER = {
    "gpu.nvidia.com": ("gpu.nvidia.com",),
    "compute-domain.nvidia.com": (
        "compute-domain-daemon.nvidia.com",
        "compute-domain-default-channel.nvidia.com",
    ),
    "gpu.amd.com": ("gpu.amd.com",),
    "gaudi.intel.com": ("gaudi.intel.com",),
    "tpu.google.com": ("tpu.google.com",),
    "neuron.aws.com": ("neuron.aws.com",),
    "dra.cpu": ("dra.cpu",),
    "dra.net": ("dranet", "rdma"),
    "fpga.dryrack.dev": ("fpga.dryrack.dev",),
}
TYPES = sorted(catalogue().instance_types)
PARTITIONABLE = [
    name for name in TYPES if Cards.PARTITIONED in catalogue().instance_types[name].cards
]


def one(class_name: str, select: str = "", **fields: Any) -> dict[str, object]:
    selectors = [{"cel": {"expression": select}}] if select else []
    exactly = {
        "deviceClassName": class_name,
        "allocationMode": "ExactCount",
        "count": 1,
        "selectors": selectors,
        **fields,
    }
    return {"name": "".join(c for c in class_name if c.isalnum()), "exactly": exactly}


@pytest.mark.parametrize("name", TYPES)
def test_a_claim_for_each_vendors_class_is_allocated(name: str) -> None:
    """A node of any type serves a claim for every class of every driver that it has."""
    slices = slices_on(catalogue().instance_types[name], Cards.WHOLE)
    answers = allocator(slices)

    for driver in sorted({each.spec.driver for each in slices}):
        for class_name in BY_DRIVER[driver]:
            assert given(answers.allocate(node(NODE), [claim(one(class_name))])), class_name


@pytest.mark.parametrize("name", PARTITIONABLE)
def test_a_claim_for_a_partition_is_allocated(name: str) -> None:
    """NVIDIA's class for MIG devices is served where cards are partitioned, and nowhere else."""
    machine = catalogue().instance_types[name]
    whole = slices_on(machine, Cards.WHOLE)
    cut = slices_on(machine, Cards.PARTITIONED)
    wanted = [claim(one("mig.nvidia.com"))]

    [[device]] = given(allocator(cut).allocate(node(NODE), wanted))
    assert "-mig-" in device
    assert refused(allocator(whole).allocate(node(NODE), wanted))


def test_every_class_is_asked_for() -> None:
    """No class is forgotten; of Intel's GPUs, and of cards for virtual machines, there are none."""
    asked = {"mig.nvidia.com", "efa.networking.k8s.aws"}
    unasked = {"gpu.intel.com", "vfio.gpu.nvidia.com"}

    assert (asked | unasked).union(*BY_DRIVER.values()) == set(catalogue().device_classes)


EXPRESSIONS = {
    "g4dn.xlarge": 'device.attributes["gpu.nvidia.com"].productName == "Tesla T4"',
    "g5.xlarge": 'device.attributes["gpu.nvidia.com"].productName.endsWith("A10G")',
    "g6.xlarge": 'device.attributes["gpu.nvidia.com"].architecture == "Ada Lovelace"',
    "p4d.24xlarge": 'device.capacity["gpu.nvidia.com"].memory == quantity("40Gi")',
    "p5.48xlarge": (
        'device.attributes["gpu.nvidia.com"].cudaComputeCapability.compareTo(semver("9.0.0")) == 0'
    ),
    "p5e.48xlarge": (
        'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("140Gi")) > 0 && '
        'device.attributes["gpu.nvidia.com"].driverVersion.isGreaterThan(semver("570.0.0"))'
    ),
    "p5en.48xlarge": (
        'device.attributes["resource.kubernetes.io"].pciBusID == "0000:ca:00.0" && '
        'device.attributes["resource.kubernetes.io"].pcieRoot == "pci0000:bb"'
    ),
    "Standard_NC4as_T4_v3": '!("pcieRoot" in device.attributes["resource.kubernetes.io"])',
}
OF_OTHERS = {
    "Standard_ND96isr_MI300X_v5": (
        "gpu.amd.com",
        (
            'device.attributes["gpu.amd.com"].partitionProfile == "spx_nps1" && '
            'device.capacity["gpu.amd.com"].computeUnits == quantity("304")'
        ),
    ),
    "trn1.32xlarge": (
        "neuron.aws.com",
        (
            'device.attributes["neuron.aws.com"].instanceType == "trn1.32xlarge" && '
            'device.attributes["neuron.aws.com"].topology_x == 3'
        ),
    ),
    "ct5lp-hightpu-4t": (
        "tpu.google.com",
        (
            'device.attributes["tpu.google.com"].topology == "2x2" && '
            'device.attributes["tpu.google.com"].index == 3'
        ),
    ),
    "p4de.24xlarge": ("efa.networking.k8s.aws", 'device.attributes["dra.net"].numaNode == 1'),
    # As in DRANET's examples for OKE and AKS.
    "BM.GPU.GB200-v3.4": (
        "rdma",
        'device.attributes["dra.net"].ifName == "rdma3" && device.attributes["dra.net"].rdma',
    ),
    "Standard_ND128isr_GB300_v6": (
        "rdma",
        (
            'device.attributes["dra.net"].rdmaDevice == "mlx5_2" && '
            'device.attributes["dra.net"].numaNode == 1'
        ),
    ),
    "Standard_ND96isr_H100_v5": (
        "rdma",
        'device.attributes["dra.net"].pciDevice.contains("Virtual Function")',
    ),
    "a3-ultragpu-8g": ("rdma", 'device.attributes["dra.net"].ifName == "gpu7rdma0"'),
    "p6-b200.48xlarge": (
        "efa.networking.k8s.aws",
        '!("numaNode" in device.attributes["dra.net"])',
    ),
    "Standard_NP10s": (
        "fpga.dryrack.dev",
        'device.capacity["fpga.dryrack.dev"].dspSlices == quantity("12288")',
    ),
}


@pytest.mark.parametrize(
    ("name", "class_name", "select"),
    [(name, "gpu.nvidia.com", select) for name, select in EXPRESSIONS.items()]
    + [(name, *wanted) for name, wanted in OF_OTHERS.items()],
)
def test_expressions_that_people_write_find_devices(
    name: str, class_name: str, select: str
) -> None:
    """Names, types and values of attributes and capacity are the drivers'."""
    slices = slices_on(catalogue().instance_types[name], Cards.WHOLE)

    assert given(allocator(slices).allocate(node(NODE), [claim(one(class_name, select))]))


@cache
def aligned(name: str) -> list[list[str]]:
    wanted = claim(
        one("gpu.nvidia.com"),
        one("efa.networking.k8s.aws"),
        constraints=[{"matchAttribute": "resource.kubernetes.io/pcieRoot"}],
    )
    slices = slices_on(catalogue().instance_types[name], Cards.WHOLE)
    return given(allocator(slices).allocate(node(NODE), [wanted]))


def test_a_card_and_an_adapter_of_one_root_can_be_had_together() -> None:
    """Drivers of different vendors publish devices of one machine."""
    assert aligned("p4d.24xlarge") == [["gpu-0", "pci-0000-10-1b-0"]]
    assert aligned("p5.48xlarge") == [["gpu-0", "pci-0000-4f-00-0"]]


@pytest.mark.parametrize("name", ["p4d.24xlarge", "p5.48xlarge", "p5en.48xlarge", "a4-highgpu-8g"])
def test_cards_and_processors_of_one_numa_node_can_be_had_together(name: str) -> None:
    """The standard attribute is in every driver's devices where the machine's nodes are known."""
    wanted = claim(
        one("gpu.nvidia.com", count=2),
        one("dra.cpu"),
        constraints=[{"matchAttribute": "resource.kubernetes.io/numaNode"}],
    )
    slices = slices_on(catalogue().instance_types[name], Cards.WHOLE)

    assert given(allocator(slices).allocate(node(NODE), [wanted]))


@pytest.mark.parametrize(
    "name",
    [
        *("p5.48xlarge", "p6e-gb200.36xlarge", "Standard_ND128isr_GB300_v6"),
        *("BM.GPU.GB200-v3.4", "BM.GPU.H100.8", "a4-highgpu-8g"),
    ],
)
def test_cards_and_adapters_of_one_numa_node_can_be_had_together(name: str) -> None:
    """Adapters publish the standard attribute, so that one constraint joins them with cards."""
    wanted = claim(
        one("gpu.nvidia.com", count=2),
        one("rdma", count=2),
        constraints=[{"matchAttribute": "resource.kubernetes.io/numaNode"}],
    )
    slices = slices_on(catalogue().instance_types[name], Cards.WHOLE)

    assert given(allocator(slices).allocate(node(NODE), [wanted]))


NICS = (
    *(("p6-b200.48xlarge", 8), ("p6-b300.48xlarge", 16), ("p6e-gb200.36xlarge", 8)),
    *(("trn1n.32xlarge", 16), ("trn2.48xlarge", 16), ("dl1.24xlarge", 4), ("p3dn.24xlarge", 1)),
    *(("BM.GPU.H100.8", 16), ("BM.GPU.GB200-v3.4", 8)),
    *(("a3-ultragpu-8g", 8), ("a4-highgpu-8g", 8)),
    *(("Standard_ND128isr_NDR_GB200_v6", 4), ("Standard_ND128isr_GB300_v6", 4)),
)


@pytest.mark.parametrize(("name", "count"), NICS)
def test_machines_have_as_many_adapters_as_their_makers_state(name: str, count: int) -> None:
    """Each of them says what it is, on which PCI address."""
    slices = slices_on(catalogue().instance_types[name], Cards.WHOLE)
    devices = [
        each for slice_ in slices if slice_.spec.driver == "dra.net" for each in slice_.spec.devices
    ]

    assert len(devices) == count
    for each in devices:
        assert {"dra.net/pciAddress", "dra.net/pciDevice"} <= each.attributes.keys()


def share_a_bus(fitting: Fitting) -> bool:
    """Return whether two devices are on one bus, and therefore at one root."""
    buses = [slot["pci"].rpartition(":")[0] for slot in fitting.slots if "pci" in slot]
    return len(set(buses)) < len(buses)


SHARING = [
    (name, each.model.driver)
    for name in TYPES
    for each in catalogue().instance_types[name].fittings
    if share_a_bus(each)
]


@pytest.mark.parametrize(("name", "driver"), SHARING)
def test_cards_at_one_root_say_so(name: str, driver: str) -> None:
    """If several devices are at one PCIe root, each has the attribute that claims match."""
    slices = slices_on(catalogue().instance_types[name], Cards.WHOLE)
    devices = [
        device for each in slices if each.spec.driver == driver for device in each.spec.devices
    ]

    assert devices
    assert all("resource.kubernetes.io/pcieRoot" in each.attributes for each in devices)


def test_claims_take_processors_out_of_a_numa_node() -> None:
    """The processors of a NUMA node are one device that many share, as long as there are some."""
    slices = slices_on(catalogue().instance_types["p5.48xlarge"], Cards.WHOLE)
    sixty = {"requests": {"dra.cpu/cpu": "60"}}

    three = [claim(one("dra.cpu", capacity=sixty), name=f"claim-{number}") for number in range(3)]
    two = given(allocator(slices).allocate(node(NODE), three[:2]))

    assert two == [["cpudevnuma000"], ["cpudevnuma001"]]
    assert refused(allocator(slices).allocate(node(NODE), three))
