"""
The explanation of a pod: its node and the decision for it, or the causes on each node.

The code of the scheduler decides again, for the world as it is now. Changes that would help were
tried: each was made, and the pod then fitted on a node.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from msgspec.structs import replace as changed

from dryrack.allocation import Code, claim_name
from dryrack.base.errors import DryrackError
from dryrack.base.text import hint
from dryrack.kinds.expansion import extended_resources
from dryrack.placement.claim_problems import claim_not_found, claim_problem
from dryrack.placement.place import Placed, Unplaced, place, place_on
from dryrack.placement.preemption import NoPreemption, Preemptor, preempt_on_node
from dryrack.placement.simulation import Simulation
from dryrack.placement.trace import trace
from dryrack.placement.whatif.answer_memo import Memory
from dryrack.placement.whatif.answers import ClaimAllocation, ClaimRefusals
from dryrack.placement.whatif.causes import cause_of, missing_class, missing_driver
from dryrack.placement.whatif.distance import with_all_causes
from dryrack.placement.whatif.explain import (
    Explanation,
    explain_claim_alone,
    explain_nodes,
    find_claim,
    find_helpful_changes,
    texts_of,
)
from dryrack.placement.whatif.hypothetical import as_if_unbound
from dryrack.placement.whatif.pod_remedies import PodChange, possible_changes
from dryrack.placement.whatif.remedies import FREE, WorldChange, with_count
from dryrack.placement.whatif.reported import (
    pending_binding,
    quota_excesses,
    refused_creation,
)
from dryrack.placement.whatif.what_if import (
    DEFAULT_SCHEDULER,
    for_lack_of,
    lack_of_nodes,
    on_any_node,
    turn_of,
    what_if,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dryrack.kinds.core import Pod
    from dryrack.kinds.resource import AllocationResult, ResourceClaim
    from dryrack.placement.attempt import Refused
    from dryrack.placement.place import Refusal
    from dryrack.placement.preemption import Preemption
    from dryrack.placement.trace import DecisionTrace
    from dryrack.placement.whatif.explain import NodeExplanation
    from dryrack.placement.whatif.reported import QuotaExcess
    from dryrack.placement.whatif.what_if import Settings, Turn
    from dryrack.placement.whatif.world import Party, World

_TRIED_OF_KIND_MAX = 12
# Changes are derived from the nearest nodes with different causes, and from all nodes with these.
_NODES_HELPED_MAX = 4
_NODES_ALIKE_MAX = 64
_PRIORITY_COST = 3.5
_NO_NODES = "no nodes available to schedule pods"
_DEVICES_OF_CLASS = ".deviceclass.resource.k8s.io/devices"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodExplanation:
    """The explanation of a pod that is in no gang, or is bound."""

    pod: str
    scheduler: str
    # The node that it is bound to, and the node that the scheduler would choose now; may be empty.
    node: str = ""
    chosen: str = ""
    # The scheduler's message for a pod without a node.
    message: str = ""
    # The cause on the nearest node, in a sentence.
    cause: str = ""
    # Whether the API server does not create the pod.
    is_refused: bool = False
    # The pods of lower priority that it preempts on the chosen node.
    preempted: str = ""
    # The allocations of its claims; without a node, those that they would get.
    devices: Mapping[str, AllocationResult] = field(default_factory=dict)
    nodes: tuple[NodeExplanation, ...] = ()
    # Changes that were tried and would help, the smallest first.
    helps: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    # The world after a change of `helps`, by its text.
    changes: Mapping[str, World] = field(default_factory=dict, repr=False, compare=False)
    # The devices, "driver/pool/device", without which the pod would fit on the nearest node if
    # their claims were deleted; empty if that would not be enough.
    in_the_way: tuple[str, ...] = ()
    # The answers of every plugin about every node, if requested.
    trace: DecisionTrace | None = None


def party_of(world: World, name: str) -> Party:
    """Return the pod of this name with its claims; raise `DryrackError` with similar names."""
    parties = {each.pod.full_name: each for each in world.in_order() if each.pod is not None}
    if name not in parties:
        raise DryrackError(f"pod {name!r} not found, or it has ended; {hint(name, parties)}")
    return parties[name]


def explain_pod(
    world: World, name: str, settings: Settings, *, traced: bool = False
) -> PodExplanation:
    """Explain a pod of a world, at its turn."""
    # Changes to claims ask nodes the same questions again.
    settings = replace(settings, memory=settings.memory or Memory())
    party = party_of(world, name)
    pod = party.pod
    assert pod is not None, "the party has a pod"
    about = PodExplanation(pod=name, scheduler=pod.spec.scheduler_name or DEFAULT_SCHEDULER)
    if pod.spec.node_name:
        # Decide again as if it were not bound.
        turn = turn_of(as_if_unbound(world, party), name, settings)
        outcome = _place(turn)
        given = {claim_name(each): each.status.allocation for each in party.claims}
        return replace(
            about,
            node=pod.spec.node_name,
            chosen=outcome.node if isinstance(outcome, Placed) else "",
            devices={claim: each for claim, each in given.items() if each is not None},
            trace=_trace(turn) if traced else None,
        )
    refused = refused_creation(world, party)
    if party.refusal is not None or refused:
        return _explain_admission(about, world, party, settings, refused)
    if party.missing:
        nodes = explain_nodes(for_lack_of(each) for each in party.missing)
        remedies = tuple(each.remedy for each in party.missing)
        message = _message_for_missing(world, party, settings)
        cause = "; ".join(each.fact for each in party.missing)
        return replace(about, message=message, cause=cause, nodes=nodes, helps=remedies)
    waits_for = pending_binding(party)
    if waits_for:
        return replace(about, message=waits_for, cause=waits_for)
    empty = lack_of_nodes(world, settings)
    if empty is not None:
        return replace(about, message=_NO_NODES, cause="; ".join(empty))
    return _explain_pending(about, world, party, settings, traced=traced)


def explain_claim(world: World, name: str, settings: Settings) -> Explanation:
    """
    Explain the claim of this name; without a namespace, the only one, or that in "default".

    A claim of one pod is explained with its pod, because the pod needs a node for it.
    """
    for missing in (each for party in world.in_order() for each in party.missing):
        if missing.claim in (name, f"default/{name}"):
            return Explanation(
                missing.claim, None, False, explain_nodes([for_lack_of(missing)]), (), ()
            )
    claim = find_claim(world, name)
    full = claim_name(claim)
    empty = lack_of_nodes(world, settings)
    if empty is not None:
        return Explanation(
            full,
            None,
            False,
            explain_nodes([on_any_node(full, Code.NO_DEVICES, *empty)]),
            (),
            (),
        )
    users = [each for each in world.in_order() if full in map(claim_name, each.claims)]
    pod = users[0].pod if len(users) == 1 else None
    if pod is None or pod.spec.node_name or users[0].missing or users[0].membership is not None:
        return explain_claim_alone(world, claim, settings)
    if claim.status.allocation is not None:
        return explain_claim_alone(world, claim, settings)
    story = explain_pod(world, pod.full_name, replace(settings, only=full))
    given = None
    if story.chosen and full in story.devices:
        given = ClaimAllocation(full, story.chosen, story.devices[full])
    return Explanation(full, given, False, story.nodes, story.helps, story.notes, story.changes)


def _explain_pending(
    about: PodExplanation, world: World, party: Party, settings: Settings, *, traced: bool
) -> PodExplanation:
    """Explain a pod without a node: the node that it would get, or the causes on each node."""
    turn = turn_of(world, about.pod, settings)
    about = replace(about, notes=turn.notes)
    # As in the scheduler, volumes come before claims.
    pod = turn.member.pod
    volume = turn.cluster.fleet.volumes.problem(pod)
    problems = [volume.message] if volume is not None else []
    problems += [claim_problem(claim, pod) for claim in party.claims]
    problem = next(filter(None, problems), "")
    if problem:
        return replace(about, message=problem, cause=problem)
    if traced:
        about = replace(about, trace=_trace(turn))
    outcome = _place(turn)
    if isinstance(outcome, Placed):
        about = replace(about, chosen=outcome.node, devices=outcome.given)
        return _unless_preempted(about, world, settings)
    making_way = turn.preempting.for_pod(turn.member, turn.profile)
    if making_way is not None:
        victims, placed = making_way
        about = replace(about, chosen=placed.node, devices=placed.given)
        return replace(about, preempted=_victims(victims), message=outcome.message)
    refusals = with_all_causes(turn, outcome.refusals)
    explained: Sequence[Refusal] = refusals
    if settings.only is not None:
        explained = ClaimRefusals(refusals, settings.only, alone=len(turn.member.wanted) == 1)
    nodes = missing_class(world, turn.member.wanted)
    nodes = nodes or (*missing_driver(world, turn.member.wanted), *explain_nodes(explained))
    to_claims = _helpful_claim_changes(world, party, refusals, settings)
    # A change that frees devices of a claim already names the pod that would have to go.
    without = "leave" if any(each.kind == FREE for each in to_claims) else ""
    to_pods = _helpful_pod_changes(turn, nodes, without=without)
    changes: list[WorldChange | PodChange] = [*to_claims, *to_pods]
    near = [name for each in nodes for name in (each.node, *each.alike)][:_NODES_ALIKE_MAX]
    preemption = _least_preemption(turn, near)
    cause = cause_of(nodes)
    if preemption is not None and not _is_of_own_workload(world, turn.member.pod, preemption):
        cause += _explain_priority(turn.member.pod, preemption)
        changes += _helpful_priority(turn.member.pod, preemption)
    return replace(
        about,
        message=outcome.message,
        cause=cause,
        nodes=nodes,
        helps=texts_of(changes),
        changes={each.text: _world_after(world, party, each) for each in changes},
        in_the_way=_devices_in_the_way(world, turn, nodes, refusals, to_claims),
    )


def _unless_preempted(about: PodExplanation, world: World, settings: Settings) -> PodExplanation:
    """Return the explanation; or, in files, which pod that comes later preempts the pod."""
    priorities = {each.full_name: each.spec.priority or 0 for each in world.pods}
    if not settings.assumes_nodes or max(priorities.values()) <= priorities[about.pod]:
        return about
    preemptor = what_if(world, replace(settings, only=None)).preemptors.get(about.pod)
    if preemptor is None:
        return about
    cause = f"{preemptor}, which has a higher priority, preempts it on node {about.chosen}"
    return replace(about, chosen="", devices={}, message=cause, cause=cause)


def _explain_admission(
    about: PodExplanation, world: World, party: Party, settings: Settings, message: str
) -> PodExplanation:
    """Explain why the pod or a claim of it is not created, with changes that admission accepts."""
    if party.refusal is not None:
        message = party.refusal.fact
        about = replace(about, is_refused=True)
    excesses = quota_excesses(message)
    if not excesses:
        if party.refusal is not None:
            return replace(about, message=message, cause=message, helps=(party.refusal.remedy,))
        return replace(about, message=message, cause=f"a claim cannot be created: {message}")
    facts = "; ".join(
        f"ResourceQuota {each.quota} allows {each.limited} of {each.resource}, {each.used} are "
        f"used, and the pod requests {each.requested}"
        for each in excesses
    )
    about = replace(about, message=message, cause=f"exceeded quota: {facts}")
    raised_world = world.with_higher_quotas({each.key: each.needed for each in excesses})
    changes: dict[str, World] = {}
    if _fits(raised_world, about.pod, settings):
        raised = (
            f"raise {each.resource} in ResourceQuota {each.quota} from {each.limited} "
            f"to {each.needed}"
            for each in excesses
        )
        # The Events report the refusals by the present quota.
        changes[" and ".join(raised)] = replace(raised_world, events=())
    for claim in party_of(raised_world, about.pod).claims:
        for label, count, fewer in _within_quota(claim, excesses):
            changed_world = world.with_claim(with_count(claim, label, fewer))
            if _fits(changed_world, about.pod, settings):
                text = f"lower the count of request {label} from {count} to {fewer}"
                changes[text] = changed_world
    return replace(about, helps=tuple(changes), changes=changes)


def _fits(world: World, name: str, settings: Settings) -> bool:
    """Return whether the API server creates the pod with its claims, and it finds a node."""
    party = party_of(world, name)
    if party.refusal is not None or party.missing:
        return False
    about = PodExplanation(pod=name, scheduler="")
    return bool(_explain_pending(about, world, party, settings, traced=False).chosen)


def _within_quota(
    claim: ResourceClaim, excesses: Sequence[QuotaExcess]
) -> Iterator[tuple[str, int, int]]:
    """Yield requests with their count and as many devices as the quota has left."""
    for excess in excesses:
        if not excess.resource.endswith(_DEVICES_OF_CLASS):
            continue
        name = excess.resource.removesuffix(_DEVICES_OF_CLASS)
        over = excess.requested.value() - excess.left.value()
        for request in claim.spec.devices.requests:
            ask = request.exactly
            if ask is not None and ask.device_class_name == name and ask.count > over:
                yield request.name, ask.count, ask.count - over


def describe_siblings(world: World, pod: Pod, settings: Settings) -> str:
    """Return how many of the pods of its workload fit, where there are several."""
    workload = _workload_of(world, pod)
    if workload is None:
        return ""
    pods = pods_of_workload(world, workload[0], pod.metadata.namespace, workload[1])
    if len(pods) < 2:
        return ""
    nodes = what_if(world, settings).nodes if settings.assumes_nodes else {}
    fit = sum(bool(each.spec.node_name or nodes.get(each.full_name)) for each in pods)
    return f"{' '.join(workload)}: {fit} of {len(pods)} pods fit"


def pods_of_workload(world: World, kind: str, namespace: str, name: str) -> list[Pod]:
    """Return the pods of a workload that have not ended."""
    own = (each for each in world.pods if each.metadata.namespace == namespace)
    return [each for each in own if _workload_of(world, each) == (kind, name)]


def _workload_of(world: World, pod: Pod) -> tuple[str, str] | None:
    """Return the kind and name of what controls the pod; of a ReplicaSet, its Deployment."""
    owner = next((each for each in pod.metadata.owner_references if each.controller), None)
    if owner is None:
        return None
    if owner.kind != "ReplicaSet":
        return owner.kind, owner.name
    suffix = f"-{pod.metadata.labels.get('pod-template-hash', '')}"
    if len(suffix) > 1 and owner.name.endswith(suffix):
        return "Deployment", owner.name.removesuffix(suffix)
    # In files a Deployment creates its pods itself.
    deployments = {
        (each.metadata.namespace, each.metadata.name)
        for each in world.context.owners
        if each.kind == "Deployment"
    }
    is_of_one = (pod.metadata.namespace, owner.name) in deployments
    return ("Deployment" if is_of_one else "ReplicaSet"), owner.name


def _place(turn: Turn, pod: Pod | None = None) -> Placed | Unplaced:
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


def _message_for_missing(world: World, party: Party, settings: Settings) -> str:
    """Return the message of the scheduler, or the object that is missing before scheduling."""
    pod = party.pod
    missing = party.missing[0]
    assert pod is not None, "the party has a pod"
    name = missing.claim.rpartition("/")[2]
    if name == extended_resources.claim_name_of(pod):
        outcome = _place(turn_of(world, pod.full_name, settings))
        if isinstance(outcome, Unplaced):
            return outcome.message
    names = [each.resource_claim_name for each in pod.spec.resource_claims]
    return claim_not_found(name) if name in names else f"{missing.fact}; {missing.remedy}"


def _helpful_pod_changes(
    turn: Turn, nodes: Sequence[NodeExplanation], *, without: str
) -> Iterator[PodChange]:
    """Yield changes to pods and nodes that were tried and helped; one of each kind."""
    fleet = turn.cluster.fleet
    near = nodes[:_NODES_HELPED_MAX]
    names = [name for each in near for name in (each.node, *each.alike)][:_NODES_ALIKE_MAX]
    nearest = [state for each in near if (state := fleet.get(each.node)) is not None]
    alike = [state for name in names if (state := fleet.get(name)) is not None]
    helped = {without}
    tried: Counter[str] = Counter()
    for change in possible_changes(turn.member.pod, nearest, alike):
        if change.kind in helped or tried[change.kind] >= _TRIED_OF_KIND_MAX:
            continue
        tried[change.kind] += 1
        if _helps(change, turn):
            helped.add(change.kind)
            yield change


def _helps(change: PodChange, turn: Turn) -> bool:
    """Try the change; the cluster is as before afterwards."""
    cluster = turn.cluster
    if change.node is not None:
        state = cluster.fleet.get(change.node.metadata.name)
        assert state is not None, "a change is to an existing node"
        before = state.node
        cluster.fleet.put(change.node)
        try:
            return isinstance(_place(turn), Placed)
        finally:
            cluster.fleet.put(before)
    with Simulation(cluster) as simulation:
        if change.leaving is not None:
            simulation.remove_pod(change.leaving)
        return isinstance(_place(turn, change.pod), Placed)


def _world_after(world: World, party: Party, change: WorldChange | PodChange) -> World:
    """Return the world after a change that helps the party's pod."""
    if isinstance(change, WorldChange):
        return change.world
    if change.node is not None:
        name, new = change.node.metadata.name, change.node
        nodes = tuple(new if each.metadata.name == name else each for each in world.nodes)
        return replace(world, nodes=nodes)
    if change.pod is not None:
        pods = tuple(change.pod if each is party.pod else each for each in world.parties)
        return replace(world, parties=pods)
    leaving = next(it for it in world.pods if it.full_name == change.leaving)
    gone = {id(leaving)} | {
        id(each)
        for each in world.claims
        if each.status.reserved_for
        and all(user.uid == leaving.metadata.uid for user in each.status.reserved_for)
    }
    return replace(world, parties=tuple(each for each in world.parties if id(each) not in gone))


