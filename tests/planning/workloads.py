"""Types of nodes, workloads, random ones, and the brute force that plans are compared with."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from random import Random
from typing import TYPE_CHECKING, Any

from dryrack.allocation import Features, LiveAllocator
from dryrack.cluster import SeededChance
from dryrack.kinds.core import Node, Pod
from dryrack.kinds.decode import decode
from dryrack.kinds.releases import DEFAULT_RELEASE
from dryrack.kinds.resource import DeviceClass, ResourceClaim, ResourceSlice
from dryrack.placement import (
    DEFAULT_PROFILE,
    Cluster,
    Dialect,
    Fleet,
    Gang,
    GangKey,
    GangPlaced,
    Member,
    Occupant,
    Unfinished,
    Unplaced,
    decide,
    place_gang_now,
)
from dryrack.planning import NewNode, NodeType, Workload
from dryrack.planning.additions import Additions
from dryrack.planning.covering import Covering
from dryrack.planning.oracle import Oracle

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

DRIVER = "gpu.example.com"
CLASS = decode(
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": DRIVER},
        "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]},
    },
    DeviceClass,
)


def gpu(number: int, *, numa: int = 0, memory: int = 80) -> dict[str, Any]:
    """Return a whole device on a NUMA node."""
    return {
        "name": f"gpu-{number}",
        "attributes": {"numa": {"int": numa}, "uuid": {"string": f"u{number}"}},
        "capacity": {"memory": {"value": f"{memory}Gi"}},
    }


def shared(number: int) -> dict[str, Any]:
    """Return a device of which claims take a share."""
    return {
        "name": f"shared-{number}",
        "allowMultipleAllocations": True,
        "attributes": {"numa": {"int": 0}},
        "capacity": {"milli": {"value": "1000"}},
    }


def partitions(number: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the partitions of a card of four slices, and its counters."""
    name = f"card-{number}"
    counters = {"name": name, "counters": {"slices": {"value": "4"}}}
    devices = []
    for size, starts in ((1, range(4)), (2, (0, 2)), (4, (0,))):
        for start in starts:
            use = {"counterSet": name, "counters": {"slices": {"value": str(size)}}}
            devices.append(
                {
                    "name": f"{name}-{size}-{start}",
                    "attributes": {"profile": {"string": f"{size}g"}},
                    "consumesCounters": [use],
                }
            )
    return devices, counters


def node_type(
    name: str,
    price: float | Fraction,
    *,
    cpu: int = 8,
    pods: int = 110,
    devices: list[dict[str, Any]] | None = None,
    counters: list[dict[str, Any]] | None = None,
    labels: dict[str, str] | None = None,
    supply: int | None = None,
) -> NodeType:
    """Return a type whose nodes have these devices."""

    def make(node: str) -> NewNode:
        size = {"cpu": str(cpu), "memory": "64Gi", "pods": str(pods)}
        made = decode(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {
                    "name": node,
                    "labels": {"kubernetes.io/hostname": node, **(labels or {})},
                },
                "status": {"allocatable": size, "capacity": size},
            },
            Node,
        )
        return NewNode(made, tuple(slices_on(node, devices or [], counters or [])))

    return NodeType(name, Fraction(str(price)), make, supply)


def slices_on(
    node: str, devices: list[dict[str, Any]], counters: list[dict[str, Any]]
) -> list[ResourceSlice]:
    """Return the slices of a node, with counters in a slice of their own."""
    parts: list[dict[str, Any]] = [{"devices": devices}] if devices else []
    parts += [{"sharedCounters": counters}] if counters else []
    return [
        decode(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "metadata": {"name": f"{node}-{number}"},
                "spec": {
                    "driver": DRIVER,
                    "nodeName": node,
                    "pool": {"name": node, "generation": 1, "resourceSliceCount": len(parts)},
                    **part,
                },
            },
            ResourceSlice,
        )
        for number, part in enumerate(parts)
    ]


def request(
    name: str = "gpu", *, count: int = 1, selector: str = "", milli: int = 0
) -> dict[str, Any]:
    """Return a request for devices of the class."""
    exactly: dict[str, Any] = {"deviceClassName": DRIVER, "count": count}
    exactly["allocationMode"] = "ExactCount"
    if selector:
        exactly["selectors"] = [{"cel": {"expression": selector}}]
    if milli:
        exactly["capacity"] = {"requests": {"milli": str(milli)}}
    return {"name": name, "exactly": exactly}


def claim(
    name: str, *requests: dict[str, Any], constraints: list[dict[str, Any]] | None = None
) -> ResourceClaim:
    """Return a claim with these requests."""
    devices = {"requests": list(requests), "constraints": constraints or []}
    return decode(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": "default", "uid": name},
            "spec": {"devices": devices},
        },
        ResourceClaim,
    )


