"""
A claim's case, told to a person: where it came closest, what stood in the way, what would help.

Nodes come nearest miss first; devices that fail for the same reason are told together. Changes
that would help are not guessed: each was made to the world and the claim was given its devices
in it. They are looked for on the nearest nodes, the least intrusive first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dryrack.allocation import Code, claim_name, fold, has_some
from dryrack.base.errors import DryrackError
from dryrack.base.text import hint, listed
from dryrack.placement.plugins.taint_toleration import TOLERATE
from dryrack.placement.whatif.answer_memo import Memory
from dryrack.placement.whatif.present import near
from dryrack.placement.whatif.remedies import possible_changes
from dryrack.placement.whatif.what_if import for_lack_of, what_if

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from dryrack.allocation import Obstacle
    from dryrack.kinds.core import Affinity
    from dryrack.kinds.resource import ResourceClaim
    from dryrack.placement.place import Refusal
    from dryrack.placement.whatif.answers import Given, WhatIf
    from dryrack.placement.whatif.remedies import Change
    from dryrack.placement.whatif.what_if import Settings
    from dryrack.placement.whatif.world import World

# Each is a what-if of its own.
_CHANGES_TRIED_MAX = 60
# Where changes are looked for; further away there is more to change.
_NODES_HELPED_MAX = 3
# Where they are tried; a gang needs several of them.
_NODES_TRIED_MAX = 64

# What is so on each of many nodes, each time in other words.
_OF_EACH_NODE = (Code.NODE, Code.IN_USE, Code.NO_DEVICES)

# A node that is out of the question is further away than any that lacks devices.
_FAR = 1 << 30


@dataclass(frozen=True, slots=True)
class NodeStory:
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
    given: Given | None
    # It is allocated already, and nothing was to be decided.
    settled: bool
    nodes: tuple[NodeStory, ...]
    # What makes the claim fit: each by itself, or two together where one is not enough.
    helps: tuple[str, ...]
    notes: tuple[str, ...]


def explain_claim(world: World, name: str, settings: Settings) -> Explanation:
    """The story of the claim of this name; without a namespace, the only one, or default's."""
    for missing in (each for party in world.in_order() for each in party.missing):
        if missing.claim in (name, f"default/{name}"):
            return Explanation(missing.claim, None, False, stories([for_lack_of(missing)]), (), ())
    claim = find_claim(world, name)
    full = claim_name(claim)
    # Most of what is tried leaves most nodes as they are.
    settings = replace(settings, only=full, memory=settings.memory or Memory())
    outcome = what_if(world, settings)
    given = next((each for each in outcome.given if each.claim == full), None)
    settled = claim.status.allocation is not None
    if given is not None or settled:
        return Explanation(full, given, settled, (), (), outcome.notes)
    refusals = next((each.nodes for each in outcome.refused if each.claim == full), ())
    nodes = stories(refusals)
    helps = verified(world, claim, refusals, settings) if nodes else ()
    return Explanation(full, None, False, nodes, helps, outcome.notes)


def find_claim(world: World, name: str) -> ResourceClaim:
    """The claim of this name, or `DryrackError` with what was probably meant."""
    claims = {claim_name(claim): claim for party in world.in_order() for claim in party.claims}
    found = [full for full in claims if full == name or full.partition("/")[2] == name]
    if len(found) == 1 or f"default/{name}" in found:
        return claims[found[0] if len(found) == 1 else f"default/{name}"]
    if found:
        raise DryrackError(f"claim {name!r}: in several namespaces; say one of {listed(found)}")
    raise DryrackError(f"claim {name!r}: not there; {hint(name, claims)}")


def stories(refusals: Iterable[Refusal]) -> tuple[NodeStory, ...]:
    """What stood in the way on each node, the nearest miss first; nodes that are alike together."""
    together: dict[Hashable, list[NodeStory]] = {}
    distances: dict[str, tuple[int, bool]] = {}
    for refusal in refusals:
        story = _story(refusal)
        alike = together.setdefault(_gist(story), [])
        if not alike:
            distances[story.node] = _distance(refusal)
        alike.append(story)
    folded = [
        replace(first, alike=tuple(other.node for other in others))
        for first, *others in together.values()
    ]
    return tuple(sorted(folded, key=lambda story: distances[story.node]))


def _story(refusal: Refusal) -> NodeStory:
    lacking = max((reason.lacking for reason in refusal.reasons), default=0)
    return NodeStory(refusal.node, lacking, fold(refusal.reasons))


def _gist(story: NodeStory) -> Hashable:
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
) -> tuple[str, ...]:
    """Changes that were tried and helped; two at once only if none does alone."""
    settings = replace(settings, only=claim_name(claim), memory=settings.memory or Memory())
    if len(world.nodes) > _NODES_TRIED_MAX and not _looks_around(world, claim):
        # What fits on these fits if there are more.
        refusals = sorted(refusals, key=_distance)[:_NODES_TRIED_MAX]
        world = near(world, {refusal.node for refusal in refusals})
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
        self._left = _CHANGES_TRIED_MAX
        # Changes after which less was lacking, and what then still stood in the way.
        self._steps: list[tuple[Change, Sequence[Refusal]]] = []

    def helpful(
        self, world: World, claim: ResourceClaim, refusals: Sequence[Refusal]
    ) -> Iterator[str]:
        told: set[str] = set()
        nearest = sorted(refusals, key=_distance)[:_NODES_HELPED_MAX]
        reasons = [reason for refusal in nearest for reason in refusal.reasons]
        for change in possible_changes(world, claim, reasons):
            if change.kind in told:
                continue
            if not self._left:
                return
            self._left -= 1
            after = self._refusals(what_if(change.world, self._settings))
            if not after:
                told.add(change.kind)
                yield change.text
            elif min(map(_distance, after)) < min(map(_distance, refusals)):
                self._steps.append((change, after))

    def helpful_pairs(self) -> Iterator[str]:
        self._left = _CHANGES_TRIED_MAX
        for first, refusals in tuple(self._steps):
            claim = find_claim(first.world, self._claim)
            for second in self.helpful(first.world, claim, refusals):
                yield f"{first.text}, and {second}"
                return

    def _refusals(self, outcome: WhatIf) -> Sequence[Refusal]:
        return next((each.nodes for each in outcome.refused if each.claim == self._claim), ())


def _distance(refusal: Refusal) -> tuple[int, bool]:
    """How many devices are lacking, and whether the node has none of the kind."""
    lacking = max((reason.lacking for reason in refusal.reasons), default=0)
    return lacking or _FAR, not has_some(refusal.reasons)
