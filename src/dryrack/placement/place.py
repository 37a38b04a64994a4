"""
One pod, one node: the plain way to place.

Nodes are looked at in the order of how many pods they have, then by name, and the first that can
take the pod with all its claims is taken: the same cluster always gives the same answer. Nodes of
which it is known that they refuse are passed over (see `node_queue`). As in Kubernetes, an error of
a claim on any node that is looked at ends the attempt, because trying other nodes cannot put it
right. Where a search is given up, other nodes are tried: theirs may be easier.

`decide` does not take long: it asks a few nodes and stops where a long search would be made. Who
calls it again, after other work, or after the search, goes on with the cluster as it is by then,
because nodes that refused are remembered. `place` is the same without pauses. The scheduler and the
what-if both decide by this.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from dryrack.allocation import (
    Allocated,
    AllocationError,
    Code,
    Reason,
    Search,
    Undecided,
    Unsatisfiable,
    claim_name,
)
from dryrack.placement.node_queue import NodeQueue, Unmet
from dryrack.placement.plugins import DEFAULT_PROFILE
from dryrack.placement.pod_constraints import PodConstraints

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    from dryrack.allocation import Outcome
    from dryrack.kinds.core import Node, Pod
    from dryrack.kinds.resource import AllocationResult, ResourceClaim
    from dryrack.placement.demand import Amounts
    from dryrack.placement.extended_resources import ExtendedResources
    from dryrack.placement.fleet import Fleet
    from dryrack.placement.framework import Check, Plugin, Profile
    from dryrack.placement.node_state import NodeRefusal, NodeState

# What kube-scheduler says of a node whose devices do not do.
NO_DEVICES = "cannot allocate all claims"
# Kubernetes counts seconds, the search here counts steps.
NOT_DECIDED = "timed out trying to allocate devices"
_CORRECT = "correct what it names (dryrack lint says where); no node can help"

# Each takes half a second. It is one for all nodes that are alike, and one more for a node that
# changes meanwhile; further nodes count as undecided.
SEARCHES_MAX = 8
# To ask a node for devices takes up to two milliseconds.
_NODES_A_TURN = 8


def _none() -> Iterator[Refusal]:
    return iter(())


class Allocates(Protocol):
    """Gives devices out; raises `AllocationError`."""

    def begin(self, node: Node, claims: Sequence[ResourceClaim]) -> Outcome | Search: ...


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a pod is placed in."""

    fleet: Fleet
    allocator: Allocates


@dataclass(frozen=True, slots=True)
class Placed:
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


@dataclass(frozen=True, slots=True)
class Unplaced:
    """No node takes the pod; `message` says it as kube-scheduler would, and then why."""

    message: str
    # Works out why each node refuses.
    _refusals: Callable[[], Iterator[Refusal]] = field(repr=False, compare=False, default=_none)
    # Equal for pods and claims that every node treats alike.
    kind: Hashable = field(repr=False, compare=False, default=None)

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


@dataclass(frozen=True, slots=True)
class _Refused:
    """A node that does not take the pod."""

    words: str
    # What was decided about its devices, if they do not do.
    decision: Unsatisfiable | None = None


def place(
    pod: Pod,
    wanted: Sequence[ResourceClaim],
    allocated: Sequence[ResourceClaim],
    cluster: Cluster,
    *,
    extended: ExtendedResources | None = None,
    profile: Profile = DEFAULT_PROFILE,
) -> Placed | Unplaced:
    """
    Where the pod goes with the claims that it wants and those that it has already.

    `extended` is what it wants beside them by extended resources.
    """
    constraints = PodConstraints.of(pod, wanted, allocated, extended=extended)
    searches_left = SEARCHES_MAX
    while True:
        outcome = _Attempt.of(constraints, cluster, profile, searches_left).run()
        if not isinstance(outcome, Unfinished):
            return outcome
        if outcome.search is not None:
            outcome.search.finish()
            searches_left -= 1


