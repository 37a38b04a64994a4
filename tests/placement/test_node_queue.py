"""Remembering who refused gives the same answers as asking every node every time."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.allocation.live_worlds import NODES, World, a_claim

from dryrack.kinds.core import Node, Pod
from dryrack.kinds.decode import decode
from dryrack.placement import Cluster, Fleet, NodeState, Occupant, Placed, Unplaced, place
from dryrack.placement.demand import ONE
from dryrack.placement.node_queue import NodeEvents, NodeQueue

if TYPE_CHECKING:
    from collections.abc import Hashable


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
            helped = self.live.set_allocation(name, None)
            if helped is None:
                self.fleet.reopen_all()
            else:
                self.fleet.reopen(helped)
        elif self.pods:
            key = self.random.choice(sorted(self.pods))
            del self.pods[key]
            assert self.fleet.remove_pod(key)

    def _pod(self) -> None:
        pod = a_pod(self.random)
        claims = [a_claim(self.random)][: self.random.randint(0, 1)]
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
        self.fleet.add_pod(key, *self.pods[key])
        for given_out in ours.allocations:
            name = f"c{self.random.randint(0, 10**6)}"
            self.held[name] = given_out
            helped = self.live.set_allocation(name, given_out)
            self.fleet.reopen(NODES if helped is None else helped)

    def _anew(self) -> Cluster:
        fleet = Fleet()
        for key, (node, occupant) in self.pods.items():
            fleet.add_pod(key, node, occupant)
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


def states_of(names: str) -> dict[str, NodeState]:
    return {name: NodeState(decode({"metadata": {"name": name}}, Node)) for name in names}


def queue_of(names: str) -> tuple[NodeQueue, NodeEvents]:
    events = NodeEvents()
    return NodeQueue(states_of(names), events), events


def front(queue: NodeQueue) -> str:
    best = queue.best()
    return "" if best is None else best[0].name


def test_a_node_that_refused_is_asked_again_when_something_left_it() -> None:
    """Until then it is passed over, and counted with its reason."""
    queue, events = queue_of("ab")
    for name in "ab":
        assert front(queue) == name
        queue.close(name, "full")
    assert (front(queue), queue.refusals) == ("", {"full": 2})
    events.note("a", may_help=False)
    events.note("b", may_help=True)
    assert front(queue) == "b"
    assert queue.refusals == {"full": 1}


def test_the_next_node_is_the_one_with_the_fewest_pods() -> None:
    """Also after pods came to those that were asked before."""
    states = states_of("abc")
    events = NodeEvents()
    queue = NodeQueue(states, events)
    taken = []
    for number in range(4):
        taken.append(front(queue))
        states[taken[-1]].put(number, Occupant(("", "pod"), {"pods": ONE}))
        events.note(taken[-1], may_help=False)
    assert taken == ["a", "b", "c", "a"]


def test_the_score_comes_before_the_number_of_pods() -> None:
    """It is computed again for nodes to which something happened, and for no others."""
    events = NodeEvents()
    scores = {"a": 1, "b": 3, "c": 2}
    scored = []

    def score(node: NodeState) -> int:
        scored.append(node.name)
        return scores[node.name]

    queue = NodeQueue(states_of("abc"), events, score)
    assert front(queue) == "b"
    scores["b"], scores["a"] = 0, 9
    events.note("b", may_help=False)
    assert front(queue) == "c"
    assert "".join(scored) == "abcb"


def test_a_node_whose_devices_are_not_known_counts_as_the_best() -> None:
    """One that said what it has counts by that, until something happens there."""
    queue, events = queue_of("abc")

    def value(scores: tuple[int, ...] | None, _group: Hashable) -> int:
        return 10 if scores is None else scores[0]

    for name, score in (("a", 2), ("b", 7), ("c", 5)):
        best = queue.best(value)
        assert best is not None
        assert (best[0].name, best[1]) == (name, None)
        queue.know(name, (score,))
    best = queue.best(value)
    assert best is not None
    assert (best[0].name, best[1]) == ("b", (7,))
    assert queue.numbers() == {((2,), ()): 1, ((7,), ()): 1, ((5,), ()): 1}
    events.note("c", may_help=False)
    best = queue.best(value)
    assert best is not None
    assert (best[0].name, best[1]) == ("c", None)
