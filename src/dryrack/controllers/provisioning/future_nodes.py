"""
Nodes that do not exist yet: with their labels, their devices, and the pods of DaemonSets.

The devices are those that the publisher will give to such a node, because both read the same
inventory.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from dryrack.controllers.pods.virtual import KWOK_NODE
from dryrack.controllers.provisioning.machines import ARCH, OS
from dryrack.controllers.provisioning.offers import Offer, offers_of
from dryrack.hardware import INSTANCE_TYPE, slices_of
from dryrack.kinds.core import Node, NodeSpec, NodeStatus
from dryrack.kinds.meta import ObjectMeta
from dryrack.kinds.quantity import Quantity
from dryrack.planning import NewNode, NodeType

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from dryrack.controllers.provisioning.machines import Machine
    from dryrack.controllers.provisioning.offers import Choices
    from dryrack.hardware import Matcher
    from dryrack.kinds.core import Taint
    from dryrack.kinds.provisioning import NodePool
    from dryrack.placement import Member

# A type without a price costs more than all that have one; among each other, by their size.
_UNPRICED = 1_000
_CPU_PRICE = Fraction(1, 40)


@dataclass(frozen=True, slots=True)
class Daemon:
    """The pod that a DaemonSet has on some nodes."""

    member: Member
    runs_on: Callable[[Node], bool]


@dataclass(frozen=True, slots=True)
class FutureNodes:
    """Makes nodes of the instance types."""

    machines: Sequence[Machine]
    matcher: Matcher
    daemons: Sequence[Daemon] = ()

    @property
    def zones(self) -> Collection[str]:
        """The zones of all instance types."""
        return sorted({zone for machine in self.machines for zone in machine.zones})

    def types_of(
        self, pool: NodePool, choices: Choices
    ) -> tuple[Sequence[NodeType], Mapping[str, Offer]]:
        """Return the types of nodes that a pool offers, and the offer of each by its name."""
        names: Counter[str] = Counter()
        types = []
        offers: dict[str, Offer] = {}
        every = offers_of(pool, self.machines, choices)
        if all(each.min_values is None for each in pool.spec.template.spec.requirements):
            every = _different(every, choices)
        for offer in every:
            base = offer.machine.name
            names[base] += 1
            name = base if names[base] == 1 else f"{base}-{names[base]}"
            types.append(NodeType(name, price_of(offer.machine), _Maker(self, offer)))
            offers[name] = offer
        return types, offers

    def make(
        self, name: str, machine: Machine, labels: Mapping[str, str], taints: Sequence[Taint]
    ) -> NewNode:
        """Return a node as it is when it is initialized."""
        amounts = {key: Quantity.parse(value) for key, value in machine.capacity.items()}
        node = Node(
            metadata=ObjectMeta(
                name=name,
                labels={**labels, "kubernetes.io/hostname": name, KWOK_NODE: "fake"},
                annotations={KWOK_NODE: "fake"},
            ),
            spec=NodeSpec(taints=tuple(taints)),
            status=NodeStatus(capacity=amounts, allocatable=amounts),
        )
        pools = self.matcher.pools_of(node).pools
        slices = tuple(each for pool in pools for each in slices_of(pool))
        daemons = tuple(each.member for each in self.daemons if each.runs_on(node))
        return NewNode(node, slices, daemons)


@dataclass(frozen=True, slots=True)
class _Maker:
    nodes: FutureNodes
    offer: Offer

    def __call__(self, name: str) -> NewNode:
        taints = self.offer.pool.spec.template.spec.taints
        return self.nodes.make(name, self.offer.machine, self.offer.labels, taints)


def _different(offers: Iterable[Offer], choices: Choices) -> Iterator[Offer]:
    """Yield the offers, without those for another architecture if no pod asks for one."""
    if ARCH in choices or INSTANCE_TYPE in choices:
        yield from offers
        return
    seen = set()
    for offer in offers:
        machine = offer.machine
        others = frozenset(
            each for each in offer.labels.items() if each[0] not in (ARCH, INSTANCE_TYPE)
        )
        is_generic = machine.name.endswith(f"-{machine.labels[ARCH]}-{machine.labels[OS]}")
        key = (others, frozenset(machine.capacity.items()), machine.price)
        if not is_generic or key not in seen:
            yield offer
        seen.add(key)


def price_of(machine: Machine) -> Fraction:
    """Return the price of a machine in whole cents, or a large one if it is unknown."""
    if machine.price is not None:
        return Fraction(max(1, round(machine.price * 100)), 100)
    return _UNPRICED + _CPU_PRICE * Quantity.parse(machine.capacity["cpu"]).value()
