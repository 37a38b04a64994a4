"""Remembering who refused gives the same answers as asking every node every time."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.allocation.test_live import NODES, World, a_claim

from dryrack.kinds.core import Node, Pod
from dryrack.kinds.decode import decode
from dryrack.placement import Cluster, Fleet, NodeState, Occupant, Placed, Unplaced, place
from dryrack.placement.demand import ONE
from dryrack.placement.node_queue import NodeQueue


def a_node(random: Random, name: str, zone: str) -> Node:
    spec: dict[str, Any] = {}
    if random.random() < 0.2:
        spec["taints"] = [{"key": "k", "effect": "NoSchedule"}]
    if random.random() < 0.1:
        spec["unschedulable"] = True
    status = {"allocatable": {"cpu": str(random.randint(1, 3)), "pods": "4"}}
    metadata = {"name": name, "uid": name, "labels": {"zone": zone}}
    return decode({"metadata": metadata, "spec": spec, "status": status}, Node)


def a_pod(random: Random) -> Pod:
    requests = {"cpu": random.choice(("0", "1", "2"))}
    spec: dict[str, Any] = {"containers": [{"name": "c", "resources": {"requests": requests}}]}
    if random.random() < 0.3:
        spec["nodeSelector"] = {"zone": random.choice("xy")}
    if random.random() < 0.3:
        spec["tolerations"] = [{"operator": "Exists"}]
    return decode({"metadata": {"name": "p", "namespace": "n"}, "spec": spec}, Pod)


class Placing(World):
    """A cluster with nodes and pods, and a fleet that is told what happens."""

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.fleet = Fleet()
        self.nodes: dict[str, Node] = {}
        self.pods: dict[int, tuple[str, Occupant]] = {}

    def change(self) -> None:
        self.random.choice((self._devices, self._devices, self._put, self._leave, self._pod))()

    def _devices(self) -> None:
        """A change of slices, rules or classes, of which the fleet knows only that there is one."""
        before = dict(self.held)
        self.random.choice((self._slice, self._rule, self._class))()
        assert self.held == before
        self.fleet.reopen_all()

    def _put(self) -> None:
        name = self.random.choice(NODES)
        if name in self.nodes and self.random.random() < 0.3:
            del self.nodes[name]
            self.fleet.drop(name)
        else:
            self.nodes[name] = a_node(self.random, name, self.random.choice("xy"))
            self.fleet.put(self.nodes[name])

    def _leave(self) -> None:
        """A pod goes, or a claim is given back."""
        if self.held and self.random.random() < 0.5:
            name = self.random.choice(sorted(self.held))
            del self.held[name]
            helped = self.live.hold(name, None)
            if helped is None:
                self.fleet.reopen_all()
            else:
                self.fleet.reopen(helped)
        elif self.pods:
            key = self.random.choice(sorted(self.pods))
            del self.pods[key]
            assert self.fleet.leave(key)

    def _pod(self) -> None:
        pod, claims = a_pod(self.random), [a_claim(self.random)][: self.random.randint(0, 1)]
        self.chance.reset()
        ours = place(pod, claims, (), Cluster(self.fleet, self.live))
        wanted = place(pod, claims, (), self._anew())
        if isinstance(ours, Unplaced) and isinstance(wanted, Unplaced):
            assert ours.message.partition(". ")[0] == wanted.message.partition(". ")[0]
            return
        assert ours == wanted
        assert isinstance(ours, Placed)
        key = self.random.randint(0, 10**6)
        self.pods[key] = ours.node, Occupant(("n", "p"), ours.amounts)
        self.fleet.stand(key, *self.pods[key])
        for given_out in ours.allocations:
            name = f"c{self.random.randint(0, 10**6)}"
            self.held[name] = given_out
            helped = self.live.hold(name, given_out)
            self.fleet.reopen(NODES if helped is None else helped)

    def _anew(self) -> Cluster:
        fleet = Fleet()
        for key, (node, occupant) in self.pods.items():
            fleet.stand(key, node, occupant)
        for name in sorted(self.nodes, reverse=True):
            fleet.put(self.nodes[name])
        return Cluster(fleet, self.anew())


@settings(max_examples=200)
@given(st.integers(0, 2**32))
def test_what_is_remembered_is_what_would_be_found(seed: int) -> None:
    """After any changes a pod goes where it would go if every node were asked."""
    world = Placing(Random(seed))
    for _ in range(60):
        world.change()


def test_a_node_that_refused_is_asked_again_when_something_left_it() -> None:
    """Until then it is passed over, and counted with its reason."""
    states = {name: NodeState(decode({"metadata": {"name": name}}, Node)) for name in "ab"}
    queue = NodeQueue(states)
    for state in queue.open():
        queue.close(state.name, "full")
    assert (list(queue.open()), queue.refusals) == ([], {"full": 2})
    queue.reopen("b")
    assert [state.name for state in queue.open()] == ["b"]
    assert queue.refusals == {"full": 1}


def test_the_next_node_is_the_one_with_the_fewest_pods() -> None:
    """Also after pods came to those that were asked before."""
    states = {name: NodeState(decode({"metadata": {"name": name}}, Node)) for name in "abc"}
    queue = NodeQueue(states)
    taken = []
    for _ in range(4):
        state = next(queue.open())
        state.take({"pods": ONE})
        taken.append(state.name)
    assert taken == ["a", "b", "c", "a"]
