"""
The inventory of devices: the values that sources define, and the pools that nodes get.

An `Inventory` contains the contents of all sources: overlays, mappings, and the catalog of instance
types, each already in the form that the API accepts. `matching` computes the `Pool`s of a node and
of the whole cluster from it. A pool is one value, although it may need several slices.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.kinds.core import NodeSelector, NodeSelectorTerm
    from dryrack.kinds.quantity import Quantity
    from dryrack.kinds.resource import CounterSet, Device


class SourceKind(StrEnum):
    """The kind of object that defines devices; the one with the highest precedence first."""

    OVERLAY = "NodeOverlay"
    CONFIG_MAP = "ConfigMap"
    CONFIG = "DRAConfig"
    CATALOGUE = "InstanceType"


@dataclass(frozen=True, slots=True, order=True)
class Source:
    """An object that defines devices; the catalog has one for each instance type."""

    kind: SourceKind
    name: str


@dataclass(frozen=True, slots=True)
class Origin:
    """An object that defines devices, and the part of it, such as the name of a mapping."""

    kind: SourceKind
    name: str
    part: str

    @property
    def source(self) -> Source:
        return Source(self.kind, self.name)


@dataclass(frozen=True, slots=True)
class ThisNode:
    """Devices of the node that matched: one pool for each node."""


@dataclass(frozen=True, slots=True)
class EveryNode:
    """Devices that all nodes of the cluster can use: one pool."""


@dataclass(frozen=True, slots=True)
class SelectedNodes:
    """Devices that the nodes of a selector can use: one pool."""

    selector: NodeSelector


@dataclass(frozen=True, slots=True)
class PerDevice:
    """Devices that each select their nodes: one pool."""


Reach = ThisNode | EveryNode | SelectedNodes | PerDevice


@dataclass(frozen=True, slots=True)
class Mark:
    """A string attribute that is unique to a node, such as a UUID; see `catalogue.identity`."""

    device: str
    attribute: str
    text: str
    """As in `GPU-{device.uuid}`; the device in the batch has this text until it is replaced."""
    seed: str
    """The device that determines the value: for a partition, the device that contains it."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Devices that one origin puts into one pool of a driver."""

    driver: str
    pool: str
    """The name as written, or "". `matching` makes one pool per node of it."""
    reach: Reach
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True)
class Assignment:
    """Devices for the nodes that match one of the terms."""

    origin: Origin
    terms: tuple[NodeSelectorTerm, ...]
    batches: tuple[Batch, ...]


@dataclass(frozen=True, slots=True)
class Overlay:
    """The devices and the capacity of an overlay; the heaviest that matches a node wins."""

    assignment: Assignment
    weight: int
    capacity: Mapping[str, Quantity]


@dataclass(frozen=True, slots=True)
class Inventory:
    """All sources. `instance_types` is empty unless the catalog is enabled."""

    overlays: tuple[Overlay, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    instance_types: Mapping[str, Assignment] | None = None
    unread: tuple[Source, ...] = ()
    """
    Sources that exist, and of which no version could be read since the start.

    Their devices are unknown: pools with slices of these sources are left as they are.
    """


@dataclass(frozen=True, slots=True)
class Section:
    """The devices of a pool from one origin; each section has its own slices."""

    origin: Origin
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


@dataclass(frozen=True, slots=True)
class Pool:
    """All devices of a driver under one name, from all origins."""

    driver: str
    name: str
    node: str
    """The node of the pool; "" for a pool of the whole cluster."""
    reach: Reach
    sections: tuple[Section, ...]
