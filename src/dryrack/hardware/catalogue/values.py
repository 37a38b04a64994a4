"""Device models, instance types with their devices, and the devices that their nodes publish."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from dryrack.hardware.catalogue.identity import is_marked
from dryrack.hardware.catalogue.mig import partition
from dryrack.hardware.catalogue.node_labels import node_labels
from dryrack.hardware.catalogue.templates import fill, fill_entries, make_sample_slot, variables
from dryrack.hardware.inventory import Assignment, Batch, Mark, Origin, SourceKind, ThisNode
from dryrack.hardware.node_terms import INSTANCE_TYPE
from dryrack.kinds.core import NodeSelectorRequirement, NodeSelectorTerm
from dryrack.kinds.decode import decode
from dryrack.kinds.resource import Device

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.hardware.catalogue.entries import ModelEntry
    from dryrack.hardware.catalogue.mig import Mig
    from dryrack.kinds.resource import CounterSet, DeviceClass


Slot = dict[str, Any]
# NVIDIA's driver publishes partitions only if that is enabled. In dryrack a label of the node
# enables it: a node pool can set the label, and one cluster can have both kinds of nodes.
MIG = "dryrack.dev/mig"
MIG_DYNAMIC = "dynamic"


class Cards(Enum):
    """The form in which the GPUs of a node are published."""

    WHOLE = ""
    PARTITIONED = "mig"


@dataclass(frozen=True, slots=True)
class Model:
    """A device model, as its driver publishes it."""

    name: str
    vendor: str
    title: str
    driver: str
    device: str
    attributes: Mapping[str, Any]
    capacity: Mapping[str, Any]
    allow_multiple_allocations: bool | None = None
    mig: Mig | None = None
    note: str = ""
    sources: tuple[str, ...] = ()

    def variables(self) -> dict[str, bool]:
        """Return the placeholders of the model, and whether a slot must set them."""
        required: dict[str, bool] = {}
        for name, is_required in variables([self.device, self.attributes, self.capacity]):
            required[name] = required.get(name, False) or is_required
        return required

    def sample_slot(self) -> Slot:
        """Return a slot with sample values, for validation."""
        return make_sample_slot(self.variables())

    def document(self, slot: Slot) -> dict[str, Any]:
        """Return the document of a device in a slot; it may be invalid."""
        shared = self.allow_multiple_allocations
        return {
            "name": fill(self.device, slot),
            "attributes": fill_entries(self.attributes, slot),
            "capacity": fill_entries(self.capacity, slot),
            **({} if shared is None else {"allowMultipleAllocations": shared}),
        }

    def batch(self, slots: tuple[Slot, ...], cards: Cards = Cards.WHOLE) -> Batch:
        """Return the devices of this model in these slots."""
        devices: list[Device] = []
        counters: list[CounterSet] = []
        marks: list[Mark] = []
        for slot in slots:
            whole = decode(self.document(slot), Device)
            published: tuple[Device, ...] = (whole,)
            if self.mig is not None and cards is Cards.PARTITIONED:
                published, shared = partition(whole, self.mig)
                counters.append(shared)
            devices += published
            for device in published:
                for name, attribute in device.attributes.items():
                    text = attribute.string_value
                    if text is not None and "{" in text and is_marked(text):
                        marks.append(Mark(device.name, name, text, whole.name))
        return Batch(self.driver, "", ThisNode(), tuple(devices), tuple(counters), tuple(marks))


@dataclass(frozen=True, slots=True)
class Fitting:
    """The devices of one model in an instance type, with the values of each slot."""

    model: Model
    slots: tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class InstanceType:
    """An instance type of a cloud provider."""

    name: str
    provider: str
    fittings: tuple[Fitting, ...]
    note: str = ""
    sources: tuple[str, ...] = ()
    size: Mapping[str, str] = field(default_factory=dict)
    """CPU and memory, as far as they are known, as quantities."""

    @property
    def cards(self) -> tuple[Cards, ...]:
        """The forms in which its GPUs can be published."""
        partitionable = any(fitting.model.mig is not None for fitting in self.fittings)
        return (Cards.WHOLE, Cards.PARTITIONED) if partitionable else (Cards.WHOLE,)

    @property
    def drivers(self) -> tuple[str, ...]:
        """The drivers of its devices."""
        return tuple(sorted({fitting.model.driver for fitting in self.fittings}))

    @property
    def node_labels(self) -> dict[str, str]:
        """The labels of its nodes: the instance type, and those of its accelerators."""
        return {INSTANCE_TYPE: self.name, **node_labels(self.fittings)}

    def slots_of(self, model: str) -> tuple[Slot, ...]:
        """Return the slots of its devices of a model."""
        return tuple(
            slot for each in self.fittings if each.model.name == model for slot in each.slots
        )

    def assignment(self, cards: Cards) -> Assignment:
        """Return the devices of a node of this type: one batch for each driver."""
        part = f"{self.name}-{cards.value}" if cards.value else ""
        origin = Origin(SourceKind.CATALOGUE, self.name, part)
        labels = [NodeSelectorRequirement(key=INSTANCE_TYPE, operator="In", values=(self.name,))]
        if len(self.cards) > 1:
            operator = "In" if cards is Cards.PARTITIONED else "NotIn"
            labels.append(
                NodeSelectorRequirement(key=MIG, operator=operator, values=(MIG_DYNAMIC,))
            )
        term = NodeSelectorTerm(match_expressions=tuple(labels))
        batches = [fitting.model.batch(fitting.slots, cards) for fitting in self.fittings]
        merged = []
        for driver in self.drivers:
            own = [batch for batch in batches if batch.driver == driver]
            devices = tuple(device for batch in own for device in batch.devices)
            counters = tuple(each for batch in own for each in batch.shared_counters)
            marks = tuple(mark for batch in own for mark in batch.marks)
            merged.append(Batch(driver, "", ThisNode(), devices, counters, marks))
        return Assignment(origin, (term,), tuple(merged))


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Device models, instance types, and DeviceClasses, by name."""

    models: Mapping[str, Model] = field(default_factory=dict)
    instance_types: Mapping[str, InstanceType] = field(default_factory=dict)
    families: Mapping[str, ModelEntry] = field(default_factory=dict)
    """Common values that models in further files can use."""
    device_classes: Mapping[str, DeviceClass] = field(default_factory=dict)
    """The DeviceClasses that come with the drivers."""

    def assignments(self) -> dict[str, Assignment]:
        """Return the devices of each instance type, with terms that select its nodes."""
        # A key is unique because the value of a label, such as an instance type, has no slash.
        return {
            f"{name}/{cards.value}" if cards.value else name: machine.assignment(cards)
            for name, machine in sorted(self.instance_types.items())
            for cards in machine.cards
        }