def _devices_in_the_way(
    world: World,
    turn: Turn,
    nodes: Sequence[NodeExplanation],
    refusals: Sequence[Refusal],
    changes: Sequence[WorldChange],
) -> tuple[str, ...]:
    """
    Return the devices that the pod lacks on the nearest node and that other claims have.

    It fits there without the fewest pods that it would preempt with the highest priority; or, if
    no pod has the devices, after a change that frees the devices of other claims.
    """
    if not nodes:
        return ()
    nearest = nodes[0].node
    preemption = _least_preemption(turn, [nearest])
    if preemption is not None:
        names = {each.occupant.name for each in preemption.victims}
        pods = [
            each.pod.full_name
            for each in world.in_order()
            if each.pod and (each.pod.metadata.namespace, each.pod.metadata.name) in names
        ]
        claims = [
            claim
            for claim in world.claims
            if any(
                f"{claim.metadata.namespace}/{u.name}" in pods for u in claim.status.reserved_for
            )
        ]
    else:
        freed = next((each for each in changes if each.kind == FREE), None)
        kept = {id(each) for each in freed.world.parties} if freed is not None else ()
        claims = [each for each in world.claims if freed is not None and id(each) not in kept]
    reasons = [reason for each in refusals if each.node == nearest for reason in each.reasons]
    short = {each.device for each in reasons if each.code in (Code.IN_USE, Code.CAPACITY_SHORT)}
    # A partition lacks what other devices of its pool take from the counters.
    by_counters = (Code.COUNTER_SHORT, Code.INCOMPATIBLE)
    pools = {each.device.rpartition("/")[0] for each in reasons if each.code in by_counters}
    held = dict.fromkeys(
        (f"{each.driver}/{each.pool}", each.device)
        for claim in claims
        if claim.status.allocation is not None
        for each in claim.status.allocation.devices.results
        if not each.admin_access
    )
    return tuple(
        f"{pool}/{device}" for pool, device in held if pool in pools or f"{pool}/{device}" in short
    )


