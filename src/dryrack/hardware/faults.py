"""
Faults of a node and of its devices, as annotations of the Node.

One way serves nodes that exist and nodes that do not, and `kubectl annotate` will do:

    device-fault.dryrack.dev/<device>: unhealthy | unknown | lost | taint=KEY[=VALUE]:EFFECT
    node-fault.dryrack.dev/prepare:    fail[=MESSAGE] | slow=5s | hang
    node-fault.dryrack.dev/driver:     gone
    node-fault.dryrack.dev/ready:      false

`unhealthy` and `unknown` take a message too, as `unhealthy=MESSAGE`. Each may end with
` until 2026-01-02T03:04:05Z`, and several of one device are joined by `;`. A fault names no driver:
it hits the device of that name of every driver on the node.

For others, all of it pure, with times in seconds since 1970:

- `faults_of(annotations, now)` reads the annotations of a Node, and answers a `NodeFaults`: `apply`
  turns devices into what is to be published, `health_of` says what kubelet is told, `prepare`,
  `is_driver_gone` and `is_ready` are what they say, `next_expiry` is when to read again (None: when
  the annotations change), `problems` are sentences about annotations that say nothing and count
  for nothing. A Node without faults costs one look at its annotations, and gets `NO_FAULTS`.
- `device_annotation(device)` and `node_annotation(part)` are the keys; `read_device_faults(text)`
  and `read_node_fault(part, text)` read one value or raise `FaultError`; `limited(text, until)` is
  the value that ends by itself.
- `fault_lines(text)` makes annotations of a file with a line `DEVICE FAULT` for each device, for
  people without a way to the API.
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

# A device that is not well is not given to anybody new; whoever has it may keep it.
UNHEALTHY_TAINT = DeviceTaint(key="dryrack.dev/unhealthy", effect="NoSchedule")

_UNTIL = re.compile(r"(?P<fault>.*\S)\s+until\s+(?P<until>\S+)", re.DOTALL)
_DEVICE_FAULTS = "unhealthy, unknown, lost or taint=KEY[=VALUE]:EFFECT"
_NODE_FAULTS = {
    "prepare": "fail, fail=MESSAGE, slow=5s or hang",
    "driver": "gone",
    "ready": "false",
}
# What can be wrong with a node: the ends of the keys.
NODE_FAULT_PARTS = tuple(_NODE_FAULTS)


class FaultError(DryrackError):
    """What was said about a fault makes no sense."""


class Health(StrEnum):
    """What kubelet says of a device in the status of a pod."""

    HEALTHY = "Healthy"
    UNHEALTHY = "Unhealthy"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class DeviceFault:
    """One thing that is wrong with a device; of the first three fields one says what."""

    health: Health | None = None
    taint: DeviceTaint | None = None
    is_lost: bool = False
    message: str = ""
    until: float | None = None


class PrepareMode(StrEnum):
    """What a node does when it is asked to prepare a claim."""

    FAIL = "fail"
    SLOW = "slow"
    HANG = "hang"


@dataclass(frozen=True, slots=True)
class PrepareFault:
    """Why claims are not prepared as usual on a node."""

    mode: PrepareMode
    message: str = ""
    """What a failure says."""
    seconds: float = 0.0
    """How long it takes when it is slow."""
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
    """All that is wrong with a node at one time."""

    devices: Mapping[str, tuple[DeviceFault, ...]] = field(default_factory=dict)
    prepare: PrepareFault | None = None
    is_driver_gone: bool = False
    is_ready: bool = True
    next_expiry: float | None = None
    problems: tuple[str, ...] = ()

    def apply(self, devices: tuple[Device, ...]) -> tuple[Device, ...]:
        """The devices as they are to be published: without the lost ones, tainted the others."""
        if not self.devices:
            return devices
        return tuple(
            _tainted(device, self.devices.get(device.name, ()))
            for device in devices
            if not self.is_lost(device.name)
        )

    def is_lost(self, device: str) -> bool:
        return any(fault.is_lost for fault in self.devices.get(device, ()))

    def health_of(self, device: str) -> tuple[Health, str]:
        """What kubelet is told of a device, and why; of a lost one that it is not healthy."""
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
    """What the annotations of a Node say about it at a time; what is over counts no more."""
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
    return _at(now, devices, nodes, tuple(problems))


def _at(
    now: float,
    devices: Mapping[str, tuple[DeviceFault, ...]],
    nodes: Iterable[NodeFault],
    problems: tuple[str, ...],
) -> NodeFaults:
    present = {name: tuple(_present(faults, now)) for name, faults in devices.items()}
    node = tuple(_present(nodes, now))
    every = (*node, *(fault for faults in present.values() for fault in faults))
    return NodeFaults(
        devices={name: faults for name, faults in present.items() if faults},
        prepare=next((each for each in node if isinstance(each, PrepareFault)), None),
        is_driver_gone=any(isinstance(each, DriverGone) for each in node),
        is_ready=not any(isinstance(each, NotReady) for each in node),
        next_expiry=min((each.until for each in every if each.until is not None), default=None),
        problems=problems,
    )


def _present(faults: Iterable[_Fault], now: float) -> Iterator[_Fault]:
    return (each for each in faults if each.until is None or now < each.until)


def device_annotation(device: str) -> str:
    return DEVICE_FAULT + device


def node_annotation(part: str) -> str:
    return NODE_FAULT + part


def limited(text: str, until: float) -> str:
    """A fault that ends by itself, as the value of an annotation; its last second is whole."""
    return f"{text} until {datetime.fromtimestamp(math.ceil(until), UTC):%Y-%m-%dT%H:%M:%SZ}"


def read_device_faults(text: str) -> tuple[DeviceFault, ...]:
    """All faults of a device, from the value of its annotation."""
    return tuple(_device_fault(part.strip()) for part in text.split(";"))


def fault_lines(text: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """
    What the lines `DEVICE FAULT` of a file say, as annotations, and what is wrong with others.

    A device may have several lines. Lines that are empty or begin with # say nothing.
    """
    found: dict[str, str] = {}
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
        found[key] = f"{found[key]}; {fault.strip()}" if key in found else fault.strip()
    return found, tuple(problems)


def read_node_fault(part: str, text: str) -> NodeFault:
    """A fault of a node, from the end of its annotation's key and its value."""
    known = _NODE_FAULTS.get(part)
    if known is None:
        offered = ", ".join(_NODE_FAULTS)
        raise FaultError(f"unknown node fault {part!r}; use one of: {offered}")
    said, until = _split(text)
    name, has_detail, detail = said.partition("=")
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
    raise FaultError(f"unknown fault {said!r}; use {known}")


