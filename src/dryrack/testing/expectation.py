"""
Expectations of a test about pods and gangs, as values.

An object is named as `NAME`, `NAMESPACE/NAME`, `KIND/NAME` or `KIND/NAMESPACE/NAME`, where the kind
is pod or gang; in a name `*`, `?` and `[…]` are patterns. Nodes and devices are patterns as well.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from dryrack.base.durations import seconds_in
from dryrack.base.errors import ContentError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Because = str | re.Pattern[str]
POD = "pod"
GANG = "gang"
_KINDS = {"pod": POD, "pods": POD, "gang": GANG, "gangs": GANG, "podgroup": GANG}
_DEFAULT = "default"
_PATTERN = re.compile(r"[*?\[]")


class ExpectationError(AssertionError):
    """The cluster is not as a test expects; the text describes why."""

    # As people import it.
    __module__ = "dryrack.testing"


@dataclass(frozen=True, slots=True)
class Target:
    """The pods or the gang of an expectation."""

    # Empty: a pod if there is one of that name, else a gang.
    kind: str
    namespace: str
    name: str

    @classmethod
    def of(cls, said: str | Mapping[str, object]) -> Target:
        """Return the target with this name, or of this object."""
        if not isinstance(said, str):
            return _of_object(said)
        parts = said.split("/")
        kind = _KINDS.get(parts[0].lower(), "") if len(parts) > 1 else ""
        if kind:
            del parts[0]
        if len(parts) > 2 or not all(parts):
            raise ContentError(f"{said!r}: invalid name; use NAME, NAMESPACE/NAME or gang/NAME")
        namespace = parts[0] if len(parts) == 2 else _DEFAULT
        return cls(kind, namespace, parts[-1])

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def is_pattern(self) -> bool:
        return bool(_PATTERN.search(self.name))

    def matches(self, name: str) -> bool:
        return fnmatchcase(name, self.name)

    def __str__(self) -> str:
        return f"{self.kind or 'pod or gang'} {self.full_name}"


def _of_object(said: Mapping[str, object]) -> Target:
    meta = said.get("metadata")
    kind = _KINDS.get(str(said.get("kind", "")).lower())
    if kind is None or not isinstance(meta, dict) or not meta.get("name"):
        raise ContentError("the object is not a Pod or PodGroup with a name; pass one of these")
    return Target(kind, str(meta.get("namespace") or _DEFAULT), str(meta["name"]))


@dataclass(frozen=True, slots=True)
class ScheduledPod:
    """A pod that has a node, with the devices of its claims."""

    namespace: str
    name: str
    node: str
    # As "driver/pool/device", in order; a device of which the pod has two shares is there twice.
    devices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scheduled:
    """The scheduled pods of an expectation."""

    pods: tuple[ScheduledPod, ...]

    @property
    def node(self) -> str:
        """Return the node if all pods are on the same one."""
        nodes = self.nodes
        if len(nodes) != 1:
            found = f"the pods are on {len(nodes)} nodes: {', '.join(nodes)}"
            raise ContentError(f"{found}; use .nodes or .pods")
        return nodes[0]

    @property
    def nodes(self) -> tuple[str, ...]:
        """Return each node once, in order."""
        return tuple(sorted({pod.node for pod in self.pods}))

    @property
    def devices(self) -> tuple[str, ...]:
        """Return the devices of all pods, each once, in order."""
        return tuple(sorted({device for pod in self.pods for device in pod.devices}))


@dataclass(frozen=True, slots=True)
class Wanted:
    """The expected nodes and devices of each pod."""

    nodes: tuple[str, ...] = ()
    # A number, or a pattern for each device; None: any devices.
    devices: int | tuple[str, ...] | None = None

    @classmethod
    def of(cls, on: str | Iterable[str], devices: int | str | Sequence[str] | None) -> Wanted:
        nodes = (on,) if isinstance(on, str) else tuple(on)
        if isinstance(devices, str):
            devices = (devices,)
        elif isinstance(devices, Sequence):
            devices = tuple(devices)
        return cls(tuple(filter(None, nodes)), devices)

    def problem(self, pod: ScheduledPod) -> str:
        """Return what a pod lacks, "" if nothing."""
        named = f"pod {pod.namespace}/{pod.name}"
        if self.nodes and not any(fnmatchcase(pod.node, each) for each in self.nodes):
            return f"{named} is on node {pod.node}, expected {' or '.join(self.nodes)}"
        has = ", ".join(pod.devices) or "none"
        if isinstance(self.devices, int) and len(pod.devices) != self.devices:
            return f"{named} has {len(pod.devices)} devices, expected {self.devices}: {has}"
        if isinstance(self.devices, tuple) and not _are_matched(self.devices, pod.devices):
            return f"{named} has the devices {has}, expected {', '.join(self.devices) or 'none'}"
        return ""


def _are_matched(patterns: Sequence[str], devices: Sequence[str]) -> bool:
    """Return whether each device matches a pattern of its own, and no pattern is left over."""
    if len(patterns) != len(devices):
        return False
    if not patterns:
        return True
    first, *rest = patterns
    return any(
        fnmatchcase(device, first) and _are_matched(rest, (*devices[:at], *devices[at + 1 :]))
        for at, device in enumerate(devices)
    )


def missing_words(because: Because | Sequence[Because], text: str) -> list[str]:
    """Return the words that the text does not contain; line ends and case do not matter."""
    wanted = [because] if isinstance(because, str | re.Pattern) else list(because)
    flat = " ".join(text.split())

    def says(each: Because) -> bool:
        if isinstance(each, re.Pattern):
            return each.search(flat) is not None
        return " ".join(each.split()).lower() in flat.lower()

    return [each if isinstance(each, str) else each.pattern for each in wanted if not says(each)]


def seconds_of(time: float | str) -> float:
    """Return seconds from a number, or from `90s`, `5m`, `1h`."""
    seconds = seconds_in(time) if isinstance(time, str) else float(time)
    if seconds is None or seconds < 0:
        raise ContentError(f"{time!r}: must be a number of seconds, or for example 90s or 5m")
    return seconds
