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

import msgspec

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
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.selectors import NAME_FIELD, SelectorError, parse_node_selector
from dryrack.placement.node_queue import Unmet
from dryrack.placement.node_state import NodeRefusal, PodConstraints, obstacle

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

    from dryrack.allocation import Outcome
    from dryrack.kinds.core import Node, NodeSelector, Pod
    from dryrack.kinds.resource import AllocationResult, ResourceClaim
    from dryrack.kinds.selectors import NodeMatcher
    from dryrack.placement.demand import Amounts
    from dryrack.placement.extended_resources import ExtendedResources
    from dryrack.placement.fleet import Fleet
    from dryrack.placement.node_queue import NodeQueue
    from dryrack.placement.node_state import NodeState

# What kube-scheduler says of a node whose devices do not do.
NO_DEVICES = "cannot allocate all claims"
# Kubernetes counts seconds, the search here counts steps.
NOT_DECIDED = "timed out trying to allocate devices"
ELSEWHERE = "resourceclaim not available on the node"
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
) -> Placed | Unplaced:
    """
    Where the pod goes with the claims that it wants and those that it has already.

    `extended` is what it wants beside them by extended resources.
    """
    searches_left = SEARCHES_MAX
    while True:
        outcome = decide(
            pod, wanted, allocated, cluster, extended=extended, searches_left=searches_left
        )
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
    searches_left: int = SEARCHES_MAX,
) -> Placed | Unplaced | Unfinished:
    """The same as far as it is known soon."""
    return _attempt(pod, wanted, allocated, cluster, extended, searches_left).run()


def place_on(
    name: str,
    pod: Pod,
    wanted: Sequence[ResourceClaim],
    allocated: Sequence[ResourceClaim],
    cluster: Cluster,
    *,
    extended: ExtendedResources | None = None,
) -> Placed | None:
    """The pod on this very node with all its claims, as the books are now; None if it cannot be."""
    state = cluster.fleet.get(name)
    if state is None:
        return None
    for searches_left in range(SEARCHES_MAX, -1, -1):
        attempt = _attempt(pod, wanted, allocated, cluster, extended, searches_left)
        tried = attempt.on(state)
        if not isinstance(tried, Unfinished) or tried.search is None:
            return tried if isinstance(tried, Placed) else None
        tried.search.finish()
    return None


def _attempt(
    pod: Pod,
    wanted: Sequence[ResourceClaim],
    allocated: Sequence[ResourceClaim],
    cluster: Cluster,
    extended: ExtendedResources | None,
    searches_left: int,
) -> _Attempt:
    by_devices = () if extended is None else tuple(extended.classes)
    wishes = PodConstraints.of(pod, by_devices)
    if extended is not None and extended.made is None:
        wanted = (*wanted, extended.claim)
    return _Attempt(wishes, wanted, _reaches(allocated), extended, cluster, searches_left)


@dataclass(frozen=True, slots=True)
class _Reach:
    """Where a claim can be used that is allocated already."""

    claim: str
    selector: NodeSelector
    matcher: NodeMatcher

    def refusal(self, node: Node) -> NodeRefusal | None:
        try:
            if self.matcher.matches(node):
                return None
        except SelectorError:
            pass
        fact = f"claim {self.claim} is allocated for other nodes"
        return NodeRefusal(ELSEWHERE, fact, "use a node that it is allocated for")


@dataclass(frozen=True, slots=True)
class _Attempt:
    wishes: PodConstraints
    # One for extended resources comes last.
    wanted: Sequence[ResourceClaim]
    reaches: Sequence[_Reach]
    extended: ExtendedResources | None
    cluster: Cluster
    searches_left: int

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
        ties = [*(reach.matcher for reach in self.reaches), self.wishes.affinity]
        names = [name for tie in ties if tie is not None and (name := _only_node(tie))]
        return self.cluster.fleet.get(names[0]) if names else None

    def _anywhere(self, refused: Mapping[str, _Refused]) -> Placed | Unplaced | Unfinished:
        """The first of the nodes that takes the pod, if none of those that refused."""
        kind = self._kind()
        queue = self.cluster.fleet.queue(kind)
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
        devices = [
            (claim.spec.devices.requests, claim.spec.devices.constraints) for claim in self.wanted
        ]
        selectors = tuple(reach.selector for reach in self.reaches)
        return self.wishes.kind, _encode(devices), selectors

    def on(self, state: NodeState) -> Placed | Unplaced | _Refused | Unfinished:
        """The pod in the state, or why not; Unplaced, if no other can do."""
        refusal = self._kept_off(state)
        if refusal is not None:
            return _Refused(refusal.words)
        wanted = self._wanted_on(state.node)
        if not wanted:
            return Placed(state.name, self.wishes.amounts, ())
        try:
            outcome = self.cluster.allocator.begin(state.node, wanted)
        except AllocationError as error:
            refused = self._for_all(state, Code.ERROR, str(error), _CORRECT)
            return Unplaced(str(error), lambda: iter((refused,)))
        if isinstance(outcome, Allocated):
            return Placed(state.name, self.wishes.amounts, outcome.results, tuple(wanted))
        if isinstance(outcome, Search) and self.searches_left > 0:
            return Unfinished(outcome)
        if isinstance(outcome, Search | Undecided):
            return _Refused(NOT_DECIDED)
        return _Refused(NO_DEVICES, outcome)

    def _wanted_on(self, node: Node) -> Sequence[ResourceClaim]:
        """The claims as the node is asked for them: what it has of its own needs no device."""
        if self.extended is None or self.extended.made is not None:
            return self.wanted
        claim = self.extended.on(node)
        if claim is self.extended.claim:
            return self.wanted
        return (*self.wanted[:-1], *(() if claim is None else (claim,)))

    def _kept_off(self, state: NodeState) -> NodeRefusal | None:
        """Why the pod cannot be in the state, whatever devices are there."""
        refusal = obstacle(self.wishes, state)
        if refusal is None and self.reaches:
            found = (reach.refusal(state.node) for reach in self.reaches)
            refusal = next((each for each in found if each is not None), None)
        made = self.extended and self.extended.made
        if refusal is None and made and self.extended and not self.extended.is_as_made(state.node):
            fact = f"claim {claim_name(made)} was made for what another node lacks"
            return NodeRefusal(ELSEWHERE, fact, "delete the claim")
        return refusal

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
            outcome = self.cluster.allocator.begin(state.node, self._wanted_on(state.node))
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


def _quantity(value: object) -> str:
    assert isinstance(value, Quantity), "nothing else in a request is no JSON"
    return value.text


_encode = msgspec.json.Encoder(enc_hook=_quantity).encode


def _reaches(allocated: Iterable[ResourceClaim]) -> list[_Reach]:
    """Where claims can be used that are allocated already; some can be used anywhere."""
    found = []
    for claim in allocated:
        allocation = claim.status.allocation
        assert allocation is not None, "a claim that is allocated has its allocation"
        selector = allocation.node_selector
        if selector is not None:
            found.append(_Reach(claim_name(claim), selector, parse_node_selector(selector)))
    return found


def _only_node(reach: NodeMatcher) -> str:
    if len(reach.terms) == 1:
        for each in reach.terms[0].fields:
            if each.key == NAME_FIELD and each.operator == "In" and len(each.values) == 1:
                return each.values[0]
    return ""
