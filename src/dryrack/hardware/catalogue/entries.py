"""The schema of catalog files."""

from collections.abc import Mapping
from typing import Any

from dryrack.kinds.meta import Int32, Model
from dryrack.kinds.quantity import Quantity

API_VERSION = "dryrack.dev/v1alpha1"
KIND = "Catalogue"

# The values of wholeDevice: whether a partitioned GPU is also published as a whole.
KEPT = "kept"
HIDDEN = "hidden"


class ProfileEntry(Model, frozen=True, kw_only=True):
    """A size of MIG instances, and the memory slices at which they may start."""

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
    A device model, or the common values of a family.

    Attributes and capacity are those of the API, but any value may contain placeholders.
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
    The number of devices of a model, and the values of each device.

    Under `each`, a list has one value for every device; any other value is for all devices.
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
    """The CPU and memory of an instance type."""

    cpu: Quantity | None = None
    memory: Quantity | None = None


class DeviceClassEntry(Model, frozen=True, kw_only=True):
    """A DeviceClass that comes with a driver, with its selector."""

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
