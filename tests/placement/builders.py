"""Builders of pods, nodes, claims and clusters for the tests of placement."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from tests.allocation.builders import (
    Counting,
    allocator,
    device_class,
    devices,
    pool,
    request,
)

from dryrack.allocation import LiveAllocator
from dryrack.kinds.core import Node, Pod
from dryrack.kinds.decode import decode
from dryrack.kinds.resource import DeviceClass, ResourceClaim, ResourceSlice
from dryrack.placement import (
    Cluster,
    Fleet,
    NodeState,
    Occupant,
    Placed,
    Unplaced,
    place,
)
from dryrack.placement.place import place_on
from dryrack.placement.preemption import (
    NoPreemption,
    Preemption,
)
from dryrack.placement.simulation import Simulation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dryrack.placement.attempt import Refused


class NoChance:
    """Nothing here is shared, so nobody needs an identifier."""

    def uuid(self) -> str:
        raise AssertionError("no identifier is needed")


def pod(**spec: Any) -> Pod:
    return decode({"metadata": {"name": "p", "namespace": "default"}, "spec": spec}, Pod)


def container(**requests: str) -> dict[str, Any]:
    return {"name": "c", "image": "i", "resources": {"requests": requests}}


def state(name: str, *, pods: str = "10", cpu: str = "4", **spec: Any) -> NodeState:
    status = {"allocatable": {"cpu": cpu, "pods": pods}}
    return NodeState(decode({"metadata": {"name": name}, "spec": spec, "status": status}, Node))


def cluster(*states: NodeState, devices: int = 0) -> Cluster:
    spec = {
        "driver": "d",
        "nodeName": "a",
        "pool": {"name": "a", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"x{number}"} for number in range(devices)],
    }
    slices = [decode({"metadata": {"name": "s"}, "spec": spec}, ResourceSlice)]
    classes = [decode({"metadata": {"name": "c"}}, DeviceClass)]
    return Cluster(fleet(*states), allocator(slices, classes=classes, chance=NoChance()))


def fleet(*states: NodeState) -> Fleet:
    made = Fleet()
    for each in states:
        made.put(each.node)
        made.add_pod(each.name, each.name, Occupant(("", each.name), dict(each.used)))
    return made


def wish(count: int, name: str) -> ResourceClaim:
    spec = {"devices": {"requests": [request("r", count)]}}
    return decode({"metadata": {"name": name, "namespace": "n"}, "spec": spec}, ResourceClaim)


APP = {"app": "web"}


class PreemptionCluster:
    """Nodes with four CPUs and some devices each, and pods that are there, by name."""

    def __init__(self, nodes: str = "ab", *, device_count: int = 2) -> None:
        allocator = LiveAllocator(chance=Counting())
        self.allocator = allocator
        self.cluster = Cluster(Fleet(), allocator)
        allocator.put_class(device_class())
        for name in nodes:
            self.cluster.fleet.put(state(name).node)
            for each in pool(devices(device_count), name=name, node=name):
                allocator.put_slice(each)

    def run(
        self,
        name: str,
        node: str,
        *,
        cpu: int = 0,
        gpus: int = 0,
        priority: int = 0,
        age: int = 0,
        labels: Mapping[str, str] = APP,
    ) -> None:
        """A pod is on a node, with devices of its own."""
        made = pod(containers=[container(cpu=str(cpu))])
        wanted = (wish(gpus, name),) if gpus else ()
        placed = place_on(node, made, wanted, (), self.cluster)
        assert isinstance(placed, Placed), "the world is as it was meant"
        claims = [f"n/{name}"] if gpus else []
        there = Occupant(
            ("n", name), placed.amounts, labels, priority, None, f"{9 - age}", tuple(claims)
        )
        self.cluster.fleet.add_pod(name, node, there)
        for claim, allocation in zip(claims, placed.allocations, strict=True):
            self.cluster.fleet.reopen(self.allocator.set_allocation(claim, allocation))

    def try_on(self, *, cpu: int = 0, gpus: int = 0) -> Callable[[str], Placed | Refused]:
        made = pod(containers=[container(cpu=str(cpu))])
        wanted = (wish(gpus, "new"),)
        return lambda name: place_on(name, made, wanted if gpus else (), (), self.cluster)

    def all_fit(self, *gpus: int) -> Callable[[], bool]:
        """Return whether pods with so many devices each fit together, on any of the nodes."""

        def fits_on(nodes: Sequence[str]) -> bool:
            with Simulation(self.cluster) as simulation:
                for number, (count, node) in enumerate(zip(gpus, nodes, strict=True)):
                    claim = f"n/new-{number}"
                    wanted = (wish(count, f"new-{number}"),)
                    placed = place_on(node, pod(), wanted, (), self.cluster)
                    if not isinstance(placed, Placed):
                        return False
                    occupant = Occupant(("n", f"new-{number}"), placed.amounts, claims=(claim,))
                    simulation.add_pod(claim, occupant, node, {claim: placed.allocations[0]})
            return True

        # A greedy answer would not do: a pod that comes back may lead it to a better node.
        names = [state.name for state in self.cluster.fleet.states()]
        return lambda: any(map(fits_on, product(names, repeat=len(gpus))))


def names(found: Preemption | NoPreemption) -> list[str]:
    if isinstance(found, NoPreemption):
        return []
    return [each.occupant.name[1] for each in found.victims]


ZONE = "topology.kubernetes.io/zone"


def zoned(name: str, zone: str = "") -> NodeState:
    labels = {"kubernetes.io/hostname": name, **({ZONE: zone} if zone else {})}
    status = {"allocatable": {"cpu": "4", "pods": "10"}}
    return NodeState(decode({"metadata": {"name": name, "labels": labels}, "status": status}, Node))


def three_nodes() -> Cluster:
    return cluster(zoned("a1", "a"), zoned("a2", "a"), zoned("b1", "b"), zoned("nowhere"))


def node_of(each: Pod, made: Cluster) -> str:
    outcome = place(each, (), (), made)
    assert isinstance(outcome, Placed)
    return outcome.node


def message(each: Pod, made: Cluster) -> str:
    outcome = place(each, (), (), made)
    assert isinstance(outcome, Unplaced)
    return outcome.message


def node(name: str, **allocatable: str) -> Node:
    status = {"allocatable": {"pods": "10", **allocatable}}
    return decode({"metadata": {"name": name, "labels": {"n": name}}, "status": status}, Node)


def fleet_of(*nodes: Node) -> Fleet:
    made = Fleet()
    for each in nodes:
        made.put(each)
    return made
