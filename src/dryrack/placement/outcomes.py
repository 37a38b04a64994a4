"""The outcomes of a decision (placed, unplaced, unfinished), and the cluster it is made for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

from dryrack.allocation import claim_name

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from dryrack.allocation import DeviceBook, NodePool, Outcome, Reason, Search, Suitable
    from dryrack.kinds.core import Node
    from dryrack.kinds.resource import AllocationResult, ResourceClaim
    from dryrack.placement.demand import Amounts
    from dryrack.placement.fleet import Fleet

# kube-scheduler's message for a node whose devices do not fit.
NO_DEVICES = "cannot allocate all claims"
# Kubernetes counts seconds, the search here counts steps.
NOT_DECIDED = "timed out trying to allocate devices"
# kube-scheduler's message for a node that cannot use a claim which is allocated already.
ELSEWHERE = "resourceclaim not available on the node"


def _none() -> Iterator[Refusal]:
    return iter(())


class Allocates(Protocol):
    """Allocates devices; raises `AllocationError`."""

    def begin(self, node: Node, claims: Sequence[ResourceClaim]) -> Outcome | Search: ...


@runtime_checkable
class OffersPools(Protocol):
    """Returns the devices of nodes, as `LiveAllocator` does."""

    def pools_on(self, node: Node) -> Sequence[NodePool]: ...


@runtime_checkable
class KeepsBooks(Protocol):
    """Returns what is left of the devices of a node, as `LiveAllocator` does."""

    def book_on(self, node: Node) -> DeviceBook: ...

    def suitable(self, node: Node, claims: Sequence[ResourceClaim]) -> Suitable | None: ...

    def lacks(self, node: Node, claims: Sequence[ResourceClaim]) -> bool: ...


@runtime_checkable
class FindsDoubtfulNodes(Protocol):
    """Returns nodes on which an allocation may end in an error, as `LiveAllocator` does."""

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
    """The nodes and the allocator of devices that a pod is placed with."""

    fleet: Fleet
    allocator: Allocates

    def __post_init__(self) -> None:
        if isinstance(self.allocator, OffersPools):
            self.fleet.pools_on = self.allocator.pools_on
        if isinstance(self.allocator, KeepsBooks):
            self.fleet.books = self.allocator


class Placed(msgspec.Struct, frozen=True):
    """The node of the pod, and the allocations of its claims, in the order of the claims."""

    node: str
    amounts: Amounts
    allocations: tuple[AllocationResult, ...]
    # The last may be the claim for extended resources, which does not exist yet.
    claims: tuple[ResourceClaim, ...] = ()

    @property
    def given(self) -> dict[str, AllocationResult]:
        """Return the allocation of each claim."""
        return dict(zip(map(claim_name, self.claims), self.allocations, strict=True))


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reasons for which a node does not take a pod; no node if they hold for every node."""

    node: str
    reasons: tuple[Reason, ...]
    # The distance of the node from taking the pod, for reasons other than devices.
    shortage: float = 0.0


@dataclass(frozen=True, slots=True)
class Unplaced:
    """No node takes the pod; `message` is that of kube-scheduler, and then the cause."""

    message: str
    # Computes why each node refuses.
    _refusals: Callable[[], Iterator[Refusal]] = field(repr=False, compare=False, default=_none)
    # Equal for pods and claims that every node treats alike.
    kind: Hashable = field(repr=False, compare=False, default=None)
    # The messages of nodes, each once.
    words: frozenset[str] = field(repr=False, compare=False, default=frozenset())
    # How many nodes preemption cannot help, in kube-scheduler's view (which includes those without
    # devices); None after an error, when it does not try preemption.
    unresolvable: int | None = field(repr=False, compare=False, default=None)
    # Whether it may fit when a pod leaves its node, without any other event.
    is_helped_by_leaving: bool = field(repr=False, compare=False, default=True)
    # Whether a plugin or a selector failed, which kube-scheduler reports as an error.
    is_error: bool = field(repr=False, compare=False, default=False)

    @property
    def is_kept_off_by_claims(self) -> bool:
        """Return True if a node would take the pod but for the earlier allocation of a claim."""
        return ELSEWHERE in self.words

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """
        Return why each node refuses, by name; to be read before the cluster changes.

        The reasons of a pod with one claim may name another claim with the same requests.
        """
        return tuple(self._refusals())


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Not all nodes have been asked, or one of them needs a search to end first."""

    search: Search | None = None
