"""The state of a simulated cluster: its nodes, the pods on them, and the devices that they have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dryrack.allocation import WHOLE, LiveAllocator
from dryrack.hardware import INSTANCE_TYPE
from dryrack.placement import Cluster, Fleet, Occupant, Placed, place_constraints
from dryrack.simulation.policies import CLASS_LABEL, DeviceSight, Fragmentation, class_of
from dryrack.simulation.workload import NAMESPACE, claim_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.kinds.core import Node
    from dryrack.kinds.releases import Release
    from dryrack.kinds.resource import AllocationResult, Device, ResourceSlice
    from dryrack.placement import NodeState, Unplaced
    from dryrack.simulation.fleets import FleetSpec
    from dryrack.simulation.policies import Policy
    from dryrack.simulation.workload import Shape

# The number of a job, and of one of its pods.
PodKey = tuple[int, int]
# The attributes that name the model of a device.
_MODELS = ("productName", "model", "product", "instance_type", "type")


class _Counted:
    """Identifiers of shares that count up."""

    def __init__(self) -> None:
        self._count = 0

    def uuid(self) -> str:
        self._count += 1
        return f"00000000-0000-4000-8000-{self._count:012x}"


class Standing(msgspec.Struct, gc=False):
    """A pod on a node, and how much it has of which devices."""

    node: str
    claims: tuple[str, ...]
    model: str
    milli: int


class World:
    """A cluster, with sums over its devices that change with each pod."""

    def __init__(
        self, spec: FleetSpec, counts: Sequence[tuple[Shape, int]], release: Release
    ) -> None:
        self.allocator = LiveAllocator(release=release, chance=_Counted())
        self.fleet = Fleet()
        self.cluster = Cluster(self.fleet, self.allocator)
        for device_class in spec.classes:
            self.allocator.put_class(device_class)
        self._slices: dict[str, list[ResourceSlice]] = {}
        for each in spec.slices:
            self._slices.setdefault(each.spec.node_name or "", []).append(each)
            if not each.spec.node_name:
                self.allocator.put_slice(each)
        self.sight = DeviceSight(self.fleet, [shape for shape, _ in counts])
        self._fragmentation = Fragmentation(self.sight, counts)
        self._pods: dict[PodKey, Standing] = {}
        self._demands: dict[Shape, tuple[int, int]] = {}
        # The price of all nodes for an hour, and the part for devices that pods have.
        self._prices = spec.prices
        self.price = 0.0
        self.used_price = 0.0
        self._price_of_milli: dict[str, float] = {}
        # In thousandths of a device: what there is, what pods have, and what is fragmented.
        self.capacity: dict[str, int] = {}
        self.allocated: dict[str, int] = {}
        self.fragmented = 0.0
        self._fragmented_on: dict[str, float] = {}
        self._models_on: dict[str, dict[str, int]] = {}
        self._model_of: dict[object, str] = {}
        for node in spec.nodes:
            self.put_node(node)

    @property
    def devices(self) -> int:
        """Return all devices of the fleet, in thousandths."""
        return sum(self.capacity.values())

    @property
    def in_use(self) -> int:
        """Return the devices that pods have, in thousandths."""
        return sum(self.allocated.values())

    def put_node(self, node: Node) -> None:
        """Add a node with its devices."""
        name = node.metadata.name
        self.fleet.put(node)
        for each in self._slices.get(name, ()):
            self.fleet.reopen(self.allocator.put_slice(each))
        state = self.fleet.get(name)
        assert state is not None, "the node was added"
        models = self._models_on[name] = self._models(state)
        for model, milli in models.items():
            self.capacity[model] = self.capacity.get(model, 0) + milli
            self.allocated.setdefault(model, 0)
        price = self._prices.get(node.metadata.labels.get(INSTANCE_TYPE, ""), 0.0)
        self.price += price
        self._price_of_milli[name] = price / (sum(models.values()) or 1)
        self._measure(state)

    def drop_node(self, name: str) -> None:
        """Remove a node without pods, and its devices."""
        for each in self._slices.get(name, ()):
            self.fleet.reopen(self.allocator.drop_slice(each.metadata.name))
        self.fleet.drop(name)
        self.allocator.forget_node(name)
        models = self._models_on.pop(name, {})
        for model, milli in models.items():
            self.capacity[model] -= milli
        self.price -= self._price_of_milli.pop(name, 0.0) * (sum(models.values()) or 1)
        self.fragmented -= self._fragmented_on.pop(name, 0.0)

    def replace_slice(self, each: ResourceSlice) -> None:
        """Replace a slice, whose devices look different now."""
        self.fleet.reopen(self.allocator.put_slice(each))
        slices = self._slices.get(each.spec.node_name or "", [])
        slices[:] = [each if it.metadata.name == each.metadata.name else it for it in slices]
        state = self.fleet.get(each.spec.node_name or "")
        if state is not None:
            self._measure(state)

    def slices_on(self, node: str) -> Sequence[ResourceSlice]:
        return self._slices.get(node, ())

    def decide(self, shape: Shape, policy: Policy) -> Placed | Unplaced:
        """Return the node and the devices for a pod, or why there are none."""
        outcome = place_constraints(shape.constraints, self.cluster, policy.profile)
        if policy.draw is None or not isinstance(outcome, Placed) or not shape.claims:
            return outcome
        return policy.draw.place(shape, outcome, self.cluster, policy.profile)

    def add_pod(
        self,
        key: PodKey,
        shape: Shape,
        pod: str,
        *,
        node: str,
        allocations: Sequence[AllocationResult],
        priority: int,
        started: str,
    ) -> None:
        """Put a pod on a node, with its devices."""
        # Names of jobs may repeat; keys do not.
        own = f"{key[0]}-{key[1]}"
        claims = tuple(f"{NAMESPACE}/{claim_of(own, number)}" for number in range(len(allocations)))
        state = self.fleet.get(node)
        assert state is not None, "the decider chose an existing node"
        ask = self.sight.ask(state, shape.claims)
        model = self._model(state, shape) if ask.devices else ""
        labels: Mapping[str, str] = shape.pod.metadata.labels
        if ask.devices:
            labels = {**labels, CLASS_LABEL: class_of(ask.devices, shared=ask.milli < WHOLE)}
        constraints = shape.constraints
        occupant = Occupant(
            (NAMESPACE, pod),
            constraints.amounts,
            labels,
            priority,
            shape.affinity,
            started,
            claims,
            non_zero=constraints.non_zero,
        )
        self.fleet.add_pod(key, node, occupant)
        for claim, allocation in zip(claims, allocations, strict=True):
            self.fleet.reopen(self.allocator.set_allocation(claim, allocation))
        self._pods[key] = Standing(node, claims, model, ask.total)
        if model:
            self.allocated[model] = self.allocated.get(model, 0) + ask.total
            self.used_price += ask.total * self._price_of_milli[node]
        self._measure(state)

    def get_standing(self, key: PodKey) -> Standing:
        """Return a pod that is on a node."""
        return self._pods[key]

    def remove_pod(self, key: PodKey) -> Standing:
        """Remove a pod from its node; `free_devices` must follow."""
        self.fleet.remove_pod(key)
        return self._pods.pop(key)

    def free_devices(self, standing: Standing) -> None:
        """Free the devices of a pod that was removed from its node."""
        for claim in standing.claims:
            self.fleet.reopen(self.allocator.set_allocation(claim, None))
        if standing.model:
            self.allocated[standing.model] -= standing.milli
            self.used_price -= standing.milli * self._price_of_milli.get(standing.node, 0.0)
        state = self.fleet.get(standing.node)
        if state is not None:
            self._measure(state)

    def demand(self, shape: Shape) -> tuple[int, int]:
        """Return what a pod takes of all its devices, and of one, on the first node that suits."""
        known = self._demands.get(shape)
        if known is None:
            known = self._demands[shape] = self._find_demand(shape)
        return known

    def _find_demand(self, shape: Shape) -> tuple[int, int]:
        if not shape.claims:
            return 0, 0
        for state in self.fleet.states():
            ask = self.sight.ask(state, shape.claims)
            if ask.total:
                return ask.total, ask.milli
        return shape.devices * WHOLE, WHOLE

    def _measure(self, state: NodeState) -> None:
        """Compute the fragmentation of the node again."""
        after = self._fragmentation.of(state)
        self.fragmented += after - self._fragmented_on.get(state.name, 0.0)
        self._fragmented_on[state.name] = after

    def _models(self, state: NodeState) -> dict[str, int]:
        """Return the devices of a node by model, in thousandths."""
        models: dict[str, int] = {}
        for device in self.sight.devices(state):
            model = model_of(device)
            models[model] = models.get(model, 0) + WHOLE
        return models

    def _model(self, state: NodeState, shape: Shape) -> str:
        """Return the model of the devices that a pod has on the node; the first of several."""
        key = (self.sight.see(state).hardware, shape.name)
        model = self._model_of.get(key)
        if model is None:
            ask = self.sight.ask(state, shape.claims)
            place = next((need.milli[0][0] for need in ask.needs if need.milli), 0)
            model = self._model_of[key] = model_of(self.sight.devices(state)[place])
        return model


def model_of(device: Device) -> str:
    """Return the model of a device, as its attributes name it."""
    by_part = {name.rpartition("/")[2]: value for name, value in device.attributes.items()}
    for name in _MODELS:
        value = by_part.get(name)
        if value is not None and value.string_value:
            return value.string_value
    return "device"
