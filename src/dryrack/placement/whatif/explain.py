"""
A claim's case, told to a person: where it came closest, what stood in the way, what would help.

Nodes come nearest miss first; devices that fail for the same reason are told together. Changes
that would help are not guessed: each was made to the world and the claim was given its devices
in it. They are looked for on the nearest nodes, the least intrusive first.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
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
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from dryrack.allocation import Obstacle
    from dryrack.kinds.core import Affinity
    from dryrack.kinds.resource import ResourceClaim
    from dryrack.placement.place import Refusal
    from dryrack.placement.whatif.answers import ClaimAllocation, WhatIf
    from dryrack.placement.whatif.pod_remedies import PodChange
    from dryrack.placement.whatif.remedies import WorldChange
    from dryrack.placement.whatif.what_if import Settings
    from dryrack.placement.whatif.world import World

# Each is a what-if of its own.
_TRIED_OF_KIND_MAX = 12
_PAIRS_TRIED_MAX = 5
# Where changes are looked for; further away there is more to change.
_NODES_HELPED_MAX = 3
# Where they are tried; a gang needs several of them.
_NODES_TRIED_MAX = 64

# What is so on each of many nodes, each time in other words.
_OF_EACH_NODE = (Code.NODE, Code.IN_USE, Code.NO_DEVICES)


# What is only said of a device that the class selects, or of a node that has one.
_OF_CLASS = (
    Code.NOT_ENOUGH,
    Code.REQUEST_SELECTOR,
    Code.TAINTED,
    Code.CONSTRAINT,
    Code.COMBINATION,
    Code.CAPACITY_SHORT,
    Code.COUNTER_SHORT,
)


@dataclass(frozen=True, slots=True)
class NodeExplanation:
    """What stood in the way on one node."""

    node: str
    # How many devices were lacking where the attempt came furthest.
    lacking: int
    obstacles: tuple[Obstacle, ...]
    # The other nodes of which the same is true, with devices of their own.
    alike: tuple[str, ...] = ()

    @property
    def undecided(self) -> bool:
        """Whether the node may do, for all that is known."""
        return any(obstacle.code is Code.UNDECIDED for obstacle in self.obstacles)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Either what the claim is given, or why it is given nothing."""

    claim: str
    given: ClaimAllocation | None
    # It is allocated already, and nothing was to be decided.
    settled: bool
    nodes: tuple[NodeExplanation, ...]
    # What makes the claim fit: each by itself, or two together where one is not enough.
    helps: tuple[str, ...]
    notes: tuple[str, ...]


def explain_claim_alone(
    world: World, claim: ResourceClaim, settings: Settings, *, more: Sequence[WorldChange] = ()
) -> Explanation:
    """Return the story of a claim, whoever uses it; `more` helps, too."""
    full = claim_name(claim)
    # Most of what is tried leaves most nodes as they are.
    settings = replace(settings, only=full, memory=settings.memory or Memory())
    outcome = what_if(world, settings)
    given = next((each for each in outcome.given if each.claim == full), None)
    settled = claim.status.allocation is not None
    if given is not None or settled:
        return Explanation(full, given, settled, (), (), outcome.notes)
    refusals = next((each.nodes for each in outcome.refused if each.claim == full), ())
    nodes = explain_nodes(refusals)
    helps = verified(world, claim, refusals, settings) if nodes else ()
    return Explanation(full, None, False, nodes, texts_of((*helps, *more)), outcome.notes)


def find_claim(world: World, name: str) -> ResourceClaim:
    """Return the claim of this name; raise `DryrackError` with similar names."""
    claims = {claim_name(claim): claim for party in world.in_order() for claim in party.claims}
    found = [full for full in claims if full == name or full.partition("/")[2] == name]
    if len(found) == 1 or f"default/{name}" in found:
        return claims[found[0] if len(found) == 1 else f"default/{name}"]
    if found:
        names = listed(found)
        raise DryrackError(f"claim {name!r} is in several namespaces; use one of: {names}")
    if not claims:
        raise DryrackError(f"claim {name!r} not found: there are no claims")
    raise DryrackError(f"claim {name!r} not found; {hint(name, claims)}")


def explain_nodes(refusals: Iterable[Refusal]) -> tuple[NodeExplanation, ...]:
    """Return what stood in the way on each node, the nearest first; nodes alike together."""
    ordered = sorted(refusals, key=distance_of)
    class_selects = any(each.code in _OF_CLASS for it in ordered for each in it.reasons)
    together: dict[Hashable, list[NodeExplanation]] = {}
    for refusal in ordered:
        story = _story(refusal, class_selects=class_selects)
        together.setdefault(_gist(story), []).append(story)
    return tuple(
        replace(first, alike=tuple(other.node for other in others))
        for first, *others in together.values()
    )


