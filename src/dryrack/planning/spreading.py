"""
Spread the pods of each workload evenly over zones, and plan for each zone.

Each pod is pinned to a zone by a node selector, so that pods of different zones are of different
kinds and the plan has nodes for each zone. If the pods of a workload do not divide evenly, the
remaining pods go to the zones with the fewest of them. That is one of several divisions: the bound
of the plan is then one that holds for all of them. It is the greater of two: that of the pods
without zones, and that of the pods that every division has in each zone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from msgspec.structs import replace as changed

from dryrack.allocation import claim_name
from dryrack.planning.model import Plan, Reach, Workload
from dryrack.planning.planner import plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.placement import Cluster, Member, Profile
    from dryrack.planning.model import Limits, NodeType

ZONE = "topology.kubernetes.io/zone"


@dataclass(frozen=True, slots=True)
class Division:
    """The pods with their zones, and those that every even division has in each zone."""

    workload: Workload
    least: Workload
    is_even: bool


def plan_for_zones(
    workload: Workload,
    zones: Sequence[str],
    types: Sequence[NodeType],
    existing: Cluster,
    limits: Limits,
    *,
    profile: Profile,
) -> Plan:
    """Return the cheapest nodes for the workload with its pods spread evenly over the zones."""
    division = divide(workload, zones)
    result = plan(division.workload, types, existing, limits, profile=profile)
    if result.reach is Reach.ANY:
        # The pods themselves have no node selectors.
        result = replace(result, reach=Reach.PINNED)
    if (division.is_even and not existing.fleet.states()) or result.unplaceable:
        return result
    free = plan(workload, types, existing, limits, profile=profile)
    least = plan(division.least, types, existing, limits, profile=profile)
    bound = min(max(free.bound, least.bound), result.cost)
    if bound == result.cost:
        return replace(result, bound=bound, is_optimal=True, proof="the bound is reached")
    proof = "other divisions of the pods among the zones were not tried"
    return replace(result, bound=bound, is_optimal=False, proof=proof)


def divide(workload: Workload, zones: Sequence[str]) -> Division:
    """Return the pods with node selectors for the zones."""
    together = _blocks_by_pod(workload)
    of_workloads: defaultdict[str, list[str]] = defaultdict(list)
    for member in workload.members:
        block = together[member.name]
        if block not in of_workloads[_workload_of(member)]:
            of_workloads[_workload_of(member)].append(block)
    extra: Counter[str] = Counter()
    chosen: dict[str, str] = {}
    least: set[str] = set()
    for blocks in of_workloads.values():
        blocks = [block for block in blocks if block not in chosen]
        whole = len(blocks) // len(zones) * len(zones)
        for number, block in enumerate(blocks[:whole]):
            chosen[block] = zones[number % len(zones)]
            least.add(block)
        for block in blocks[whole:]:
            zone = min(zones, key=lambda each: (extra[each], each))
            extra[zone] += 1
            chosen[block] = zone
    pinned = {
        member.name: _pin(member, chosen[together[member.name]]) for member in workload.members
    }
    own = Workload(
        tuple(pinned.values()),
        tuple(
            (gang, tuple(pinned[each.name] for each in members)) for gang, members in workload.gangs
        ),
    )
    fewer = tuple(each for each in pinned.values() if together[each.name] in least)
    return Division(own, Workload(fewer), len(least) == len(set(together.values())))


def _blocks_by_pod(workload: Workload) -> dict[str, str]:
    """Return for each pod the first of the pods that have to be in one zone with it."""
    first: dict[str, str] = {member.name: member.name for member in workload.members}
    users: dict[str, str] = {}
    for gang, members in workload.gangs:
        if gang.topology_key == ZONE:
            first |= {member.name: members[0].name for member in members}
    for member in workload.members:
        for claim in member.wanted:
            user = users.setdefault(claim_name(claim), first[member.name])
            if user != first[member.name]:
                old = first[member.name]
                first = {name: user if block == old else block for name, block in first.items()}
    return first


def _workload_of(member: Member) -> str:
    """Return the name of the workload that owns the pod; a pod by itself is one."""
    metadata = member.pod.metadata
    owners = [each for each in metadata.owner_references if each.controller]
    if owners:
        return f"{metadata.namespace}/{owners[0].kind}/{owners[0].name}"
    return f"{metadata.namespace}/Pod/{metadata.name}"


def _pin(member: Member, zone: str) -> Member:
    """Return the pod with a selector for the zone, unless it selects one itself."""
    spec = member.pod.spec
    if ZONE in spec.node_selector:
        return member
    pod = changed(member.pod, spec=changed(spec, node_selector={**spec.node_selector, ZONE: zone}))
    return type(member)(pod, member.wanted, member.allocated, member.extended)
