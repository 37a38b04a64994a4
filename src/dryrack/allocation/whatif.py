"""
What if these objects were all there was: who would get which devices, and who would not.

Parties are served one after the other, each on the first node that has all it asks for; what
one is given is taken for those that follow. Claims that are allocated already keep what they
have. As in a cluster, an error on any node that is looked at stops the whole party.

Of a pod only what keeps it off a node is respected: nodeName, nodeSelector, required node
affinity, node taints, cordoned nodes, and where claims that it shares are already allocated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dryrack.allocation.allocator import Allocated, Allocator, Unsatisfiable
from dryrack.allocation.errors import AllocationError
from dryrack.allocation.features import Features, Release
from dryrack.allocation.identity import claim_name
from dryrack.allocation.reasons import Code, Reason
from dryrack.allocation.state import AllocatedState
from dryrack.allocation.taints import apply_taint_rules
from dryrack.base.errors import DryrackError
from dryrack.kinds.core import Node
from dryrack.kinds.decode import to_builtins
from dryrack.kinds.meta import ObjectMeta
from dryrack.kinds.selectors import SelectorError, matches_node, pod_allows_node, untolerated_taint

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dryrack.allocation.world import Party, World
    from dryrack.base.ports import Chance
    from dryrack.kinds.core import Pod
    from dryrack.kinds.resource import AllocationResult, ResourceClaim, ResourceSlice

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


@dataclass(frozen=True, slots=True)
class Refused:
    """A claim that would not be allocated."""

    claim: str
    nodes: tuple[Refusal, ...]


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The outcome for all parties. `notes` say what was assumed."""

    given: tuple[Given, ...]
    refused: tuple[Refused, ...]
    notes: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """The outcome as programs read it."""
        return {
            "allocations": [
                {
                    "claim": each.claim,
                    "node": each.node,
                    "allocation": to_builtins(each.allocation),
                }
                for each in self.given
            ],
            "unsatisfied": [
                {"claim": each.claim, "nodes": [_refusal(node) for node in each.nodes]}
                for each in self.refused
            ],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How to reckon."""

    chance: Chance
    release: Release = Release.V1_36
    features: Features | None = None
    # Only this node, if it is named.
    node: str | None = None


def what_if(world: World, settings: Settings) -> WhatIf:
    """Serve everybody in the world, in order."""
    return _Round(world, settings).run()


class _Round:
    def __init__(self, world: World, settings: Settings) -> None:
        self._world = world
        self._features = settings.features or Features.defaults(settings.release)
        slices = world.slices
        if self._features.device_taints:
            slices = apply_taint_rules(slices, world.taint_rules)
        self._nodes, self._notes = _nodes(world, settings.node)
        self._state = AllocatedState.from_claims(world.claims, self._features)
        self._allocator = Allocator(
            slices,
            world.classes,
            features=self._features,
            release=settings.release,
            allocated=self._state,
            chance=settings.chance,
        )
        self._there: dict[str, AllocationResult] = {
            claim_name(claim): claim.status.allocation
            for claim in world.claims
            if claim.status.allocation is not None
        }
        self._given: list[Given] = []
        self._refused: list[Refused] = []

    def run(self) -> WhatIf:
        for party in self._world.in_order():
            self._serve(party)
        return WhatIf(tuple(self._given), tuple(self._refused), self._notes)

    def _serve(self, party: Party) -> None:
        if party.missing:
            self._refuse_missing(party)
            return
        wanted = [claim for claim in party.claims if claim_name(claim) not in self._there]
        if not wanted:
            return
        refusals: list[Refusal | Unsatisfiable] = []
        fitting: list[tuple[str, Allocated]] = []
        for node in self._nodes:
            outcome = self._try(party.pod, party.claims, wanted, node)
            if isinstance(outcome, Allocated):
                fitting.append((node.metadata.name, outcome))
                if len(fitting) == _FITTING_NODES_MAX:
                    break
                continue
            refusals.append(outcome)
            if isinstance(outcome, Refusal) and outcome.reasons[0].code is Code.ERROR:
                fitting, refusals = [], [outcome]
                break
        if fitting:
            self._give(wanted, *fitting[0])
        else:
            self._refuse(wanted, refusals)

    def _try(
        self,
        pod: Pod | None,
        claims: Sequence[ResourceClaim],
        wanted: Sequence[ResourceClaim],
        node: Node,
    ) -> Allocated | Unsatisfiable | Refusal:
        kept_off = _kept_off(pod, node) or self._tied_elsewhere(claims, node)
        if kept_off is not None:
            return _refusal_of(wanted, node.metadata.name, Code.NODE, kept_off)
        try:
            return self._allocator.allocate(node, wanted)
        except AllocationError as error:
            told = (str(error), "correct what it names; the scheduler gives up on all nodes")
            return _refusal_of(wanted, node.metadata.name, Code.ERROR, told)

    def _tied_elsewhere(
        self, claims: Iterable[ResourceClaim], node: Node
    ) -> tuple[str, str] | None:
        for claim in claims:
            allocation = self._there.get(claim_name(claim))
            if allocation is None or allocation.node_selector is None:
                continue
            if not matches_node(allocation.node_selector, node):
                fact = f"claim {claim_name(claim)} is allocated for other nodes"
                return fact, "use a node that it is allocated for"
        return None

    def _give(self, wanted: Sequence[ResourceClaim], node: str, outcome: Allocated) -> None:
        for claim, allocation in zip(wanted, outcome.results, strict=True):
            name = claim_name(claim)
            self._given.append(Given(name, node, allocation))
            self._there[name] = allocation
            self._state = self._state.allocate(allocation, self._features, claim=name)
        self._allocator = self._allocator.with_allocated(self._state)

    def _refuse(
        self, wanted: Sequence[ResourceClaim], refusals: Sequence[Refusal | Unsatisfiable]
    ) -> None:
        told = [(each.node, each.reasons) for each in refusals]
        for claim in wanted:
            name = claim_name(claim)
            nodes = tuple(
                Refusal(node, tuple(reason for reason in reasons if reason.claim == name))
                for node, reasons in told
            )
            self._refused.append(Refused(name, nodes))

    def _refuse_missing(self, party: Party) -> None:
        pod = f"pod {party.pod.metadata.namespace}/{party.pod.metadata.name}" if party.pod else ""
        for name, what in party.missing:
            reason = Reason(
                claim=name,
                request="",
                device="",
                code=Code.NOT_FOUND,
                fact=f"{pod} refers to {what}, which is not there",
                remedy="add it",
            )
            self._refused.append(Refused(name, (Refusal("", (reason,)),)))
        for claim in party.claims:
            name = claim_name(claim)
            if name not in self._there:
                told = (f"{pod} waits for a claim that is not there", "add it")
                self._refused.append(
                    Refused(name, (_refusal_of((claim,), "", Code.OTHER_CLAIM, told),))
                )


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


def _nodes(world: World, only: str | None) -> tuple[tuple[Node, ...], tuple[str, ...]]:
    nodes: tuple[Node, ...] = world.nodes
    notes: tuple[str, ...] = ()
    if not nodes:
        names = sorted(_named_nodes(world.slices))
        notes = (
            f"no Node objects given; assuming the nodes that slices name: {', '.join(names)}"
            if names
            else "no Node objects given, and no slice names one; assuming a node 'node'",
        )
        nodes = tuple(Node(metadata=ObjectMeta(name=name)) for name in names or ["node"])
    if only is None:
        return nodes, notes
    chosen = tuple(node for node in nodes if node.metadata.name == only)
    if not chosen:
        known = ", ".join(node.metadata.name for node in nodes)
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
