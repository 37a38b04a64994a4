"""
The explanation of a claim: the nearest nodes, the causes on each, and changes that would help.

Nodes are ordered by distance; devices that fail for the same reason are grouped. Changes that would
help are not guessed: each was made to a world in which the claim then got its devices. They are
tried on the nearest nodes, the least intrusive first.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dryrack.allocation import Code, claim_name, fold
from dryrack.base.errors import DryrackError
from dryrack.base.text import hint, listed
from dryrack.placement.plugins.taint_toleration import TOLERATE
from dryrack.placement.whatif.answer_memo import Memory
from dryrack.placement.whatif.distance import distance_of
from dryrack.placement.whatif.hypothetical import restricted_to_nodes
from dryrack.placement.whatif.remedies import possible_changes
from dryrack.placement.whatif.what_if import what_if

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from dryrack.allocation import Obstacle
    from dryrack.kinds.resource import ResourceClaim
    from dryrack.placement.place import Refusal
    from dryrack.placement.whatif.answers import ClaimAllocation
    from dryrack.placement.whatif.pod_remedies import PodChange
    from dryrack.placement.whatif.remedies import WorldChange
    from dryrack.placement.whatif.what_if import Settings
    from dryrack.placement.whatif.world import World

# Each is a what-if of its own.
_TRIED_OF_KIND_MAX = 12
_PAIRS_TRIED_MAX = 5
# Changes are derived from these nodes; further nodes would need more changes.
_NODES_HELPED_MAX = 3
# Changes are tried on these nodes; a gang needs several of them.
_NODES_TRIED_MAX = 64

# Causes with facts that differ from node to node.
_OF_EACH_NODE = (Code.NODE, Code.IN_USE, Code.NO_DEVICES)
# Causes that are reported only for a device that the class selects, or a node that has one.
_OF_CLASS = (
    Code.NOT_ENOUGH,
    Code.REQUEST_SELECTOR,
    Code.TAINTED,
    Code.CONSTRAINT,
    Code.COMBINATION,
    Code.CAPACITY_SHORT,
    Code.COUNTER_SHORT,
    Code.INCOMPATIBLE,
)


@dataclass(frozen=True, slots=True)
class NodeExplanation:
    """The causes for which one node does not fit."""

    node: str
    # The smallest number of missing devices in any attempt.
    lacking: int
    obstacles: tuple[Obstacle, ...]
    # Other nodes with the same causes, with devices of their own.
    alike: tuple[str, ...] = ()

    @property
    def is_undecided(self) -> bool:
        """Return True if a search stopped at its limit, so that the node may fit."""
        return any(obstacle.code is Code.UNDECIDED for obstacle in self.obstacles)


@dataclass(frozen=True, slots=True)
class Explanation:
    """The allocation of a claim, or why it gets none."""

    claim: str
    given: ClaimAllocation | None
    # Whether it is allocated already, so that there was nothing to decide.
    settled: bool
    nodes: tuple[NodeExplanation, ...]
    # Changes with which the claim fits: single ones, or a pair if no single one is enough.
    helps: tuple[str, ...]
    notes: tuple[str, ...]
    # The world after a change of `helps`, by its text.
    changes: Mapping[str, World] = field(default_factory=dict, repr=False, compare=False)


def explain_claim_alone(
    world: World, claim: ResourceClaim, settings: Settings, *, more: Sequence[WorldChange] = ()
) -> Explanation:
    """Explain a claim without its pod; `more` are further changes that help."""
    full = claim_name(claim)
    # Most changes leave most nodes as they are.
    settings = replace(settings, only=full, memory=settings.memory or Memory())
    outcome = what_if(world, settings)
    given = next((each for each in outcome.given if each.claim == full), None)
    settled = claim.status.allocation is not None
    if given is not None or settled:
        return Explanation(full, given, settled, (), (), outcome.notes)
    refusals = next((each.nodes for each in outcome.refused if each.claim == full), ())
    nodes = explain_nodes(refusals)
    helps = find_helpful_changes(world, claim, refusals, settings) if nodes else ()
    changes = (*helps, *more)
    worlds = {each.text: each.world for each in changes}
    return Explanation(full, None, False, nodes, texts_of(changes), outcome.notes, worlds)


def find_claim(world: World, name: str) -> ResourceClaim:
    """Return the claim of this name; raise `DryrackError` with similar names."""
    claims = {claim_name(claim): claim for party in world.in_order() for claim in party.claims}
    matches = [full for full in claims if full == name or full.partition("/")[2] == name]
    if len(matches) == 1 or f"default/{name}" in matches:
        return claims[matches[0] if len(matches) == 1 else f"default/{name}"]
    if matches:
        names = listed(matches)
        raise DryrackError(f"claim {name!r} is in several namespaces; use one of: {names}")
    if not claims:
        raise DryrackError(f"claim {name!r} not found: there are no claims")
    raise DryrackError(f"claim {name!r} not found; {hint(name, claims)}")


def explain_nodes(refusals: Iterable[Refusal]) -> tuple[NodeExplanation, ...]:
    """Explain the refusal of each node, the nearest first; nodes with equal causes together."""
    ordered = sorted(refusals, key=distance_of)
    class_selects = any(each.code in _OF_CLASS for it in ordered for each in it.reasons)
    alike: dict[Hashable, list[NodeExplanation]] = {}
    for refusal in ordered:
        # Devices that the class does not select are no cause if it selects others. If it selects
        # none anywhere, the nearest of them show why.
        unselected = [each for each in refusal.reasons if each.code is Code.CLASS_SELECTOR]
        nearest = min((each.distance for each in unselected), default=0.0)
        reasons = [
            each
            for each in refusal.reasons
            if each.code is not Code.CLASS_SELECTOR
            or (not class_selects and each.distance == nearest)
        ]
        lacking = max((reason.lacking for reason in refusal.reasons), default=0)
        explanation = NodeExplanation(refusal.node, lacking, fold(reasons))
        alike.setdefault(_causes_of(explanation), []).append(explanation)
    return tuple(
        replace(first, alike=tuple(other.node for other in others))
        for first, *others in alike.values()
    )


def _causes_of(explanation: NodeExplanation) -> Hashable:
    """Return the causes without the names of the node and its devices, and without amounts."""
    causes = []
    for each in explanation.obstacles:
        # Amounts and their users differ from node to node; the remedy does not.
        is_of_node = each.code in _OF_EACH_NODE and each.remedy != TOLERATE
        fact = "" if is_of_node else each.fact.replace(explanation.node, "")
        # The number of devices of other classes does not matter.
        devices = 0 if each.code is Code.CLASS_SELECTOR else len(each.devices)
        causes.append((each.request, each.code, fact, each.remedy, devices))
    return tuple(causes)


def find_helpful_changes(
    world: World, claim: ResourceClaim, refusals: Sequence[Refusal], settings: Settings
) -> tuple[WorldChange, ...]:
    """Return changes that were tried and helped; pairs only if no single change helps."""
    settings = replace(settings, only=claim_name(claim), memory=settings.memory or Memory())
    if len(world.nodes) > _NODES_TRIED_MAX and not _compares_nodes(world, claim):
        # A placement on these nodes is valid with more nodes, too.
        refusals = sorted(refusals, key=distance_of)[:_NODES_TRIED_MAX]
        world = restricted_to_nodes(world, {refusal.node for refusal in refusals})
    # Changes with which the claim came nearer, and the remaining refusals.
    steps: list[tuple[WorldChange, Sequence[Refusal]]] = []
    helpful = tuple(_try_changes(world, claim, refusals, settings, steps))
    if helpful:
        return helpful
    for first, remaining in tuple(steps[:_PAIRS_TRIED_MAX]):
        edited = find_claim(first.world, claim_name(claim))
        for second in _try_changes(first.world, edited, remaining, settings, steps):
            text = f"{first.text}, and {second.text}"
            return (replace(second, text=text, cost=first.cost + second.cost),)
    return ()


def _compares_nodes(world: World, claim: ResourceClaim) -> bool:
    """Return True if a pod that uses the claim has rules about pods on other nodes."""
    name = claim_name(claim)
    pods = (e.pod for e in world.in_order() if e.pod and name in map(claim_name, e.claims))
    return any(
        pod.spec.topology_spread_constraints
        or (affinity and (affinity.pod_affinity or affinity.pod_anti_affinity is not None))
        for pod in pods
        for affinity in (pod.spec.affinity,)
    )


def _try_changes(
    world: World,
    claim: ResourceClaim,
    refusals: Sequence[Refusal],
    settings: Settings,
    steps: list[tuple[WorldChange, Sequence[Refusal]]],
) -> Iterator[WorldChange]:
    """Yield the first change of each kind that helps; add those that bring it nearer to `steps`."""
    helped: set[str] = set()
    tried: Counter[str] = Counter()
    nearest = sorted(refusals, key=distance_of)[:_NODES_HELPED_MAX]
    reasons = [reason for refusal in nearest for reason in refusal.reasons]
    least = min(map(distance_of, refusals), default=0.0)
    nodes = [refusal.node for refusal in nearest]
    for change in possible_changes(world, claim, reasons, nodes):
        if change.kind in helped or tried[change.kind] >= _TRIED_OF_KIND_MAX:
            continue
        tried[change.kind] += 1
        outcome = what_if(change.world, settings)
        after = next((it.nodes for it in outcome.refused if it.claim == claim_name(claim)), ())
        if not after:
            helped.add(change.kind)
            yield change
        elif min(map(distance_of, after)) < least:
            steps.append((change, after))


def texts_of(changes: Iterable[WorldChange | PodChange]) -> tuple[str, ...]:
    """Return the texts of the changes, the smallest change first."""
    return tuple(dict.fromkeys(each.text for each in sorted(changes, key=lambda it: it.cost)))