def _least_preemption(turn: Turn, near: Sequence[str]) -> Preemption | None:
    """Return the victims on these nodes if the pod had the highest priority."""
    member = turn.member
    cluster = turn.cluster
    others = {state.name for state in cluster.fleet.states()} - set(near)
    highest = max((key for key, count in cluster.fleet.priorities.items() if count), default=0)

    def try_on(name: str) -> Placed | Refused:
        return place_on(
            name,
            member.pod,
            member.wanted,
            member.allocated,
            cluster,
            extended=member.extended,
            profile=turn.profile,
        )

    preemptor = Preemptor(priority=highest + 1, own=frozenset({member.pod.full_name}))
    outcome = preempt_on_node(cluster, preemptor, try_on, unresolvable=others)
    if isinstance(outcome, NoPreemption) or not all(it.occupant.name[1] for it in outcome.victims):
        return None
    return outcome


def _is_of_own_workload(world: World, pod: Pod, preemption: Preemption) -> bool:
    """Return True if a victim belongs to the pod's workload, so that another pod would wait."""
    names = {each.occupant.name for each in preemption.victims}
    own = _workload_of(world, pod)
    victims = (e for e in world.pods if (e.metadata.namespace, e.metadata.name) in names)
    return own is not None and any(
        each.metadata.namespace == pod.metadata.namespace and _workload_of(world, each) == own
        for each in victims
    )


