"""Rules of pods about other pods: affinity, anti-affinity and spreading."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.placement.builders import ZONE, cluster, message, node_of, pod, three_nodes, zoned

from dryrack.kinds.core import Node, Pod
from dryrack.kinds.decode import decode
from dryrack.kinds.meta import LabelSelector
from dryrack.placement import Occupant

if TYPE_CHECKING:
    from dryrack.placement import Cluster

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def labelled(name: str, app: str, namespace: str = "default", **spec: Any) -> Pod:
    metadata = {"name": name, "namespace": namespace, "labels": {"app": app}}
    return decode({"metadata": metadata, "spec": spec}, Pod)


def stand(made: Cluster, each: Pod, node: str) -> None:
    made.fleet.add_pod(each.metadata.name, node, Occupant.of(each))


def term(app: str, key: str = ZONE, **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}


def near(app: str, **more: Any) -> dict[str, Any]:
    return {"podAffinity": {REQUIRED: [term(app, **more)]}}


def far(app: str, **more: Any) -> dict[str, Any]:
    return {"podAntiAffinity": {REQUIRED: [term(app, **more)]}}


def test_a_pod_goes_where_those_are_that_it_has_to_be_near() -> None:
    """Any node of their zone does; nodes without a zone do not."""
    made = three_nodes()
    stand(made, labelled("db", "db"), "b1")

    assert node_of(labelled("web", "web", affinity=near("db")), made) == "b1"


def test_a_pod_waits_for_those_that_it_has_to_be_near() -> None:
    """No pod matches the affinity yet, not even the pod itself."""
    words = "0/4 nodes are available: 4 node(s) didn't match pod affinity rules."

    assert message(labelled("web", "web", affinity=near("db")), three_nodes()) == words


def test_the_first_of_a_group_that_stays_together_may_go_anywhere_with_a_zone() -> None:
    """Otherwise none of them could ever run; the next ones follow it."""
    made = three_nodes()
    first = labelled("w0", "web", affinity=near("web"))
    home = node_of(first, made)
    stand(made, first, home)
    zone = made.fleet.get(home)
    assert zone is not None
    assert ZONE in zone.node.metadata.labels

    second = made.fleet.get(node_of(labelled("w1", "web", affinity=near("web")), made))
    assert second is not None
    assert second.node.metadata.labels[ZONE] == zone.node.metadata.labels[ZONE]


def test_pods_that_keep_apart_take_a_zone_each() -> None:
    """And as many nodes as have no zone, because these are in nobody's."""
    made = three_nodes()
    nodes = []
    for number in range(3):
        each = labelled(f"w{number}", "web", affinity=far("web"))
        nodes.append(node_of(each, made))
        stand(made, each, nodes[-1])

    assert sorted(nodes) == ["a1", "b1", "nowhere"]
    made.fleet.drop("nowhere")
    words = "0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules."
    assert message(labelled("w3", "web", affinity=far("web")), made) == words


def test_a_pod_that_runs_keeps_others_off() -> None:
    """Though they ask for nothing themselves."""
    made = cluster(zoned("a1", "a"), zoned("a2", "a"))
    stand(made, labelled("db", "db", affinity=far("web")), "a1")
    words = "0/2 nodes are available: 2 node(s) didn't satisfy existing pods anti-affinity rules."

    assert message(labelled("web", "web"), made) == words
    assert node_of(labelled("other", "other"), made) == "a2"


def test_what_was_refused_is_asked_again_when_other_pods_come_and_go() -> None:
    """Nothing about other pods is remembered of a node."""
    made = cluster(zoned("a1", "a"), zoned("b1", "b"))
    web = labelled("web", "web", affinity=near("db"))
    assert "affinity" in message(web, made)

    stand(made, labelled("db", "db"), "b1")
    assert node_of(web, made) == "b1"

    made.fleet.remove_pod("db")
    assert "affinity" in message(web, made)


