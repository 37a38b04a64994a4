"""Kubenexus' plugins for placing by kind of work: they decide, where the original only logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.placement.builders import NoChance, container

from dryrack.allocation import LiveAllocator
from dryrack.kinds.core import Node, Pod
from dryrack.kinds.decode import decode
from dryrack.placement import Cluster, Fleet, Occupant, Placed, place
from dryrack.placement.framework import Profile
from dryrack.placement.plugins import IN_TREE
from dryrack.placement.plugins.numa_topology import POLICY
from dryrack.placement.plugins.workloads import WORKLOAD_TYPE, is_backfill

if TYPE_CHECKING:
    from collections.abc import Mapping

NOTHING: Mapping[str, str] = {}
ZONE = "topology.kubernetes.io/zone"


def node(name: str, labels: Mapping[str, str] = NOTHING) -> Node:
    status = {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "20"}}
    return decode({"metadata": {"name": name, "labels": dict(labels)}, "status": status}, Node)


def pod(
    name: str = "p",
    labels: Mapping[str, str] = NOTHING,
    *,
    cpu: int = 1,
    annotations: Mapping[str, str] = NOTHING,
) -> Pod:
    metadata = {"name": name, "namespace": "n"}
    told = metadata | {"labels": dict(labels), "annotations": dict(annotations)}
    return decode({"metadata": told, "spec": {"containers": [container(cpu=str(cpu))]}}, Pod)


def cluster(*nodes: Node, used: dict[str, int] | None = None) -> Cluster:
    """Nodes, and on some of them a pod that takes so many CPUs."""
    there = Cluster(Fleet(), LiveAllocator(chance=NoChance()))
    for each in nodes:
        there.fleet.put(each)
    for name, cpu in (used or {}).items():
        there.fleet.add_pod(name, name, Occupant.of(pod(name, cpu=cpu)))
    return there


def chosen(there: Cluster, asking: Pod, *plugins: str) -> str:
    """The node that a profile of these plugins takes; empty if there is none."""
    known = [IN_TREE[name] for name in ("NodeResourcesFit", *plugins)]
    profile = Profile(
        filters=tuple(each for each in known if each.filter),
        scores=tuple((IN_TREE[name], 1) for name in plugins if IN_TREE[name].score),
    )
    outcome = place(asking, (), (), there, profile=profile)
    return outcome.node if isinstance(outcome, Placed) else ""


@pytest.mark.parametrize(
    ("kind", "node_name"), [("training", "a"), ("batch", "a"), ("service", "b"), ("", "b")]
)
def test_training_is_packed_and_services_are_spread(kind: str, node_name: str) -> None:
    """By a label of the pod, or an annotation."""
    there = cluster(node("a"), node("b"), used={"a": 4})
    said = {WORKLOAD_TYPE: kind}
    for asking in (pod(labels=said), pod(annotations=said)):
        assert chosen(there, asking, "WorkloadAware") == node_name


def test_services_go_to_the_zone_with_the_fewest_of_their_pods() -> None:
    """Pods count, not nodes: the zone with more nodes has more of them."""
    there = cluster(node("a", {ZONE: "x"}), node("b", {ZONE: "x"}), node("c", {ZONE: "y"}))
    web = {"app": "web", "pod-template-hash": "1"}
    there.fleet.add_pod("w1", "c", Occupant.of(pod("w1", web)))
    assert chosen(there, pod(labels=web), "TopologySpread") == "a"
    there.fleet.add_pod("w2", "a", Occupant.of(pod("w2", web)))
    there.fleet.add_pod("w3", "a", Occupant.of(pod("w3", web)))
    there.fleet.add_pod("other", "c", Occupant.of(pod("other", {"app": "db"})))
    assert chosen(
        there, pod(labels={"app": "web", "pod-template-hash": "2"}), "TopologySpread"
    ) == ("c")


def test_backfill_goes_where_most_is_idle_and_others_where_least_is() -> None:
    """Unless the idle node is kept for somebody."""
    there = cluster(node("a"), node("b"), used={"a": 4})
    backfill = {"scheduling.kubenexus.io/backfill": "true"}
    assert chosen(there, pod(labels=backfill), "Backfill") == "b"
    assert chosen(there, pod(), "Backfill") == "a"
    tier = {"tenant.kubenexus.io/reserved-tier": "gold"}
    there = cluster(node("a"), node("b", tier), used={"a": 1})
    assert chosen(there, pod(labels=backfill), "Backfill") == "a"


def test_a_pod_may_be_sent_away_by_its_label_or_its_low_priority() -> None:
    """One without a priority of its own has none to be judged by."""
    assert is_backfill({"workload.kubenexus.io/preemptible": "true"}, 1000)
    assert is_backfill({}, 100)
    assert not is_backfill({}, 101)
    assert not is_backfill({}, 0)
    assert not is_backfill({}, None)


def numa(name: str, *cpus: int) -> Node:
    labels = {"numa.kubenexus.io/node-count": str(len(cpus))}
    for number, count in enumerate(cpus):
        labels[f"numa.kubenexus.io/node-{number}-cpus"] = str(count)
    return node(name, labels)


def test_a_pod_that_wants_one_numa_node_goes_only_where_one_has_room() -> None:
    """The requests of a node's pods reduce its NUMA nodes."""
    single = {POLICY: "single-numa-node"}
    assert chosen(cluster(numa("a", 4, 4)), pod(cpu=5, annotations=single), "NUMATopology") == ""
    assert chosen(cluster(numa("a", 4, 4)), pod(cpu=5), "NUMATopology") == "a"
    split = numa("a", 4, 4)
    whole = numa("b", 8)
    assert chosen(cluster(split, whole), pod(cpu=5, annotations=single), "NUMATopology") == "b"
    there = cluster(split, used={"a": 2})
    assert chosen(there, pod(cpu=4, annotations=single), "NUMATopology") == "a"
    there.fleet.add_pod("more", "a", Occupant.of(pod("more", cpu=1)))
    assert chosen(there, pod(cpu=4, annotations=single), "NUMATopology") == ""


def test_a_pod_that_would_rather_be_in_one_goes_elsewhere_if_it_must() -> None:
    """Training is such, if it says nothing else; a node that says nothing is one NUMA node."""
    training = {WORKLOAD_TYPE: "training"}
    there = cluster(numa("a", 4, 4), node("b"))
    assert chosen(there, pod(cpu=5, labels=training), "NUMATopology") == "b"
    assert chosen(cluster(numa("a", 4, 4)), pod(cpu=5, labels=training), "NUMATopology") == "a"


def test_labels_that_make_no_sense_say_nothing() -> None:
    """A count that is none, and a size that is none."""
    single = {POLICY: "single-numa-node"}
    bad = {"numa.kubenexus.io/node-count": "two"}
    assert chosen(cluster(node("a", bad)), pod(annotations=single), "NUMATopology") == "a"
    odd = {"numa.kubenexus.io/node-count": "1", "numa.kubenexus.io/node-0-cpus": "many"}
    assert chosen(cluster(node("a", odd)), pod(annotations=single), "NUMATopology") == "a"
