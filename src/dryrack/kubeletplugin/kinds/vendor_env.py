"""
Variables that the drivers of vendors set in containers, by the names that programs read.

A variable that lists devices lists those of the whole claim, whichever of them a container has: so
do the vendors' drivers, which set it once for a claim.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from dryrack.kinds.quantity import Quantity
from dryrack.kubeletplugin.device_kind import PrepareError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dryrack.kinds.resource import Device
    from dryrack.kubeletplugin.device_kind import AllocatedDevice, PreparingClaim

CPUS = "dra.cpu/cpu"
_CPUSET = "DRA_CPUSET_"
# Generations whose types are named after cores, of which a chip has two.
_NAMED_BY_CORES = ("v4", "v5p")


def vendor_env(
    driver: str, device: AllocatedDevice, claim: PreparingClaim, devices: Mapping[str, Device]
) -> Iterator[tuple[str, str]]:
    """Yield the variables of the vendor's driver; `devices` are all its devices on the node."""
    match driver:
        case "gpu.nvidia.com":
            # CDI adds the devices, so the vendor's runtime may add none.
            yield "NVIDIA_VISIBLE_DEVICES", "void"
        case "gpu.amd.com":
            yield "KUBERNETES_NODE_NAME", claim.node
            yield "DRA_RESOURCE_DRIVER_NAME", driver
        case "gaudi.intel.com":
            names = list(devices)
            listed = ",".join(
                str(index) for index, name in enumerate(names) if name in claim.devices
            )
            for variable in (
                "HABANA_VISIBLE_DEVICES",
                "HABANA_VISIBLE_MODULES",
                "HL_VISIBLE_DEVICES",
            ):
                yield variable, listed
        case "tpu.google.com":
            yield f"TPU_DEVICE_{device.device.upper().replace('-', '_')}_RESOURCE_CLAIM", claim.uid
            yield from _tpu(devices[device.device])
        case "dra.cpu":
            yield f"{_CPUSET}{claim.uid}", _cpuset(device, devices)
        case _:
            return


def _tpu(device: Device) -> Iterator[tuple[str, str]]:
    """Yield the variables of a TPU slice with one host."""
    attributes = device.attributes
    generation = attributes["tpuGen"].string_value or ""
    chips = attributes["chipCount"].int_value or 1
    topology = attributes["topology"].string_value or "1x1"
    bounds = [*topology.split("x"), "1", "1"][:3]
    cores = chips * 2 if generation in _NAMED_BY_CORES else chips
    yield "TPU_ACCELERATOR_TYPE", f"{generation}-{cores}"
    yield "TPU_TOPOLOGY", topology
    yield "TPU_TOPOLOGY_ALT", "false"
    yield "TPU_TOPOLOGY_WRAP", "false,false,false"
    yield "TPU_CHIPS_PER_HOST_BOUNDS", ",".join(bounds)
    yield "TPU_HOST_BOUNDS", "1,1,1"
    yield "TPU_WORKER_ID", "0"
    yield "TPU_WORKER_HOSTNAMES", "localhost"
    yield "TPU_SKIP_MDS_QUERY", "true"


def _cpuset(device: AllocatedDevice, devices: Mapping[str, Device]) -> str:
    """Return the first free CPUs of the NUMA node, as many as were allocated."""
    sizes = {name: each.capacity[CPUS].value.value() for name, each in devices.items()}
    before = itertools.takewhile(lambda name: name != device.device, sizes)
    first = sum(sizes[name] for name in before)
    taken = {
        cpu
        for edits in device.shared_with
        for name, value in edits.env
        if name.startswith(_CPUSET)
        for cpu in _cpus(value)
    }
    here = range(first, first + sizes[device.device])
    free = [cpu for cpu in here if cpu not in taken]
    consumed = device.consumed_capacity.get(CPUS)
    count = len(here) if consumed is None else Quantity.parse(consumed).value()
    if count > len(free):
        raise PrepareError(
            f"device {device.device}: the claim has {count} CPUs, but {len(free)} of {len(here)} "
            "are free; other claims use the rest"
        )
    return _ranges(free[:count])


def _cpus(text: str) -> Iterator[int]:
    """Yield the numbers of a text like `0-3,8`."""
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def _ranges(cpus: Sequence[int]) -> str:
    """Return numbers as a text like `0-3,8`."""
    runs: list[list[int]] = []
    for cpu in cpus:
        if runs and runs[-1][1] == cpu - 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(f"{a}-{b}" if a != b else f"{a}" for a, b in runs)
