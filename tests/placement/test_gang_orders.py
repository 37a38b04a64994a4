"""
Every gang that is placed has an order in which the filters accept its members one by one.

The oracle asks the filters for single pods, which are compared with kube-scheduler elsewhere. It
tries every order of the members and every node for each of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from tests.placement.gang_worlds import claim, cluster, devices, gang, member, node, pool

from dryrack.kinds.core import PersistentVolume, PersistentVolumeClaim, Pod
from dryrack.kinds.decode import decode
from dryrack.placement import GangPlaced, GangRefused, Occupant, Placed, place_gang_now
from dryrack.placement.gangs.members import MemberPlaced
from dryrack.placement.index.volumes import WaitingClass
from dryrack.placement.place import place_on
from dryrack.placement.simulation import Simulation

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.placement import Cluster, Member

SEEDS = 300
HOSTNAME = "kubernetes.io/hostname"
KEYS = ("zone", "rack", "rack", HOSTNAME)
APPS = "xy"


@dataclass(frozen=True)
class Scene:
    cluster: Cluster
    members: Sequence[Member]
    minimum: int
    # Equal for members that say the same.
    kinds: Mapping[str, int]


def scene(chance: Random) -> Scene:
    """Return at most five nodes with running pods, and a gang of at most four members."""
    names = [f"n{i}" for i in range(chance.randint(2, 5))]
    # Racks are parts of zones, or go across them.
    is_nested = chance.random() < 0.7
    nodes = []
    slices = []
    for name in names:
        zone = chance.choice("ab")
        rack = chance.choice("123")
        labels = {HOSTNAME: name, "zone": zone, "rack": f"{zone}{rack}" if is_nested else rack}
        if chance.random() < 0.1:
            del labels["rack"]
        made = node(name, cpu=str(chance.randint(1, 4)), **labels)
        if chance.random() < 0.1:
            made = decode(
                {"metadata": {"name": name, "labels": labels}, "spec": {"unschedulable": True}},
                type(made),
            )
        nodes.append(made)
        slices.append(pool(name, devices(*(f"{name}-{i}" for i in range(chance.randint(0, 2))))))
    here = cluster(nodes, slices)
    for number in range(chance.choice((0, 0, 1, 2))):
        _run(here, f"resident{number}", chance.choice(names), _template(chance))
    size = chance.randint(2, 4)
    templates = [_template(chance) for _ in range(chance.choice((1, 1, 2, 3)))]
    kinds = {f"p{i}": chance.randrange(len(templates)) for i in range(size)}
    has_volumes = chance.random() < 0.2
    if has_volumes:
        _offer_volumes(here, names, chance)
    wants_device = chance.random() < 0.4
    members = [
        _member(name, templates[kind], here if has_volumes else None, wants_device=wants_device)
        for name, kind in kinds.items()
    ]
    minimum = size if chance.random() < 0.8 else chance.randint(1, size)
    return Scene(here, members, minimum, kinds)


def _template(chance: Random) -> Raw:
    """Return the labels and the spec of a pod."""
    affinity: Raw = {}
    for part, often in (("podAffinity", 0.5), ("podAntiAffinity", 0.3)):
        if chance.random() < often:
            terms = [_term(chance) for _ in range(chance.choice((1, 1, 1, 2)))]
            affinity[part] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    spread = {
        "maxSkew": chance.choice((1, 1, 2)),
        "topologyKey": chance.choice(KEYS),
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": chance.choice(APPS)}},
        **chance.choice(({}, {}, {"minDomains": 2}, {"nodeTaintsPolicy": "Honor"})),
    }
    ports = [{"containerPort": 80, "hostPort": 8080}] if chance.random() < 0.15 else []
    requests = {"cpu": chance.choice(("0", "1", "1", "2"))}
    container = {"name": "c", "image": "i", "resources": {"requests": requests}, "ports": ports}
    selector = {"zone": chance.choice("ab")} if chance.random() < 0.1 else {}
    return {
        "labels": {"app": chance.choice(APPS)},
        "spec": {
            "containers": [container],
            "affinity": affinity,
            "nodeSelector": selector,
            "topologySpreadConstraints": [spread] if chance.random() < 0.25 else [],
        },
    }


def _term(chance: Random) -> Raw:
    selector: Raw = {"matchLabels": {"app": chance.choice(APPS)}}
    if chance.random() < 0.1:
        selector = {}
    return {"topologyKey": chance.choice(KEYS), "labelSelector": selector}


def _run(here: Cluster, name: str, where: str, template: Raw) -> None:
    metadata = {"name": name, "namespace": "ml", "labels": template["labels"]}
    running = decode({"metadata": metadata, "spec": template["spec"]}, Pod)
    here.fleet.add_pod(running.full_name, where, Occupant.of(running))


def _member(name: str, template: Raw, here: Cluster | None, *, wants_device: bool) -> Member:
    claims = [claim(f"c-{name}")] if wants_device else []
    spec: dict[str, Any] = dict(template["spec"])
    if here is not None:
        wanted = {
            "metadata": {"name": name, "namespace": "ml"},
            "spec": {"storageClassName": "local", "resources": {"requests": {"storage": "1Gi"}}},
        }
        here.fleet.volumes.claims["ml", name] = decode(wanted, PersistentVolumeClaim)
        spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]
    return member(name, *claims, labels=template["labels"], **spec)


def _offer_volumes(here: Cluster, names: Sequence[str], chance: Random) -> None:
    """Let there be volumes of some nodes, and sometimes one of a zone."""
    volumes = here.fleet.volumes
    volumes.are_stored = True
    volumes.waiting_classes["local"] = WaitingClass(is_provisioned=False)
    places = [(HOSTNAME, name) for name in names if chance.random() < 0.7]
    places += [("zone", "a")] if chance.random() < 0.3 else []
    for number, (key, value) in enumerate(places):
        name = f"v{number}"
        size = f"{chance.randint(1, 2)}Gi"
        volumes.volumes[name] = _volume(name, key, value, size)


def _volume(name: str, key: str, value: str, size: str) -> PersistentVolume:
    """Return a volume that nodes with this label can use."""
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
    spec = {
        "storageClassName": "local",
        "capacity": {"storage": size},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
    }
    status = {"phase": "Available"}
    return decode({"metadata": {"name": name}, "spec": spec, "status": status}, PersistentVolume)


def _shared_volume() -> Raw:
    """Return the part of a pod that uses the claim of storage of pod p0."""
    return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "p0"}}]}


def arrival(here: Cluster, who: Member, where: str) -> MemberPlaced | None:
    """Return the member on the node, if the filters for a single pod accept it there now."""
    placed = place_on(where, who.pod, who.wanted, who.allocated, here)
    if not isinstance(placed, Placed):
        return None
    return MemberPlaced(who, placed.node, placed.amounts, placed.given)


def fits(made: Scene) -> bool:
    """Return True if enough members can arrive, in any order and on any nodes."""
    seen: set[Hashable] = set()
    names = [state.name for state in made.cluster.fleet.states()]

    def goes_on(simulation: Simulation, there: Mapping[str, str]) -> bool:
        if len(there) >= made.minimum:
            return True
        volumes = frozenset(made.cluster.fleet.volumes.assumed)
        at = sorted((made.kinds[name], where) for name, where in there.items())
        if (tuple(at), volumes) in seen:
            return False
        seen.add((tuple(at), volumes))
        left = [each for each in made.members if each.pod.metadata.name not in there]
        first_of_kind = {made.kinds[each.pod.metadata.name]: each for each in reversed(left)}
        for who in first_of_kind.values():
            for where in names:
                mark = simulation.mark()
                placed = arrival(made.cluster, who, where)
                if placed is not None:
                    placed.add_to(simulation)
                    if goes_on(simulation, {**there, who.pod.metadata.name: where}):
                        return True
                    simulation.rewind(mark)
        return False

    with Simulation(made.cluster) as simulation:
        return goes_on(simulation, {})


def has_order(made: Scene, placements: Sequence[MemberPlaced]) -> bool:
    """Return True if the members can arrive on their nodes, in some order."""

    def arrive_in(order: Sequence[MemberPlaced]) -> bool:
        with Simulation(made.cluster) as simulation:
            for each in order:
                placed = arrival(made.cluster, each.member, each.node)
                if placed is None:
                    return False
                placed.add_to(simulation)
        return True

    return any(map(arrive_in, permutations(placements)))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_gang_is_placed_if_and_only_if_its_members_can_arrive_in_some_order(seed: int) -> None:
    """Affinity, anti-affinity, spreading, ports, devices and volumes count among members."""
    made = scene(Random(seed))

    outcome = place_gang_now(gang(made.members, made.minimum), made.members, made.cluster)

    assert isinstance(outcome, GangPlaced) == fits(made)
    if isinstance(outcome, GangPlaced):
        assert len(outcome.placements) >= made.minimum
        assert has_order(made, outcome.placements)
    else:
        assert not outcome.undecided


def local_volumes(places: Sequence[str]) -> tuple[Cluster, list[Member]]:
    """Return two nodes with a local volume at each of the places, and a gang of two."""
    here = cluster([node(name, **{HOSTNAME: name}) for name in ("a", "b")])
    _offer_volumes(here, [], Random(0))
    here.fleet.volumes.volumes = {
        f"v{number}": _volume(f"v{number}", HOSTNAME, place, "1Gi")
        for number, place in enumerate(places)
    }
    template = {"labels": {}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return here, [_member(name, template, here, wants_device=False) for name in ("p0", "p1")]


def test_members_of_a_gang_do_not_get_the_same_volume() -> None:
    """A local volume that one member gets is not there for the next one."""
    here, members = local_volumes(["a"])

    outcome = place_gang_now(gang(members), members, here)

    assert isinstance(outcome, GangRefused)
    assert not outcome.undecided
    assert "1 of 2 pods fit" in outcome.message
    assert not here.fleet.volumes.assumed


def test_members_of_a_gang_go_where_their_volumes_are() -> None:
    """Each goes to the node of another volume, and what is tried leaves no trace."""
    here, members = local_volumes(["a", "b"])

    outcome = place_gang_now(gang(members), members, here)

    assert isinstance(outcome, GangPlaced)
    assert {each.node for each in outcome.placements} == {"a", "b"}
    assert not here.fleet.volumes.assumed


def test_members_that_share_a_claim_of_storage_go_where_its_volume_is_made() -> None:
    """The provisioner makes the volume on the node of the first member."""
    here, _ = local_volumes([])
    here.fleet.volumes.waiting_classes["local"] = WaitingClass(is_provisioned=True)
    pods = [member(f"p{i}", cpu="40", **_shared_volume()) for i in range(2)]

    outcome = place_gang_now(gang(pods), pods, here)

    assert isinstance(outcome, GangRefused)
    assert "1 of 2 pods fit" in outcome.message
