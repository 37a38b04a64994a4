"""
List the faults in the annotations of Nodes, and the annotations to remove to end them.

Names of nodes and devices can be shell patterns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from dryrack.base.ages import human
from dryrack.base.text import hint
from dryrack.cli.files import UsageError
from dryrack.client.timekeeping import timestamp
from dryrack.hardware import (
    DEVICE_FAULT,
    NODE_FAULT,
    NODE_FAULT_PARTS,
    faults_of,
    is_managed_slice,
    node_annotation,
)
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dryrack.kinds.raw import Raw

OK = "ok"
NODE_OK = (OK, *(f"{part}={OK}" for part in NODE_FAULT_PARTS))
Changes = dict[str, dict[str, str | None]]
"""By node name, annotations and their values; None removes an annotation."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """The Nodes, and the slices in which their devices are."""

    nodes: Sequence[Raw]
    slices: Sequence[Raw] = ()

    def nodes_like(self, pattern: str) -> list[Raw]:
        """Return the nodes that match; raise `UsageError` if no node matches."""
        nodes = [each for each in self.nodes if fnmatchcase(_name(each), pattern)]
        if not nodes:
            known = hint(pattern, map(_name, self.nodes))
            raise UsageError(f"node {pattern!r} not found; {known}")
        return nodes


def find_foreign_drivers(cluster: Cluster, pattern: str) -> tuple[str, ...]:
    """Return the drivers of faulty devices in slices that dryrack does not manage."""
    faulty = {_name(node): _faulty_devices(node) for node in cluster.nodes}
    drivers = set()
    for each in cluster.slices:
        spec = each["spec"]
        names = {device["name"] for device in get(spec, "devices", ())}
        failing = names & faulty.get(spec.get("nodeName"), set())
        is_meant = any(fnmatchcase(name, pattern) for name in failing)
        if is_meant and not is_managed_slice(each):
            drivers.add(spec["driver"])
    return tuple(sorted(drivers))


def heal_devices(cluster: Cluster, target: str) -> Changes:
    """Return the changes that end all faults of devices; the target is `NODE/DEVICE`."""
    node, _, device = target.partition("/")
    if not node or not device:
        raise UsageError(f"device {target!r}: write NODE/DEVICE, or NODE/* for all devices")
    return {_name(each): {} for each in cluster.nodes_like(node)} | clear_faults(cluster, (target,))


def heal_nodes(cluster: Cluster, name: str, fault: str) -> Changes:
    """Return the changes for `PART=ok`, one fault, or `ok`, all faults of the nodes themselves."""
    key = node_annotation(fault.removesuffix(OK).removesuffix("="))
    return {
        _name(node): {each: None for each in _annotations(node) if each.startswith(key)}
        for node in cluster.nodes_like(name)
    }


def clear_faults(cluster: Cluster, targets: Sequence[str]) -> Changes:
    """Return the changes that end all faults, or those of `NODE` or `NODE/DEVICE`."""
    changes: Changes = {}
    for target in targets or ("*",):
        node_pattern, _, device_pattern = target.partition("/")
        for node in cluster.nodes_like(node_pattern) if cluster.nodes else ():
            for key in _annotations(node):
                is_meant = not device_pattern or (
                    key.startswith(DEVICE_FAULT)
                    and fnmatchcase(key.removeprefix(DEVICE_FAULT), device_pattern)
                )
                if is_meant and key.startswith((DEVICE_FAULT, NODE_FAULT)):
                    changes.setdefault(_name(node), {})[key] = None
    return changes


@dataclass(frozen=True, slots=True)
class FaultRow:
    """An annotation that describes a fault."""

    node: str
    key: str
    value: str
    until: float | None
    is_over: bool
    problem: str

    @property
    def device(self) -> str:
        """The name of the device; empty for a fault of the node."""
        return self.key.removeprefix(DEVICE_FAULT) if self.key.startswith(DEVICE_FAULT) else ""

    def document(self) -> dict[str, Any]:
        return {
            "node": self.node,
            "device": self.device or None,
            "annotation": self.key,
            "fault": self.value,
            "until": None if self.until is None else timestamp(self.until),
            "isOver": self.is_over,
            "problem": self.problem or None,
        }

    def cells(self, now: float) -> tuple[str, ...]:
        said = re.sub(r"(?<!\s)\s++until\s++[^\s;]++", "", self.value)
        if not self.device:
            said = f"{self.key.removeprefix(NODE_FAULT)}={said}"
        ends = "-" if self.until is None else f"in {human(self.until - now)}"
        state = self.problem or ("over" if self.is_over else ends)
        return self.node, self.device or "-", said, state


def fault_rows(nodes: Sequence[Raw], now: float) -> tuple[FaultRow, ...]:
    """Return all faults of these nodes, by name, including invalid annotations."""
    return tuple(row for node in sorted(nodes, key=_name) for row in _rows(node, now))


def _rows(node: Raw, now: float) -> Iterator[FaultRow]:
    for key, value in sorted(_annotations(node).items()):
        if key.startswith((DEVICE_FAULT, NODE_FAULT)):
            faults = faults_of({key: value}, now)
            is_present = faults.devices or faults.prepare or faults.is_driver_gone
            is_over = not is_present and faults.is_ready and not faults.problems
            problem = "".join(faults.problems).removeprefix(f"annotation {key}: ")
            yield FaultRow(_name(node), key, value, faults.next_expiry, is_over, problem)


def _faulty_devices(node: Raw) -> set[str]:
    keys = (key for key in _annotations(node) if key.startswith(DEVICE_FAULT))
    return {key.removeprefix(DEVICE_FAULT) for key in keys}


def _name(node: Raw) -> str:
    return str(node["metadata"]["name"])


def _annotations(node: Raw) -> Mapping[str, str]:
    return get(node["metadata"], "annotations", {})
