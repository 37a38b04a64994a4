"""
What devices exist where, as values.

An `Inventory` is all that the sources say: overlays, mappings and the catalogue of instance types,
each already normalised to what the API takes. `matching` turns it into the `Pool`s of a node and
of the whole cluster. A pool is one value: however many slices it needs, they have one generation
and one count.
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
    """Where devices were asked for, the strongest first."""

    OVERLAY = "NodeOverlay"
    CONFIG_MAP = "ConfigMap"
    CONFIG = "DRAConfig"
    CATALOGUE = "InstanceType"


@dataclass(frozen=True, slots=True, order=True)
class Source:
    """An object that asks for devices; the catalogue has one for each instance type."""

    kind: SourceKind
    name: str


@dataclass(frozen=True, slots=True)
class Origin:
    """Who asked for devices: an object, and the part of it, such as a mapping's name."""

    kind: SourceKind
    name: str
    part: str

    @property
    def source(self) -> Source:
        return Source(self.kind, self.name)


@dataclass(frozen=True, slots=True)
class ThisNode:
    """Devices that are on the node that matched: one pool for each."""


@dataclass(frozen=True, slots=True)
class EveryNode:
    """Devices that all nodes of the cluster reach: one pool."""


@dataclass(frozen=True, slots=True)
class SelectedNodes:
    """Devices that the nodes of a selector reach: one pool."""

    selector: NodeSelector


@dataclass(frozen=True, slots=True)
class PerDevice:
    """Each device says itself who reaches it: one pool."""


Reach = ThisNode | EveryNode | SelectedNodes | PerDevice


@dataclass(frozen=True, slots=True)
class Mark:
    """A string attribute that no two nodes share, such as a UUID; `catalogue.identity` fills it."""

    device: str
    attribute: str
    text: str
    """As in `GPU-{device.uuid}`; the device in the batch has this very text until it is filled."""
    seed: str
    """Whose mark it is: a partition has that of the device it is cut from."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Devices that one origin puts into one pool of a driver."""

    driver: str
    pool: str
    """As it was written; "" where it was not. `matching` makes it one pool per node."""
    reach: Reach
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True)
class Assignment:
    """These devices for those nodes; any of the terms will do."""

    origin: Origin
    terms: tuple[NodeSelectorTerm, ...]
    batches: tuple[Batch, ...]


@dataclass(frozen=True, slots=True)
class Overlay:
    """What an overlay says about its nodes; the heaviest that matches a node wins."""

    assignment: Assignment
    weight: int
    capacity: Mapping[str, Quantity]


@dataclass(frozen=True, slots=True)
class Inventory:
    """All sources. `instance_types` is empty unless the catalogue is switched on."""

    overlays: tuple[Overlay, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    instance_types: Mapping[str, Assignment] | None = None
    unread: tuple[Source, ...] = ()
    """
    Sources that are there, and no version of which could be read since the start.

    Nobody knows what they want: pools with slices of theirs are left as they are.
    """


@dataclass(frozen=True, slots=True)
class Section:
    """The devices of a pool that come from one origin; each has slices of its own."""

    origin: Origin
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


@dataclass(frozen=True, slots=True)
class Pool:
    """All devices of a driver under one name, whoever asked for them."""

    driver: str
    name: str
    node: str
    """The node that has it; "" for a pool of the whole cluster."""
    reach: Reach
    sections: tuple[Section, ...]
