"""
Random small gangs, and whether they fit, found out by trying everything.

The brute force knows nothing of the search: it takes every choice of members, of a node for each,
and of devices for each claim, and looks whether anything is taken twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import combinations, permutations, product
from typing import TYPE_CHECKING, Any

from tests.placement.gang_worlds import cluster, gang, member, node

from dryrack.kinds.decode import decode
from dryrack.kinds.resource import AllocationResult, ResourceClaim, ResourceSlice

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from random import Random

    from dryrack.kinds.raw import Raw
    from dryrack.placement import Cluster, Gang, Member, MemberPlaced

DRIVER = "gpu.example.com"
KINDS = ("big", "small")
ISLANDS = ("x", "y")
HOSTNAME = "kubernetes.io/hostname"
EVENLY = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "x"}},
}


@dataclass(frozen=True)
class Device:
    """One device, and the nodes that see it; a claim that has a tied one is used on one node."""

    pool: str
    name: str
    nodes: frozenset[str]
    is_tied: bool
    attributes: tuple[tuple[str, str], ...]
    draws: int = 0
    is_in_use: bool = False


@dataclass(frozen=True)
class Request:
    """The number of devices of a kind; of any kind by default."""

    count: int
    kind: str = ""


@dataclass(frozen=True)
class Claim:
    """Devices that are in one island, if it says so."""

    name: str
    requests: tuple[Request, ...]
    is_matched: bool = False


@dataclass(frozen=True)
class Pod:
    name: str
    cpu: int
    claims: tuple[Claim, ...]
    # The only zone that it goes to, if it says so.
    zone: str = ""
    app: str = ""
    # By the label of nodes: apps that it has to be far from, and near to.
    far: tuple[str, str] | None = None
    near: tuple[str, str] | None = None
    # Whether it goes only where no zone has two more of app x than another.
    is_spread: bool = False


@dataclass
class World:
    """Nodes with their CPUs and zones, and what there is to give."""

    nodes: dict[str, tuple[int, str]]
    devices: list[Device]
    # What each pool that has a counter has of it.
    counters: dict[str, int]
    pods: list[Pod]
    minimum: int
    # In one zone all together, or anywhere.
    in_one_zone: bool = False
    slices: list[Raw] = field(default_factory=list)


def world(chance: Random) -> World:
    """A world of at most four nodes and four pods."""
    nodes = {
        f"n{i}": (chance.choice((1, 2, 3, 4, 64)), chance.choice("ab"))
        for i in range(chance.randint(1, 4))
    }
    made = World(nodes, [], {}, [], 0)
    for name in nodes:
        if chance.random() < 0.85:
            _local_pool(made, name, chance)
    if chance.random() < 0.4:
        _pool(made, "everywhere", {"allNodes": True}, chance)
    if chance.random() < 0.3:
        zone = {"key": "zone", "operator": "In", "values": [chance.choice("ab")]}
        selector = {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}
        _pool(made, "zonal", {"nodeSelector": selector}, chance)
    _pods(made, chance)
    made.minimum = len(made.pods) if chance.random() < 0.7 else chance.randint(1, len(made.pods))
    made.in_one_zone = chance.random() < 0.15
    return made


def _local_pool(made: World, name: str, chance: Random) -> None:
    _pool(made, name, {"nodeName": name}, chance)


def _pool(made: World, name: str, where: Raw, chance: Random) -> None:
    counter = chance.choice((0, 0, chance.randint(2, 5)))
    if counter:
        made.counters[name] = counter
    seen = frozenset(n for n, (_, zone) in made.nodes.items() if _sees(where, n, zone))
    written = []
    for number in range(chance.randint(1, 4)):
        attributes = (("island", chance.choice(ISLANDS)), ("kind", chance.choice(KINDS)))
        device = Device(
            name,
            f"{name}-{number}",
            seen,
            "nodeName" in where,
            attributes,
            chance.randint(1, 2) if counter else 0,
            chance.random() < 0.1,
        )
        if device.is_in_use and not _counters_suffice(made, (device,)):
            device = replace(device, is_in_use=False)
        made.devices.append(device)
        written.append(_written(device))
    count = 2 if counter else 1
    pool = {"name": name, "generation": 1, "resourceSliceCount": count}
    spec = {"driver": DRIVER, "pool": pool, **where}
    made.slices.append({"metadata": {"name": name}, "spec": {**spec, "devices": written}})
    if counter:
        counters = [{"name": "all", "counters": {"units": {"value": str(counter)}}}]
        spec = {**spec, "sharedCounters": counters}
        made.slices.append({"metadata": {"name": f"{name}-counters"}, "spec": spec})


def _sees(where: Raw, name: str, zone: str) -> bool:
    if "nodeName" in where:
        return bool(where["nodeName"] == name)
    if "allNodes" in where:
        return True
    (term,) = where["nodeSelector"]["nodeSelectorTerms"]
    return zone in term["matchExpressions"][0]["values"]


def _written(device: Device) -> Raw:
    said = {name: {"string": value} for name, value in device.attributes}
    written: Raw = {"name": device.name, "attributes": said}
    if device.draws:
        amount = {"units": {"value": str(device.draws)}}
        written["consumesCounters"] = [{"counterSet": "all", "counters": amount}]
    return written


def _pods(made: World, chance: Random) -> None:
    shared = [_claim(f"shared{i}", chance) for i in range(chance.choice((0, 0, 1, 1, 2)))]
    template = chance.random() < 0.5
    wanted = _claim("template", chance)
    for number in range(chance.randint(2, 4)):
        claims = []
        if template:
            claims.append(Claim(f"c{number}", wanted.requests, wanted.is_matched))
        elif chance.random() < 0.8:
            claims.append(_claim(f"c{number}", chance))
        claims += [each for each in shared if chance.random() < 0.6]
        zone = chance.choice("ab") if chance.random() < 0.1 else ""
        made.pods.append(Pod(f"p{number}", chance.choice((0, 1, 1, 2)), tuple(claims), zone))
    if chance.random() < 0.35:
        made.pods = _related(made.pods, chance)


def _related(pods: Sequence[Pod], chance: Random) -> list[Pod]:
    """Yield pods with rules about each other."""
    keys = (HOSTNAME, HOSTNAME, "zone")
    apps = "xy"
    far = (chance.choice(keys), chance.choice(apps))
    near = (chance.choice(keys), "x")
    all_alike = chance.random() < 0.5
    near_often = chance.choice((0.0, 0.0, 0.4))
    far_often = chance.choice((0.9 if all_alike else 0.5, 0.0))
    is_spread = chance.random() < 0.3
    return [
        replace(
            pod,
            app="x" if all_alike else chance.choice(apps),
            far=far if chance.random() < far_often else None,
            is_spread=is_spread and chance.random() < 0.8,
            near=near if chance.random() < near_often else None,
        )
        for pod in pods
    ]


def _claim(name: str, chance: Random) -> Claim:
    requests = tuple(
        Request(chance.choice((1, 1, 2)), chance.choice(("", "", *KINDS)))
        for _ in range(chance.choice((1, 1, 1, 2)))
    )
    return Claim(name, requests, chance.random() < 0.3)


# As the search sees it.


def built(made: World) -> tuple[Cluster, Gang, list[Member]]:
    """Return the world as Kubernetes objects."""
    nodes = [
        node(name, cpu=str(cpu), zone=zone, **{HOSTNAME: name})
        for name, (cpu, zone) in made.nodes.items()
    ]
    here = cluster(nodes, [decode(each, ResourceSlice) for each in made.slices])
    results = [
        {"request": "gpu", "driver": DRIVER, "pool": each.pool, "device": each.name}
        for each in made.devices
        if each.is_in_use
    ]
    taken = decode({"devices": {"results": results}}, AllocationResult)
    here.allocator.set_allocation("ml/other", taken)  # type: ignore[attr-defined]
    claims = {c.name: _decoded(c) for pod in made.pods for c in pod.claims}
    members = [
        member(
            pod.name,
            *(claims[each.name] for each in pod.claims),
            cpu=str(pod.cpu),
            labels={"app": pod.app, "index": pod.name},
            nodeSelector={"zone": pod.zone} if pod.zone else {},
            affinity=_affinity(pod),
            topologySpreadConstraints=[EVENLY] if pod.is_spread else [],
        )
        for pod in made.pods
    ]
    key = "zone" if made.in_one_zone else ""
    return here, gang(members, made.minimum, topology_key=key), members


def _affinity(pod: Pod) -> Raw:
    said: Raw = {}
    for name, wish in (("podAntiAffinity", pod.far), ("podAffinity", pod.near)):
        if wish is not None:
            key, app = wish
            term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
            said[name] = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return said


def _decoded(claim: Claim) -> ResourceClaim:
    requests = [_request(f"r{i}", each) for i, each in enumerate(claim.requests)]
    devices: Raw = {"requests": requests}
    if claim.is_matched:
        devices["constraints"] = [{"matchAttribute": f"{DRIVER}/island"}]
    metadata = {"name": claim.name, "namespace": "ml"}
    return decode({"metadata": metadata, "spec": {"devices": devices}}, ResourceClaim)


def _request(name: str, request: Request) -> Raw:
    exactly: dict[str, Any] = {
        "deviceClassName": "gpu",
        "allocationMode": "ExactCount",
        "count": request.count,
    }
    if request.kind:
        expression = f"device.attributes['{DRIVER}'].kind == '{request.kind}'"
        exactly["selectors"] = [{"cel": {"expression": expression}}]
    return {"name": name, "exactly": exactly}


# As it is.


def fits(made: World) -> bool:
    """Return True if one of all placements of enough pods fits."""
    return any(
        _is_way(made, dict(zip(pods, nodes, strict=True)))
        for size in range(made.minimum, len(made.pods) + 1)
        for pods in combinations(made.pods, size)
        for nodes in product(made.nodes, repeat=len(pods))
    )


def _is_way(made: World, chosen: Mapping[Pod, str]) -> bool:
    zones = {made.nodes[name][1] for name in chosen.values()}
    if made.in_one_zone and len(zones) > 1:
        return False
    for name, (cpu, zone) in made.nodes.items():
        here = [pod for pod, there in chosen.items() if there == name]
        if sum(pod.cpu for pod in here) > cpu or any(pod.zone not in ("", zone) for pod in here):
            return False
    if not _are_content(made, chosen):
        return False
    users: dict[Claim, set[str]] = {}
    for pod, name in chosen.items():
        for claim in pod.claims:
            users.setdefault(claim, set()).add(name)
    return _can_give(made, list(users.items()), [])


def _are_content(made: World, chosen: Mapping[Pod, str]) -> bool:
    """Return True if each pod fits when it arrives, in some order."""
    return any(
        all(
            _is_content(made, pod, {each: chosen[each] for each in order[: place + 1]})
            for place, pod in enumerate(order)
        )
        for order in permutations(chosen)
    )


def _is_content(made: World, pod: Pod, chosen: Mapping[Pod, str]) -> bool:
    """Return True if the affinity and anti-affinity of the pod are satisfied."""

    def domain(each: Pod, key: str) -> str:
        return chosen[each] if key == HOSTNAME else made.nodes[chosen[each]][1]

    others = [each for each in chosen if each is not pod]
    for one, other in (*((pod, each) for each in others), *((each, pod) for each in others)):
        if one.far is None or other.app != one.far[1]:
            continue
        if domain(one, one.far[0]) == domain(other, one.far[0]):
            return False
    if pod.is_spread and not _is_even(made, pod, chosen):
        return False
    if pod.near is None:
        return True
    key, app = pod.near
    meant = [each for each in others if each.app == app]
    is_first = not meant and pod.app == app
    return is_first or any(domain(each, key) == domain(pod, key) for each in meant)


def _is_even(made: World, pod: Pod, chosen: Mapping[Pod, str]) -> bool:
    """Return True if its zone has at most one pod more than the zone with the fewest."""
    here = made.nodes[chosen[pod]][1]
    zones = {zone for _, zone in made.nodes.values() if pod.zone in ("", zone)}
    if made.in_one_zone:
        zones &= {here}
    others = [each for each in chosen if each is not pod and each.app == "x"]
    counts = {zone: sum(made.nodes[chosen[e]][1] == zone for e in others) for zone in zones}
    return counts[here] + (pod.app == "x") - min(counts.values()) <= 1


def _can_give(
    made: World, wanted: Sequence[tuple[Claim, set[str]]], taken: Sequence[Device]
) -> bool:
    if not wanted:
        return True
    (claim, nodes), *others = wanted
    return any(
        _can_give(made, others, (*taken, *devices))
        for devices in _ways(made, claim, nodes, taken)
        if _counters_suffice(made, (*taken, *devices))
    )


def _ways(
    made: World, claim: Claim, nodes: set[str], taken: Sequence[Device]
) -> Iterator[tuple[Device, ...]]:
    """All choices of devices for the claim, used on these nodes."""
    free = [
        each
        for each in made.devices
        if each not in taken
        and not each.is_in_use
        and nodes <= each.nodes
        and (len(nodes) == 1 or not each.is_tied)
    ]
    yield from _choices(claim, claim.requests, free, ())


def _choices(
    claim: Claim, requests: Sequence[Request], free: Sequence[Device], had: tuple[Device, ...]
) -> Iterator[tuple[Device, ...]]:
    if not requests:
        if not claim.is_matched or len({dict(each.attributes)["island"] for each in had}) <= 1:
            yield had
        return
    request, *others = requests
    suitable = [
        each
        for each in free
        if each not in had and request.kind in ("", dict(each.attributes)["kind"])
    ]
    for some in combinations(suitable, request.count):
        yield from _choices(claim, others, free, (*had, *some))


def _counters_suffice(made: World, taken: Sequence[Device]) -> bool:
    used = [*taken, *(each for each in made.devices if each.is_in_use)]
    return all(
        sum(each.draws for each in used if each.pool == pool) <= amount
        for pool, amount in made.counters.items()
    )


def is_sound(made: World, placements: Sequence[MemberPlaced]) -> bool:
    """Return True if the result of the search is a placement with these devices."""
    pods = {pod.name: pod for pod in made.pods}
    devices = {(each.pool, each.name): each for each in made.devices}
    chosen = {pods[each.member.pod.metadata.name]: each.node for each in placements}
    given = {name: a for each in placements for name, a in each.given.items()}
    taken: list[Device] = []
    for claim in {claim: None for pod in chosen for claim in pod.claims}:
        nodes = {there for pod, there in chosen.items() if claim in pod.claims}
        results = given[f"ml/{claim.name}"].devices.results
        own = [devices[each.pool, each.device] for each in results]
        if set(own) not in [set(way) for way in _ways(made, claim, nodes, taken)]:
            return False
        taken += own
    enough = len(chosen) >= made.minimum and len(given) == len({*given})
    return enough and _counters_suffice(made, taken) and _is_way(made, chosen)
