"""
Fields that depend on a feature gate: which releases have them, and which gate.

The API server drops such a field while its gate is off, and reports nothing. In a path, `[]` stands
for each item of a list, and `{}` for each value of a map. Paths are those of the newest version.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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


def find_gated(document: Mapping[str, Any]) -> Iterator[tuple[Path, GatedField]]:
    """Yield the gated fields that a document sets, with their paths, for any release."""
    for field in GATED_FIELDS:
        if field.kind == document.get("kind"):
            for path in _find(document, field.path.split("."), ()):
                yield path, field


def _find(value: Any, steps: list[str], path: Path) -> Iterator[Path]:
    if not steps:
        if value not in (None, "", [], {}):
            yield path
        return
    step, *rest = steps
    name = step.rstrip("[]{}")
    below = value.get(name) if isinstance(value, Mapping) else None
    if step.endswith("[]") and isinstance(below, list | tuple):
        for index, each in enumerate(below):
            yield from _find(each, rest, (*path, name, index))
    elif step.endswith("{}") and isinstance(below, Mapping):
        for key, each in below.items():
            yield from _find(each, rest, (*path, name, key))
    elif step == name:
        yield from _find(below, rest, (*path, name))
