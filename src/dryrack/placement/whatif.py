"""
What if these objects were all there was: who would get which devices, and who would not.

Parties are served one after the other, each on the first node that has all it asks for; what
one is given is taken for those that follow. Claims that are allocated already keep what they
have. As in a cluster, an error on any node that is looked at stops the whole party.

Of a pod only what keeps it off a node is respected: nodeName, nodeSelector, required node
affinity, node taints, cordoned nodes, and where claims that it shares are already allocated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

from dryrack.allocation.allocator import Allocated, Allocator, Outcome, Undecided, Unsatisfiable
from dryrack.allocation.errors import AllocationError
from dryrack.allocation.features import Features, Release
from dryrack.allocation.identity import claim_name
from dryrack.allocation.reasons import Code, Reason
from dryrack.allocation.state import AllocatedState
from dryrack.allocation.taints import apply_taint_rules
from dryrack.base.errors import DryrackError
from dryrack.base.words import listed
from dryrack.kinds.core import Node
from dryrack.kinds.decode import to_builtins
from dryrack.kinds.meta import ObjectMeta
from dryrack.kinds.selectors import SelectorError, matches_node, pod_allows_node, untolerated_taint
from dryrack.placement.answer_memo import Memory, Sight, Told, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dryrack.base.ports import Chance
    from dryrack.kinds.core import Pod
    from dryrack.kinds.resource import AllocationResult, ResourceClaim, ResourceSlice
    from dryrack.placement.answer_memo import Key
    from dryrack.placement.world import Missing, Party, World

# The scheduler looks at all nodes of a cluster up to this size before it decides.
_FITTING_NODES_MAX = 100

_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"


@dataclass(frozen=True, slots=True)
class Given:
    """A claim that would be allocated."""

    claim: str
    node: str
    allocation: AllocationResult


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a claim would not be allocated on a node; no node for a claim that nobody has."""

    node: str
    reasons: tuple[Reason, ...]


class Refusals(Sequence[Refusal]):
    """Why each node refused a claim; the reasons may be shared with claims that say the same."""

    def __init__(self, told: Sequence[tuple[str, Told]], index: int, name: str) -> None:
        self._told = told
        self._index = index
        self._name = name

    def __len__(self) -> int:
        return len(self._told)

    @overload
    def __getitem__(self, place: int) -> Refusal: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Refusal]: ...
    def __getitem__(self, place: int | slice) -> Refusal | Sequence[Refusal]:
        if isinstance(place, slice):
            return Refusals(self._told[place], self._index, self._name)
        node, told = self._told[place]
        return Refusal(node, told.to(self._index, self._name))


