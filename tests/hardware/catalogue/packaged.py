"""The packaged catalogue and its nodes, for the tests beside it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tests.allocation.builders import Counting

from dryrack.allocation import Allocator
from dryrack.cluster.catalogue import load_catalogue
from dryrack.hardware.catalogue import Cards, Catalogue, devices_on
from dryrack.hardware.inventory import Pool, Section
from dryrack.hardware.slicing import slices_of
from dryrack.kinds.decode import decode
from dryrack.kinds.resource import DeviceClass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.hardware.catalogue import InstanceType
    from dryrack.kinds.resource import ResourceSlice

NODE = "node-1"

# The classes that come with the drivers, and for DRANET, which brings none, those of its examples.
CLASSES = {
    "gpu.nvidia.com": (
        "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"
    ),
    "mig.nvidia.com": (
        "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'mig'"
    ),
    "compute-domain-daemon.nvidia.com": (
        "device.driver == 'compute-domain.nvidia.com' && "
        "device.attributes['compute-domain.nvidia.com'].type == 'daemon'"
    ),
    "compute-domain-default-channel.nvidia.com": (
        "device.driver == 'compute-domain.nvidia.com' && "
        "device.attributes['compute-domain.nvidia.com'].type == 'channel' && "
        "device.attributes['compute-domain.nvidia.com'].id == 0"
    ),
    "gpu.amd.com": "device.driver == 'gpu.amd.com'",
    "gaudi.intel.com": 'device.driver == "gaudi.intel.com"',
    "gpu.intel.com": 'device.driver == "gpu.intel.com"',
    "tpu.google.com": 'device.driver == "tpu.google.com"',
    "neuron.aws.com": 'device.driver == "neuron.aws.com"',
    "dra.cpu": 'device.driver == "dra.cpu"',
    "dranet": 'device.driver == "dra.net"',
    "rdma": 'device.driver == "dra.net" && device.attributes["dra.net"].rdma',
    "efa.networking.k8s.aws": (
        "device.driver == 'dra.net' && "
        "device.attributes['dra.net'].pciDevice == 'Elastic Fabric Adapter (EFA)'"
    ),
    "fpga.dryrack.dev": 'device.driver == "fpga.dryrack.dev"',
}


@cache
def catalogue() -> Catalogue:
    return load_catalogue()


@cache
def classes() -> tuple[DeviceClass, ...]:
    return tuple(
        decode(
            {"metadata": {"name": name}, "spec": {"selectors": [{"cel": {"expression": text}}]}},
            DeviceClass,
        )
        for name, text in CLASSES.items()
    )


def slices_on(machine: InstanceType, cards: Cards, node: str = NODE) -> list[ResourceSlice]:
    """What a node of this type publishes."""
    assignment = machine.assignment(cards)
    pools = (
        Pool(
            batch.driver,
            node,
            node,
            batch.reach,
            (Section(assignment.origin, devices_on(batch, node), batch.shared_counters),),
        )
        for batch in assignment.batches
    )
    return [each for pool in pools for each in slices_of(pool)]


def allocator(slices: Sequence[ResourceSlice]) -> Allocator:
    return Allocator(slices, classes(), chance=Counting())
