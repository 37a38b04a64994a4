"""
Devices of the catalogue for the nodes of a what-if.

A Node names its machine with the label `node.kubernetes.io/instance-type`. Files that have such
Nodes and no ResourceSlices say which machines there are, and the catalogue says which devices these
publish. The slices are the ones that `dryrack publish --catalogue` writes for the same nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.base.text import listed
from dryrack.hardware import INSTANCE_TYPE, Inventory, Matcher, slices_of
from dryrack.hardware.catalogue import Catalogue
from dryrack.kinds.core import Node
from dryrack.kinds.resource import DeviceClass, ResourceSlice

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from dryrack.kinds.meta import KubernetesObject


@dataclass(frozen=True, slots=True)
class SuppliedDevices:
    """The slices and classes that the catalogue adds to a world, and the notes about them."""

    slices: tuple[ResourceSlice, ...] = ()
    classes: tuple[DeviceClass, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def objects(self) -> tuple[KubernetesObject, ...]:
        return (*self.slices, *self.classes)


def supply_devices(
    objects: Sequence[KubernetesObject],
    catalogue: Callable[[], Catalogue],
    chosen: Collection[str] = (),
) -> SuppliedDevices:
    """
    Return what the catalogue adds to these objects.

    Nodes that are `chosen` by name always get the devices of their instance type. Other nodes get
    them only if the objects have no ResourceSlice, because slices say which devices there are. The
    catalogue is loaded only if a node needs it, as that takes most of a second.
    """
    nodes = [each for each in objects if isinstance(each, Node) and _type_of(each)]
    if any(isinstance(each, ResourceSlice) for each in objects):
        nodes = [each for each in nodes if each.metadata.name in chosen]
    if not nodes:
        return SuppliedDevices()
    known = catalogue()
    nodes = [each for each in nodes if _type_of(each) in known.instance_types]
    own = {each.metadata.name: _own_resource(each, known) for each in nodes}
    served = [each for each in nodes if not own[each.metadata.name]]
    if not nodes:
        return SuppliedDevices()
    present = {each.metadata.name for each in objects if isinstance(each, DeviceClass)}
    classes = (each for name, each in known.device_classes.items() if name not in present)
    return SuppliedDevices(
        tuple(_slices(served, known)), tuple(classes), tuple(_notes(served, own, chosen))
    )


def _slices(nodes: Sequence[Node], catalogue: Catalogue) -> Iterator[ResourceSlice]:
    types = {name: catalogue.instance_types[name] for name in map(_type_of, nodes)}
    matcher = Matcher(Inventory(instance_types=Catalogue(instance_types=types).assignments()))
    for node in nodes:
        for pool in matcher.pools_of(node).pools:
            yield from slices_of(pool)


def _own_resource(node: Node, catalogue: Catalogue) -> str:
    """Return the extended resource of a catalogue's class that a device plugin gives the node."""
    for each in catalogue.device_classes.values():
        name = each.spec.extended_resource_name
        if name and (name in node.status.allocatable or name in node.status.capacity):
            return name
    return ""


def _notes(served: Sequence[Node], own: dict[str, str], chosen: Collection[str]) -> Iterator[str]:
    by_type: dict[str, list[str]] = {}
    for node in served:
        if node.metadata.name not in chosen:
            by_type.setdefault(_type_of(node), []).append(node.metadata.name)
    for type_, names in by_type.items():
        yield (
            f"no ResourceSlices found; nodes of instance type {type_} get the devices of the "
            f"hardware catalog: {listed(names)}"
        )
    plugged: dict[str, list[str]] = {}
    for name, resource in own.items():
        if resource:
            plugged.setdefault(resource, []).append(name)
    for resource, names in plugged.items():
        yield (
            f"nodes with {resource} of a device plugin get no devices of the hardware catalog: "
            f"{listed(names)}"
        )


def _type_of(node: Node) -> str:
    return node.metadata.labels.get(INSTANCE_TYPE, "")