def _explain_priority(pod: Pod, preemption: Preemption) -> str:
    """Return a note about priorities, if they matter."""
    own = pod.spec.priority or 0
    highest = max(each.occupant.priority for each in preemption.victims)
    named = _victims(preemption)
    if highest > own:
        return f"; it cannot preempt {named}: its own priority is {own}"
    if highest < own and pod.spec.preemption_policy == "Never":
        return f"; it does not preempt {named}: its preemptionPolicy is Never"
    return ""


def _helpful_priority(pod: Pod, preemption: Preemption) -> Iterator[PodChange]:
    own = pod.spec.priority or 0
    highest = max(each.occupant.priority for each in preemption.victims)
    effect = f"so that it preempts {_victims(preemption)} on node {preemption.node}"
    if highest >= own:
        text = f"give the pod a priority above {highest}, {effect}"
        spec = changed(pod.spec, priority=highest + 1, preemption_policy="PreemptLowerPriority")
        yield PodChange(text, "priority", _PRIORITY_COST, pod=changed(pod, spec=spec))
    elif pod.spec.preemption_policy == "Never":
        text = f"set preemptionPolicy: PreemptLowerPriority, {effect}"
        spec = changed(pod.spec, preemption_policy="PreemptLowerPriority")
        yield PodChange(text, "priority", _PRIORITY_COST, pod=changed(pod, spec=spec))


def _victims(preemption: Preemption) -> str:
    first, *others = preemption.victims
    named = f"pod {'/'.join(first.occupant.name)} (priority {first.occupant.priority})"
    return f"{named} and {len(others)} more" if others else named


def _helpful_claim_changes(
    world: World, party: Party, refusals: Sequence[Refusal], settings: Settings
) -> tuple[WorldChange, ...]:
    """Return changes to claims and devices that were tried and helped."""
    codes = {reason.code for refusal in refusals for reason in refusal.reasons}
    if codes <= {Code.NODE}:
        return ()
    wanted = [claim for claim in party.claims if claim.status.allocation is None]
    for claim in wanted:
        own = ClaimRefusals(refusals, claim_name(claim), alone=len(wanted) == 1)
        helps = find_helpful_changes(world, claim, own, settings)
        if helps:
            return helps
    return ()
