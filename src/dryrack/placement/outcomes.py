"""What becomes of a pod: placed, unplaced, or unfinished; and what it is placed in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

from dryrack.allocation import claim_name

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from dryrack.allocation import NodePool, Outcome, Reason, Search
    from dryrack.kinds.core import Node
    from dryrack.kinds.resource import AllocationResult, ResourceClaim
    from dryrack.placement.demand import Amounts
    from dryrack.placement.fleet import Fleet

# What kube-scheduler says of a node whose devices do not do.
NO_DEVICES = "cannot allocate all claims"
# Kubernetes counts seconds, the search here counts steps.
NOT_DECIDED = "timed out trying to allocate devices"
# And of one that a claim cannot be used on, because it is allocated already.
ELSEWHERE = "resourceclaim not available on the node"


def _none() -> Iterator[Refusal]:
    return iter(())


class Allocates(Protocol):
    """Gives devices out; raises `AllocationError`."""

    def begin(self, node: Node, claims: Sequence[ResourceClaim]) -> Outcome | Search: ...


@runtime_checkable
class OffersPools(Protocol):
    """Knows the devices of nodes, as `LiveAllocator` does."""

    def pools_on(self, node: Node) -> Sequence[NodePool]: ...


@runtime_checkable
class FindsDoubtfulNodes(Protocol):
    """Knows on which nodes giving out devices may end in an error, as `LiveAllocator` does."""

    def doubtful_nodes(
        self,
        claims: Sequence[ResourceClaim],
        nodes: Callable[[], Iterable[Node]],
        *,
        enough: int,
        version: int,
    ) -> Sequence[Node]: ...


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a pod is placed in."""

    fleet: Fleet
    allocator: Allocates

    def __post_init__(self) -> None:
        if isinstance(self.allocator, OffersPools):
            self.fleet.pools_on = self.allocator.pools_on


class Placed(msgspec.Struct, frozen=True):
    """The pod goes to the node, and its claims get these, in the order they were given."""

    node: str
    amounts: Amounts
    allocations: tuple[AllocationResult, ...]
    # Those that get them; the last may be one for extended resources, which has yet to be made.
    claims: tuple[ResourceClaim, ...] = ()

    @property
    def given(self) -> dict[str, AllocationResult]:
        """What each claim gets."""
        return dict(zip(map(claim_name, self.claims), self.allocations, strict=True))


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a node does not take a pod with these claims; no node for what no node can help."""

    node: str
    reasons: tuple[Reason, ...]
    # How far the node is from taking the pod for other reasons than those about devices.
    shortage: float = 0.0


@dataclass(frozen=True, slots=True)
class Unplaced:
    """No node takes the pod; `message` says it as kube-scheduler would, and then why."""

    message: str
    # Works out why each node refuses.
    _refusals: Callable[[], Iterator[Refusal]] = field(repr=False, compare=False, default=_none)
    # Equal for pods and claims that every node treats alike.
    kind: Hashable = field(repr=False, compare=False, default=None)
    # What nodes say, each of them once.
    words: frozenset[str] = field(repr=False, compare=False, default=frozenset())
    # How many nodes kube-scheduler holds for such that preemption cannot help, for want of devices
    # among them; None where it does not even think of preemption, after an error.
    unresolvable: int | None = field(repr=False, compare=False, default=None)
    # Whether it may fit when a pod goes from its node, and nothing else happens.
    is_helped_by_leaving: bool = field(repr=False, compare=False, default=True)
    # Whether a plugin or a selector failed: kube-scheduler calls that an error, not a refusal.
    is_error: bool = field(repr=False, compare=False, default=False)

    @property
    def is_kept_off_by_claims(self) -> bool:
        """Whether there are nodes that would do but for what a claim was given before."""
        return ELSEWHERE in self.words

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """
        Why each of the nodes refuses, by name; to be read before the cluster changes.

        Reasons of a pod with one claim may name another claim that wants the same.
        """
        return tuple(self._refusals())


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Not all nodes have been asked; a search has to end before one of them can say."""

    search: Search | None = None
