"""Scores are kube-scheduler's, and the quick way to the best node is as good as the long one."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.allocation.builders import DRIVER, Counting, device, device_class, pool
from tests.placement.builders import container, fleet_of, node, pod

from dryrack.allocation import LiveAllocator
from dryrack.kinds.core import Node, Pod
from dryrack.kinds.decode import decode
from dryrack.kinds.resource import ResourceClaim
from dryrack.placement import Cluster, Fleet, Occupant, Placed, Unplaced, place
from dryrack.placement.framework import (
    ClusterScorer,
    GroupedCheck,
    NodeGroups,
    NodeScorer,
    Plugin,
    Profile,
)
from dryrack.placement.node_state import NodeRefusal, NodeState
from dryrack.placement.plugins import DEFAULT_PROFILE, IN_TREE
from dryrack.placement.trace import trace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.placement.framework import Args, Check
    from dryrack.placement.pod_constraints import PodConstraints

NAMES = "abcdef"
TOPOLOGY_KEYS = ("n", "zone", "kubernetes.io/hostname")


def scores(there: Fleet, asking: Pod, profile: Profile = DEFAULT_PROFILE) -> dict[str, list[int]]:
    """By plugin, for the nodes by name."""
    found: dict[str, list[int]] = {}
    cluster = Cluster(there, LiveAllocator(chance=Counting()))
    for each in trace(asking, (), (), cluster, profile=profile).nodes:
        for score in each.scores:
            found.setdefault(score.plugin, []).append(score.score)
    return found


def fit(**strategy: Any) -> Profile:
    plugin = IN_TREE["NodeResourcesFit"]
    args = {plugin.name: {"scoringStrategy": strategy}}
    return Profile(filters=(plugin,), scores=((plugin, 1),), args=args)


def test_the_least_allocated_node_is_the_best_by_default() -> None:
    """The average share that is left of CPU and memory, with the pod there, cut off."""
    there = fleet_of(node("a", cpu="4", memory="10000"), node("b", cpu="2", memory="10000"))
    there.add_pod("x", "a", Occupant.of(pod(containers=[container(cpu="1", memory="5000")])))
    asking = pod(containers=[container(cpu="1", memory="1000")])

    # a: (50 + 40) / 2; b: (50 + 90) / 2
    assert scores(there, asking)["NodeResourcesFit"] == [45, 70]


def test_a_container_that_requests_nothing_counts_for_scores() -> None:
    """As a tenth of a CPU and 200 MiB, on the node and of the pod."""
    there = fleet_of(node("a", cpu="1", memory="1000Mi"), node("b", cpu="1", memory="1000Mi"))
    there.add_pod("x", "a", Occupant.of(pod(containers=[{"name": "c"}])))

    assert scores(there, pod(containers=[{"name": "c"}]))["NodeResourcesFit"] == [70, 85]


@pytest.mark.parametrize(
    ("strategy", "wanted"),
    [
        ({"type": "MostAllocated"}, [55, 30]),
        ({"type": "LeastAllocated", "resources": [{"name": "cpu", "weight": 1}]}, [50, 50]),
        ({"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 3}]}, [50, 50]),
        (
            {
                "type": "MostAllocated",
                "resources": [{"name": "cpu", "weight": 3}, {"name": "memory", "weight": 1}],
            },
            [52, 40],
        ),
        (
            {
                "type": "RequestedToCapacityRatio",
                "requestedToCapacityRatio": {
                    "shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
                },
            },
            [55, 30],
        ),
        (
            {
                "type": "RequestedToCapacityRatio",
                "resources": [{"name": "cpu", "weight": 1}],
                "requestedToCapacityRatio": {
                    "shape": [{"utilization": 20, "score": 8}, {"utilization": 80, "score": 2}]
                },
            },
            [50, 50],
        ),
        ({"resources": [{"name": "example.com/foo", "weight": 1}]}, [0, 0]),
    ],
)
def test_strategies_are_those_of_kube_scheduler(
    strategy: dict[str, Any], wanted: list[int]
) -> None:
    """Scores are whole numbers; a resource that the pod does not request does not count."""
    there = fleet_of(node("a", cpu="4", memory="10000"), node("b", cpu="2", memory="10000"))
    there.add_pod("x", "a", Occupant.of(pod(containers=[container(cpu="1", memory="5000")])))
    asking = pod(containers=[container(cpu="1", memory="1000")])

    assert scores(there, asking, fit(**strategy))["NodeResourcesFit"] == wanted


def test_a_pod_that_evens_out_a_node_is_welcome() -> None:
    """100 is half of the best, 50 half of the worst; 75 where nothing changes."""
    there = fleet_of(*(node(name, cpu="10", memory="10000") for name in "abc"))
    for name, cpu, memory in (("a", "5", "1000"), ("b", "1", "5000")):
        there.add_pod(name, name, Occupant.of(pod(containers=[container(cpu=cpu, memory=memory)])))
    asking = pod(containers=[container(cpu="0", memory="4000")])

    # a: 80 -> 100; b: 80 -> 60; c: 100 -> 80
    assert scores(there, asking)["NodeResourcesBalancedAllocation"] == [85, 65, 65]


def test_a_pod_that_requests_nothing_is_not_balanced() -> None:
    """Else all of them would go to one node."""
    found = scores(fleet_of(node("a", cpu="1", memory="1Gi")), pod(containers=[{"name": "c"}]))

    assert "NodeResourcesBalancedAllocation" not in found


def large_or_small(name: str = "k") -> ResourceClaim:
    """A large device, or else a small one."""
    alternatives = [
        {
            "name": size,
            "deviceClassName": "gpu",
            "allocationMode": "ExactCount",
            "count": 1,
            "selectors": [
                {"cel": {"expression": f"device.attributes['{DRIVER}'].size == '{size}'"}}
            ],
        }
        for size in ("large", "small")
    ]
    spec = {"devices": {"requests": [{"name": "r", "firstAvailable": alternatives}]}}
    return decode({"metadata": {"name": name, "namespace": "n"}, "spec": spec}, ResourceClaim)


def with_devices(sizes: dict[str, str], *nodes: Node) -> Cluster:
    """For each node, the sizes of its devices by their first letters."""
    allocator = LiveAllocator(chance=Counting())
    allocator.put_class(device_class("gpu"))
    for name, letters in sizes.items():
        devices = [
            device(f"d{number}", size={"l": "large", "s": "small"}[letter])
            for number, letter in enumerate(letters)
        ]
        for each in pool(devices, name=name, node=name):
            allocator.put_slice(each)
    return Cluster(fleet_of(*nodes), allocator)


def test_the_node_with_the_first_alternative_is_preferred() -> None:
    """The first of two counts 100, the second 87, twice."""
    there = with_devices({"a": "s", "b": "l"}, node("a", cpu="4"), node("b", cpu="4"))
    asking = pod(containers=[container(cpu="1")])
    placed = place(asking, (large_or_small(),), (), there)
    found = trace(asking, (large_or_small(),), (), there)

    assert isinstance(placed, Placed)
    assert placed.node == "b"
    last = [each.scores[-1] for each in found.nodes]
    assert [(each.plugin, each.score, each.weight) for each in last] == [
        ("DynamicResources", 87, 2),
        ("DynamicResources", 100, 2),
    ]


def test_nodes_are_asked_for_devices_again_only_if_something_happened_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So a pod costs the same however many nodes there are."""
    names = [f"n{number:02}" for number in range(30)]
    sizes = dict.fromkeys(names, "ssss") | {"n29": "l"}
    there = with_devices(sizes, *(node(name, cpu="64") for name in names))
    asked: list[str] = []
    begin = there.allocator.begin

    def counted(where: Node, claims: Sequence[ResourceClaim]) -> Any:
        asked.append(where.metadata.name)
        return begin(where, claims)

    monkeypatch.setattr(there.allocator, "begin", counted)
    numbers = []
    for number in range(4):
        placed = place(pod(), (large_or_small(f"k{number}"),), (), there)
        assert isinstance(placed, Placed)
        there.fleet.add_pod(number, placed.node, Occupant.of(pod(), amounts=placed.amounts))
        assert isinstance(there.allocator, LiveAllocator)
        there.fleet.reopen(there.allocator.set_allocation(f"n/k{number}", placed.allocations[0]))
        numbers.append((placed.node, len(asked)))
        asked.clear()

    assert numbers[0] == ("n29", 30)
    assert all(count <= 3 for _, count in numbers[1:])


