"""Fleets: the nodes of a simulation with their devices, from lists, the catalog, or objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from dryrack.base.errors import DryrackError
from dryrack.base.text import hint
from dryrack.hardware import Inventory, Matcher, slices_of
from dryrack.hardware.catalogue import Catalogue, InstanceType
from dryrack.kinds.core import Node
from dryrack.kinds.decode import decode, to_builtins
from dryrack.kinds.resource import DeviceClass, ResourceSlice

if TYPE_CHECKING:
    from collections.abc import Mapping


ANY_GPU = "gpu"
# Of one instance type; more are more likely a mistake.
_NODES_MAX = 100_000


class FleetError(DryrackError):
    """A description of a fleet is wrong."""


@dataclass(frozen=True, slots=True)
class FleetSpec:
    """Nodes, their slices, and the device classes."""

    name: str
    nodes: tuple[Node, ...]
    slices: tuple[ResourceSlice, ...]
    classes: tuple[DeviceClass, ...]
    # The price of a node for an hour, by its instance type.
    prices: Mapping[str, float] = field(default_factory=dict)
    currency: str = ""


def objects_of(spec: FleetSpec) -> bytes:
    """Return a fleet as bytes, which `read_objects` reads in another process."""
    return msgspec.json.encode(
        {
            "nodes": [to_builtins(each) for each in spec.nodes],
            "slices": [to_builtins(each) for each in spec.slices],
            "classes": [to_builtins(each) for each in spec.classes],
            "prices": dict(spec.prices),
            "currency": spec.currency,
        }
    )


def read_objects(content: bytes, name: str) -> FleetSpec:
    """Return the fleet that `objects_of` wrote."""
    document = msgspec.json.decode(content)
    return FleetSpec(
        name,
        tuple(decode(each, Node) for each in document["nodes"]),
        tuple(decode(each, ResourceSlice) for each in document["slices"]),
        tuple(decode(each, DeviceClass) for each in document["classes"]),
        document["prices"],
        document["currency"],
    )


def catalogue_fleet(
    text: str, catalogue: Catalogue, *, prices: Mapping[str, float], currency: str
) -> FleetSpec:
    """
    Return the nodes of instance types, such as "p5.48xlarge:100,g6.12xlarge:40".

    Raises `FleetError`.
    """
    nodes: list[Node] = []
    types: dict[str, InstanceType] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, colon, number = part.partition(":")
        machine = catalogue.instance_types.get(name)
        if machine is None:
            raise FleetError(
                f"fleet {text!r}: unknown instance type {name!r}; "
                f"{hint(name, catalogue.instance_types)}"
            )
        if colon and not (number.isdecimal() and 1 <= int(number) <= _NODES_MAX):
            problem = f"{number!r} is not a number of nodes from 1 to {_NODES_MAX}"
            raise FleetError(f"fleet {text!r}: {problem}")
        if name in types:
            raise FleetError(f"fleet {text!r}: {name} occurs twice; add the numbers")
        types[name] = machine
        count = int(number or 1)
        nodes += (_node(f"{name}-{n:05}", machine) for n in range(1, count + 1))
    if not nodes:
        raise FleetError("the fleet has no nodes; name one, such as p5.48xlarge:4")
    matcher = Matcher(Inventory(instance_types=Catalogue(instance_types=types).assignments()))
    slices = [
        each for node in nodes for pool in matcher.pools_of(node).pools for each in slices_of(pool)
    ]
    return FleetSpec(
        text,
        tuple(nodes),
        tuple(slices),
        (*catalogue.device_classes.values(), _any_gpu()),
        {name: prices[name] for name in types if name in prices},
        currency,
    )


def _any_gpu() -> DeviceClass:
    """Return the class that imported traces name: a GPU of any vendor."""
    spec = {"selectors": [{"cel": {"expression": 'device.driver.startsWith("gpu.")'}}]}
    return decode({"metadata": {"name": ANY_GPU}, "spec": spec}, DeviceClass)


def _node(name: str, machine: InstanceType) -> Node:
    resources = {"cpu": "32", "memory": "256Gi", "pods": "110", **machine.size}
    labels = {"kubernetes.io/hostname": name, **machine.node_labels}
    status = {"capacity": resources, "allocatable": resources}
    return decode({"metadata": {"name": name, "labels": labels}, "status": status}, Node)
