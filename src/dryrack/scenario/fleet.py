"""
The objects of a scenario's fleet: nodes, and the classes and kinds that their drivers install.

They are written through the API, so that they are the same on any cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.cluster import (
    allocation_state_objects,
    compute_domain_objects,
    has_compute_domains,
    load_catalogue,
    node_pool_objects,
    virtual_node,
)
from dryrack.kinds.decode import to_builtins
from dryrack.kubeletplugin import FakeKind, device_classes, read_devices

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.hardware.catalogue import Catalogue, InstanceType
    from dryrack.kinds.raw import Raw
    from dryrack.kubeletplugin import DeviceKind
    from dryrack.scenario.model import Fleet, NodeGroup


@dataclass(frozen=True, slots=True)
class Hardware:
    """The devices of a fleet: the kinds that every node has, and instance types."""

    devices: tuple[DeviceKind, ...]
    catalogue: Catalogue | None
    # The types of the nodes that the fleet names.
    machines: tuple[InstanceType, ...] = ()
    has_provisioner: bool = False
    """Whether nodes are created from NodePools."""

    @classmethod
    def of(cls, fleet: Fleet) -> Hardware:
        profiles = {group.profile for group in fleet.nodes if group.profile}
        needs_catalogue = fleet.catalogue or fleet.provisioner or profiles
        catalogue = load_catalogue() if needs_catalogue else None
        known = catalogue.instance_types if catalogue is not None else {}
        return cls(
            read_devices(fleet.devices, catalogue=load_catalogue) if fleet.devices else (),
            catalogue,
            tuple(known[name] for name in sorted(profiles) if name in known),
            fleet.provisioner,
        )


def fleet_objects(fleet: Fleet, hardware: Hardware) -> Iterator[Raw]:
    """Yield all objects of a fleet, in the order in which they are created."""
    if hardware.catalogue is not None:
        yield from map(to_builtins, hardware.catalogue.device_classes.values())
    if has_compute_domains(hardware.machines):
        yield from compute_domain_objects()
    if hardware.has_provisioner:
        yield from node_pool_objects()
    yield from map(to_builtins, device_classes(hardware.devices))
    if any(isinstance(each, FakeKind) for each in hardware.devices):
        yield from allocation_state_objects()
    for group in fleet.nodes:
        yield from (_node(name, group, hardware.catalogue) for name in group.names)


def _node(name: str, group: NodeGroup, catalogue: Catalogue | None) -> Raw:
    machine = catalogue.instance_types[group.profile] if catalogue and group.profile else None
    made = virtual_node(name, machine)
    metadata = made["metadata"]
    capacity = {**made["status"]["capacity"], **group.capacity}
    return {
        **made,
        "metadata": {
            **metadata,
            "labels": {**metadata["labels"], **group.labels},
            "annotations": {**metadata["annotations"], **group.annotations},
        },
        "spec": {"taints": list(group.taints)} if group.taints else {},
        "status": {"capacity": capacity, "allocatable": dict(capacity)},
    }