def decide(
    pod: Pod,
    wanted: Sequence[ResourceClaim],
    allocated: Sequence[ResourceClaim],
    cluster: Cluster,
    *,
    extended: ExtendedResources | None = None,
    profile: Profile = DEFAULT_PROFILE,
    searches_left: int = SEARCHES_MAX,
) -> Placed | Unplaced | Unfinished:
    """The same as far as it is known soon."""
    constraints = PodConstraints.of(pod, wanted, allocated, extended=extended)
    return _Attempt.of(constraints, cluster, profile, searches_left).run()


def place_on(
    name: str,
    pod: Pod,
    wanted: Sequence[ResourceClaim],
    allocated: Sequence[ResourceClaim],
    cluster: Cluster,
    *,
    extended: ExtendedResources | None = None,
    profile: Profile = DEFAULT_PROFILE,
) -> Placed | None:
    """The pod on this very node with all its claims, as the books are now; None if it cannot be."""
    state = cluster.fleet.get(name)
    if state is None:
        return None
    constraints = PodConstraints.of(pod, wanted, allocated, extended=extended)
    for searches_left in range(SEARCHES_MAX, -1, -1):
        tried = _Attempt.of(constraints, cluster, profile, searches_left).on(state)
        if not isinstance(tried, Unfinished) or tried.search is None:
            return tried if isinstance(tried, Placed) else None
        tried.search.finish()
    return None


