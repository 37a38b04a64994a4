"""Members, nodes and devices are searched together: what fits is found, the rest refused."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from tests.placement.gang_worlds import claim, cluster, devices, gang, member, node, pool
from tests.placement.random_gangs import HOSTNAME, built, fits, is_sound, world

from dryrack.placement import (
    GangPlaced,
    GangRefused,
    Occupant,
    Unfinished,
    place_gang,
    place_gang_now,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.placement import Cluster, Member

SEEDS = 250


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_search_finds_what_trying_everything_finds(seed: int) -> None:
    """Feasible gangs are placed soundly, infeasible ones refused, and none is left undecided."""
    made = world(Random(seed))
    here, wanted, members = built(made)

    outcome = place_gang_now(wanted, members, here)

    assert isinstance(outcome, GangPlaced) == fits(made)
    if isinstance(outcome, GangPlaced):
        assert is_sound(made, outcome.placements)
    else:
        assert not outcome.undecided


def test_two_halves_are_found_where_the_first_would_take_the_whole() -> None:
    """
    kubernetes#138765: pod by pod, the first takes the whole device, and the second gets none.

    The device is offered whole or in halves, which draw on the same counters.
    """
    units = {"name": "gpu0", "counters": {"units": {"value": "2"}}}
    draw = [("a-whole", 2), ("b-half", 1), ("c-half", 1)]
    parts = [
        {
            "name": name,
            "consumesCounters": [
                {"counterSet": "gpu0", "counters": {"units": {"value": str(number)}}}
            ],
        }
        for name, number in draw
    ]
    offered = pool("a", parts, nodeName="a", slices=2)
    counted = pool("a", [], nodeName="a", slices=2, name="a-counters", sharedCounters=[units])
    here = cluster([node("a")], [offered, counted])
    members = [member(f"p{i}", claim(f"c{i}")) for i in range(2)]

    outcome = place_gang_now(gang(members), members, here)

    assert isinstance(outcome, GangPlaced)
    given = [a.devices.results[0].device for p in outcome.placements for a in p.given.values()]
    assert sorted(given) == ["b-half", "c-half"]


def test_a_small_member_makes_way_for_one_that_fits_nowhere_else() -> None:
    """The first goes where a pod by itself would; the second needs just that node."""
    here = cluster([node("a", cpu="4"), node("b", cpu="2")])
    members = [member("small", cpu="2"), member("large", cpu="4")]

    outcome = place_gang_now(gang(members), members, here)

    assert isinstance(outcome, GangPlaced)
    nodes = {each.member.name: each.node for each in outcome.placements}
    assert nodes == {"ml/small": "b", "ml/large": "a"}


def test_any_members_may_make_up_the_minimum() -> None:
    """Two of three are needed: not the first two, which are in each other's way."""
    here = cluster([node("a", cpu="3")])
    members = [member("p0", cpu="3"), member("p1", cpu="2"), member("p2", cpu="1")]

    outcome = place_gang_now(gang(members, 2), members, here)

    assert isinstance(outcome, GangPlaced)
    assert {each.member.name for each in outcome.placements} == {"ml/p1", "ml/p2"}
    assert [each.member.name for each in outcome.waiting] == ["ml/p0"]


def test_members_of_a_group_with_a_topology_are_in_one_domain() -> None:
    """Both racks have room for two, and the gang is of three; one rack has room for all."""
    racks = {"a": "r1", "b": "r1", "c": "r2", "d": "r3", "e": "r3"}
    cpus = {"a": "1", "b": "1", "c": "2", "d": "2", "e": "1"}
    here = cluster([node(name, cpu=cpus[name], rack=rack) for name, rack in racks.items()])
    members = [member(f"p{i}") for i in range(3)]

    outcome = place_gang_now(gang(members, topology_key="rack"), members, here)

    assert isinstance(outcome, GangPlaced)
    assert {each.node for each in outcome.placements} == {"d", "e"}


def test_a_gang_that_fits_in_no_domain_is_told_how_far_the_best_came() -> None:
    """The proof is about the domain where most of them fit."""
    here = cluster([node("a", cpu="1", rack="r1"), node("b", cpu="2", rack="r2")])
    members = [member(f"p{i}") for i in range(3)]

    outcome = place_gang_now(gang(members, topology_key="rack"), members, here)

    assert isinstance(outcome, GangRefused)
    assert outcome.message.startswith(
        "pod group ml/training: 2 of 3 pods fit in rack r2; pod ml/p2"
    )


def test_a_topology_that_no_node_has_is_told() -> None:
    """The message says why the gang is not placed."""
    members = [member(f"p{i}") for i in range(2)]

    outcome = place_gang_now(gang(members, topology_key="rack"), members, cluster([node("a")]))

    assert isinstance(outcome, GangRefused)
    assert outcome.message == (
        "pod group ml/training: no node has the label rack that its pods must have in common; "
        "label the nodes"
    )