def test_a_term_may_mean_pods_of_namespaces_by_their_labels() -> None:
    """As far as the labels of namespaces are known."""
    made = three_nodes()
    stand(made, labelled("db", "db", namespace="prod"), "b1")
    made.fleet.namespaces["prod"] = {"stage": "prod"}
    selector = {"namespaceSelector": {"matchLabels": {"stage": "prod"}}}

    assert node_of(labelled("web", "web", affinity=near("db", **selector)), made) == "b1"
    assert "affinity" in message(labelled("web", "web", affinity=near("db")), made)


def spread(app: str, key: str = ZONE, **more: Any) -> dict[str, Any]:
    return {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **term(app, key), **more}


def test_pods_are_spread_evenly() -> None:
    """No zone gets two more than another, and who lacks a zone gets none."""
    made = three_nodes()
    nodes = []
    for number in range(4):
        each = labelled(f"w{number}", "web", topologySpreadConstraints=[spread("web")])
        nodes.append(node_of(each, made))
        stand(made, each, nodes[-1])

    assert sorted(nodes) == ["a1", "a2", "b1", "b1"]


def test_a_pod_waits_rather_than_be_spread_unevenly() -> None:
    """The message of a full zone differs from that of a node without a zone."""
    made = three_nodes()
    made.fleet.drop("b1")
    each = labelled("w", "web", topologySpreadConstraints=[spread("web", minDomains=2)])
    assert node_of(each, made) == "a1"
    stand(made, each, "a1")
    uneven = "node(s) didn't match pod topology spread constraints"

    second = labelled("w2", "web", topologySpreadConstraints=[spread("web", minDomains=2)])
    words = f"0/3 nodes are available: 1 {uneven} (missing required label), 2 {uneven}."
    assert message(second, made) == words


def test_pods_that_leave_are_not_counted_when_spreading() -> None:
    """One that is being deleted makes room for the next of its kind already."""
    made = cluster(zoned("a1", "a"), zoned("b1", "b"))
    metadata = {"name": "w1", "namespace": "default", "labels": {"app": "web"}}
    leaving = decode({"metadata": {**metadata, "deletionTimestamp": "2026-01-01T00:00:00Z"}}, Pod)
    stand(made, labelled("w0", "web"), "a1")
    stand(made, leaving, "b1")

    each = labelled("w2", "web", topologySpreadConstraints=[spread("web")])
    assert node_of(each, made) == "b1"


def test_owners_are_known_by_what_they_select() -> None:
    """A Service that selects the pod, and the ReplicaSet that controls it, count together."""
    made = three_nodes()
    owners = made.fleet.owners
    owners.put("Service", "default", "web", LabelSelector(match_labels={"app": "web"}))
    owners.put("Service", "default", "no-selector", None)
    owners.put("ReplicaSet", "default", "web-1", LabelSelector(match_labels={"hash": "1"}))
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "controller": True}
    metadata = {"namespace": "default", "labels": {"app": "web"}, "ownerReferences": [owner]}
    owned = decode({"metadata": metadata}, Pod)

    assert owners.of(owned).matches({"app": "web", "hash": "1"})
    assert not owners.of(owned).matches({"app": "web", "hash": "2"})
    assert owners.of(labelled("alone", "other")).is_empty
    owners.drop("ReplicaSet", "default", "web-1")
    assert owners.of(owned).matches({"app": "web", "hash": "2"})
    assert owners.of(pod()).is_empty


def test_a_node_says_what_the_first_filter_has_against_it() -> None:
    """A cordon comes before other pods, as kube-scheduler asks."""
    made = three_nodes()
    raw = {"metadata": {"name": "a1", "labels": {ZONE: "a"}}, "spec": {"unschedulable": True}}
    made.fleet.put(decode(raw, Node))
    words = "1 node(s) were unschedulable, 3 node(s) didn't match pod affinity rules"

    web = labelled("web", "web", affinity=near("db"))
    assert message(web, made) == f"0/4 nodes are available: {words}."
