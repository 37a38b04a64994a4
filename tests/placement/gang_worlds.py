"""Small clusters and gangs, in as few words as a test can do with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.allocation import LiveAllocator
from dryrack.kinds.core import Node, Pod
from dryrack.kinds.decode import decode
from dryrack.kinds.resource import DeviceClass, ResourceClaim, ResourceSlice
from dryrack.placement import Cluster, Fleet
from dryrack.placement.gangs.dialects import Dialect, Gang, GangKey
from dryrack.placement.gangs.members import Member

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.kinds.raw import Raw


class NumberedChance:
    """Identifiers of shares, which nobody looks at."""

    def __init__(self) -> None:
        self._made = 0

    def uuid(self) -> str:
        self._made += 1
        return f"share-{self._made}"


def node(name: str, *, cpu: str = "64", **labels: str) -> Node:
    status = {"allocatable": {"cpu": cpu, "pods": "110"}}
    return decode({"metadata": {"name": name, "labels": labels}, "status": status}, Node)


def devices(*names: str, **attributes: str) -> list[Raw]:
    """Devices that have these attributes in common."""
    said = {name: {"string": value} for name, value in attributes.items()}
    return [{"name": name, "attributes": said} for name in names]


def pool(
    pool: str, devices: Sequence[Raw], *, name: str = "", slices: int = 1, **spec: Any
) -> ResourceSlice:
    """A slice of a pool, mostly the only one; on the node of its name, unless it says where."""
    said = {
        "driver": "gpu.example.com",
        "pool": {"name": pool, "generation": 1, "resourceSliceCount": slices},
        "devices": list(devices),
        **(spec or {"nodeName": pool}),
    }
    return decode({"metadata": {"name": name or pool}, "spec": said}, ResourceSlice)


def cluster(nodes: Sequence[Node], slices: Sequence[ResourceSlice] = ()) -> Cluster:
    fleet = Fleet()
    allocator = LiveAllocator(chance=NumberedChance())
    for each in nodes:
        fleet.put(each)
    for offered in slices:
        allocator.put_slice(offered)
    allocator.put_class(decode({"metadata": {"name": "gpu"}}, DeviceClass))
    return Cluster(fleet, allocator)


def claim(
    name: str, count: int = 1, *, match: str = "", selector: str = "", **more: Any
) -> ResourceClaim:
    exactly: Raw = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
    if selector:
        exactly["selectors"] = [{"cel": {"expression": selector}}]
    asked: Raw = {"requests": [{"name": "gpu", "exactly": exactly | more}]}
    if match:
        asked["constraints"] = [{"matchAttribute": match}]
    metadata = {"name": name, "namespace": "ml"}
    return decode({"metadata": metadata, "spec": {"devices": asked}}, ResourceClaim)


def member(
    name: str,
    *claims: ResourceClaim,
    cpu: str = "1",
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> Member:
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]
    metadata = {"name": name, "namespace": "ml", "labels": dict(labels or {})}
    pod = decode({"metadata": metadata, "spec": {"containers": containers, **spec}}, Pod)
    return Member(pod, claims)


def gang(members: Sequence[Member], minimum: int = 0, **more: Any) -> Gang:
    """A gang that needs all its members, unless it says how many."""
    key = GangKey(Dialect.LABELS, "ml", "training")
    pods = tuple(each.pod for each in members)
    return Gang(key=key, min_count=minimum or len(pods), members=pods, **more)