def member(
    name: str,
    *claims: ResourceClaim,
    cpu: str = "1",
    spec: dict[str, Any] | None = None,
    labels: dict[str, str] | None = None,
    owner: dict[str, Any] | None = None,
) -> Member:
    """Return a pod with claims."""
    pod = decode(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": name,
                "labels": labels or {},
                "ownerReferences": [owner] if owner else [],
            },
            "spec": {
                "containers": [
                    {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
                ],
                "resourceClaims": [
                    {"name": f"c{number}", "resourceClaimName": each.metadata.name}
                    for number, each in enumerate(claims)
                ],
                **(spec or {}),
            },
        },
        Pod,
    )
    return Member(pod, claims)


def empty_cluster() -> Cluster:
    """Return a cluster without nodes, with the class."""
    allocator = LiveAllocator(
        features=Features.defaults(DEFAULT_RELEASE), release=DEFAULT_RELEASE, chance=SeededChance()
    )
    allocator.put_class(CLASS)
    return Cluster(Fleet(), allocator)


@dataclass(frozen=True, slots=True)
class RandomCase:
    """A random workload with types of nodes."""

    workload: Workload
    types: tuple[NodeType, ...]

    def without(self, names: Collection[str]) -> RandomCase:
        """Return the case without these pods."""
        members = (each for each in self.workload.members if each.name not in names)
        return RandomCase(Workload(tuple(members)), self.types)


def random_case(seed: int, *, pods_max: int) -> RandomCase:
    """Return a workload of some kinds, with shares, partitions and constraints that bind."""
    chance = Random(seed)
    flavour = chance.choice(("whole", "whole", "shared", "partitions", "constraints", "mixed"))
    types = [_random_type(chance, flavour, number) for number in range(chance.randint(1, 3))]
    kinds = chance.randint(1, 4)
    left = chance.randint(1, pods_max)
    members: list[Member] = []
    for kind in range(kinds):
        number = left if kind == kinds - 1 else chance.randint(0, left)
        left -= number
        make = _random_kind(chance, flavour)
        members += [make(f"k{kind}-{each}") for each in range(number)]
    chance.shuffle(members)
    return RandomCase(Workload(tuple(members)), tuple(types))


def _random_type(chance: Random, flavour: str, number: int) -> NodeType:
    count = chance.choice((1, 2, 4))
    price = Fraction(chance.randint(10, 100) * count, 10)
    cpu = chance.choice((4, 8, 16))
    devices: list[dict[str, Any]] = []
    counters: list[dict[str, Any]] = []
    if flavour == "mixed":
        flavour = chance.choice(("whole", "shared", "partitions"))
    for each in range(count):
        if flavour == "shared":
            devices.append(shared(each))
        elif flavour == "partitions":
            own, counter = partitions(each)
            devices += own
            counters.append(counter)
        else:
            devices.append(gpu(each, numa=chance.randint(0, 1)))
    return node_type(f"t{number}", price, cpu=cpu, devices=devices, counters=counters)


def _random_kind(chance: Random, flavour: str) -> Any:
    cpu = str(chance.choice((1, 2, 3, 5)))
    own = flavour if flavour != "mixed" else chance.choice(("whole", "shared", "partitions"))
    count = chance.choice((1, 1, 2, 3))
    milli = chance.choice((250, 400, 600, 1000))
    size = chance.choice((1, 2, 4))
    rule = chance.choice(("matchAttribute", "distinctAttribute"))
    is_across = chance.random() < 0.5
    if chance.random() < 0.15:
        return lambda name: member(name, cpu=cpu)

    def make(name: str) -> Member:
        constraints: list[dict[str, Any]] = []
        if own == "shared":
            requests = [request(milli=milli)]
        elif own == "partitions":
            profile = f"device.attributes['{DRIVER}'].profile == '{size}g'"
            requests = [request(selector=profile)]
        elif own == "constraints" and is_across:
            requests = [request("one"), request("two")]
            constraints = [{"requests": ["one", "two"], rule: f"{DRIVER}/numa"}]
        elif own == "constraints":
            requests = [request(count=max(count, 2))]
            constraints = [{"requests": ["gpu"], rule: f"{DRIVER}/numa"}]
        else:
            requests = [request(count=count)]
        return member(name, claim(f"{name}-c", *requests, constraints=constraints), cpu=cpu)

    return make


