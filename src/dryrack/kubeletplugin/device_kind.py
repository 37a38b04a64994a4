"""
A device kind: which devices a node has, and what a container gets with one of them.

A kind is pure. It says what is to be in a ResourceSlice, in a CDI spec and in files of the host,
and the plugin sees to it; so the same kind serves a real kubelet and nodes that do not exist.
Packages offer kinds of their own by entry point, in the group `dryrack.device_kinds`: a callable
that takes a `KindOptions` and returns a `DeviceKind`.
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
    """What a container gets with a device."""

    env: tuple[tuple[str, str], ...] = ()
    mounts: tuple[Mount, ...] = ()
    device_nodes: tuple[str, ...] = ()
    lines: tuple[HostLine, ...] = ()
    numbers: int = 0
    """How many numbers, from the one it was given on, its variables have in their names."""


@dataclass(frozen=True, slots=True)
class AllocatedDevice:
    """One result of an allocation, with what its request and class say about it."""

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
    """What others got that have the device too, if several claims may."""


@dataclass(frozen=True, slots=True)
class PreparingClaim:
    """A claim that is being prepared, as far as a kind may want to know it."""

    namespace: str
    name: str
    uid: str
    node: str
    pods: tuple[str, ...]
    """Names of the pods that it is reserved for."""
    devices: frozenset[str] = frozenset()
    """Names of all devices of the driver that it was given."""


@runtime_checkable
class DeviceKind(Protocol):
    """Devices of one driver."""

    @property
    def driver(self) -> str: ...

    @property
    def device_class(self) -> str:
        """The DeviceClass by which claims usually ask for its devices."""
        ...

    @property
    def cdi_kind(self) -> str:
        """Vendor and class of its CDI devices, with a slash between them."""
        ...

    def devices(self, node: str) -> tuple[Device, ...]:
        """All devices that a node has."""
        ...

    def host_files(self) -> tuple[str, ...]:
        """The files in which its devices have lines; the plugin writes them, whole."""
        ...

    def edits(self, device: AllocatedDevice, claim: PreparingClaim, number: int) -> ContainerEdits:
        """
        What a container gets; `PrepareError` if it cannot be.

        No other device that the container may have was given `number` or one that follows.
        """
        ...


@runtime_checkable
class PartitionableKind(DeviceKind, Protocol):
    """Devices of one driver, some of which draw on counters that they share."""

    def counter_sets(self) -> tuple[CounterSet, ...]:
        """What its devices draw on; the same on every node."""
        ...


@runtime_checkable
class ClassifiedKind(DeviceKind, Protocol):
    """Devices of one driver that comes with classes of its own."""

    def device_classes(self) -> tuple[DeviceClass, ...]:
        """What claims can ask for, in place of one class for all devices of the driver."""
        ...


@dataclass(frozen=True, slots=True)
class KindOptions:
    """What `--devices KIND[:COUNT][,option=value...]` says."""

    kind: str
    count: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    """What comes in place of the count, where devices are named: a machine, or a model."""

    def take(self, known: Mapping[str, str]) -> dict[str, str]:
        """The options with their defaults; one that is not among them is refused."""
        for name in self.options:
            if name not in known:
                offered = (
                    f"use one of: {', '.join(sorted(known))}" if known else "it has no options"
                )
                raise DevicesError(f"--devices {self.kind}: no option {name!r}; {offered}")
        return {**known, **self.options}


class DevicesError(DryrackError):
    """What was said about devices makes no sense."""
