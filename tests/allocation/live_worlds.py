"""A random cluster in two allocators: one follows its changes, one is built anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.allocation.at_once import Standing

from dryrack.allocation import Allocated, AllocationError, Features
from dryrack.allocation.search.incremental import NO_NODES, LiveAllocator
from dryrack.allocation.supply.taints import apply_taint_rules
from dryrack.allocation.supply.usage import UsageTable
from dryrack.kinds.core import Node
from dryrack.kinds.decode import decode
from dryrack.kinds.releases import DEFAULT_RELEASE
from dryrack.kinds.resource import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice

if TYPE_CHECKING:
    from random import Random

    from dryrack.allocation.search.incremental import AffectedNodes
    from dryrack.kinds.resource import AllocationResult

FEATURES = Features.defaults()
NODES = ("a", "b", "c")
POOLS = ("a", "b", "net")


class Counting:
    """Identifiers that count up."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._count = 0

    def uuid(self) -> str:
        self._count += 1
        return f"00000000-0000-0000-0000-{self._count:012}"


def a_slice(random: Random, name: str) -> ResourceSlice:
    """Make a slice of one of few pools, generations and reaches, so that slices conflict."""
    reach: dict[str, Any] = random.choice(
        [{"nodeName": each} for each in NODES]
        + [{"allNodes": True}, {"nodeSelector": _zone(random.choice("xy"))}]
    )
    shared = random.random() < 0.3
    capacity = {"memory": {"value": "8Gi"}}
    devices = [
        {"name": f"d{number}", "capacity": capacity, "allowMultipleAllocations": shared}
        for number in range(random.randint(1, 3))
    ]
    pool = {
        "name": random.choice(POOLS),
        "generation": random.randint(1, 2),
        "resourceSliceCount": random.choice((1, 1, 1, 2)),
    }
    offered: dict[str, Any] = {"devices": devices}
    if random.random() < 0.3:
        # Only with counters is a pool of such devices valid, and only with such devices of use.
        pool |= {"name": "net", "generation": 2, "resourceSliceCount": 2}
        drawn = [{"counterSet": "set", "counters": {"c": {"value": "2"}}}]
        offered = {"devices": [{**each, "consumesCounters": drawn} for each in devices]}
        if random.random() < 0.5:
            counters = {"c": {"value": str(random.randint(2, 5))}}
            offered = {"sharedCounters": [{"name": "set", "counters": counters}]}
    spec = {"driver": "gpu", "pool": pool, **offered, **reach}
    return decode({"metadata": {"name": name}, "spec": spec}, ResourceSlice)


def _zone(value: str) -> dict[str, Any]:
    term = {"key": "zone", "operator": "In", "values": [value]}
    return {"nodeSelectorTerms": [{"matchExpressions": [term]}]}


def a_rule(random: Random, name: str) -> DeviceTaintRule:
    selector = random.choice([{}, {"pool": random.choice(POOLS)}, {"device": "d0"}])
    spec = {"taint": {"key": "k", "effect": "NoSchedule"}, "deviceSelector": selector}
    return decode({"metadata": {"name": name}, "spec": spec}, DeviceTaintRule)


def a_claim(random: Random) -> ResourceClaim:
    exactly: dict[str, Any] = {
        "deviceClassName": random.choice(("all", "all", "none")),
        "allocationMode": "ExactCount",
        "count": random.randint(1, 2),
    }
    if random.random() < 0.5:
        exactly["capacity"] = {"requests": {"memory": "3Gi"}}
    if random.random() < 0.3:
        exactly["tolerations"] = [{"operator": "Exists"}]
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    return decode({"metadata": {"name": "k", "namespace": "n"}, "spec": spec}, ResourceClaim)


class World:
    """A cluster in two allocators: one follows it, one is built anew."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.chance = Counting()
        self.live = LiveAllocator(chance=self.chance)
        self.slices: dict[str, ResourceSlice] = {}
        self.rules: dict[str, DeviceTaintRule] = {}
        self.classes: dict[str, DeviceClass] = {}
        self.held: dict[str, AllocationResult] = {}
        self.zones = dict.fromkeys(NODES, "x")

    def change(self) -> AffectedNodes:
        """Change the cluster, and return the nodes that it may help."""
        ways = (self._slice, self._slice, self._rule, self._class, self._claim, self._zone)
        return self.random.choice(ways)()

    def _slice(self) -> AffectedNodes:
        name = f"s{self.random.randint(0, 4)}"
        if name in self.slices and self.random.random() < 0.4:
            del self.slices[name]
            return self.live.drop_slice(name)
        self.slices[name] = a_slice(self.random, name)
        return self.live.put_slice(self.slices[name])

    def _rule(self) -> AffectedNodes:
        name = f"r{self.random.randint(0, 1)}"
        if name in self.rules:
            del self.rules[name]
            return self.live.drop_rule(name)
        if self.random.random() < 0.3:
            self.rules[name] = a_rule(self.random, name)
            return self.live.put_rule(self.rules[name])
        return NO_NODES

    def _class(self) -> AffectedNodes:
        self.classes["all"] = decode({"metadata": {"name": "all"}}, DeviceClass)
        return self.live.put_class(self.classes["all"])

    def _claim(self) -> AffectedNodes:
        name = f"c{self.random.randint(0, 3)}"
        if self.held.pop(name, None) is not None:
            return self.live.set_allocation(name, None)
        outcome = self.outcomes(a_claim(self.random), self._node())[0]
        if not isinstance(outcome, Allocated):
            return NO_NODES
        self.held[name] = outcome.results[0]
        return self.live.set_allocation(name, outcome.results[0])

    def _zone(self) -> AffectedNodes:
        node = self.random.choice(NODES)
        self.zones[node] = self.random.choice("xy")
        if self.random.random() < 0.5:
            self.live.forget_node(node)
        return (node,)

    def _node(self) -> Node:
        return self.node(self.random.choice(NODES))

    def node(self, name: str) -> Node:
        metadata = {"name": name, "labels": {"zone": self.zones[name]}}
        return decode({"metadata": metadata}, Node)

    def anew(self) -> Standing:
        usage = UsageTable(FEATURES)
        for claim, given_out in self.held.items():
            usage.allocate(given_out, claim)
        rules = [self.rules[name] for name in sorted(self.rules)]
        slices = apply_taint_rules([self.slices[name] for name in sorted(self.slices)], rules)
        classes = self.classes.values()
        return Standing(
            slices=slices,
            classes=classes,
            allocated=usage,
            chance=Counting(),
            release=DEFAULT_RELEASE,
        )

    def outcomes(self, claim: ResourceClaim, node: Node) -> tuple[object, object]:
        self.chance.reset()
        return outcome_of(self.live, node, claim), outcome_of(self.anew(), node, claim)

    def check(self) -> None:
        ours, wanted = self.outcomes(a_claim(self.random), self._node())
        assert ours == wanted


def outcome_of(allocator: LiveAllocator | Standing, node: Node, claim: ResourceClaim) -> object:
    try:
        outcome = allocator.allocate(node, [claim])
    except AllocationError as error:
        return str(error)
    return outcome if isinstance(outcome, Allocated) else (outcome.error, outcome.reasons)