def cheapest_by_brute_force(
    case: RandomCase, *, nodes_max: int = 99, cpu_max: int = 10**6
) -> Fraction | None:
    """
    Return the least cost of nodes for the workload within the limits, None if there are none.

    It tries every set of pods on a node of every type, placed together by the decider as a gang,
    and then every division of the pods into such sets. It uses nothing of the planner.
    """
    members = case.workload.members

    @cache
    def takers(chosen: int) -> list[tuple[Fraction, int]]:
        own = [each for number, each in enumerate(members) if chosen >> number & 1]
        return [(each.price, cpu_of(each)) for each in case.types if fits_together(own, each)]

    @cache
    def least(left: int, nodes: int, cpu: int) -> Fraction | None:
        if not left:
            return Fraction(0)
        lowest = left & -left
        best: Fraction | None = None
        chosen = left if nodes else 0
        while chosen:
            for price, own in takers(chosen) if chosen & lowest else ():
                rest = least(left & ~chosen, nodes - 1, cpu - own) if own <= cpu else None
                if rest is not None and (best is None or price + rest < best):
                    best = price + rest
            chosen = (chosen - 1) & left
        return best

    return least((1 << len(members)) - 1, nodes_max, cpu_max)


def cpu_of(type_: NodeType) -> int:
    """Return the CPUs of a node of the type."""
    return type_.make("node").node.status.allocatable["cpu"].value()


def fits_together(members: list[Member], type_: NodeType) -> bool:
    """Return True if the decider places the pods together on a node of the type."""
    cluster = empty_cluster()
    add_node(cluster, type_.make("node"))
    key = GangKey(Dialect.LABELS, "default", "all")
    gang = Gang(key=key, min_count=len(members), members=tuple(m.pod for m in members))
    outcome = place_gang_now(gang, members, cluster)
    assert isinstance(outcome, GangPlaced) or not outcome.undecided, "the case is small enough"
    return isinstance(outcome, GangPlaced)


def add_node(cluster: Cluster, new: NewNode) -> None:
    """Add a node with its devices."""
    cluster.fleet.put(new.node)
    allocator = cluster.allocator
    assert isinstance(allocator, LiveAllocator), "the cluster has such an allocator"
    for each in new.slices:
        cluster.fleet.reopen(allocator.put_slice(each))


def place_next(member: Member, cluster: Cluster) -> bool:
    """Place the pod as the scheduler does; return whether it has a node."""
    outcome = decide(member.pod, member.wanted, member.allocated, cluster)
    while isinstance(outcome, Unfinished):
        if outcome.search is not None:
            outcome.search.finish()
        outcome = decide(member.pod, member.wanted, member.allocated, cluster)
    if isinstance(outcome, Unplaced):
        return False
    assert isinstance(cluster.allocator, LiveAllocator), "the cluster has such an allocator"
    occupant = Occupant.of(member.pod, claims=member.claims)
    cluster.fleet.add_pod(member.name, outcome.node, occupant)
    for name, allocation in outcome.given.items():
        cluster.fleet.reopen(cluster.allocator.set_allocation(name, allocation))
    return True


def large_case(seed: int, *, kinds: int = 10, pods: int = 1_000) -> RandomCase:
    """Return a large workload: whole devices, some on one NUMA node, on five types."""
    chance = Random(seed)
    sizes = ((1, 8), (2, 16), (4, 32), (8, 96), (8, 192))
    types = [
        node_type(
            f"t{number}",
            Fraction(chance.randint(20, 100) * count, 10),
            cpu=cpu,
            devices=[gpu(each, numa=each * 2 // count) for each in range(count)],
        )
        for number, (count, cpu) in enumerate(sizes)
    ]
    shapes = [
        (chance.choice((0, 1, 1, 2, 3, 4)), chance.choice((1, 2, 3, 5, 7, 10)), chance.random())
        for _ in range(kinds)
    ]
    members = []
    for number in range(pods):
        count, cpu, share = shapes[number % kinds]
        same = [{"requests": ["gpu"], "matchAttribute": f"{DRIVER}/numa"}]
        constraints = same if share < 0.3 and count > 1 else []
        claims = [claim(f"c{number}", request(count=count), constraints=constraints)]
        members.append(member(f"p{number}", *(claims if count else []), cpu=str(cpu)))
    return RandomCase(Workload(tuple(members)), tuple(types))


@contextmanager
def covering_of(case: RandomCase) -> Iterator[Covering]:
    """Yield the covering problem of a case, with the decider as its oracle."""
    cluster = empty_cluster()
    with Additions(cluster, DEFAULT_PROFILE) as additions:
        states = [additions.add(each.make(each.name)) for each in case.types]
        oracle = Oracle(case.workload.members, cluster, DEFAULT_PROFILE)
        oracle.states = states
        demand = tuple(len(unit.groups) for unit in oracle.units)
        rows = [oracle.rows(index) for index in range(len(states))]
        prices = [each.price for each in case.types]
        supplies = [each.supply for each in case.types]
        yield Covering(demand, prices, supplies, oracle.fits, rows)
