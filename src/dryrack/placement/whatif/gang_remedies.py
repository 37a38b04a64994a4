"""
Small changes that might make a whole gang fit: a smaller minimum, or more nodes.

Each is tried: the gang is placed again in the changed world. Changes for the claims of a single
member are in `remedies`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec.structs import replace as changed

from dryrack.kinds.scheduling import (
    CoschedulingPodGroup,
    PodGroup,
    PodGroupV1Beta1,
    WorkloadV1Alpha1,
)
from dryrack.placement.gangs.dialects import (
    MINIMUM_LABELS,
    Dialect,
    Gang,
    gang_of,
    key_of,
)
from dryrack.placement.whatif.remedies import WorldChange
from dryrack.placement.whatif.what_if import what_if

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dryrack.kinds.core import Node, Pod
    from dryrack.kinds.meta import KubernetesObject
    from dryrack.kinds.resource import ResourceClaim
    from dryrack.kinds.scheduling import PodGroupSchedulingPolicy
    from dryrack.placement.gangs.dialects import GangKey
    from dryrack.placement.whatif.answers import GangOutcome
    from dryrack.placement.whatif.what_if import Settings
    from dryrack.placement.whatif.world import World

# Nodes that are copied, of different sizes, and how many copies are tried.
_NODES_TRIED_MAX = 3
_COPIES_TRIED_MAX = 4
_HOSTNAME = "kubernetes.io/hostname"
# On the scale of `remedies`: less than asked for, and hardware.
_LESS = 2.0
_HARDWARE = 5.0


def helpful_to_gang(
    world: World, outcome: GangOutcome, settings: Callable[[], Settings]
) -> Iterator[WorldChange]:
    """Yield changes with which the whole gang was placed."""
    key = outcome.key
    if key is None or not outcome.message:
        return
    members = [each for each in world.pods if key_of(each) == key]
    gang = gang_of(key, members, world.definitions)
    if not isinstance(gang, Gang):
        return
    bound = sum(bool(pod.spec.node_name) for pod in members)
    fitting = bound + sum(not message for message in outcome.waiting.values())
    for change in (*_lower_minimum(world, gang, fitting), *_first_nodes(world, gang, fitting)):
        placed = what_if(change.world, settings()).gangs
        if any(each.key == key and not each.message for each in placed):
            yield change
            if change.kind == "node":
                return


def _lower_minimum(world: World, gang: Gang, fitting: int) -> Iterator[WorldChange]:
    if not 1 < fitting < gang.min_count:
        return
    text = f"lower the minimum of {gang.key} from {gang.min_count} to {fitting}"
    share = 1 - fitting / gang.min_count
    yield WorldChange(text, _with_minimum(world, gang, fitting), "minimum", _LESS + share)


def _with_minimum(world: World, gang: Gang, minimum: int) -> World:
    if gang.key.dialect is Dialect.LABELS:
        parties = tuple(
            _set_minimum_labels(each, minimum) if each in gang.members else each
            for each in world.parties
        )
        return replace(world, parties=parties)
    groups = tuple(_set_group_minimum(each, gang.key, minimum) for each in world.groups)
    return replace(world, groups=groups)


def _set_minimum_labels(pod: Pod | ResourceClaim, minimum: int) -> Pod | ResourceClaim:
    labels = pod.metadata.labels
    new = {name: str(minimum) for name in MINIMUM_LABELS if name in labels}
    return changed(pod, metadata=changed(pod.metadata, labels={**labels, **new}))


def _set_group_minimum(group: KubernetesObject, key: GangKey, minimum: int) -> KubernetesObject:
    if (group.metadata.namespace, group.metadata.name) != (key.namespace, key.name):
        return group
    if isinstance(group, CoschedulingPodGroup):
        return changed(group, spec=changed(group.spec, min_member=minimum))
    if isinstance(group, PodGroup | PodGroupV1Beta1):
        policy = _policy(group.spec.scheduling_policy, minimum)
        return changed(group, spec=changed(group.spec, scheduling_policy=policy))
    assert isinstance(group, WorkloadV1Alpha1), "no other kind defines a gang"
    groups = tuple(
        changed(each, policy=_policy(each.policy, minimum)) if each.name == key.group else each
        for each in group.spec.pod_groups
    )
    return changed(group, spec=changed(group.spec, pod_groups=groups))


def _policy(policy: PodGroupSchedulingPolicy, minimum: int) -> PodGroupSchedulingPolicy:
    if policy.gang is None:
        return policy
    return changed(policy, gang=changed(policy.gang, min_count=minimum))


def _first_nodes(world: World, gang: Gang, fitting: int) -> Iterator[WorldChange]:
    """Yield copies of nodes, one of each size: those with the most devices first."""
    devices: dict[str, int] = {}
    for each in world.slices:
        if each.spec.node_name:
            count = devices.get(each.spec.node_name, 0)
            devices[each.spec.node_name] = count + len(each.spec.devices)
    sizes: dict[object, Node] = {}
    for node in sorted(world.nodes, key=lambda it: -devices.get(it.metadata.name, 0)):
        amounts = tuple(sorted((k, v.nanos) for k, v in node.status.allocatable.items()))
        sizes.setdefault((devices.get(node.metadata.name, 0), amounts), node)
    lacking = min(max(1, gang.min_count - fitting), _COPIES_TRIED_MAX)
    for count in range(1, lacking + 1):
        for node in list(sizes.values())[:_NODES_TRIED_MAX]:
            more = "1 node" if count == 1 else f"{count} nodes"
            after = world
            for number in range(count):
                after = _with_copy(after, node, f"{node.metadata.name}-more-{number}")
            text = f"add {more} like {node.metadata.name}"
            yield WorldChange(text, after, "node", _HARDWARE + count)


def _with_copy(world: World, node: Node, name: str) -> World:
    """Return the world with an empty copy of the node and of its slices."""
    labels = {**node.metadata.labels}
    if _HOSTNAME in labels:
        labels[_HOSTNAME] = name
    copy = changed(node, metadata=changed(node.metadata, name=name, uid=name, labels=labels))
    slices = []
    own = [each for each in world.slices if each.spec.node_name == node.metadata.name]
    for number, each in enumerate(own):
        pool = changed(each.spec.pool, name=f"{name}-{each.spec.pool.name}")
        metadata = changed(each.metadata, name=f"{name}-{number}", uid=f"{name}-{number}")
        spec = changed(each.spec, node_name=name, pool=pool)
        slices.append(changed(each, metadata=metadata, spec=spec))
    return replace(world, nodes=(*world.nodes, copy), slices=(*world.slices, *slices))
