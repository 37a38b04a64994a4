"""
The extension points between the decision for a node and the binding of a pod.

    def reserve(binding: ProposedBinding, args: Args) -> Rejected | None
    def unreserve(binding: ProposedBinding, args: Args) -> None
    def permit(binding: ProposedBinding, waited: float, args: Args) -> Rejected | Wait | None
    async def pre_bind(binding: ProposedBinding, client: Client, args: Args) -> Rejected | None
    async def post_bind(binding: ProposedBinding, client: Client, args: Args) -> None

None accepts. For a gang, each function is called for each member, and one rejection rejects all.
`permit` reads no clock: it gets the seconds that the pod has waited, and the scheduler calls it
again when the cluster changes. `unreserve` follows each `reserve` whose pod is not bound, also one
that failed. A client is an argument where a plugin may write to the cluster.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Flag, auto
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from dryrack.kinds.resource import AllocationResult
    from dryrack.placement.fleet import Fleet
    from dryrack.placement.framework import Args
    from dryrack.placement.node_state import NodeState
    from dryrack.placement.pod_constraints import PodConstraints


class Change(Flag):
    """A change of the cluster, by the pods that it may help (the events of a queueing hint)."""

    POD_LEFT = auto()
    """A pod left its node. A unit that lacks only devices is retried when these are released."""
    NODE_LEFT = auto()
    """A node was deleted or takes fewer pods, which may help pods with spread constraints."""
    DEVICE_LEFT = auto()
    """A node offers fewer devices, which may help pods whose selectors fail on one of them."""
    NODE = auto()
    """A node was added, or takes other pods than before."""
    DEVICE = auto()
    """Devices were published or released, or a class or a taint rule has changed."""
    POD_PLACED = auto()
    """A pod got a node."""
    REST = auto()
    """Labels of pods, volumes, namespaces, or owners have changed."""
    OTHER = NODE | DEVICE | REST


ANY_CHANGE = ~Change(0)


@dataclass(frozen=True, slots=True)
class ProposedBinding:
    """A pod and the node that was chosen for it; the pod already counts on the node."""

    pod: PodConstraints
    node: NodeState
    fleet: Fleet = field(repr=False)
    # The allocations of the claims that had none, by "namespace/name".
    allocations: Mapping[str, AllocationResult] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rejected:
    """A plugin rejects the binding; the pod is retried after a change that may help it."""

    reason: str


@dataclass(frozen=True, slots=True)
class Wait:
    """The pod waits at its node; it is rejected so many seconds after its first call of permit."""

    seconds: float
    reason: str = ""


ReserveFunction: TypeAlias = "Callable[[ProposedBinding, Args], Rejected | None]"
UnreserveFunction: TypeAlias = "Callable[[ProposedBinding, Args], None]"
PermitFunction: TypeAlias = "Callable[[ProposedBinding, float, Args], Rejected | Wait | None]"
# The client is that of the scheduler (`dryrack.client`), which is above this layer.
BindFunction: TypeAlias = (
    "Callable[[ProposedBinding, Any, Args], Awaitable[Rejected | None] | Rejected | None]"
)
