"""Plans for gangs, shared claims, rules about other pods, existing nodes, zones, and limits."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from tests.planning.workloads import add_node, claim, empty_cluster, gpu, member, node_type, request

from dryrack.placement import DEFAULT_PROFILE, Dialect, Gang, GangKey, Member
from dryrack.planning import ZONE, Limits, Plan, Reach, Workload, plan, plan_for_zones

FOUR = node_type("four", 10, cpu=16, devices=[gpu(each, numa=each // 2) for each in range(4)])
ONE = node_type("one", 4, cpu=4, devices=[gpu(0)])


def with_gpus(name: str, count: int = 1, **more: Any) -> Member:
    return member(name, claim(f"{name}-c", request(count=count)), **more)


def gang_of(*members: Member, topology_key: str = "") -> Workload:
    """Return a workload that is one gang."""
    key = GangKey(Dialect.LABELS, "default", "gang")
    pods = tuple(each.pod for each in members)
    gang = Gang(key=key, min_count=len(pods), members=pods, topology_key=topology_key)
    return Workload(members, ((gang, members),))


def pods_by_node(result: Plan) -> list[list[str]]:
    nodes = (*result.nodes, *result.existing)
    return sorted(sorted(pod.member.pod.metadata.name for pod in node.pods) for node in nodes)


def test_pods_that_share_a_claim_are_on_one_node() -> None:
    """Two pairs of pods, each with a claim for three devices, need a node for each pair."""
    pairs = []
    for name in ("a", "b"):
        shared = claim(name, request(count=3))
        pairs += [member(f"{name}{number}", shared) for number in range(2)]
    result = plan(Workload(tuple(pairs)), [FOUR], empty_cluster())

    assert pods_by_node(result) == [["a0", "a1"], ["b0", "b1"]]
    assert (result.is_optimal, result.unplaceable) == (True, ())


def test_a_gang_that_fits_only_in_part_is_not_in_the_plan() -> None:
    """An existing node takes three of four members, and no type takes one: none is placed."""
    members = [with_gpus(f"m{number}", cpu="2") for number in range(4)]
    small = node_type("small", 1, cpu=1)
    cluster = empty_cluster()
    add_node(cluster, node_type("old", 0, devices=[gpu(each) for each in range(3)]).make("old"))
    whole = plan(gang_of(*members), [small], cluster)
    smaller = plan(gang_of(*members[:3]), [small], cluster)
    alone = plan(Workload(tuple(members)), [small], cluster)

    assert (whole.existing, len(whole.unplaceable)) == ((), 4)
    assert pods_by_node(smaller) == [["m0", "m1", "m2"]]
    assert [each.pod for each in alone.unplaceable] == ["default/m3"]


def test_limits_leave_over_whole_gangs() -> None:
    """With one node of four devices, a gang of three is in the plan as a whole, or not at all."""
    members = [with_gpus(f"m{number}") for number in range(3)]
    others = [with_gpus(f"o{number}") for number in range(3)]
    gang = gang_of(*members)
    workload = Workload((*others, *members), gang.gangs)
    result = plan(workload, [FOUR], empty_cluster(), Limits(nodes=1))
    left = {each.pod for each in result.unplaceable}

    assert len(result.nodes) == 1
    assert len(left & {each.name for each in members}) in (0, 3)


@pytest.mark.parametrize("limits", [Limits(cost=Fraction(25)), Limits(amounts={"cpu": 35 * 10**9})])
def test_plans_keep_to_limits(limits: Limits) -> None:
    """Of twelve pods with a device each, those of two nodes are within the limits."""
    members = tuple(with_gpus(f"m{number}") for number in range(12))
    result = plan(Workload(members), [FOUR], empty_cluster(), limits)

    assert result.types == ["four", "four"]
    assert len(result.unplaceable) == 4


def test_more_important_pods_are_left_over_last() -> None:
    """Within the limits the plan has the pods of higher priority."""
    low = [with_gpus(f"low{number}") for number in range(4)]
    high = [with_gpus(f"high{number}", spec={"priority": 9}) for number in range(4)]
    result = plan(Workload((*low, *high)), [FOUR], empty_cluster(), Limits(nodes=1))

    assert {each.pod for each in result.unplaceable} == {each.name for each in low}


def rule(kind: str) -> dict[str, Any]:
    labels = {"matchLabels": {"app": "x"}}
    term = {"labelSelector": labels, "topologyKey": "kubernetes.io/hostname"}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def labelled(name: str, spec: dict[str, Any]) -> Member:
    return member(name, spec=spec, labels={"app": "x"})


def test_pods_that_exclude_each_other_need_a_node_each() -> None:
    """Anti-affinity about the host name is part of each configuration, and of the proof."""
    members = tuple(labelled(f"m{number}", rule("podAntiAffinity")) for number in range(3))
    result = plan(Workload(members), [FOUR, ONE], empty_cluster())

    assert result.types == ["one"] * 3
    assert (result.is_optimal, float(result.cost)) == (True, 12.0)


def test_pods_with_affinity_come_to_one_node() -> None:
    """Rules about pods of other nodes are kept, though configurations do not show them."""
    members = tuple(labelled(f"m{number}", rule("podAffinity")) for number in range(3))
    result = plan(Workload(members), [FOUR, ONE], empty_cluster())

    assert len(pods_by_node(result)) == 1
    assert result.bound <= result.cost
    assert result.unplaceable == ()


def test_pods_that_spread_over_nodes_are_spread() -> None:
    """Three pods with maxSkew 1 over host names do not share a node while another is empty."""
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
        "minDomains": 3,
    }
    members = tuple(
        labelled(f"m{number}", {"topologySpreadConstraints": [spread]}) for number in range(3)
    )
    result = plan(Workload(members), [ONE], empty_cluster())

    assert pods_by_node(result) == [["m0"], ["m1"], ["m2"]]


def test_a_gang_of_one_host_is_on_one_node() -> None:
    """The members of a gang with a topology key have one value of the label."""
    members = [with_gpus(f"m{number}") for number in range(3)]
    workload = gang_of(*members, topology_key="kubernetes.io/hostname")
    result = plan(workload, [ONE, FOUR], empty_cluster())

    assert result.types == ["four"]


def test_types_of_limited_supply_are_used_no_more_than_that() -> None:
    """Of a cheap type there are two nodes; the third pod needs a node of the other type."""
    cheap = node_type("cheap", 1, devices=[gpu(0)], supply=2)
    members = tuple(with_gpus(f"m{number}") for number in range(3))
    result = plan(Workload(members), [cheap, ONE], empty_cluster())

    assert Counter(result.types) == {"cheap": 2, "one": 1}
    assert result.is_optimal


def test_existing_nodes_take_pods_before_nodes_are_bought() -> None:
    """A node that exists costs nothing; the second pod has no CPU there."""
    cluster = empty_cluster()
    add_node(cluster, node_type("old", 0, cpu=4, devices=[gpu(0), gpu(1)]).make("old"))
    first = plan(Workload((with_gpus("a", cpu="3"),)), [ONE], cluster)
    both = plan(Workload((with_gpus("a", cpu="3"), with_gpus("b", cpu="3"))), [ONE], cluster)

    assert (len(first.types), float(first.cost), first.is_optimal) == (0, 0.0, True)
    assert (list(both.types), len(both.existing)) == (["one"], 1)


def test_zones_have_the_same_number_of_pods() -> None:
    """Seven pods over three zones: 3, 2 and 2, on nodes of their zones, with a true bound."""
    zones = ("a", "b", "c")
    devices = [gpu(each) for each in range(4)]
    types = [node_type("four", 10, cpu=16, devices=devices, labels={ZONE: each}) for each in zones]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u"}
    members = tuple(
        with_gpus(f"m{number}", owner={**owner, "controller": True}) for number in range(7)
    )
    result = plan_for_zones(
        Workload(members), zones, types, empty_cluster(), Limits(), profile=DEFAULT_PROFILE
    )

    assert sorted(len(node.pods) for node in result.nodes) == [2, 2, 3]
    assert (float(result.cost), result.is_optimal, result.reach) == (30.0, True, Reach.PINNED)


def test_one_node_fewer_names_the_smallest_change() -> None:
    """Five pods need two nodes of four devices; with one pod fewer, one node is enough."""
    members = tuple(with_gpus(f"m{number}") for number in range(5))
    result = plan(Workload(members), [FOUR], empty_cluster())
    fewer = plan(Workload(members[1:]), [FOUR], empty_cluster())

    assert result.one_fewer is not None
    assert result.one_fewer.change == "1 pod fewer like default/m0"
    assert result.one_fewer.saves == result.cost - fewer.cost
    assert result.one_fewer.nodes == len(result.nodes) - len(fewer.nodes)


def test_a_plan_whose_time_has_ended_is_still_a_plan() -> None:
    """Without time the plan is that of first-fit, with a bound that is true."""
    members = tuple(with_gpus(f"m{number}", 1 + number % 3) for number in range(12))
    hurried = plan(Workload(members), [FOUR, ONE], empty_cluster(), Limits(is_over=lambda: True))
    whole = plan(Workload(members), [FOUR, ONE], empty_cluster())

    assert len(hurried.nodes) > 0
    assert hurried.bound <= whole.cost <= hurried.cost


def test_no_pods_need_no_nodes() -> None:
    """An empty workload has an empty plan."""
    result = plan(Workload(()), [FOUR], empty_cluster())

    assert (len(result.nodes), float(result.cost), result.is_optimal) == (0, 0.0, True)


def test_one_node_fewer_names_a_lower_request_that_was_tried() -> None:
    """With 5 CPUs three pods fit on a node, with 4 CPUs four: two nodes instead of three."""
    members = tuple(with_gpus(f"m{number}", cpu="5") for number in range(8))
    lower = tuple(with_gpus(f"m{number}", cpu="4") for number in range(8))
    result = plan(Workload(members), [FOUR], empty_cluster())
    less = plan(Workload(lower), [FOUR], empty_cluster())

    assert result.one_fewer is not None
    assert result.one_fewer.change == "each pod like default/m0 requests 4 of cpu instead of 5"
    assert result.one_fewer.saves == result.cost - less.cost
    assert result.one_fewer.nodes == 1
