"""
Faults of a node and of its devices, as annotations of the Node.

The annotations work on real and on virtual nodes, and `kubectl annotate` can set them:

    device-fault.dryrack.dev/<device>: unhealthy | unknown | lost | taint=KEY[=VALUE]:EFFECT
    node-fault.dryrack.dev/prepare:    fail[=MESSAGE] | slow=5s | hang
    node-fault.dryrack.dev/driver:     gone
    node-fault.dryrack.dev/ready:      false

`unhealthy` and `unknown` accept a message, as `unhealthy=MESSAGE`. Each fault may end with
` until 2026-01-02T03:04:05Z`, and several faults of one device are joined by `;`. A fault names no
driver: it applies to the device of that name of every driver on the node.

All functions are pure. Times are in seconds since 1970.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from dryrack.base.durations import seconds_in
from dryrack.base.errors import DryrackError
from dryrack.kinds.resource import DeviceTaint
from dryrack.kinds.validation.parts import taint as taint_problems
from dryrack.kinds.validation.slices import TAINTS_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dryrack.kinds.resource import Device

DEVICE_FAULT = "device-fault.dryrack.dev/"
NODE_FAULT = "node-fault.dryrack.dev/"
# A change of this annotation of a Node restarts its virtual kubelet.
KUBELET_RESTART = "dryrack.dev/kubelet-restart"

# An unhealthy device is not allocated to other claims; claims that have it keep it.
UNHEALTHY_TAINT = DeviceTaint(key="dryrack.dev/unhealthy", effect="NoSchedule")

# A lost device of a driver that dryrack does not run: only the driver can remove it from its slice.
LOST_TAINT = DeviceTaint(key="dryrack.dev/lost", effect="NoSchedule")
# The label of DeviceTaintRules that are faults, and the annotation with their node.
FAULT_LABEL = "dryrack.dev/fault"
FAULT_NODE = "dryrack.dev/fault-node"

_UNTIL = re.compile(r"(?P<fault>.*\S)\s+until\s+(?P<until>\S+)", re.DOTALL)
_DEVICE_FAULTS = "unhealthy, unknown, lost or taint=KEY[=VALUE]:EFFECT"
_NODE_FAULTS = {
    "prepare": "fail, fail=MESSAGE, slow=5s or hang",
    "driver": "gone",
    "ready": "false",
}
# The ends of the keys of node faults.
NODE_FAULT_PARTS = tuple(_NODE_FAULTS)


class FaultError(DryrackError):
    """The value of a fault annotation is invalid."""


class Health(StrEnum):
    """The health of a device, as kubelet reports it in the status of a pod."""

    HEALTHY = "Healthy"
    UNHEALTHY = "Unhealthy"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class DeviceFault:
    """A fault of a device; one of the first three fields is set."""

    health: Health | None = None
    taint: DeviceTaint | None = None
    is_lost: bool = False
    message: str = ""
    until: float | None = None


class PrepareMode(StrEnum):
    """The behavior of a node that should prepare a claim."""

    FAIL = "fail"
    SLOW = "slow"
    HANG = "hang"


@dataclass(frozen=True, slots=True)
class PrepareFault:
    """A fault of the preparation of claims on a node."""

    mode: PrepareMode
    message: str = ""
    """The message of the failure."""
    seconds: float = 0.0
    """The duration of a slow preparation."""
    until: float | None = None


@dataclass(frozen=True, slots=True)
class DriverGone:
    """The driver has left the node; its slices stay as they were."""

    until: float | None


@dataclass(frozen=True, slots=True)
class NotReady:
    """The node no longer answers."""

    until: float | None = None


NodeFault = PrepareFault | DriverGone | NotReady
_Fault = TypeVar("_Fault", DeviceFault, NodeFault)


@dataclass(frozen=True, slots=True)
class NodeFaults:
    """All faults of a node at one time."""

    devices: Mapping[str, tuple[DeviceFault, ...]] = field(default_factory=dict)
    prepare: PrepareFault | None = None
    is_driver_gone: bool = False
    is_ready: bool = True
    next_expiry: float | None = None
    """The time when a fault ends, so that the annotations have to be read again."""
    problems: tuple[str, ...] = ()
    """Messages about invalid annotations, which are ignored."""

    def apply(self, devices: tuple[Device, ...]) -> tuple[Device, ...]:
        """Return the devices to publish: without lost ones, and with the taints of faults."""
        if not self.devices:
            return devices
        published = []
        for device in devices:
            if self.is_lost(device.name):
                continue
            taints = list(device.taints)
            for fault in self.devices.get(device.name, ()):
                taint = UNHEALTHY_TAINT if fault.health is Health.UNHEALTHY else fault.taint
                if taint and taint not in taints:
                    taints.append(taint)
            if len(taints) > len(device.taints):
                device = replace(device, taints=tuple(taints[:TAINTS_MAX]))
            published.append(device)
        return tuple(published)

    def is_lost(self, device: str) -> bool:
        return any(fault.is_lost for fault in self.devices.get(device, ()))

    def health_of(self, device: str) -> tuple[Health, str]:
        """Return the health of a device for kubelet, with a message; a lost one is unhealthy."""
        faults = self.devices.get(device, ())
        if self.is_lost(device):
            return Health.UNHEALTHY, "the device is lost"
        for health in (Health.UNHEALTHY, Health.UNKNOWN):
            for fault in faults:
                if fault.health is health:
                    return health, fault.message
        return Health.HEALTHY, ""


NO_FAULTS = NodeFaults()


def faults_of(annotations: Mapping[str, str], now: float) -> NodeFaults:
    """Return the faults in the annotations of a Node that have not ended at a time."""
    keys = sorted(key for key in annotations if key.startswith((DEVICE_FAULT, NODE_FAULT)))
    if not keys:
        return NO_FAULTS
    devices: dict[str, tuple[DeviceFault, ...]] = {}
    nodes: list[NodeFault] = []
    problems: list[str] = []
    for key in keys:
        prefix, _, name = key.partition("/")
        try:
            if f"{prefix}/" == DEVICE_FAULT:
                devices[name] = read_device_faults(annotations[key])
            else:
                nodes.append(read_node_fault(name, annotations[key]))
        except FaultError as error:
            problems.append(f"annotation {key}: {error}")
    current = {name: tuple(_drop_ended(faults, now)) for name, faults in devices.items()}
    node = tuple(_drop_ended(nodes, now))
    every = (*node, *(fault for faults in current.values() for fault in faults))
    return NodeFaults(
        devices={name: faults for name, faults in current.items() if faults},
        prepare=next((each for each in node if isinstance(each, PrepareFault)), None),
        is_driver_gone=any(isinstance(each, DriverGone) for each in node),
        is_ready=not any(isinstance(each, NotReady) for each in node),
        next_expiry=min((each.until for each in every if each.until is not None), default=None),
        problems=tuple(problems),
    )


def _drop_ended(faults: Iterable[_Fault], now: float) -> Iterator[_Fault]:
    return (each for each in faults if each.until is None or now < each.until)


def device_annotation(device: str) -> str:
    return DEVICE_FAULT + device


def node_annotation(part: str) -> str:
    return NODE_FAULT + part


def add_expiry(text: str, until: float) -> str:
    """Return the value of an annotation with an end, rounded up to a second."""
    return f"{text} until {datetime.fromtimestamp(math.ceil(until), UTC):%Y-%m-%dT%H:%M:%SZ}"


def read_device_faults(text: str) -> tuple[DeviceFault, ...]:
    """Return all faults of a device, from the value of its annotation."""
    return tuple(_read_device_fault(part.strip()) for part in text.split(";"))


def fault_lines(text: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """
    Return the lines `DEVICE FAULT` of a file as annotations, and the problems of other lines.

    A device may have several lines. Lines that are empty or begin with # are ignored. Such a file
    is for people without access to the API.
    """
    annotations: dict[str, str] = {}
    problems: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        device, _, fault = line.strip().partition(" ")
        if not device or device.startswith("#"):
            continue
        try:
            read_device_faults(fault)
        except FaultError as error:
            problems.append(f"line {number}, device {device!r}: {error}")
            continue
        key = device_annotation(device)
        previous = f"{annotations[key]}; " if key in annotations else ""
        annotations[key] = previous + fault.strip()
    return annotations, tuple(problems)


def read_node_fault(part: str, text: str) -> NodeFault:
    """Return a fault of a node, from the end of its annotation's key and its value."""
    syntax = _NODE_FAULTS.get(part)
    if syntax is None:
        raise FaultError(f"unknown node fault {part!r}; use one of: {', '.join(_NODE_FAULTS)}")
    fault, until = _split(text)
    name, has_detail, detail = fault.partition("=")
    match part, name, bool(has_detail):
        case "prepare", "fail", _:
            return PrepareFault(PrepareMode.FAIL, message=detail, until=until)
        case "prepare", "slow", True:
            seconds = seconds_in(detail)
            if seconds is not None:
                return PrepareFault(PrepareMode.SLOW, seconds=seconds, until=until)
        case "prepare", "hang", False:
            return PrepareFault(PrepareMode.HANG, until=until)
        case "driver", "gone", False:
            return DriverGone(until)
        case "ready", "false", False:
            return NotReady(until)
    raise FaultError(f"unknown fault {fault!r}; use {syntax}")