def _device_fault(text: str) -> DeviceFault:
    said, until = _split(text)
    name, has_detail, detail = said.partition("=")
    match name, bool(has_detail):
        case "unhealthy", _:
            return DeviceFault(health=Health.UNHEALTHY, message=detail, until=until)
        case "unknown", _:
            return DeviceFault(health=Health.UNKNOWN, message=detail, until=until)
        case "lost", False:
            return DeviceFault(is_lost=True, until=until)
        case "taint", True:
            return DeviceFault(taint=_taint(detail), until=until)
    raise FaultError(f"unknown fault {said!r}; use {_DEVICE_FAULTS}")


def _split(text: str) -> tuple[str, float | None]:
    """A fault, and when it ends."""
    found = _UNTIL.fullmatch(text.strip())
    if found is None:
        return text.strip(), None
    try:
        until = datetime.fromisoformat(found["until"])
    except ValueError:
        until = None
    if until is None or until.tzinfo is None:
        raise FaultError(
            f"until {found['until']!r}: must be an RFC 3339 time, such as 2026-01-02T03:04:05Z"
        )
    return found["fault"], until.timestamp()


def _taint(text: str) -> DeviceTaint:
    """As kubectl taints nodes: `KEY[=VALUE]:EFFECT`."""
    labelled, _, effect = text.rpartition(":")
    key, _, value = labelled.partition("=")
    taint = DeviceTaint(key=key, value=value, effect=effect)
    for problem in taint_problems("taint", taint):
        raise FaultError(f"{problem}; use taint=KEY[=VALUE]:EFFECT")
    return taint


def _tainted(device: Device, faults: Iterable[DeviceFault]) -> Device:
    added = dict.fromkeys(filter(None, map(_taint_of, faults)))
    new = tuple(each for each in added if each not in device.taints)
    return replace(device, taints=(*device.taints, *new)[:TAINTS_MAX]) if new else device


def _taint_of(fault: DeviceFault) -> DeviceTaint | None:
    return UNHEALTHY_TAINT if fault.health is Health.UNHEALTHY else fault.taint
