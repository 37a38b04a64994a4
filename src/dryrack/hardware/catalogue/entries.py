"""The files of the catalogue, as they are written."""

from collections.abc import Mapping
from typing import Any

from dryrack.kinds.meta import Int32, Model
from dryrack.kinds.quantity import Quantity

API_VERSION = "dryrack.dev/v1alpha1"
KIND = "Catalogue"

# Whether a card that is partitioned is on offer as a whole as well.
KEPT = "kept"
HIDDEN = "hidden"


class ProfileEntry(Model, frozen=True, kw_only=True):
    """One size of MIG instance, and where on the card it may start."""

    name: str = ""
    id: Int32 = 0
    starts: tuple[Int32, ...] = ()
    slices: Int32 = 0
    capacity: Mapping[str, Quantity] = {}


class MigEntry(Model, frozen=True, kw_only=True):
    whole_device: str = ""
    profiles: tuple[ProfileEntry, ...] = ()


class ModelEntry(Model, frozen=True, kw_only=True):
    """
    A device, or what the devices of a family have in common.

    Attributes and capacity are those of the API, but any value may hold placeholders.
    """

    name: str = ""
    family: str = ""
    vendor: str = ""
    title: str = ""
    note: str = ""
    driver: str = ""
    device: str = ""
    attributes: Mapping[str, Any] = {}
    capacity: Mapping[str, Any] = {}
    allow_multiple_allocations: bool | None = None
    mig: MigEntry | None = None


class FittingEntry(Model, frozen=True, kw_only=True):
    """
    How many devices of a model, and what is particular to each.

    Under `each`, a list has one value for every device; anything else is the value of them all.
    """

    model: str = ""
    count: Int32 | None = None
    each: Mapping[str, Any] = {}


class InstanceTypeEntry(Model, frozen=True, kw_only=True):
    names: tuple[str, ...] = ()
    provider: str = ""
    note: str = ""
    devices: tuple[FittingEntry, ...] = ()


class SizeEntry(Model, frozen=True, kw_only=True):
    """What a machine has beside its devices."""

    cpu: Quantity | None = None
    memory: Quantity | None = None


class DeviceClassEntry(Model, frozen=True, kw_only=True):
    """A class that comes with a driver, by the expression that its devices meet."""

    name: str = ""
    expression: str = ""
    extended_resource_name: str | None = None


class FileEntry(Model, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    sources: tuple[str, ...] = ()
    families: tuple[ModelEntry, ...] = ()
    models: tuple[ModelEntry, ...] = ()
    instance_types: tuple[InstanceTypeEntry, ...] = ()
    sizes: Mapping[str, SizeEntry] = {}
    device_classes: tuple[DeviceClassEntry, ...] = ()