@dataclass(frozen=True, slots=True)
class _Attempt:
    pod: PodConstraints
    # The filters that have something to say about the pod, and their checks of nodes.
    checks: Sequence[tuple[Plugin, Check]]
    cluster: Cluster
    searches_left: int

    @staticmethod
    def of(pod: PodConstraints, cluster: Cluster, profile: Profile, searches_left: int) -> _Attempt:
        checks = []
        for plugin in profile.filters:
            assert plugin.filter is not None, "a profile has filters where it says so"
            check = plugin.filter(pod, cluster.fleet, profile.args_of(plugin))
            if check is not None:
                checks.append((plugin, check))
        return _Attempt(pod, checks, cluster, searches_left)

    @property
    def wanted(self) -> Sequence[ResourceClaim]:
        return self.pod.wanted

    def run(self) -> Placed | Unplaced | Unfinished:
        only = self._only_node_state()
        tried = self.on(only) if only is not None else None
        if isinstance(tried, Placed | Unplaced | Unfinished):
            return tried
        return self._anywhere({only.name: tried} if only is not None and tried is not None else {})

    def _only_node_state(self) -> NodeState | None:
        """
        Where the pod or a claim is tied to one node no other can do.

        Pods of daemon sets are: each is a kind of its own, and not worth remembering.
        """
        name = self.pod.only_node
        return self.cluster.fleet.get(name) if name else None

    def _anywhere(self, refused: Mapping[str, _Refused]) -> Placed | Unplaced | Unfinished:
        """The first of the nodes that takes the pod, if none of those that refused."""
        kind = self._kind()
        queue = self.cluster.fleet.queue(kind)
        if any(plugin.sees_cluster for plugin, _ in self.checks):
            queue = NodeQueue({each.name: each for each in self.cluster.fleet.states()})
        first: Unsatisfiable | None = None
        asked = 0
        for state in queue.open():
            if asked == _NODES_A_TURN:
                return Unfinished()
            tried = refused.get(state.name) or self.on(state)
            if isinstance(tried, Placed | Unplaced | Unfinished):
                return tried
            queue.close(state.name, tried.words)
            asked += tried.words in (NO_DEVICES, NOT_DECIDED)
            first = first or tried.decision
        return Unplaced(self._message(queue, first), self._refusals, kind)

    def _kind(self) -> Hashable:
        """All of the pod and its claims that decides which nodes do."""
        return tuple((plugin.name, plugin.sign(self.pod)) for plugin, _ in self.checks)

    def on(self, state: NodeState) -> Placed | Unplaced | _Refused | Unfinished:
        """The pod in the state, or why not; Unplaced, if no other can do."""
        refusal = self._kept_off(state)
        if refusal is not None:
            return _Refused(refusal.words)
        wanted = self.pod.wanted_on(state.node)
        if not wanted:
            return Placed(state.name, self.pod.amounts, ())
        try:
            outcome = self.cluster.allocator.begin(state.node, wanted)
        except AllocationError as error:
            refused = self._for_all(state, Code.ERROR, str(error), _CORRECT)
            return Unplaced(str(error), lambda: iter((refused,)))
        if isinstance(outcome, Allocated):
            return Placed(state.name, self.pod.amounts, outcome.results, tuple(wanted))
        if isinstance(outcome, Search) and self.searches_left > 0:
            return Unfinished(outcome)
        if isinstance(outcome, Search | Undecided):
            return _Refused(NOT_DECIDED)
        return _Refused(NO_DEVICES, outcome)

    def _kept_off(self, state: NodeState) -> NodeRefusal | None:
        """Why the pod cannot be in the state, whatever devices are there."""
        refusals = (check(state) for _, check in self.checks)
        return next((each for each in refusals if each is not None), None)

    def _refusals(self) -> Iterator[Refusal]:
        """Why each of the nodes refuses, once all have done so."""
        told: dict[NodeRefusal, tuple[Reason, ...]] = {}
        for state in self.cluster.fleet.states():
            kept_off = self._kept_off(state)
            if kept_off is None:
                yield Refusal(state.name, self._asked(state).reasons)
                continue
            if kept_off not in told:
                refused = self._for_all(state, Code.NODE, kept_off.fact, kept_off.remedy)
                told[kept_off] = refused.reasons
            yield Refusal(state.name, told[kept_off])

    def _for_all(self, state: NodeState, code: Code, fact: str, remedy: str) -> Refusal:
        """The same reason for every claim."""
        reasons = [
            Reason(
                claim=claim_name(claim), request="", device="", code=code, fact=fact, remedy=remedy
            )
            for claim in self.wanted
        ]
        return Refusal(state.name, tuple(reasons))

    def _message(self, queue: NodeQueue, first: Unsatisfiable | None) -> str:
        nodes = len(self.cluster.fleet)
        if not nodes:
            return "no nodes available to schedule pods"
        refusals = queue.refusals.items()
        counts = ", ".join(sorted(f"{count} {refusal}" for refusal, count in refusals))
        unmet, undecided = self._unmet(queue, first), self._undecided(queue)
        return f"0/{nodes} nodes are available: {counts}.{unmet}{undecided}"

    def _unmet(self, queue: NodeQueue, first: Unsatisfiable | None) -> str:
        """Why devices do not do on a node that refused for that, the first if nobody was told."""
        state = queue.first_refusing(NO_DEVICES)
        if state is None:
            return ""
        names = tuple(map(claim_name, self.wanted))
        if queue.told is None or not queue.told.serves(names):
            decision = first or self._asked(state)
            queue.told = Unmet.of(decision.node, names, decision.reasons)
        return queue.told.to(names)

    def _asked(self, state: NodeState) -> Unsatisfiable | Undecided:
        """What a node has against these claims that refused them, or others like them."""
        try:
            wanted = self.pod.wanted_on(state.node)
            outcome = self.cluster.allocator.begin(state.node, wanted)
        except AllocationError as error:
            reasons = self._for_all(state, Code.ERROR, str(error), _CORRECT).reasons
            return Unsatisfiable(state.name, "", lambda: reasons)
        if isinstance(outcome, Allocated | Search):
            # A search was given up; how it ended is forgotten, or there is less to search now.
            return Undecided(state.name, "", tuple(map(claim_name, self.wanted)))
        return outcome

    def _undecided(self, queue: NodeQueue) -> str:
        """What there is to say about a search that was given up, which is the same for all."""
        state = queue.first_refusing(NOT_DECIDED)
        if state is None:
            return ""
        reasons = Undecided(state.name, "", tuple(map(claim_name, self.wanted))).reasons
        return _shown(state.name, reasons[0])


def _shown(node: str, reason: Reason) -> str:
    about = f", {reason.request}" if reason.request else ""
    return f" Node {node}, claim {reason.claim}{about}: {reason.message}"
