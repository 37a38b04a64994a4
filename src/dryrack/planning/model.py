"""
The input and the result of a plan.

A plan is for pods with their claims: the members. The pods of a gang are in the plan all together
or not at all. A type of nodes makes nodes with their devices and the pods of DaemonSets on them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from fractions import Fraction

    from dryrack.kinds.core import Node
    from dryrack.kinds.resource import AllocationResult, ResourceSlice
    from dryrack.placement import Gang, Member


@dataclass(frozen=True, slots=True)
class NewNode:
    """A node that does not exist yet, with its devices and the pods that every such node has."""

    node: Node
    slices: tuple[ResourceSlice, ...] = ()
    daemons: tuple[Member, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeType:
    """A type of nodes that a plan can add."""

    name: str
    # What the plan keeps low: the price of an hour, or one for each node.
    price: Fraction
    # Returns a node of the type with this name.
    make: Callable[[str], NewNode]
    # How many nodes there can be; None if there is no limit.
    supply: int | None = None
    # The zone of its nodes, if it matters.
    zone: str = ""


@dataclass(frozen=True, slots=True)
class Workload:
    """The pods to be placed, and the gangs among them."""

    members: tuple[Member, ...]
    gangs: tuple[tuple[Gang, tuple[Member, ...]], ...] = ()


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The maximum cost of a plan, and the maximum time of the search for it."""

    # Of all new nodes together; pods that do not fit within the limits are left over.
    cost: Fraction | None = None
    nodes: int | None = None
    # The allocatable amounts of all new nodes together, by resource, in billionths.
    amounts: Mapping[str, int] = field(default_factory=dict)
    # Questions to the decider before columns are generated, and steps of branch and bound.
    looks: int = 3_000
    steps: int = 4_000
    # Whether to look for a change with which the plan costs less.
    seeks_savings: bool = True
    # Returns True when the time for the plan has ended; the best plan so far is returned.
    is_over: Callable[[], bool] = _never


class Reach(StrEnum):
    """The work that is necessary so that the pods come to their nodes."""

    ANY = "any"
    """Nothing: the scheduler places the pods like this, or otherwise, but all of them."""
    PINNED = "pinned"
    """Each pod has to be pinned to its node."""
    JOINT = "joint"
    """The devices of some pods have to be allocated together, as for a gang."""


@dataclass(frozen=True, slots=True)
class PlannedPod:
    """A pod on a node, with the devices of its claims."""

    member: Member
    allocations: Mapping[str, AllocationResult] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlannedNode:
    """A node with the pods that the plan puts on it; without a type, it exists already."""

    name: str
    pods: tuple[PlannedPod, ...]
    type: NodeType | None = None
    # The amounts and the number of devices by driver that nothing uses.
    left: Mapping[str, str | int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unplaceable:
    """A pod that is not in the plan, and why."""

    pod: str
    why: str


@dataclass(frozen=True, slots=True)
class OneFewer:
    """A change with which the plan costs less."""

    change: str
    saves: Fraction
    nodes: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The nodes to add, the existing nodes that take pods, and what is proved."""

    nodes: tuple[PlannedNode, ...]
    existing: tuple[PlannedNode, ...]
    cost: Fraction
    # No plan for the same pods costs less than that.
    bound: Fraction
    is_optimal: bool
    proof: str
    reach: Reach
    unplaceable: tuple[Unplaceable, ...] = ()
    one_fewer: OneFewer | None = None

    @property
    def types(self) -> Sequence[str]:
        """Return the type of each new node."""
        return [each.type.name for each in self.nodes if each.type is not None]