def _read_device_fault(text: str) -> DeviceFault:
    fault, until = _split(text)
    name, has_detail, detail = fault.partition("=")
    match name, bool(has_detail):
        case "unhealthy", _:
            return DeviceFault(health=Health.UNHEALTHY, message=detail, until=until)
        case "unknown", _:
            return DeviceFault(health=Health.UNKNOWN, message=detail, until=until)
        case "lost", False:
            return DeviceFault(is_lost=True, until=until)
        case "taint", True:
            return DeviceFault(taint=_read_taint(detail), until=until)
    raise FaultError(f"unknown fault {fault!r}; use {_DEVICE_FAULTS}")


def _split(text: str) -> tuple[str, float | None]:
    """Return a fault, and the time when it ends."""
    match = _UNTIL.fullmatch(text.strip())
    if match is None:
        return text.strip(), None
    try:
        until = datetime.fromisoformat(match["until"])
    except ValueError:
        until = None
    if until is None or until.tzinfo is None:
        raise FaultError(
            f"until {match['until']!r}: must be an RFC 3339 time, such as 2026-01-02T03:04:05Z"
        )
    return match["fault"], until.timestamp()


def _read_taint(text: str) -> DeviceTaint:
    """Return a taint from `KEY[=VALUE]:EFFECT`, the syntax of kubectl taint."""
    labelled, _, effect = text.rpartition(":")
    key, _, value = labelled.partition("=")
    taint = DeviceTaint(key=key, value=value, effect=effect)
    for problem in taint_problems("taint", taint):
        raise FaultError(f"{problem}; use taint=KEY[=VALUE]:EFFECT")
    return taint
