"""
A device kind: the devices of a node, and the container edits for each of them.

A kind is pure. It returns the contents of ResourceSlices, CDI specs and files of the host, and the
plugin writes them; so the same kind works with a real kubelet and on virtual nodes. Packages offer
kinds by entry point, in the group `dryrack.device_kinds`: a callable that takes a `KindOptions` and
returns a `DeviceKind`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import msgspec

from dryrack.base.errors import DryrackError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.kinds.resource import CounterSet, Device, DeviceClass


class PrepareError(DryrackError):
    """A claim cannot be prepared; the kubelet shows why in an event of the pod."""


class Mount(msgspec.Struct, frozen=True):
    """A file or directory of the host, bound into a container."""

    host_path: str
    container_path: str
    options: tuple[str, ...] = ("ro", "bind")


class HostLine(msgspec.Struct, frozen=True):
    """A line that a file of the host has for as long as a device is prepared."""

    path: str
    text: str


class ContainerEdits(msgspec.Struct, frozen=True, omit_defaults=True):
    """The changes to a container that has a device."""

    env: tuple[tuple[str, str], ...] = ()
    mounts: tuple[Mount, ...] = ()
    device_nodes: tuple[str, ...] = ()
    lines: tuple[HostLine, ...] = ()
    numbers: int = 0
    """How many numbers its variables have in their names, from the given number on."""


@dataclass(frozen=True, slots=True)
class AllocatedDevice:
    """One result of an allocation, with the parameters of its request and class."""

    request: str
    pool: str
    device: str
    share_id: str | None = None
    has_admin_access: bool = False
    consumed_capacity: Mapping[str, str] = field(default_factory=dict)
    parameters: tuple[Any, ...] = ()
    """Opaque parameters for the driver: those of the class, then those of the claim."""
    devices_of_request: int = 1
    shared_with: tuple[ContainerEdits, ...] = ()
    """The edits of other claims that share the device."""


@dataclass(frozen=True, slots=True)
class PreparingClaim:
    """A claim that is being prepared, with the fields that a kind may need."""

    namespace: str
    name: str
    uid: str
    node: str
    pods: tuple[str, ...]
    """Names of the pods that it is reserved for."""
    devices: frozenset[str] = frozenset()
    """Names of all devices of the driver that the claim has."""


@runtime_checkable
class DeviceKind(Protocol):
    """Devices of one driver."""

    @property
    def driver(self) -> str: ...

    @property
    def device_class(self) -> str:
        """The DeviceClass with which claims usually request its devices."""
        ...

    @property
    def cdi_kind(self) -> str:
        """The vendor and class of its CDI devices, separated by a slash."""
        ...

    def devices(self, node: str) -> tuple[Device, ...]:
        """Return all devices of a node."""
        ...

    def host_files(self) -> tuple[str, ...]:
        """Return the files in which its devices have lines; the plugin writes the whole files."""
        ...

    def edits(self, device: AllocatedDevice, claim: PreparingClaim, number: int) -> ContainerEdits:
        """
        Return the edits of a container; raise `PrepareError` if the device cannot be prepared.

        No other device of the container has `number` or a later number.
        """
        ...


@runtime_checkable
class PartitionableKind(DeviceKind, Protocol):
    """Devices of one driver, some of which consume shared counters."""

    def counter_sets(self) -> tuple[CounterSet, ...]:
        """Return the counter sets of its devices, which are the same on every node."""
        ...


@runtime_checkable
class SkippingKind(DeviceKind, Protocol):
    """Devices of one driver for which a kubelet leaves out calls."""

    @property
    def skip_node_operations(self) -> tuple[str, ...]:
        """The operations that are left out, as in ResourceSlices."""
        ...


@runtime_checkable
class ClassifiedKind(DeviceKind, Protocol):
    """Devices of one driver that has its own DeviceClasses."""

    def device_classes(self) -> tuple[DeviceClass, ...]:
        """Return the classes, which replace the one class for all devices of the driver."""
        ...


@dataclass(frozen=True, slots=True)
class KindOptions:
    """The parts of `--devices KIND[:COUNT][,option=value...]`."""

    kind: str
    count: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    """The instance type or model, for the kind that has a name instead of a count."""

    def take(self, known: Mapping[str, str]) -> dict[str, str]:
        """Return the options with their defaults; raise `DevicesError` for an unknown option."""
        for name in self.options:
            if name not in known:
                offered = (
                    f"use one of: {', '.join(sorted(known))}" if known else "it has no options"
                )
                raise DevicesError(f"--devices {self.kind}: no option {name!r}; {offered}")
        return {**known, **self.options}


class DevicesError(DryrackError):
    """An option or a document about devices is invalid."""
