"""A node with the pods on it and what is left, and what it says to a pod that it refuses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from dryrack.placement.demand import PODS, Amounts, Totals

if TYPE_CHECKING:
    from collections.abc import Hashable

    from dryrack.kinds.core import Node
    from dryrack.placement.occupant import Occupant


@dataclass(slots=True)
class NodeState:
    """A node with the pods on it, and all that they take together."""

    node: Node
    # What the pods take together, and what of CPU and memory scores count for them.
    used: Totals = field(default_factory=dict)
    non_zero: Totals = field(default_factory=dict)
    occupants: dict[Hashable, Occupant] = field(default_factory=dict)
    # What there is to give, in billionths.
    allocatable: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.replace(self.node)

    def replace(self, node: Node) -> None:
        """The node is like this from now on."""
        self.node = node
        self.allocatable = {name: each.nanos for name, each in node.status.allocatable.items()}

    @property
    def name(self) -> str:
        return self.node.metadata.name

    @property
    def pods(self) -> int:
        return self.used.get(PODS, 0)

    def put(self, key: Hashable, occupant: Occupant) -> None:
        """The pod, which was not here, is."""
        self.occupants[key] = occupant
        self.take(occupant.amounts)
        _add(self.non_zero, occupant.non_zero, 1)

    def remove(self, key: Hashable) -> None:
        """The pod, which was here, is not."""
        occupant = self.occupants.pop(key)
        self.give_back(occupant.amounts)
        _add(self.non_zero, occupant.non_zero, -1)

    def take(self, amounts: Amounts) -> None:
        _add(self.used, amounts, 1)

    def give_back(self, amounts: Amounts) -> None:
        _add(self.used, amounts, -1)


def _add(total: Totals, amounts: Amounts, sign: int) -> None:
    """What comes to nothing is left out."""
    for name, amount in amounts.items():
        left = total.get(name, 0) + sign * amount
        if left:
            total[name] = left
        else:
            total.pop(name, None)


class NodeRefusal(NamedTuple):
    """Why a node does not take a pod."""

    # What kube-scheduler says of all nodes that refuse for this.
    words: str
    # What is so on this one, and what would have to change.
    fact: str
    remedy: str
    # What it says besides, of a node that refuses for several things.
    further: tuple[str, ...] = ()
    # Whether it stays so if pods leave the node (upstream's UnschedulableAndUnresolvable).
    is_unresolvable: bool = False
    # Whether the node has too little of a resource.
    is_shortage: bool = False
