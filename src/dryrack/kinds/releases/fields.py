"""
Fields that depend on a feature gate: which releases have them, and which gate.

The API server drops such a field while its gate is off, and reports nothing. In a path, `[]` stands
for each item of a list, and `{}` for each value of a map. Paths are those of the newest version.
"""

from collections.abc import Collection, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from dryrack.kinds.releases.gates import gates_of
from dryrack.kinds.releases.release import NEWEST, OLDEST, Release

_DEVICE = "spec.devices[]"
_REQUESTS = ("exactly.derivedAttributes", "firstAvailable[].derivedAttributes")


@dataclass(frozen=True, slots=True)
class GatedField:
    """A field that the API server drops while a feature gate is off."""

    kind: str
    path: str
    gate: str
    since: Release = OLDEST
    until: Release = NEWEST
    replacement: str = ""
    """The field that later releases have instead."""

    def is_in(self, release: Release) -> bool:
        return self.since <= release <= self.until

    def is_on(self, release: Release) -> bool:
        """Return whether a server of the release with default gates stores the field."""
        gate = gates_of(release).get(self.gate)
        return self.is_in(release) and gate is not None and gate.is_on


GATED_FIELDS = (
    GatedField(
        "ResourceSlice",
        "spec.partitionTypeAttribute",
        "DRAPartitionableDevicesType",
        since=Release.V1_37,
    ),
    GatedField(
        "ResourceSlice", "spec.skipNodeOperations", "DRAOptionalNodeOperations", since=Release.V1_37
    ),
    *(
        GatedField("ResourceSlice", field, "DRAPartitionableDevices")
        for field in (
            "spec.sharedCounters",
            "spec.perDeviceNodeSelection",
            f"{_DEVICE}.consumesCounters",
            f"{_DEVICE}.nodeName",
            f"{_DEVICE}.nodeSelector",
            f"{_DEVICE}.allNodes",
        )
    ),
    GatedField("ResourceSlice", f"{_DEVICE}.taints", "DRADeviceTaints"),
    *(
        GatedField("ResourceSlice", f"{_DEVICE}.{each}", "DRADeviceBindingConditions")
        for each in ("bindsToNode", "bindingConditions", "bindingFailureConditions")
    ),
    *(
        GatedField("ResourceSlice", f"{_DEVICE}.{each}", "DRAConsumableCapacity")
        for each in ("allowMultipleAllocations", "capacity{}.requestPolicy")
    ),
    *(
        GatedField("ResourceSlice", f"{_DEVICE}.attributes{{}}.{each}", "DRAListTypeAttributes")
        for each in ("bools", "ints", "strings", "versions")
    ),
    GatedField(
        "ResourceSlice",
        f"{_DEVICE}.consumesCounters[].compatibilityGroups",
        "DRADeviceCompatibilityGroups",
        since=Release.V1_37,
    ),
    GatedField(
        "ResourceSlice",
        f"{_DEVICE}.nodeAllocatableResourceMappings",
        "DRANodeAllocatableResources",
        until=Release.V1_36,
        replacement="nodeAllocatableResources",
    ),
    GatedField(
        "ResourceSlice",
        f"{_DEVICE}.nodeAllocatableResources",
        "DRANodeAllocatableResources",
        since=Release.V1_37,
    ),
    *(
        GatedField(
            kind, f"{spec}.devices.requests[].{each}", "DRADerivedAttributes", since=Release.V1_37
        )
        for kind, spec in (("ResourceClaim", "spec"), ("ResourceClaimTemplate", "spec.spec"))
        for each in _REQUESTS
    ),
    GatedField(
        "ResourceClaim",
        "status.allocation.devices.results[].skipNodeOperations",
        "DRAOptionalNodeOperations",
        since=Release.V1_37,
    ),
    GatedField(
        "ResourcePoolStatusRequest",
        "spec.defaultPartitionTypeAttribute",
        "DRAPartitionableDevicesType",
        since=Release.V1_37,
    ),
    GatedField("Pod", "spec.schedulingGroup", "GenericWorkload"),
    GatedField("Pod", "status.nodeAllocatableResourceClaimStatuses", "DRANodeAllocatableResources"),
    GatedField("PodGroup", "spec.resourceClaims", "DRAWorkloadResourceClaims"),
    GatedField(
        "StatefulSet",
        "spec.updateStrategy.rollingUpdate.maxUnavailable",
        "MaxUnavailableStatefulSet",
    ),
    GatedField("Job", "spec.scheduling", "WorkloadWithJob", since=Release.V1_37),
)

Path = tuple[str | int, ...]


@dataclass(slots=True)
class _Node:
    """The gated fields of an object, and the parts of the object that have some."""

    fields: dict[str, list[GatedField]] = field(default_factory=dict)
    parts: dict[str, "_Node"] = field(default_factory=dict)
    lists: dict[str, "_Node"] = field(default_factory=dict)
    maps: dict[str, "_Node"] = field(default_factory=dict)

    def add(self, gated: GatedField) -> None:
        node = self
        *steps, last = gated.path.split(".")
        for step in steps:
            name = step.rstrip("[]{}")
            below = node.lists if step.endswith("[]") else node.maps
            node = (node.parts if step == name else below).setdefault(name, _Node())
        node.fields.setdefault(last, []).append(gated)

    def find(self, value: Any, path: Path) -> Iterator[tuple[Path, GatedField]]:
        # This runs for every attribute of every slice, and hardly any has such a field.
        if not isinstance(value, Mapping):
            return
        if not self.fields.keys().isdisjoint(value):
            for name, gated in self.fields.items():
                if value.get(name) is not None:
                    yield from (((*path, name), each) for each in gated)
        for name, part in self.parts.items():
            yield from part.find(value.get(name), (*path, name))
        for name, part in self.lists.items():
            items = value.get(name)
            for index, item in enumerate(items if isinstance(items, list) else ()):
                yield from part.find(item, (*path, name, index))
        for name, part in self.maps.items():
            entries = value.get(name)
            for key, item in entries.items() if isinstance(entries, Mapping) else ():
                yield from part.find(item, (*path, name, key))


def _by_kind() -> dict[str, _Node]:
    nodes: dict[str, _Node] = {}
    for gated in GATED_FIELDS:
        nodes.setdefault(gated.kind, _Node()).add(gated)
    return nodes


_NODES = _by_kind()


def find_gated(document: Mapping[str, Any]) -> Iterator[tuple[Path, GatedField]]:
    """Yield the gated fields that a document sets, with their paths, for any release."""
    kind = document.get("kind")
    node = _NODES.get(kind) if isinstance(kind, str) else None
    return iter(()) if node is None else node.find(document, ())


def find_dropped(sent: Mapping[str, Any], stored: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the feature gates of fields that were sent and that a server did not store."""
    kept = {path for path, _ in find_gated(stored)}
    return tuple(sorted({gated.gate for path, gated in find_gated(sent) if path not in kept}))


def without_gates(document: Mapping[str, Any], gates: Collection[str]) -> dict[str, Any]:
    """Return a copy of a document without the fields of these feature gates."""
    changed = deepcopy(dict(document))
    for (*steps, last), gated in list(find_gated(document)):
        if gated.gate in gates:
            parent: Any = changed
            for step in steps:
                parent = parent.get(step, {}) if isinstance(parent, dict) else parent[step]
            parent.pop(last, None)
    return changed
