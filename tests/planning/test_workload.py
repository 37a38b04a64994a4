"""The workload of a world: what is planned for, what exists, and what belongs to each node."""

from __future__ import annotations

from typing import Any

from dryrack.cluster import SeededChance
from dryrack.kinds.core import Node, Pod
from dryrack.kinds.decode import decode
from dryrack.kinds.releases import DEFAULT_RELEASE
from dryrack.placement import World
from dryrack.planning import (
    Case,
    case_of,
    daemons_of,
    from_zero,
    move_daemon,
    one_of_each_daemon_set,
)


def pod(name: str, *, node: str = "", owner: str = "", **spec: Any) -> Pod:
    owners = [
        {"apiVersion": "apps/v1", "kind": owner, "name": "owner", "uid": "u", "controller": True}
    ]
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "ownerReferences": owners if owner else []},
        "spec": {"containers": [container], **({"nodeName": node} if node else {}), **spec},
    }
    return decode(document, Pod)


def node(name: str) -> Node:
    document = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    return decode(document, Node)


def case(world: World) -> Case:
    return case_of(world, release=DEFAULT_RELEASE, chance=SeededChance())


WORLD = World.of(
    [
        node("old"),
        pod("bound", node="old"),
        pod("pending"),
        pod("agent-old", node="old", owner="DaemonSet"),
        pod("agent-other", node="gone", owner="DaemonSet"),
        pod("static", node="old", owner="Node"),
    ]
)


def test_existing_nodes_keep_their_pods_and_pending_pods_are_planned() -> None:
    """Bound pods occupy their node, and only pending pods are members."""
    made = case(WORLD)
    state = made.cluster.fleet.get("old")

    assert [each.name for each in made.workload.members] == ["default/pending"]
    assert state is not None
    assert state.used["cpu"] == 3 * 10**9


def test_from_zero_all_pods_but_those_of_nodes_are_planned() -> None:
    """Pods of DaemonSets and static pods belong to their nodes, which no longer exist."""
    made = case(from_zero(WORLD))

    assert [each.name for each in made.workload.members] == ["default/bound", "default/pending"]
    assert len(made.cluster.fleet) == 0


def test_each_daemon_set_has_one_pod_on_a_new_node() -> None:
    """The pods of a DaemonSet are alike: one of them stands for that of a new node."""
    [agent] = one_of_each_daemon_set(WORLD)
    there = move_daemon(agent, "new")

    assert there.pod.spec.node_name == ""
    assert there.name == "default/agent-old-on-new"
    assert sorted(daemons_of(WORLD)) == ["gone", "old"]


def test_a_pod_that_names_a_claim_that_does_not_exist_is_not_planned() -> None:
    """The reason names the claim, and no node is added for the pod."""
    entry = {"name": "gpu", "resourceClaimName": "absent"}
    made = case(World.of([pod("lonely", resourceClaims=[entry])]))

    assert made.workload.members == ()
    assert [each.pod for each in made.refused] == ["default/lonely"]
    assert "'absent', which does not exist" in made.refused[0].why