def test_devices_that_all_nodes_see_are_given_once() -> None:
    """Five of them cannot serve six members, however many nodes there are; one proof does."""
    fabric = pool("fabric", devices(*(f"f{i}" for i in range(5))), allNodes=True)
    here = cluster([node(f"n{i:02}") for i in range(40)], [fabric])
    members = [member(f"p{i}", claim(f"c{i}")) for i in range(6)]

    outcome = place_gang_now(gang(members), members, here)

    assert isinstance(outcome, GangRefused)
    assert not outcome.undecided
    assert "5 of 6 pods fit" in outcome.message


def test_a_gang_that_all_nodes_refuse_is_refused_without_trying_all_ways() -> None:
    """Eight members, sixty nodes with room for seven: the number of ways does not matter."""
    slices = [pool(f"n{i:02}", devices("d0")) for i in range(7)]
    here = cluster([node(f"n{i:02}") for i in range(60)], slices)
    members = [member(f"p{i}", claim(f"c{i}")) for i in range(8)]

    outcome = place_gang_now(gang(members), members, here)

    assert isinstance(outcome, GangRefused)
    assert not outcome.undecided
    assert "7 of 8 pods fit" in outcome.message


def apart(key: str) -> dict[str, Any]:
    """Wants no other worker near."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "worker"}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def workers(number: int, key: str) -> list[Member]:
    """As of a StatefulSet: each has a label of its own."""
    return [
        member(f"w{i}", labels={"app": "worker", "index": str(i)}, affinity=apart(key))
        for i in range(number)
    ]


@pytest.mark.parametrize(("number", "fits"), [(32, True), (33, False)])
def test_members_that_want_a_node_each_are_counted_against_nodes(number: int, fits: bool) -> None:
    """One more than there are nodes is refused, and not for want of time to try."""
    here = cluster([node(f"n{i:02}", **{HOSTNAME: f"n{i:02}"}) for i in range(32)])
    members = workers(number, HOSTNAME)

    outcome = place_gang_now(gang(members), members, here)

    assert isinstance(outcome, GangPlaced) == fits
    if isinstance(outcome, GangRefused):
        assert not outcome.undecided
        assert "32 of 33 pods fit" in outcome.message


def test_members_that_want_a_zone_each_are_counted_against_zones() -> None:
    """The number of nodes of a zone does not matter."""
    here = cluster([node(f"n{i:02}", zone=f"z{i % 4}") for i in range(40)])
    members = workers(5, "zone")

    outcome = place_gang_now(gang(members), members, here)

    assert isinstance(outcome, GangRefused)
    assert not outcome.undecided
    assert "4 of 5 pods fit" in outcome.message


def near(key: str, app: str) -> dict[str, Any]:
    """Return the affinity of a pod that requires a pod of the app near it."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def racks(counts: Sequence[Sequence[int]]) -> Cluster:
    """Return racks of nodes, each with so many devices."""
    nodes = []
    slices = []
    for rack, devices_of_nodes in enumerate(counts):
        for index, number in enumerate(devices_of_nodes):
            name = f"r{rack:02}-n{index}"
            nodes.append(node(name, rack=f"r{rack:02}", **{HOSTNAME: name}))
            slices.append(pool(name, devices(*(f"d{i}" for i in range(number)))))
    return cluster(nodes, slices)


def close_workers(number: int, key: str = "rack") -> list[Member]:
    """Return members that want eight devices each, and to be together."""
    affinity = near(key, "worker")
    return [
        member(f"w{i}", claim(f"c{i}", 8), labels={"app": "worker"}, affinity=affinity)
        for i in range(number)
    ]


def test_members_that_wait_for_each_other_are_refused() -> None:
    """Neither can be the first: kube-scheduler accepts neither without the other."""
    here = cluster([node("a", zone="z1"), node("b", zone="z1")])
    members = [
        member("leader", labels={"app": "leader"}, affinity=near("zone", "worker")),
        member("worker", labels={"app": "worker"}, affinity=near("zone", "leader")),
    ]

    outcome = place_gang_now(gang(members), members, here)

    assert isinstance(outcome, GangRefused)
    assert not outcome.undecided
    assert "2 node(s) didn't match pod affinity rules" in outcome.message


def test_a_gang_that_has_to_be_in_one_rack_opens_no_second_one() -> None:
    """Two racks of three nodes: once a member is in one, the others have to go there, too."""
    members = close_workers(4)

    outcome = place_gang_now(gang(members), members, racks([[8] * 3] * 2))

    assert isinstance(outcome, GangRefused)
    assert not outcome.undecided
    assert "3 of 4 pods fit" in outcome.message