@dataclass(frozen=True, slots=True)
class Refused:
    """A claim that would not be allocated."""

    claim: str
    nodes: Sequence[Refusal]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A party before a node."""

    party: Party
    wanted: tuple[ResourceClaim, ...]
    node: Node
    key: Key


@dataclass(frozen=True, slots=True)
class _Refusing:
    """A node that has not enough; the attempt, unless it was remembered."""

    asked: _Asked
    outcome: Unsatisfiable | Undecided | None = None


def _is_error(refusal: Refusal | _Refusing) -> bool:
    return isinstance(refusal, Refusal) and refusal.reasons[0].code is Code.ERROR


def _node_of(refusal: Refusal | _Refusing) -> str:
    return refusal.node if isinstance(refusal, Refusal) else refusal.asked.node.metadata.name


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The outcome for all parties. `notes` say what was assumed."""

    given: tuple[Given, ...]
    refused: tuple[Refused, ...]
    notes: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """The outcome as programs read it."""
        return {key: list(entries) for key, entries in self.lists().items()}

    def lists(self) -> Mapping[str, Iterable[Mapping[str, Any]]]:
        """The two lists of the document, entry by entry: with many nodes it is a large one."""
        return {
            "allocations": (
                {
                    "claim": each.claim,
                    "node": each.node,
                    "allocation": to_builtins(each.allocation),
                }
                for each in self.given
            ),
            "unsatisfied": (
                {"claim": each.claim, "nodes": [_refusal(node) for node in each.nodes]}
                for each in self.refused
            ),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How to reckon."""

    chance: Chance
    release: Release = Release.V1_36
    features: Features | None = None
    # Only this node, if it is named.
    node: str | None = None
    # Whose case it is: nobody after this claim is served, and nobody else is told reasons.
    only: str | None = None
    # What nodes answered in other what-ifs under the same release and features.
    memory: Memory | None = None


def what_if(world: World, settings: Settings) -> WhatIf:
    """Serve everybody in the world, in order."""
    return _Round(world, settings).run()


class _Round:
    def __init__(self, world: World, settings: Settings) -> None:
        self._world = world
        self._only = settings.only
        self._features = settings.features or Features.defaults(settings.release)
        slices = world.slices
        if self._features.device_taints:
            slices = apply_taint_rules(slices, world.taint_rules)
        self._nodes, self._notes = _nodes(world, settings.node)
        self._memory = settings.memory or Memory()
        self._state = AllocatedState.from_claims(world.claims, self._features)
        self._allocator = Allocator(
            slices,
            world.classes,
            features=self._features,
            release=settings.release,
            allocated=self._state,
            chance=settings.chance,
            endings=self._memory.endings,
        )
        self._there: dict[str, AllocationResult] = {
            claim_name(claim): claim.status.allocation
            for claim in world.claims
            if claim.status.allocation is not None
        }
        self._sight = Sight(self._memory, slices, world.classes)
        for name, allocation in self._there.items():
            self._sight.use(name, allocation)
        self._given: list[Given] = []
        self._refused: list[Refused] = []
        self._settled: dict[str, None] = {}
        # Who was refused by all nodes: how much had been given by then, and why.
        self._hopeless: dict[tuple[int, ...], tuple[int, Sequence[tuple[str, Told]]]] = {}

    def run(self) -> WhatIf:
        for party in self._world.in_order():
            self._serve(party)
            if self._only is not None and self._only in map(claim_name, party.claims):
                break
        settled = tuple(
            f"claim {name} is allocated already, and keeps it" for name in self._settled
        )
        return WhatIf(tuple(self._given), tuple(self._refused), self._notes + settled)

    def _serve(self, party: Party) -> None:
        if party.missing:
            self._refuse_missing(party)
            return
        wanted = [claim for claim in party.claims if claim_name(claim) not in self._there]
        self._settled |= {claim_name(c): None for c in party.claims if c.status.allocation}
        if not wanted or self._is_refused_again(party, wanted):
            return
        chosen: tuple[str, Allocated] | None = None
        refusals: list[Refusal | _Refusing] = []
        fitting = 0
        for asked in self._in_turn(party, wanted):
            answer = self._answer(asked, is_choosing=chosen is None)
            if isinstance(answer, Refusal | _Refusing):
                refusals.append(answer)
                if _is_error(answer):
                    chosen, refusals = None, [answer]
                    break
                continue
            if isinstance(answer, Allocated):
                chosen = chosen or (asked.node.metadata.name, answer)
            fitting += 1
            if fitting == _FITTING_NODES_MAX:
                break
        if chosen is not None:
            self._give(wanted, *chosen)
        else:
            self._refuse(party, wanted, refusals)

    def _is_refused_again(self, party: Party, wanted: Sequence[ResourceClaim]) -> bool:
        """Whether the like was refused, and nothing given since; the claim is refused then."""
        given, told = self._hopeless.get(self._like(party, wanted), (-1, ()))
        name = claim_name(wanted[0])
        if given != len(self._given) or (not told and self._only in (None, name)):
            return False
        self._refused.append(Refused(name, Refusals(told, 0, name)))
        return True

    def _like(self, party: Party, wanted: Sequence[ResourceClaim]) -> tuple[int, ...]:
        """What parties have in common that every node treats alike; nothing for larger ones."""
        if len(party.claims) > 1:
            return ()
        extended = self._memory.number(("extended", party.extended))
        return (self._sight.ask(wanted), self._sight.ways(party.pod), extended)

    def _in_turn(self, party: Party, wanted: Sequence[ResourceClaim]) -> Iterator[_Asked]:
        ask = self._sight.ask(wanted)
        for node in self._nodes:
            yield _Asked(party, tuple(wanted), node, self._sight.key(ask, node))

    def _answer(
        self, asked: _Asked, *, is_choosing: bool
    ) -> Allocated | Verdict | Refusal | _Refusing:
        """What the node says; that it fits is enough once another node is chosen."""
        kept_off = (
            _kept_off(asked.party.pod, asked.node)
            or _of_its_own(asked.party.extended, asked.node)
            or self._tied_elsewhere(asked)
        )
        if kept_off is not None:
            return _refusal_of(asked.wanted, asked.node.metadata.name, Code.NODE, kept_off)
        known = self._memory.answer(asked.key)
        if isinstance(known, Told) or known is Verdict.DOES_NOT:
            return _Refusing(asked)
        if known is Verdict.FITS and not is_choosing:
            return Verdict.FITS
        outcome = self._try(asked)
        if isinstance(outcome, Refusal):
            return outcome
        fits = isinstance(outcome, Allocated)
        self._memory.keep(asked.key, Verdict.FITS if fits else Verdict.DOES_NOT)
        return outcome if isinstance(outcome, Allocated) else _Refusing(asked, outcome)

    def _try(self, asked: _Asked) -> Outcome | Refusal:
        try:
            return self._allocator.allocate(asked.node, asked.wanted)
        except AllocationError as error:
            remedy = "correct what it names (dryrack lint says where); no node can help"
            told = (str(error), remedy)
            return _refusal_of(asked.wanted, asked.node.metadata.name, Code.ERROR, told)

    def _tied_elsewhere(self, asked: _Asked) -> tuple[str, str] | None:
        for claim in asked.party.claims:
            allocation = self._there.get(claim_name(claim))
            if allocation is None or allocation.node_selector is None:
                continue
            if not matches_node(allocation.node_selector, asked.node):
                fact = f"claim {claim_name(claim)} is allocated for other nodes"
                return fact, "use a node that it is allocated for"
        return None

    def _give(self, wanted: Sequence[ResourceClaim], node: str, outcome: Allocated) -> None:
        for claim, allocation in zip(wanted, outcome.results, strict=True):
            name = claim_name(claim)
            self._given.append(Given(name, node, allocation))
            self._there[name] = allocation
            self._sight.use(name, allocation)
            self._state = self._state.allocate(allocation, self._features, claim=name)
        self._allocator = self._allocator.with_allocated(self._state)

    def _refuse(
        self,
        party: Party,
        wanted: Sequence[ResourceClaim],
        refusals: Sequence[Refusal | _Refusing],
    ) -> None:
        names = tuple(map(claim_name, wanted))
        told: tuple[tuple[str, Told], ...] = ()
        if self._only is None or self._only in names:
            told = tuple((_node_of(each), self._told(each, names)) for each in refusals)
        self._refused += [
            Refused(name, Refusals(told, index, name)) for index, name in enumerate(names)
        ]
        like = self._like(party, wanted)
        # An error speaks of the claim by name.
        if like and not any(_is_error(each) for each in refusals):
            self._hopeless[like] = (len(self._given), told)

    def _told(self, refusal: Refusal | _Refusing, names: tuple[str, ...]) -> Told:
        """The reasons, which are worked out for those who are refused everywhere."""
        if isinstance(refusal, Refusal):
            return Told(names, refusal.reasons)
        known = self._memory.answer(refusal.asked.key)
        if isinstance(known, Told) and known.serves(names):
            return known
        outcome = refusal.outcome or self._try(refusal.asked)
        assert not isinstance(outcome, Allocated), "a node that takes back what it said"
        told = Told(names, outcome.reasons)
        self._memory.keep(refusal.asked.key, told)
        return told

    def _refuse_missing(self, party: Party) -> None:
        pod = f"pod {party.pod.metadata.namespace}/{party.pod.metadata.name}" if party.pod else ""
        self._refused += [Refused(each.claim, (for_lack_of(each),)) for each in party.missing]
        for claim in party.claims:
            name = claim_name(claim)
            if name not in self._there:
                told = (f"{pod} waits for what is not there", "see its other claims")
                self._refused.append(
                    Refused(name, (_refusal_of((claim,), "", Code.OTHER_CLAIM, told),))
                )


def for_lack_of(missing: Missing) -> Refusal:
    """The refusal of a claim that cannot even be made."""
    reason = Reason(
        claim=missing.claim,
        request="",
        device="",
        code=Code.NOT_FOUND,
        fact=missing.fact,
        remedy=missing.remedy,
    )
    return Refusal("", (reason,))


def _kept_off(pod: Pod | None, node: Node) -> tuple[str, str] | None:
    """What about the pod or the node keeps the two apart, and what would help."""
    if pod is None:
        return None
    if pod.spec.node_name:
        if pod.spec.node_name != node.metadata.name:
            return f"the pod is bound to node {pod.spec.node_name}", "remove nodeName"
        return None
    try:
        if not pod_allows_node(pod, node):
            return "the pod's node selector or affinity excludes the node", "label the node"
    except SelectorError as error:
        return f"the pod's node affinity makes no sense: {error}", "correct the affinity"
    taint = untolerated_taint(node.spec.taints, pod.spec.tolerations, ("NoSchedule", "NoExecute"))
    if taint is not None:
        return f"the node is tainted {taint.key}:{taint.effect}", "tolerate the taint"
    if node.spec.unschedulable and not any(t.key == _UNSCHEDULABLE for t in pod.spec.tolerations):
        return "the node is cordoned", "uncordon the node"
    return None


def _of_its_own(resources: Iterable[str], node: Node) -> tuple[str, str] | None:
    """A node that has some of a resource gives that, and no devices of the class."""
    for name in resources:
        amount = node.status.allocatable.get(name)
        if amount is not None and amount.nanos:
            fact = f"the node has {amount} {name} of its own, which are not counted here"
            return fact, "leave them out of the node to try the devices of the class"
    return None


def _refusal_of(
    claims: Iterable[ResourceClaim], node: str, code: Code, told: tuple[str, str]
) -> Refusal:
    fact, remedy = told
    return Refusal(
        node,
        tuple(
            Reason(
                claim=claim_name(claim),
                request="",
                device="",
                code=code,
                fact=fact,
                remedy=remedy,
            )
            for claim in claims
        ),
    )


def nodes_of(world: World) -> tuple[tuple[Node, ...], tuple[str, ...]]:
    """The nodes that are reckoned with, and what has to be said about them."""
    if world.nodes:
        return world.nodes, ()
    names = sorted(_named_nodes(world.slices))
    note = (
        f"no Node objects given; assuming the nodes that slices name: {listed(names)}"
        if names
        else "no Node objects given, and no slice names one; assuming a node 'node'"
    )
    return tuple(Node(metadata=ObjectMeta(name=name)) for name in names or ["node"]), (note,)


def _nodes(world: World, only: str | None) -> tuple[tuple[Node, ...], tuple[str, ...]]:
    nodes, notes = nodes_of(world)
    if only is None:
        return nodes, notes
    chosen = tuple(node for node in nodes if node.metadata.name == only)
    if not chosen:
        known = listed(node.metadata.name for node in nodes)
        raise DryrackError(f"node {only!r}: not there; there are {known}")
    return chosen, notes


def _named_nodes(slices: Iterable[ResourceSlice]) -> set[str]:
    names: set[str] = set()
    for each in slices:
        names.add(each.spec.node_name or "")
        names.update(device.node_name or "" for device in each.spec.devices)
    return names - {""}


def _refusal(refusal: Refusal) -> Mapping[str, Any]:
    return {
        "node": refusal.node,
        "reasons": [
            {
                "request": reason.request,
                "device": reason.device,
                "reason": reason.code.text,
                "message": reason.message,
            }
            for reason in refusal.reasons
        ],
    }
