"""Placement of one pod: its demand, the refusals of nodes, and the message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as changed
from tests.placement.builders import cluster, container, fleet, pod, state

from dryrack.allocation import Allocated
from dryrack.kinds.decode import decode
from dryrack.kinds.resource import DeviceClass, ResourceClaim
from dryrack.placement import Cluster, Fleet, Occupant, Placed, Unplaced, place
from dryrack.placement.demand import ONE, HostPort, demand, demand_of
from dryrack.placement.extended_resources import ExtendedResources
from dryrack.placement.framework import Plugin, Profile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.allocation import Outcome
    from dryrack.kinds.core import Node, Pod
    from dryrack.placement.framework import Args, FilterFunction
    from dryrack.placement.pod_constraints import PodConstraints

GI = 2**30 * ONE


def claim(count: int, **status: Any) -> ResourceClaim:
    exactly = {"deviceClassName": "c", "allocationMode": "ExactCount", "count": count}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    metadata = {"name": "k", "namespace": "default"}
    return decode({"metadata": metadata, "spec": spec, "status": status}, ResourceClaim)


def tied_to(node: str) -> dict[str, Any]:
    name = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {"nodeSelector": {"nodeSelectorTerms": [{"matchFields": [name]}]}}


def test_containers_add_up_and_init_containers_count_by_the_largest() -> None:
    """Requests of containers are summed; those of init containers are not, except sidecars."""
    sidecar = {**container(cpu="1"), "restartPolicy": "Always"}
    asked = demand(
        pod(
            initContainers=[container(cpu="3"), sidecar, container(cpu="4")],
            containers=[container(cpu="1"), container(cpu="2", memory="1Gi")],
            overhead={"cpu": "500m"},
        )
    )

    assert asked == {"cpu": 5 * ONE + ONE // 2, "memory": GI, "pods": ONE}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, {"cpu": ONE}),
        ({"initContainers": [container(cpu="3")]}, {"cpu": 3 * ONE}),
        ({"overhead": {"cpu": "1"}}, {"cpu": 2 * ONE}),
        ({"resources": {"requests": {"cpu": "4"}}}, {"cpu": 4 * ONE}),
        ({"hostNetwork": True}, {"cpu": ONE, HostPort("TCP", 8080, "0.0.0.0"): ONE}),
    ],
)
def test_pods_that_differ_in_what_they_take_have_each_their_own_demand(
    more: dict[str, Any], expected: dict[str | HostPort, int]
) -> None:
    """One demand serves all pods of a template, and no others, however little they differ."""
    main = {**container(cpu="1"), "ports": [{"containerPort": 8080}]}
    plain = pod(containers=[main])
    other = pod(containers=[main], **more)

    assert demand_of(plain) is demand_of(pod(containers=[main]))
    assert demand(other) == {**expected, "pods": ONE}
    assert (demand_of(plain) is demand_of(other)) is (not more)


def with_port(number: int = 0, *, spec: dict[str, Any] | None = None, **port: Any) -> Pod:
    ports = [{"containerPort": 8080, "hostPort": number, **port}]
    return pod(containers=[{"name": "c", "image": "i", "ports": ports}], **(spec or {}))


@pytest.mark.parametrize(
    ("there", "comes", "fits"),
    [
        (with_port(80), with_port(80), False),
        (with_port(80), with_port(81), True),
        (with_port(80), with_port(80, protocol="TCP"), False),
        (with_port(80), with_port(80, protocol="UDP"), True),
        (with_port(80, hostIP="127.0.0.1"), with_port(80, hostIP="127.0.0.2"), True),
        (with_port(80, hostIP="127.0.0.1"), with_port(80, hostIP="127.0.0.1"), False),
        (with_port(80, hostIP="127.0.0.1"), with_port(80), False),
        (with_port(80, hostIP="0.0.0.0"), with_port(80, hostIP="127.0.0.1"), False),
        (with_port(), with_port(), True),
        (with_port(8080), with_port(spec={"hostNetwork": True}), False),
    ],
)
def test_a_port_of_the_host_is_given_once(there: Pod, comes: Pod, fits: bool) -> None:
    """By protocol and address as upstream; and it is free again when its pod has left."""
    taken = state("a")
    taken.put("there", Occupant.of(there))
    outcome = place(comes, (), (), cluster(taken))

    if fits:
        assert isinstance(outcome, Placed)
    else:
        assert isinstance(outcome, Unplaced)
        words = "1 node(s) didn't have free ports for the requested pod ports"
        assert outcome.message == f"0/1 nodes are available: {words}."
    taken.remove("there")
    assert isinstance(place(comes, (), (), cluster(taken)), Placed)


ZONE_Z = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]}
REQUIRED = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [ZONE_Z]}}
TOWARDS_Z = {"weight": 1, "preference": ZONE_Z}
PREFERRED = {"preferredDuringSchedulingIgnoredDuringExecution": [TOWARDS_Z]}
PORT_80 = {**container(cpu="1"), "ports": [{"containerPort": 80, "hostPort": 80}]}


@pytest.mark.parametrize(
    ("spec", "node"),
    [
        ({}, "a"),
        ({"containers": [container(cpu="8")]}, ""),
        ({"containers": [PORT_80]}, "b"),
        ({"nodeName": "b"}, "b"),
        ({"nodeSelector": {"zone": "z"}}, "b"),
        ({"affinity": {"nodeAffinity": REQUIRED}}, "b"),
        ({"affinity": {"nodeAffinity": PREFERRED}}, "b"),
        ({"tolerations": [{"operator": "Exists"}]}, "cordoned"),
    ],
)
def test_what_plugins_said_of_a_pod_is_not_said_of_one_that_asks_otherwise(
    spec: dict[str, Any], node: str
) -> None:
    """Answers are shared by pods of a template: each thing that plugins look at makes another."""
    there = cluster(state("a"), state("b"), state("cordoned", cpu="6", unschedulable=True))
    b = there.fleet.get("b")
    assert b is not None
    metadata = changed(b.node.metadata, labels={"zone": "z"})
    there.fleet.put(changed(b.node, metadata=metadata))
    used = demand(pod(containers=[PORT_80]))
    there.fleet.add_pod("other", "a", Occupant(("", "other"), {**used, "cpu": 0}))
    there.fleet.add_pod("another", "b", Occupant(("", "another"), {"pods": ONE}))
    plain = {"containers": [container(cpu="1")]}

    for asked, expected in ((plain, "a"), ({**plain, **spec}, node), (plain, "a")):
        outcome = place(pod(**asked), (), (), there)
        assert (outcome.node if isinstance(outcome, Placed) else "") == expected


def test_a_class_that_stands_for_what_a_pod_asks_for_makes_another_template() -> None:
    """A missing resource is insufficient without a class, and a device with one."""
    there = cluster(state("a"), devices=1)
    name = "example.com/x"
    asks = pod(containers=[container(**{name: "1"})])
    gpu = decode({"metadata": {"name": "c"}, "spec": {"extendedResourceName": name}}, DeviceClass)
    extended = ExtendedResources.of(asks, {name: gpu}, name="made")

    assert isinstance(place(asks, (), (), there), Unplaced)
    assert isinstance(place(asks, (), (), there, extended=extended), Placed)
    assert isinstance(place(asks, (), (), there), Unplaced)


def test_a_plugin_that_looks_at_the_template_alone_is_asked_once_for_all_of_its_pods() -> None:
    """However many pods come; one that did not promise so is asked for each."""
    asked: list[str] = []

    def filters(name: str) -> FilterFunction:
        def asks(_pod: PodConstraints, _fleet: Fleet, _args: Args) -> None:
            asked.append(name)

        return asks

    profile = Profile(
        filters=(
            Plugin("Once", filter=filters("once"), of_template=True),
            Plugin("Always", filter=filters("always")),
        )
    )
    for name in ("p", "q", "r"):
        each = pod(containers=[container(cpu="1")])
        each = changed(each, metadata=changed(each.metadata, name=name))
        assert isinstance(place(each, (), (), cluster(state("a")), profile=profile), Placed)

    assert asked == ["once", *["always"] * 3]


def test_ports_of_init_containers_count_if_they_stay() -> None:
    """One that has ended leaves its port to the others."""
    first = {"name": "i", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}
    main = container(cpu="1")
    passing = demand(pod(initContainers=[first], containers=[main]))
    staying = demand(pod(initContainers=[{**first, "restartPolicy": "Always"}], containers=[main]))

    assert HostPort("TCP", 80, "0.0.0.0") not in passing
    assert HostPort("TCP", 80, "0.0.0.0") in staying


def test_the_emptiest_node_is_taken_and_the_name_decides_a_tie() -> None:
    """Equal clusters have equal answers."""
    full = state("a")
    full.put("other", Occupant(("", "other"), {"pods": ONE}))
    outcome = place(
        pod(containers=[container(cpu="1")]), (), (), cluster(full, state("c"), state("b"))
    )

    assert isinstance(outcome, Placed)
    assert outcome.node == "b"


def test_each_obstacle_is_told_in_the_words_of_kube_scheduler() -> None:
    """People search for these words."""
    tainted = state("b", taints=[{"key": "k", "effect": "NoSchedule"}])
    states = (state("a", cpu="1"), tainted, state("c", unschedulable=True), state("d", pods="0"))
    outcome = place(pod(containers=[container(cpu="2")]), (), (), cluster(*states))

    assert outcome == Unplaced(
        "0/4 nodes are available: 1 Insufficient cpu, 1 Too many pods, "
        "1 node(s) had untolerated taint(s), 1 node(s) were unschedulable."
    )


def test_a_selector_keeps_a_pod_off_other_nodes() -> None:
    """nodeSelector and nodeName are obeyed."""
    outcome = place(pod(nodeSelector={"zone": "x"}), (), (), cluster(state("a")))
    elsewhere = place(pod(nodeName="b"), (), (), cluster(state("a")))

    assert isinstance(outcome, Unplaced)
    assert "didn't match Pod's node affinity/selector" in outcome.message
    assert isinstance(elsewhere, Unplaced)
    assert "didn't match the requested node name" in elsewhere.message


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        ({}, True),
        ({"nodeSelector": {"zone": "a"}}, True),
        ({"nodeSelector": {"zone": "b"}}, False),
        ({"affinity": {"nodeAffinity": {}}}, True),
        ({"nodeSelector": {"zone": "a"}, "affinity": {"nodeAffinity": {"R": "Gt 8"}}}, False),
        ({"affinity": {"nodeAffinity": {"R": "Gt 7"}}}, True),
    ],
)
def test_a_pod_says_where_it_may_run(spec: dict[str, Any], allowed: bool) -> None:
    """nodeSelector and required affinity must both allow the node."""
    affinity = spec.get("affinity", {}).get("nodeAffinity", {})
    if "R" in affinity:
        operator, value = affinity.pop("R").split()
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "gpus", "operator": operator, "values": [value]}]}
            ]
        }

    labelled = state("a")
    labelled.node = changed(
        labelled.node, metadata=changed(labelled.node.metadata, labels={"zone": "a", "gpus": "8"})
    )
    assert isinstance(place(pod(**spec), (), (), cluster(labelled)), Placed) == allowed


def test_nodes_that_a_pod_does_not_name_say_nothing_else() -> None:
    """As kube-scheduler tells of the pod of a daemon set whose node is full."""
    field = {"key": "metadata.name", "operator": "In", "values": ["a"]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    asked = pod(affinity={"nodeAffinity": affinity}, containers=[container(cpu="2")])
    states = (state("a", cpu="1"), state("b"), state("c", unschedulable=True))

    assert place(asked, (), (), cluster(*states)) == Unplaced(
        "0/3 nodes are available: 1 Insufficient cpu, "
        "2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )


def test_a_pod_of_a_daemon_set_asks_its_node_alone() -> None:
    """It is tied to the node by name, so no other is asked, however many there are."""
    name = {"key": "metadata.name", "operator": "In", "values": ["c"]}
    required = {"nodeSelectorTerms": [{"matchFields": [name]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    asked: list[str] = []

    class Asking:
        def begin(self, node: Node, claims: Sequence[ResourceClaim]) -> Outcome:
            asked.append(node.metadata.name)
            return Allocated(())

    there = fleet(state("a"), state("b"), state("c"))
    outcome = place(pod(affinity=affinity), (claim(1),), (), Cluster(there, Asking()))

    assert isinstance(outcome, Placed)
    assert (outcome.node, asked) == ("c", ["c"])


def test_no_nodes_are_told_as_such() -> None:
    """An empty cluster is not 0 of 0."""
    assert place(pod(), (), (), cluster()) == Unplaced("no nodes available to schedule pods")


def test_devices_decide_with_the_rest() -> None:
    """The node with the devices is taken although another is as empty."""
    outcome = place(pod(), (claim(2),), (), cluster(state("b"), state("a"), devices=3))

    assert isinstance(outcome, Placed)
    assert outcome.node == "a"
    assert [each.device for each in outcome.allocations[0].devices.results] == ["x0", "x1"]


def test_why_no_device_is_said_from_the_decision() -> None:
    """The message ends with the reason of the first node that was tried for devices."""
    outcome = place(pod(), (claim(4),), (), cluster(state("a"), devices=3))

    assert isinstance(outcome, Unplaced)
    assert outcome.message.startswith("0/1 nodes are available: 1 cannot allocate all claims. ")
    assert "needs 4 devices; 3 of 3 are available" in outcome.message


def test_a_pod_follows_the_claim_that_it_has() -> None:
    """A claim that is allocated for a node leaves that node alone; one for all leaves all."""
    states = (state("a"), state("b"))
    tied = place(pod(), (), (claim(1, allocation=tied_to("b")),), cluster(*states))
    free = place(pod(), (), (claim(1, allocation={}),), cluster(*states))
    gone = place(pod(), (), (claim(1, allocation=tied_to("c")),), cluster(*states))

    assert isinstance(tied, Placed)
    assert tied.node == "b"
    assert isinstance(free, Placed)
    assert free.node == "a"
    message = "0/2 nodes are available: 2 resourceclaim not available on the node."
    assert gone == Unplaced(message)


@given(st.lists(st.integers(0, 5), max_size=12))
def test_a_node_is_never_overfilled(cores: list[int]) -> None:
    """However pods come, what stands in a state's books fits its node."""
    there = [state("a"), state("b", cpu="3")]
    for number, each in enumerate(cores):
        outcome = place(pod(containers=[container(cpu=str(each))]), (), (), cluster(*there))
        if isinstance(outcome, Placed):
            node = next(r for r in there if r.name == outcome.node)
            node.put(number, Occupant(("", "pod"), outcome.amounts))

    assert all(r.used.get("cpu", 0) <= r.node.status.allocatable["cpu"].nanos for r in there)