def test_what_is_known_of_devices_is_known_to_pods_that_spread_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Pods of many Deployments want the same devices; no node is asked once for each."""
    names = [f"n{number}" for number in range(20)]
    there = with_devices(dict.fromkeys(names, "ll"), *(node(name, cpu="64") for name in names))
    asked: list[str] = []
    begin = there.allocator.begin

    def counted(where: Node, claims: Sequence[ResourceClaim]) -> Any:
        asked.append(where.metadata.name)
        return begin(where, claims)

    monkeypatch.setattr(there.allocator, "begin", counted)
    numbers = []
    for app in "xyz":
        selector = {"matchLabels": {"app": app}}
        spread = {"maxSkew": 1, "topologyKey": "n", "labelSelector": selector}
        asking = pod(topologySpreadConstraints=[{**spread, "whenUnsatisfiable": "ScheduleAnyway"}])
        assert isinstance(place(asking, (large_or_small(app),), (), there), Placed)
        numbers.append(len(asked))
        asked.clear()

    assert numbers == [20, 1, 1]


def test_groups_are_held_against_each_other_without_a_look_at_every_node() -> None:
    """Once all nodes have their group, a pod costs a look at those to which something happened."""
    looked: list[str] = []

    def parity(node: NodeState) -> int:
        looked.append(node.name)
        return len(node.occupants) % 2

    def even(numbers: Mapping[int, int]) -> Mapping[int, int]:
        return {group: 100 if group == 0 else 0 for group in numbers}

    def not_alone(node: NodeState) -> NodeRefusal | None:
        return NodeRefusal("node(s) were full", "", "") if parity(node) > 1 else None

    plugin = Plugin(
        "Even",
        filter=lambda pod, there, args: GroupedCheck(not_alone, "parity", parity),
        score=lambda pod, there, args: NodeGroups("parity", parity, even).scorer(),
        sees_cluster=True,
    )
    there = with_devices({}, *(node(f"n{number:03}", cpu="8") for number in range(200)))
    profile = Profile(filters=(plugin,), scores=((plugin, 1),))
    counts = []
    for number in range(3):
        placed = place(pod(), (), (), there, profile=profile)
        assert isinstance(placed, Placed)
        there.fleet.add_pod(number, placed.node, Occupant.of(pod()))
        counts.append(len(looked))
        looked.clear()

    assert counts[0] >= 200
    assert max(counts[1:]) < 20


def _spread(constraints: PodConstraints, there: Fleet, args: Args) -> ClusterScorer:
    """Nodes with the fewest pods of all are the best."""

    def every(nodes: Sequence[NodeState]) -> Sequence[int]:
        most = max((each.pods for each in nodes), default=0)
        return [100 - (100 * each.pods // most if most else 0) for each in nodes]

    return ClusterScorer(every)


def _not_the_fullest(constraints: PodConstraints, there: Fleet, args: Args) -> Check | None:
    """Not where there are the most pods."""
    most = max((each.pods for each in there.states()), default=0)
    refusal = NodeRefusal("node(s) were the fullest", "it has the most pods", "use another")
    return (lambda each: refusal if each.pods == most else None) if most else None


SPREAD = Plugin("Spread", score=_spread)
NOT_THE_FULLEST = Plugin("NotTheFullest", filter=_not_the_fullest, sees_cluster=True)
BASE = DEFAULT_PROFILE
PROFILES = (
    BASE,
    Profile(filters=BASE.filters, scores=BASE.scores, args=fit(type="MostAllocated").args),
    Profile(filters=BASE.filters, scores=(*BASE.scores, (SPREAD, 1))),
    Profile(filters=(*BASE.filters, NOT_THE_FULLEST), scores=BASE.scores),
    Profile(filters=(*BASE.filters, NOT_THE_FULLEST), scores=(*BASE.scores, (SPREAD, 3))),
)


def any_pod(random: Random, number: int) -> Pod:
    """Yield pods with preferences about nodes and other pods of all kinds."""
    requests = {"cpu": random.choice(("100m", "1", "1500m"))}
    if random.random() < 0.5:
        requests["memory"] = random.choice(("1Gi", "2Gi"))
    spec: dict[str, Any] = {"containers": [container(**requests)], "affinity": {}}
    selector = {"matchLabels": {"app": random.choice("xy")}}
    if random.random() < 0.15:
        spec["tolerations"] = [{"operator": "Exists"}]
    if random.random() < 0.2:
        names = [{"key": "n", "operator": "In", "values": random.sample(NAMES, 3)}]
        term = {"weight": random.randint(1, 100), "preference": {"matchExpressions": names}}
        preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [term]}
        spec["affinity"]["nodeAffinity"] = preferred
    if random.random() < 0.2:
        about = {"topologyKey": random.choice(TOPOLOGY_KEYS), "labelSelector": selector}
        kind = random.choice(("podAffinity", "podAntiAffinity"))
        spec["affinity"][kind] = random.choice(
            (
                {"requiredDuringSchedulingIgnoredDuringExecution": [about]},
                {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 50, "podAffinityTerm": about}
                    ]
                },
            )
        )
    if random.random() < 0.2:
        unsatisfiable = random.choice(("DoNotSchedule", "ScheduleAnyway"))
        key = random.choice(TOPOLOGY_KEYS)
        spread = {"maxSkew": 1, "topologyKey": key, "labelSelector": selector}
        spec["topologySpreadConstraints"] = [{**spread, "whenUnsatisfiable": unsatisfiable}]
    labels = {"app": random.choice("xyz")}
    metadata = {"name": f"p{number}", "namespace": "default", "labels": labels}
    return decode({"metadata": metadata, "spec": spec}, Pod)


def any_node(random: Random, name: str) -> Node:
    effect = random.choice(("NoSchedule", "PreferNoSchedule"))
    taints = [{"key": "k", "effect": effect}] if random.random() < 0.15 else []
    size = {"cpu": random.choice("248"), "memory": f"{random.choice((4, 8))}Gi", "pods": "10"}
    of_all = {"kubernetes.io/hostname": name} if random.random() < 0.9 else {}
    raw = {
        "metadata": {"name": name, "labels": {**of_all, "n": name, "zone": random.choice("uv")}},
        "spec": {"taints": taints},
        "status": {"allocatable": size},
    }
    return decode(raw, Node)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(PROFILES))
def test_the_node_is_that_of_scoring_everything(seed: int, profile: Profile) -> None:
    """After any pods, devices and nodes came and went, and whatever plugins look at."""
    random = Random(seed)
    nodes = [any_node(random, name) for name in NAMES]
    sizes = {name: "".join(random.choices("ls", k=random.randint(0, 3))) for name in NAMES}
    there = with_devices(sizes, *nodes)
    allocator = there.allocator
    assert isinstance(allocator, LiveAllocator)
    for number in range(16):
        if number > 4 and random.random() < 0.3:
            gone = random.randrange(number)
            there.fleet.remove_pod(gone)
            there.fleet.reopen(allocator.set_allocation(f"n/k{gone}", None))
        if random.random() < 0.1:
            there.fleet.put(any_node(random, random.choice(NAMES)))
        asking = any_pod(random, number)
        claims = (large_or_small(f"k{number}"),) if random.random() < 0.5 else ()
        wanted = trace(asking, claims, (), there, profile=profile).chosen
        ours = place(asking, claims, (), there, profile=profile)
        assert (ours.node if isinstance(ours, Placed) else "") == wanted
        if isinstance(ours, Placed):
            there.fleet.add_pod(number, ours.node, Occupant.of(asking, amounts=ours.amounts))
            for name, allocation in ours.given.items():
                there.fleet.reopen(allocator.set_allocation(name, allocation))


def test_filters_that_see_the_cluster_are_told_in_their_place() -> None:
    """A node that has no devices either says what the earlier filter says."""
    there = with_devices({"b": "l"}, node("a", cpu="4"), node("b", cpu="4"))
    for key in "xy":
        there.fleet.add_pod(key, "b", Occupant.of(pod()))
    outcome = place(pod(), (large_or_small(),), (), there, profile=PROFILES[3])

    assert isinstance(outcome, Unplaced)
    counts = "1 cannot allocate all claims, 1 node(s) were the fullest"
    assert outcome.message.startswith(f"0/2 nodes are available: {counts}. Node a, claim n/k: ")


def _broken(constraints: PodConstraints, there: Fleet, args: Args) -> NodeScorer:
    def score(each: NodeState) -> int:
        raise ValueError("no occupants")

    return NodeScorer(score)


@pytest.mark.parametrize(
    ("plugin", "words"),
    [
        (
            Plugin("Broken", score=_broken),
            "plugin Broken: ValueError: no occupants; correct or disable the plugin",
        ),
        (
            Plugin("Wild", score=lambda constraints, there, args: NodeScorer(lambda each: 101)),
            "plugin Wild: the score 101 is invalid; return 0 to 100",
        ),
    ],
)
def test_a_broken_plugin_is_named(plugin: Plugin, words: str) -> None:
    """No pod is placed by it, and what is wrong is said."""
    there = with_devices({}, node("a", cpu="4"))
    outcome = place(pod(), (), (), there, profile=Profile(scores=((plugin, 1),)))

    assert isinstance(outcome, Unplaced)
    assert outcome.message == words


def test_a_node_that_lacks_several_things_is_counted_for_each() -> None:
    """As by kube-scheduler."""
    there = with_devices({}, node("a", cpu="1", memory="1Gi"), node("b", cpu="8", memory="1Gi"))
    outcome = place(pod(containers=[container(cpu="2", memory="2Gi")]), (), (), there)

    assert isinstance(outcome, Unplaced)
    counts = "1 Insufficient cpu, 2 Insufficient memory"
    assert outcome.message == f"0/2 nodes are available: {counts}."


def test_the_trace_says_who_passed_and_who_refused() -> None:
    """Plugins in their order; scores of nodes that take the pod."""
    there = with_devices({"a": "s"}, node("a", cpu="4"), node("b", cpu="4"), node("c", cpu="4"))
    name = {"key": "n", "operator": "In", "values": ["a", "b"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [name]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    asking = pod(containers=[container(cpu="1")], affinity=affinity)
    document = trace(asking, (large_or_small(),), (), there).document()

    assert document["chosen"] == "a"
    of_a, of_b, of_c = document["nodes"]
    assert of_a["total"] == sum(each["score"] * each["weight"] for each in of_a["scores"])
    passed = [each["plugin"] for each in of_b["filters"] if each["verdict"] == "passed"]
    assert passed == ["NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodeResourcesFit"]
    assert of_b["filters"][-1] == {
        "plugin": "DynamicResources",
        "verdict": "refused",
        "reason": "cannot allocate all claims",
    }
    assert of_c["filters"][-1]["plugin"] == "NodeAffinity"


@pytest.mark.parametrize(("label", "verdict"), [("a", "passed"), ("b", "refused")])
def test_the_trace_has_each_plugin_once(label: str, verdict: str) -> None:
    """One that names nodes before they are asked, and asks them then, too."""
    field = {"key": "metadata.name", "operator": "In", "values": ["a"]}
    expression = {"key": "n", "operator": "In", "values": [label]}
    terms = [{"matchFields": [field], "matchExpressions": [expression]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    asking = pod(containers=[container(cpu="1")], affinity={"nodeAffinity": required})

    found = trace(asking, (), (), with_devices({}, node("a", cpu="4"))).document()["nodes"][0]
    verdicts = [e["verdict"] for e in found["filters"] if e["plugin"] == "NodeAffinity"]
    assert verdicts == [verdict]
