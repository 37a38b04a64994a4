"""
A pod's case: where it is or would go and why, or what stands in the way on each node.

It is decided again by the code that the scheduler runs, on a world as it is now. Changes that would
help were tried: each was made, and the pod found a node.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dryrack.allocation import Code, claim_name
from dryrack.base.errors import DryrackError
from dryrack.base.text import hint
from dryrack.kinds.expansion import extended_resources
from dryrack.placement.claim_problems import claim_not_found, claim_problem
from dryrack.placement.place import Placed, Unplaced, place
from dryrack.placement.trace import trace
from dryrack.placement.trial import Trial
from dryrack.placement.whatif.answer_memo import Memory
from dryrack.placement.whatif.answers import Refusals
from dryrack.placement.whatif.explain import stories, verified
from dryrack.placement.whatif.pod_remedies import possible_changes
from dryrack.placement.whatif.present import as_before
from dryrack.placement.whatif.what_if import DEFAULT_SCHEDULER, for_lack_of, turn_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dryrack.kinds.core import Pod
    from dryrack.kinds.resource import AllocationResult
    from dryrack.placement.place import Refusal
    from dryrack.placement.trace import DecisionTrace
    from dryrack.placement.whatif.explain import NodeStory
    from dryrack.placement.whatif.pod_remedies import PodChange
    from dryrack.placement.whatif.what_if import Settings, Turn
    from dryrack.placement.whatif.world import Party, World

_CHANGES_TRIED_MAX = 40
# Nodes that refuse for different reasons, the nearest first.
_NODES_HELPED_MAX = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PodExplanation:
    """What becomes of a pod that is in no gang, or is placed."""

    pod: str
    scheduler: str
    # Where it is, and where it would go if it were decided now; empty for nowhere.
    node: str = ""
    chosen: str = ""
    # Why it has no node, as the scheduler says it.
    message: str = ""
    # What its claims have; if it has no node, what they would be given.
    devices: Mapping[str, AllocationResult] = field(default_factory=dict)
    nodes: tuple[NodeStory, ...] = ()
    helps: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    # What every plugin says of every node, if that was asked for.
    trace: DecisionTrace | None = None


def party_of(world: World, name: str) -> Party:
    """The pod of this name with its claims, or `DryrackError` with what was probably meant."""
    found = {each.pod.full_name: each for each in world.in_order() if each.pod is not None}
    if name not in found:
        raise DryrackError(f"pod {name!r}: not there, or has ended; {hint(name, found)}")
    return found[name]


def explain_pod(
    world: World, name: str, settings: Settings, *, traced: bool = False
) -> PodExplanation:
    """The case of a pod in a world, which is served in its turn."""
    # What nodes say is asked again when changes to claims are tried.
    settings = replace(settings, memory=settings.memory or Memory())
    party = party_of(world, name)
    pod = party.pod
    assert pod is not None, "it was found by its pod"
    about = PodExplanation(pod=name, scheduler=pod.spec.scheduler_name or DEFAULT_SCHEDULER)
    if pod.spec.node_name:
        return _placed(about, world, party, settings, traced=traced)
    if party.missing:
        told = stories(for_lack_of(each) for each in party.missing)
        return replace(about, message=_lacks(world, party, settings), nodes=told)
    return _waiting(about, world, party, settings, traced=traced)


def _placed(
    about: PodExplanation, world: World, party: Party, settings: Settings, *, traced: bool
) -> PodExplanation:
    """Where it is, and where it would go if it were not there yet."""
    assert party.pod is not None, "a pod is placed"
    turn = turn_of(as_before(world, party), about.pod, settings)
    outcome = _decided(turn)
    given = {claim_name(each): each.status.allocation for each in party.claims}
    return replace(
        about,
        node=party.pod.spec.node_name,
        chosen=outcome.node if isinstance(outcome, Placed) else "",
        devices={name: each for name, each in given.items() if each is not None},
        trace=_trace(turn) if traced else None,
    )


def _waiting(
    about: PodExplanation, world: World, party: Party, settings: Settings, *, traced: bool
) -> PodExplanation:
    """Where it would go, or why nowhere."""
    turn = turn_of(world, about.pod, settings)
    about = replace(about, notes=turn.notes)
    problem = _problem(turn, party)
    if problem:
        return replace(about, message=problem)
    if traced:
        about = replace(about, trace=_trace(turn))
    outcome = _decided(turn)
    if isinstance(outcome, Placed):
        return replace(about, chosen=outcome.node, devices=outcome.given)
    refusals = outcome.refusals
    nodes = stories(refusals)
    to_claims = tuple(_helpful_to_claims(world, party, refusals, settings))
    # Whose devices would have to go is among what helps claims.
    to_pod = _helpful(turn, nodes, without="leave" if to_claims else "")
    return replace(about, message=outcome.message, nodes=nodes, helps=(*to_pod, *to_claims))


def _problem(turn: Turn, party: Party) -> str:
    """What keeps the pod from every node, in the order in which the scheduler finds it."""
    pod = turn.member.pod
    volume = turn.cluster.fleet.volumes.problem(pod)
    if volume is not None:
        return volume.message
    return next(filter(None, (claim_problem(claim, pod) for claim in party.claims)), "")


def _decided(turn: Turn, pod: Pod | None = None) -> Placed | Unplaced:
    member = turn.member
    return place(
        pod or member.pod,
        member.wanted,
        member.allocated,
        turn.cluster,
        extended=member.extended,
        profile=turn.profile,
    )


def _trace(turn: Turn) -> DecisionTrace:
    member = turn.member
    return trace(
        member.pod,
        member.wanted,
        member.allocated,
        turn.cluster,
        extended=member.extended,
        profile=turn.profile,
    )


def _lacks(world: World, party: Party, settings: Settings) -> str:
    """As the scheduler says it; of a claim that has yet to be made it says nothing."""
    pod, missing = party.pod, party.missing[0]
    assert pod is not None, "a pod lacks something"
    name = missing.claim.rpartition("/")[2]
    if name == extended_resources.claim_name_of(pod):
        outcome = _decided(turn_of(world, pod.full_name, settings))
        if isinstance(outcome, Unplaced):
            return outcome.message
    names = [each.resource_claim_name for each in pod.spec.resource_claims]
    return claim_not_found(name) if name in names else f"{missing.fact}; {missing.remedy}"


def _helpful(turn: Turn, nodes: Sequence[NodeStory], *, without: str) -> Iterator[str]:
    """Changes to the pod, or around it, that were tried and helped; one of each kind."""
    names = [story.node for story in nodes[:_NODES_HELPED_MAX]]
    nearest = [state for name in names if (state := turn.cluster.fleet.get(name)) is not None]
    told = {without}
    left = _CHANGES_TRIED_MAX
    for change in possible_changes(turn.member.pod, turn.cluster.fleet, nearest):
        if change.kind in told or not left:
            continue
        left -= 1
        if _helps(change, turn):
            told.add(change.kind)
            yield change.text


def _helps(change: PodChange, turn: Turn) -> bool:
    """Tries it; the cluster is as before afterwards."""
    cluster = turn.cluster
    if change.node is not None:
        state = cluster.fleet.get(change.node.metadata.name)
        assert state is not None, "a change is to a node that is there"
        before = state.node
        cluster.fleet.put(change.node)
        try:
            return isinstance(_decided(turn), Placed)
        finally:
            cluster.fleet.put(before)
    with Trial(cluster) as trial:
        if change.leaving is not None:
            trial.remove(change.leaving)
        return isinstance(_decided(turn, change.pod), Placed)


def _helpful_to_claims(
    world: World, party: Party, refusals: Sequence[Refusal], settings: Settings
) -> Iterator[str]:
    """Changes to claims and devices, if it is for want of devices that nodes refuse."""
    codes = {reason.code for refusal in refusals for reason in refusal.reasons}
    if codes <= {Code.NODE}:
        return
    wanted = [claim for claim in party.claims if claim.status.allocation is None]
    for claim in wanted:
        own = Refusals(refusals, claim_name(claim), alone=len(wanted) == 1)
        helps = verified(world, claim, own, settings)
        if helps:
            yield from helps
            return