def _story(refusal: Refusal, *, class_selects: bool) -> NodeExplanation:
    """
    Return the story of a node without devices that the class never selects.

    They are no cause where the class selects others. Where it selects none anywhere, the nearest of
    them tell why.
    """
    lacking = max((reason.lacking for reason in refusal.reasons), default=0)
    unselected = [each for each in refusal.reasons if each.code is Code.CLASS_SELECTOR]
    nearest = min((each.distance for each in unselected), default=0.0)
    reasons = [
        each
        for each in refusal.reasons
        if each.code is not Code.CLASS_SELECTOR or (not class_selects and each.distance == nearest)
    ]
    return NodeExplanation(refusal.node, lacking, fold(reasons))


def _gist(story: NodeExplanation) -> Hashable:
    """What is left of a story without the names of the node and of its devices, and amounts."""
    return tuple(
        (each.request, each.code, _fact(each, story.node), each.remedy, _number(each))
        for each in story.obstacles
    )


def _number(obstacle: Obstacle) -> int:
    """How many devices it holds for; of those of other kinds each node has its own number."""
    return 0 if obstacle.code is Code.CLASS_SELECTOR else len(obstacle.devices)


def _fact(obstacle: Obstacle, node: str) -> str:
    """How much is left, and who has it, differs from node to node; what would help does not."""
    is_of_each = obstacle.code in _OF_EACH_NODE and obstacle.remedy != TOLERATE
    return "" if is_of_each else obstacle.fact.replace(node, "")


def verified(
    world: World, claim: ResourceClaim, refusals: Sequence[Refusal], settings: Settings
) -> tuple[WorldChange, ...]:
    """Return changes that were tried and helped; two at once only if none does alone."""
    settings = replace(settings, only=claim_name(claim), memory=settings.memory or Memory())
    if len(world.nodes) > _NODES_TRIED_MAX and not _looks_around(world, claim):
        # What fits on these fits if there are more.
        refusals = sorted(refusals, key=distance_of)[:_NODES_TRIED_MAX]
        world = restricted_to_nodes(world, {refusal.node for refusal in refusals})
    trial = _Trial(claim_name(claim), settings)
    helped = tuple(trial.helpful(world, claim, refusals))
    return helped or tuple(trial.helpful_pairs())


def _looks_around(world: World, claim: ResourceClaim) -> bool:
    """Whether a pod that uses the claim holds nodes against each other."""
    name = claim_name(claim)
    pods = (e.pod for e in world.in_order() if e.pod and name in map(claim_name, e.claims))
    return any(
        pod.spec.topology_spread_constraints
        or (pod.spec.affinity and (pod.spec.affinity.pod_affinity or _repels(pod.spec.affinity)))
        for pod in pods
    )


def _repels(affinity: Affinity) -> bool:
    return affinity.pod_anti_affinity is not None


class _Trial:
    """Makes changes to a world and looks whether the claim is given its devices in it."""

    def __init__(self, claim: str, settings: Settings) -> None:
        self._claim = claim
        self._settings = settings
        # Changes after which less was lacking, and what then still stood in the way.
        self._steps: list[tuple[WorldChange, Sequence[Refusal]]] = []

    def helpful(
        self, world: World, claim: ResourceClaim, refusals: Sequence[Refusal]
    ) -> Iterator[WorldChange]:
        """Yield the first change of each kind that helps."""
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
            after = self._refusals(what_if(change.world, self._settings))
            if not after:
                helped.add(change.kind)
                yield change
            elif min(map(distance_of, after)) < least:
                self._steps.append((change, after))

    def helpful_pairs(self) -> Iterator[WorldChange]:
        for first, refusals in tuple(self._steps[:_PAIRS_TRIED_MAX]):
            claim = find_claim(first.world, self._claim)
            for second in self.helpful(first.world, claim, refusals):
                text = f"{first.text}, and {second.text}"
                yield replace(second, text=text, cost=first.cost + second.cost)
                return

    def _refusals(self, outcome: WhatIf) -> Sequence[Refusal]:
        return next((each.nodes for each in outcome.refused if each.claim == self._claim), ())


def texts_of(changes: Iterable[WorldChange | PodChange]) -> tuple[str, ...]:
    """Return what the changes say, the smallest first."""
    return tuple(dict.fromkeys(each.text for each in sorted(changes, key=lambda it: it.cost)))
