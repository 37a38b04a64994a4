"""A node with its pods and its free amounts, and the reason for which it refuses a pod."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from dryrack.placement.demand import PODS, Amounts, Totals

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from dryrack.kinds.core import Node
    from dryrack.placement.occupant import Occupant


@dataclass(slots=True)
class NodeState:
    """A node with the pods on it, and the sum of their requests."""

    node: Node
    # The requests of all pods, and CPU and memory as scores count them.
    used: Totals = field(default_factory=dict)
    non_zero: Totals = field(default_factory=dict)
    occupants: dict[Hashable, Occupant] = field(default_factory=dict)
    # The allocatable amounts, in billionths.
    allocatable: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.replace(self.node)

    def replace(self, node: Node) -> None:
        """Replace the Node object."""
        self.node = node
        self.allocatable = {name: each.nanos for name, each in node.status.allocatable.items()}

    @property
    def name(self) -> str:
        return self.node.metadata.name

    @property
    def pods(self) -> int:
        return self.used.get(PODS, 0)

    def put(self, key: Hashable, occupant: Occupant) -> None:
        """Add a pod that is not on the node yet."""
        self.occupants[key] = occupant
        _add(self.used, occupant.amounts, 1)
        _add(self.non_zero, occupant.non_zero, 1)

    def remove(self, key: Hashable) -> None:
        """Remove a pod that is on the node."""
        occupant = self.occupants.pop(key)
        _add(self.used, occupant.amounts, -1)
        _add(self.non_zero, occupant.non_zero, -1)


def _add(total: Totals, amounts: Amounts, sign: int) -> None:
    """Add the amounts, or subtract them with sign -1; drop those that become zero."""
    for name, amount in amounts.items():
        left = total.get(name, 0) + sign * amount
        if left:
            total[name] = left
        else:
            total.pop(name, None)


class NodeRefusal(msgspec.Struct, frozen=True):
    """The reason for which a filter refuses a node."""

    # The message of kube-scheduler for all nodes that refuse for this reason.
    words: str
    # The state of this node; a function if it is costly to describe, as it is seldom read.
    _fact: str | Callable[[], str]
    # The change that would help.
    remedy: str
    # Further messages, if the node refuses for several reasons.
    further: tuple[str, ...] = ()
    # Whether the node refuses even if pods leave it (upstream's UnschedulableAndUnresolvable).
    is_unresolvable: bool = False
    # Whether the node has too little of a resource.
    is_shortage: bool = False

    @property
    def fact(self) -> str:
        """Return the state of this node; to be read before the cluster changes."""
        return self._fact if isinstance(self._fact, str) else self._fact()