def test_a_gang_goes_to_the_one_rack_that_has_room() -> None:
    """All others lack a device, each on another node, so that hardly two are alike."""
    counts = [[8 - (node == rack % 8) * (1 + rack % 4) for node in range(8)] for rack in range(49)]
    members = close_workers(8)

    outcome = place_gang_now(gang(members), members, racks([*counts, [8] * 8]))

    assert isinstance(outcome, GangPlaced)
    assert {each.node.partition("-")[0] for each in outcome.placements} == {"r49"}


def test_a_gang_for_which_every_rack_is_too_small_is_refused_for_certain() -> None:
    """The racks differ, and so do their nodes: the search need not try all ways to fill them."""
    counts = [
        [8 * ((node + rack) % 9 > 0) + (node + rack) % 5 for node in range(9)] for rack in range(40)
    ]
    members = close_workers(9)

    outcome = place_gang_now(gang(members), members, racks(counts))

    assert isinstance(outcome, GangRefused)
    assert not outcome.undecided


def test_a_gang_that_has_to_be_on_one_node_finds_it_among_many() -> None:
    """One node of four hundred has devices for both members."""
    counts = [[8] * 8 for _ in range(50)]
    counts[40][3] = 16
    members = close_workers(2, HOSTNAME)

    outcome = place_gang_now(gang(members), members, racks(counts))

    assert isinstance(outcome, GangPlaced)
    assert {each.node for each in outcome.placements} == {"r40-n3"}


def test_a_large_gang_is_searched_as_a_small_one_is() -> None:
    """The number of members is not limited by how the search is written."""
    counts = [[8] * 299 + [7], [8] * 300]
    members = close_workers(300)

    outcome = place_gang_now(gang(members), members, racks(counts))

    assert isinstance(outcome, GangPlaced)


def test_pods_that_keep_members_off_some_nodes_leave_them_the_others() -> None:
    """The first rack is too small; in the second one more nodes are closed than it needs."""
    here = racks([[8], [8] * 6])
    for index in range(6):
        # The nodes that are left have less room, so that they come last.
        is_open = index > 3
        affinity = {} if is_open else apart(HOSTNAME)
        resident = member(f"r{index}", cpu="9" if is_open else "1", affinity=affinity).pod
        here.fleet.add_pod(resident.full_name, f"r01-n{index}", Occupant.of(resident))
    members = close_workers(2)

    outcome = place_gang_now(gang(members), members, here)

    assert isinstance(outcome, GangPlaced)
    assert {each.node for each in outcome.placements} == {"r01-n4", "r01-n5"}


def test_many_nodes_are_asked_in_turns() -> None:
    """A scheduler does other work in between, and each time the search gets further."""
    slices = [pool(f"n{i:03}", devices("d0")) for i in range(2)]
    here = cluster([node(f"n{i:03}") for i in range(900)], slices)
    members = [member(f"p{i}", claim(f"c{i}")) for i in range(3)]
    outcomes = [place_gang(gang(members), members, here)]
    while isinstance(outcomes[-1], Unfinished):
        outcomes.append(place_gang(gang(members), members, here))

    assert 3 < len(outcomes) < 6
    assert isinstance(outcomes[-1], GangRefused)


def test_a_gang_of_many_sizes_that_is_too_large_is_refused_by_what_there_is() -> None:
    """Twelve different pods are refused at once if all nodes are too small."""
    here = cluster([node(f"n{i}", cpu="9") for i in range(6)])
    members = [member(f"p{i:02}", cpu=f"{4500 + 20 * i}m") for i in range(12)]

    outcome = place_gang_now(gang(members), members, here)

    assert isinstance(outcome, GangRefused)
    assert not outcome.undecided


def test_a_search_that_is_given_up_says_so() -> None:
    """Ten pods that all differ, and a node less than they need, though there is CPU enough."""
    here = cluster([node(f"n{i}", cpu="10") for i in range(6)])
    members = [member(f"p{i:02}", cpu=f"{4000 + 13 * i}m") for i in range(11)]
    members += [member("large", cpu="9")]

    outcome = place_gang_now(gang(members), members, here)

    assert isinstance(outcome, GangRefused)
    assert outcome.undecided
    assert outcome.message.startswith("pod group ml/training: unknown whether it fits: the search")


def test_members_that_take_more_come_first_where_order_matters() -> None:
    """Twelve pods that all differ are placed without trying all ways to pack them."""
    here = cluster([node(f"n{i:02}", cpu=f"{12 - i}") for i in range(12)])
    members = [member(f"p{i:02}", cpu=str(i + 1)) for i in range(12)]

    outcome = place_gang_now(gang(members), members, here)

    assert isinstance(outcome, GangPlaced)
