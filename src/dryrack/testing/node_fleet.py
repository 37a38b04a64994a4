"""Virtual nodes as a test describes them: machines of the catalog, or nodes with devices."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dryrack.base.errors import ContentError
from dryrack.cluster import virtual_node

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dryrack.hardware.catalogue import Catalogue, InstanceType
    from dryrack.kinds.raw import Raw
    from dryrack.kubeletplugin import DeviceKind

NODES_MAX = 10_000
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """Nodes that differ only in their names."""

    names: tuple[str, ...]
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[str | Mapping[str, str]] = ()
    capacity: Mapping[str, str | int] = field(default_factory=dict)

    def nodes(self, machine: InstanceType | None) -> list[Raw]:
        taints = [_taint(each) for each in self.taints]
        return [self._node(virtual_node(name, machine), taints) for name in self.names]

    def _node(self, node: Raw, taints: list[Raw]) -> Raw:
        meta = node["metadata"]
        status = node["status"]
        meta["labels"] |= self.labels
        meta["annotations"] |= self.annotations
        more = {resource: str(amount) for resource, amount in self.capacity.items()}
        for each in ("capacity", "allocatable"):
            status[each] = status[each] | more
        return {**node, "spec": {"taints": taints}} if taints else node


def node_names(name: str, count: int | None, taken: Iterable[str]) -> tuple[str, ...]:
    """
    Return the names of new nodes: `name` itself without a count, else numbered names.

    The numbers go on from those of existing nodes.
    """
    if count is None and name:
        return (name,)
    count = 1 if count is None else count
    if not 1 <= count <= NODES_MAX:
        raise ContentError(f"{count} nodes: from 1 to {NODES_MAX}")
    prefix = f"{name or 'node'}-"
    numbers = [each.removeprefix(prefix) for each in taken if each.startswith(prefix)]
    last = max((int(each) for each in numbers if each.isdecimal()), default=0)
    return tuple(f"{prefix}{last + number}" for number in range(1, count + 1))


def machine_of(profile: str, catalogue: Catalogue) -> InstanceType:
    """Return the instance type with this name."""
    machine = catalogue.instance_types.get(profile)
    if machine is None:
        from dryrack.cli.hardware import unknown_type

        raise ContentError(unknown_type(f"profile {profile}", profile, catalogue))
    return machine


def check_once(machine: InstanceType | None, kinds: Sequence[DeviceKind]) -> None:
    """Raise if a driver would have two pools on a node."""
    both = {kind.driver for kind in kinds} & set(machine.drivers if machine else ())
    if both:
        raise ContentError(
            f"devices: the instance type of this profile has devices of {min(both)} already; "
            "leave out the profile, or these devices"
        )


def find_published(slices: Iterable[Raw]) -> set[tuple[str, str]]:
    """Return the nodes and drivers whose pools are complete."""
    counts: dict[tuple[str, str], list[int]] = {}
    for each in slices:
        spec: dict[str, Any] = each["spec"]
        if spec.get("nodeName"):
            seen = counts.setdefault((spec["nodeName"], spec["driver"]), [0, 0])
            seen[0] += 1
            seen[1] = spec["pool"]["resourceSliceCount"]
    return {key for key, (seen, expected) in counts.items() if seen >= expected}


def _taint(said: str | Mapping[str, str]) -> Raw:
    """Return a taint from `KEY=VALUE:EFFECT` or `KEY:EFFECT`, as `kubectl taint` takes it."""
    if not isinstance(said, str):
        return dict(said)
    what, _, effect = said.rpartition(":")
    key, _, value = what.partition("=")
    if not key or effect not in _EFFECTS:
        raise ContentError(f"taint {said!r}: KEY=VALUE:EFFECT, the effect {' or '.join(_EFFECTS)}")
    return {"key": key, "effect": effect, **({"value": value} if value else {})}
