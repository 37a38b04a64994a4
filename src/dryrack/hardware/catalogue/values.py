"""Models of devices, the machines that have them, and what a node of each publishes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dryrack.hardware.catalogue.identity import is_marked
from dryrack.hardware.catalogue.mig import cut
from dryrack.hardware.catalogue.selection import Cards, key_of, term_of
from dryrack.hardware.catalogue.templates import filled, filled_each, sample, variables
from dryrack.hardware.inventory import Assignment, Batch, Mark, Origin, SourceKind, ThisNode
from dryrack.kinds.decode import decode
from dryrack.kinds.resource import Device

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dryrack.hardware.catalogue.entries import ModelEntry
    from dryrack.hardware.catalogue.mig import Mig
    from dryrack.kinds.resource import CounterSet, DeviceClass

Slot = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Model:
    """A kind of device, as its driver publishes it."""

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
        """What a slot gives, and whether it must."""
        needed: dict[str, bool] = {}
        for name, must in variables([self.device, self.attributes, self.capacity]):
            needed[name] = needed.get(name, False) or must
        return needed

    def sample_slot(self) -> Slot:
        """A slot such as there might be, to see what the model looks like in it."""
        return sample(self.variables())

    def document(self, slot: Slot) -> dict[str, Any]:
        """A device of this model in a slot, before it is known to be one."""
        shared = self.allow_multiple_allocations
        return {
            "name": filled(self.device, slot),
            "attributes": filled_each(self.attributes, slot),
            "capacity": filled_each(self.capacity, slot),
            **({} if shared is None else {"allowMultipleAllocations": shared}),
        }

    def batch(self, slots: tuple[Slot, ...], cards: Cards = Cards.WHOLE) -> Batch:
        """The devices of this model in these slots."""
        devices: list[Device] = []
        counters: list[CounterSet] = []
        marks: list[Mark] = []
        for slot in slots:
            whole = decode(self.document(slot), Device)
            offered: tuple[Device, ...] = (whole,)
            if self.mig is not None and cards is Cards.PARTITIONED:
                offered, shared = cut(whole, self.mig)
                counters.append(shared)
            devices += offered
            marks += (mark for device in offered for mark in _marks(device, whole.name))
        return Batch(self.driver, "", ThisNode(), tuple(devices), tuple(counters), tuple(marks))


@dataclass(frozen=True, slots=True)
class Fitting:
    """The devices of one model that a machine has, by what is particular to each."""

    model: Model
    slots: tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class InstanceType:
    """A machine that somebody rents out."""

    name: str
    provider: str
    fittings: tuple[Fitting, ...]
    note: str = ""
    sources: tuple[str, ...] = ()
    size: Mapping[str, str] = field(default_factory=dict)
    """What of CPU and memory is known, as nodes state it."""

    @property
    def cards(self) -> tuple[Cards, ...]:
        """How its cards can be on offer."""
        partitionable = any(fitting.model.mig is not None for fitting in self.fittings)
        return (Cards.WHOLE, Cards.PARTITIONED) if partitionable else (Cards.WHOLE,)

    @property
    def drivers(self) -> tuple[str, ...]:
        """Whose devices it has."""
        return tuple(sorted({fitting.model.driver for fitting in self.fittings}))

    def slots_of(self, model: str) -> tuple[Slot, ...]:
        """Where its devices of this model sit."""
        return tuple(
            slot for each in self.fittings if each.model.name == model for slot in each.slots
        )

    def assignment(self, cards: Cards) -> Assignment:
        """What a node of this type publishes: one batch for each driver."""
        part = f"{self.name}-{cards.value}" if cards.value else ""
        origin = Origin(SourceKind.CATALOGUE, self.name, part)
        term = term_of(self.name, cards if len(self.cards) > 1 else None)
        made = [fitting.model.batch(fitting.slots, cards) for fitting in self.fittings]
        return Assignment(origin, (term,), tuple(_joined(made, driver) for driver in self.drivers))


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All that is known, by name."""

    models: Mapping[str, Model] = field(default_factory=dict)
    instance_types: Mapping[str, InstanceType] = field(default_factory=dict)
    families: Mapping[str, ModelEntry] = field(default_factory=dict)
    """What models that other files add can take over."""
    device_classes: Mapping[str, DeviceClass] = field(default_factory=dict)
    """What comes with the drivers, for claims to ask for."""

    def assignments(self) -> dict[str, Assignment]:
        """What nodes publish; the terms of each tell which nodes those are."""
        return {
            key_of(name, cards): machine.assignment(cards)
            for name, machine in sorted(self.instance_types.items())
            for cards in machine.cards
        }


def _joined(batches: list[Batch], driver: str) -> Batch:
    of_driver = [batch for batch in batches if batch.driver == driver]
    if len(of_driver) == 1:
        return of_driver[0]
    return Batch(
        driver,
        "",
        ThisNode(),
        tuple(device for batch in of_driver for device in batch.devices),
        tuple(counters for batch in of_driver for counters in batch.shared_counters),
        tuple(mark for batch in of_driver for mark in batch.marks),
    )


def _marks(device: Device, seed: str) -> Iterator[Mark]:
    for name, attribute in device.attributes.items():
        text = attribute.string_value
        if text is not None and "{" in text and is_marked(text):
            yield Mark(device.name, name, text, seed)
