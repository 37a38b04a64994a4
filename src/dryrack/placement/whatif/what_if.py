"""
What-if: the scheduler's answer for the objects of files, if these were all there was.

Everybody is placed one after the other, by the code that the scheduler runs (see `place`), on nodes
with all that is left of their devices, CPU, memory, ports and places for pods; what one is given is
taken for those that follow. Pods that are bound occupy their node from the start, and claims that
are allocated already keep what they have. The pods of a gang are placed together, when the first of
them has its turn, or not at all.

A pod that fits nowhere preempts pods of lower priority, as the scheduler decides it. Those that
belong to a workload are placed again after it; others are gone. What the API server would refuse is
not placed (see `admission`).

A claim that no pod uses is placed as a pod that asks for nothing else and tolerates every taint. A
pod that is bound takes devices on its node alone, whatever else the node says. Where no Nodes are
given, those that slices name are assumed, and as nothing is known of their size, nothing but
devices counts there.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace as changed

from dryrack.allocation import (
    Code,
    Features,
    LiveAllocator,
    Reason,
    Release,
    apply_taint_rules,
    claim_name,
)
from dryrack.base.errors import DryrackError
from dryrack.base.text import listed
from dryrack.kinds.core import Node, NodeStatus, Pod, PodSpec, Toleration
from dryrack.kinds.expansion.virtual_nodes import CAPACITY, sized
from dryrack.kinds.meta import ObjectMeta
from dryrack.kinds.quantity import Quantity
from dryrack.placement.demand import PODS, demand
from dryrack.placement.fleet import Fleet
from dryrack.placement.gangs.dialects import Flaw, Membership, gang_of
from dryrack.placement.gangs.members import Member
from dryrack.placement.gangs.search import GangRefused, place_gang_now
from dryrack.placement.index.pod_hints import queueing_hint
from dryrack.placement.occupant import Occupant
from dryrack.placement.place import Cluster, Placed, Refusal, Unplaced, place
from dryrack.placement.plugins import profile_named
from dryrack.placement.whatif.answer_memo import Memory, RememberingAllocator
from dryrack.placement.whatif.answers import (
    ClaimAllocation,
    ClaimRefusals,
    GangOutcome,
    Preempted,
    UnsatisfiedClaim,
    WhatIf,
)
from dryrack.placement.whatif.preempting import Preempting

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Collection,
        Hashable,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )

    from dryrack.base.ports import Chance
    from dryrack.kinds.resource import AllocationResult, ResourceClaim, ResourceSlice
    from dryrack.placement.demand import Amounts
    from dryrack.placement.framework import Profile
    from dryrack.placement.gangs.dialects import GangKey
    from dryrack.placement.gangs.members import MemberPlaced
    from dryrack.placement.gangs.search import GangPlaced
    from dryrack.placement.preemption import Preemption
    from dryrack.placement.whatif.admission import AdmissionRefusal
    from dryrack.placement.whatif.world import Missing, Party, World

DEFAULT_SCHEDULER = "default-scheduler"
_ANYTHING = (Toleration(operator="Exists"),)
# A node of which nothing is known takes as many pods as there are.
_UNKNOWN_SIZE = {PODS: Quantity.parse("1000000000")}
# Beside claims, which are all told.
_WAITING_TOLD_MAX = 5
# So many claims that keep what they have are told by name; a dump has hundreds.
_SETTLED_TOLD_MAX = 5
_USUAL = ", ".join(f"{name} {amount}" for name, amount in CAPACITY.items())
# What is so of a gang whose search stopped, and what to do.
UNKNOWN_GANG = (
    "the search for its gang stopped at its limit before it tried all placements",
    "see the message of the gang",
)
# What is so where there are no nodes, and what to do.
_CLUSTER_EMPTY = ("the cluster has no nodes", "add a node")
_FILES_EMPTY = (
    "the files have no nodes",
    "add Nodes or ResourceSlices, or use --instance-type",
)
SIZE_ASSUMED = f"nodes without allocatable resources get those of a virtual node ({_USUAL})"


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
    # What nodes refused in other what-ifs under the same release and features.
    memory: Memory | None = None
    # Whether nodes that slices name are assumed where no Node exists, as files may leave them out.
    assumes_nodes: bool = True
    # How schedulers decide, by name, where not as usual.
    profiles: Mapping[str, Profile] = field(default_factory=dict)

    def profile_of(self, pod: Pod) -> Profile:
        """That of the scheduler which the pod asks for."""
        name = pod.spec.scheduler_name or DEFAULT_SCHEDULER
        return self.profiles.get(name) or profile_named(name)


@dataclass(frozen=True, slots=True)
class Turn:
    """A pod with its claims, and the cluster as it is when the pod has its turn."""

    cluster: Cluster
    member: Member
    profile: Profile
    notes: tuple[str, ...]
    preempting: Preempting


def what_if(world: World, settings: Settings) -> WhatIf:
    """Serve everybody in the world, in order."""
    return _WhatIfRun(world, settings).run()


def turn_of(world: World, pod: str, settings: Settings) -> Turn:
    """What is decided on, of a pod of the world that lacks nothing: all before it are served."""
    return _WhatIfRun(world, settings).turn_of(pod)


def _without_victims(gang: GangOutcome, victims: Collection[str], by: str) -> GangOutcome:
    """Return the gang without preempted members; it no longer fits if it keeps none."""
    lost = [name for name in gang.nodes if name in victims]
    if not lost:
        return gang
    message = f"it is preempted by {by}"
    nodes = {name: node for name, node in gang.nodes.items() if name not in lost}
    waiting = {**gang.waiting, **dict.fromkeys(lost, message)}
    return replace(gang, nodes=nodes, waiting=waiting, message="" if nodes else message)


class _WhatIfRun:
    def __init__(self, world: World, settings: Settings) -> None:
        self._world = world
        self._settings = settings
        self._only = settings.only
        nodes, self._notes = _nodes(world, settings)
        self._allocator = _allocator(world, settings)
        self._fleet = Fleet()
        self._cluster = Cluster(self._fleet, self._allocator)
        self._there: dict[str, AllocationResult] = {}
        self._given: list[ClaimAllocation] = []
        self._refused: list[UnsatisfiedClaim] = []
        self._settled: dict[str, None] = {}
        self._nodes: dict[str, str] = {}
        # The claims of each pod that was not placed, and what the scheduler says of it.
        self._unplaced: dict[str, tuple[set[str], str]] = {}
        # Why pods of a kind are refused, as long as nobody is given anything.
        self._known: dict[Hashable, tuple[Refusal, ...]] = {}
        self._gangs: list[GangOutcome] = []
        self._in_gangs: set[str] = set()
        # Refused pods and gangs that other pods can help, and a predicate for such pods.
        self._hoping: dict[str, tuple[Sequence[Party], Callable[[Occupant], bool]]] = {}
        self._came: list[Occupant] = []
        self._rejected: dict[str, str] = {}
        self._preemptions: list[Preempted] = []
        self._preempting = Preempting(world, self._cluster)
        # Pods that were on nodes before, and made way.
        self._gone: set[str] = set()
        self._parties: dict[str, Party] = {}
        for node in nodes:
            self._fleet.put(node)
        world.context.load_into(self._fleet)
        for claim in world.claims:
            if claim.status.allocation is not None:
                self._hold(claim_name(claim), claim.status.allocation)
        for pod in world.pods:
            if pod.spec.node_name:
                self._stand(pod, pod.spec.node_name, demand(self._sized(pod)))

    def run(self) -> WhatIf:
        turns = _together(self._world.in_order())
        left = sum(map(_is_queued_turn, turns))
        for parties in _up_to(self._only, turns):
            self._serve_together(parties)
            left -= _is_queued_turn(parties)
            if not left:
                self._serve_again()
            if self._only in self._there:
                break
        settled = [f"claim {name} is allocated already" for name in self._settled]
        if len(settled) > _SETTLED_TOLD_MAX:
            settled = [f"{len(settled)} claims are allocated already"]
        notes = (*self._notes, *settled, *self._waiting())
        # A claim that pods share may be allocated for another of them.
        refused = [each for each in self._refused if each.claim not in self._there]
        waiting = {pod: message for pod, (_, message) in self._unplaced.items()}
        return WhatIf(
            tuple(self._given),
            tuple(refused),
            notes,
            self._nodes,
            waiting,
            tuple(self._gangs),
            self._rejected,
            tuple(self._preemptions),
        )

    def turn_of(self, pod: str) -> Turn:
        """The turn of a pod, after all others before it; those of its own gang have none."""
        turns = _together(self._world.in_order())
        left = sum(map(_is_queued_turn, turns))
        for parties in turns:
            for party in parties:
                if party.pod is not None and party.pod.full_name == pod:
                    profile = self._settings.profile_of(party.pod)
                    member = self._member(party)
                    return Turn(self._cluster, member, profile, self._notes, self._preempting)
            self._serve_together(parties)
            left -= _is_queued_turn(parties)
            if not left:
                self._serve_again()
        raise DryrackError(f"pod {pod!r} not found")

    def _serve_together(self, parties: Sequence[Party]) -> None:
        self._parties |= {_pod_of(party): party for party in parties if party.pod is not None}
        gang = parties[0].membership
        if isinstance(gang, Membership):
            self._serve_gang(gang.key, parties)
        elif isinstance(gang, Flaw):
            self._refuse_flawed(parties[0], gang)
        else:
            self._serve(parties[0])

    def _waiting(self) -> Iterator[str]:
        """Yield notes for pending pods whose claims are all allocated."""
        told = [
            f"pod {pod} is pending: {message}"
            for pod, (claims, message) in self._unplaced.items()
            if self._there.keys() >= claims and pod not in self._in_gangs
        ]
        if self._only is None:
            yield from told[:_WAITING_TOLD_MAX]
            if len(told) > _WAITING_TOLD_MAX:
                yield f"{len(told) - _WAITING_TOLD_MAX} more pods are pending"

    def _serve(self, party: Party) -> None:
        if party.refusal is not None:
            self._reject(party, party.refusal)
            return
        if party.missing:
            self._refuse_missing(party)
            return
        if party.is_bound and _pod_of(party) in self._gone:
            return
        wanted = tuple(claim for claim in party.claims if claim_name(claim) not in self._there)
        self._settled |= {claim_name(c): None for c in party.claims if c.status.allocation}
        if party.pod is not None and not party.pod.spec.node_name:
            outcome = self._placed(self._sized(party.pod), party)
        elif wanted:
            outcome = self._for_devices_alone(party)
        else:
            return
        again: list[Party] = []
        if isinstance(outcome, Unplaced) and party.pod is not None and not party.is_bound:
            found = self._preempting.for_pod(
                self._member(party), self._settings.profile_of(party.pod)
            )
            if found is not None:
                preemption, outcome = found
                again = self._evict(f"pod {_pod_of(party)}", preemption)
        if isinstance(outcome, Placed):
            self._settle(party, outcome)
        else:
            self._refuse(party, wanted, outcome)
        for each in again:
            self._serve(each)

    def _reject(self, party: Party, refusal: AdmissionRefusal) -> None:
        """Refuse a pod that the API server does not create, with the claims that it would have."""
        pod = _pod_of(party)
        self._rejected[pod] = f"{refusal.fact}; {refusal.remedy}"
        fact = f"pod {pod} is refused: {refusal.fact}"
        self._refused += [
            UnsatisfiedClaim(each, (on_any_node(each, Code.ADMISSION, fact, refusal.remedy),), True)
            for each in map(claim_name, party.claims)
            if each not in self._there
        ]

    def _evict(self, by: str, preemption: Preemption) -> list[Party]:
        """Remove the victims; return those that their workload creates again, without a node."""
        self._known.clear()
        self._preempting.count_victims(preemption.victims)
        priorities = {
            "/".join(each.occupant.name): each.occupant.priority for each in preemption.victims
        }
        self._preemptions.append(Preempted(by, priorities, preemption.node))
        again = []
        for victim in preemption.victims:
            name = "/".join(victim.occupant.name)
            self._fleet.remove_pod(victim.key)
            freed = [each for each in victim.occupant.claims if not self._fleet.users(each)]
            for claim in freed:
                self._settled.pop(claim, None)
                if self._there.pop(claim, None) is not None:
                    self._fleet.reopen(self._allocator.set_allocation(claim, None))
            self._given = [each for each in self._given if each.claim not in freed]
            was_placed = self._nodes.pop(name, None) is not None
            party = self._parties.get(name)
            if party is not None and _is_created_again(party):
                again.append(_without_node(party))
            elif was_placed:
                message = f"it is preempted by {by}"
                self._unplaced[name] = (set(freed), message)
                self._refused += [
                    UnsatisfiedClaim(claim, (on_any_node(claim, Code.PREEMPTED, message, ""),))
                    for claim in freed
                ]
            self._gone.add(name)
        self._gangs = [_without_victims(each, priorities.keys(), by) for each in self._gangs]
        return again

    def _serve_again(self) -> None:
        """
        Try pods and gangs again that a pod placed after them can help.

        The scheduler tries them after a second. By then it has tried all pods of its queue, and a
        file that is applied has created the next pod.
        """
        while self._came:
            came = self._came
            self._came = []
            for name, (parties, helps) in list(self._hoping.items()):
                if any(map(helps, came)):
                    del self._hoping[name]
                    for pod in map(_pod_of, parties):
                        self._unplaced.pop(pod, None)
                        self._in_gangs.discard(pod)
                    names = {claim_name(claim) for party in parties for claim in party.claims}
                    self._refused = [each for each in self._refused if each.claim not in names]
                    self._gangs = [each for each in self._gangs if each.gang != name]
                    self._serve_together(parties)

    def _placed(self, pod: Pod, party: Party) -> Placed | Unplaced:
        """Where the scheduler's code puts the pod."""
        wanted, allocated = self._split(party)
        profile = self._settings.profile_of(pod)
        return place(
            pod, wanted, allocated, self._cluster, extended=party.extended, profile=profile
        )

    def _serve_gang(self, key: GangKey, parties: Sequence[Party]) -> None:
        """Those that have no node yet are placed together, but for pods that lack something."""
        for party in parties:
            if party.missing or party.refusal is not None or party.is_bound:
                self._serve(party)
        parties = [party for party in parties if party.refusal is None]
        pods = [party.pod for party in parties if party.pod is not None and not party.missing]
        waiting = {_pod_of(party): party for party in parties if not party.is_bound}
        members = [self._member(party) for party in waiting.values() if not party.missing]
        if not members:
            return
        gang = gang_of(key, pods, self._world.definitions)
        if isinstance(gang, Flaw):
            self._refuse_gang(key, members, waiting, GangRefused(gang.message))
            return
        profile = self._settings.profile_of(members[0].pod)
        place_all = partial(place_gang_now, gang, members, self._cluster, profile=profile)
        outcome = place_all()
        again: list[Party] = []
        if isinstance(outcome, GangRefused) and not outcome.undecided:
            found = self._preempting.for_gang(gang, members, profile, place_all)
            if found is not None:
                again = self._evict(str(key), found)
                outcome = place_all()
        if isinstance(outcome, GangRefused):
            self._refuse_gang(key, members, waiting, outcome)
            helpers = [queueing_hint(member.pod, self._fleet) for member in members]
            helps = [each for each in helpers if each is not None]
            if helps:
                self._hoping[str(key)] = (parties, lambda other: any(h(other) for h in helps))
            return
        for each in outcome.waiting:
            party = waiting[each.member.name]
            self._refuse_member(party, each.message, self._asked_for(party, each.member, outcome))
        for placed in outcome.placements:
            self._settle(waiting[placed.member.name], placed)
        nodes = {placed.member.name: placed.node for placed in outcome.placements}
        others = {each.member.name: each.message for each in outcome.waiting}
        self._gangs.append(GangOutcome(str(key), key, nodes, others))
        for party in again:
            self._serve(party)

    def _refuse_flawed(self, party: Party, flaw: Flaw) -> None:
        """A pod that does not say rightly which gang it is in."""
        names = map(claim_name, party.claims)
        refusals = [on_any_node(name, Code.GANG, flaw.fact, flaw.remedy) for name in names]
        self._refuse_member(party, flaw.message, refusals)
        pod = _pod_of(party)
        self._gangs.append(GangOutcome(f"pod {pod}", None, {}, {pod: ""}, flaw.message))

    def _member(self, party: Party) -> Member:
        assert party.pod is not None, "a claim by itself is in no gang"
        wanted, allocated = self._split(party)
        return Member(self._sized(party.pod), tuple(wanted), tuple(allocated), party.extended)

    def _refuse_gang(
        self,
        key: GangKey,
        members: Sequence[Member],
        waiting: Mapping[str, Party],
        outcome: GangRefused,
    ) -> None:
        """Place no member: some find nothing, or nothing is known, and the others wait for them."""
        lacking = {each.member.name: each.message for each in outcome.lacking}
        fitting = {each.member.name: each.node for each in outcome.fitting}
        for member in members:
            refusals: Sequence[Refusal]
            if member.name in lacking:
                unknown = _unknown(member) if outcome.undecided else ()
                asked_for = self._asked_for(waiting[member.name], member, outcome)
                refusals = (*unknown, *asked_for)
            else:
                refusals = _waits_for_gang(member, fitting, next(iter(lacking), ""), outcome)
            self._refuse_member(waiting[member.name], outcome.message, refusals)
        told = {member.name: lacking.get(member.name, "") for member in members}
        self._gangs.append(GangOutcome(str(key), key, {}, told, outcome.message, outcome.undecided))

    def _asked_for(
        self, party: Party, member: Member, outcome: GangPlaced | GangRefused
    ) -> Sequence[Refusal]:
        """Why each node refuses a member, if somebody wants to know."""
        names = [name for name in map(claim_name, party.claims) if name not in self._there]
        is_asked = bool(names) if self._only is None else self._only in names
        return outcome.refusals(member) if is_asked else ()

    def _refuse_member(self, party: Party, message: str, refusals: Sequence[Refusal]) -> None:
        names = tuple(name for name in map(claim_name, party.claims) if name not in self._there)
        self._unplaced[_pod_of(party)] = (set(names), message)
        self._in_gangs.add(_pod_of(party))
        self._refused += [
            UnsatisfiedClaim(name, ClaimRefusals(refusals, name, alone=len(names) == 1))
            for name in names
        ]

    def _split(self, party: Party) -> tuple[list[ResourceClaim], list[ResourceClaim]]:
        """The claims that are to be allocated, and those that are; none for extended resources."""
        extended = party.extended
        claims = [c for c in party.claims if extended is None or c is not extended.claim]
        had = [self._allocated(claim) for claim in claims if claim_name(claim) in self._there]
        wanted = [claim for claim in claims if claim_name(claim) not in self._there]
        return [_without_allocation(claim) for claim in wanted], had

    def _stand(
        self, pod: Pod, node: str, amounts: Amounts, claims: Sequence[str] | None = None
    ) -> None:
        """The pod is on the node from now on; with these claims, or those that it names."""
        occupant = Occupant.of(pod, claims=claims, amounts=amounts)
        self._fleet.add_pod(pod.full_name, node, occupant)
        if self._hoping:
            self._came.append(occupant)

    def _for_devices_alone(self, party: Party) -> Placed | Unplaced:
        """A claim by itself, or a pod that has its place already."""
        node = party.pod.spec.node_name if party.pod is not None else ""
        stand_in = Pod(spec=PodSpec(node_name=node, tolerations=_ANYTHING))
        if party.pod is None:
            return self._placed(stand_in, party)
        self._fleet.remove_pod(party.pod.full_name)
        outcome = self._placed(stand_in, party)
        names = [claim_name(claim) for claim in party.claims]
        self._stand(party.pod, node, demand(self._sized(party.pod)), names)
        return outcome

    def _sized(self, pod: Pod) -> Pod:
        """The pod as nodes see it; those of unknown size are not asked for any of it."""
        if self._world.nodes:
            return pod
        asks_nothing = changed(
            pod.spec, containers=(), init_containers=(), overhead={}, resources=None
        )
        return changed(pod, spec=asks_nothing)

    def _allocated(self, claim: ResourceClaim) -> ResourceClaim:
        allocation = self._there[claim_name(claim)]
        return changed(claim, status=changed(claim.status, allocation=allocation))

    def _hold(self, claim: str, allocation: AllocationResult) -> None:
        self._there[claim] = allocation
        self._fleet.reopen(self._allocator.set_allocation(claim, allocation))

    def _settle(self, party: Party, placed: Placed | MemberPlaced) -> None:
        """The party has its node and its devices from now on."""
        self._known.clear()
        names = [claim_name(claim) for claim in party.claims]
        if party.pod is None:
            # A claim by itself counts as a pod that asks for nothing.
            self._fleet.add_pod(("claim", *names), placed.node, Occupant(("", ""), placed.amounts))
        else:
            self._nodes[party.pod.full_name] = placed.node
            if not party.pod.spec.node_name:
                self._stand(party.pod, placed.node, placed.amounts, names)
        for name, allocation in placed.given.items():
            self._given.append(ClaimAllocation(name, placed.node, allocation))
            self._hold(name, allocation)

    def _refuse(self, party: Party, wanted: Sequence[ResourceClaim], outcome: Unplaced) -> None:
        names = tuple(map(claim_name, wanted))
        shared: tuple[Refusal, ...] = ()
        if party.pod is not None:
            self._unplaced[party.pod.full_name] = (set(names), outcome.message)
            helps = queueing_hint(party.pod, self._fleet)
            if helps is not None:
                self._hoping[party.pod.full_name] = ((party,), helps)
        empty = lack_of_nodes(self._world, self._settings)
        if empty is not None:
            shared = tuple(on_any_node(each, Code.NO_DEVICES, *empty) for each in names)
        elif names and (self._only is None or self._only in names):
            shared = self._reasons(outcome, names)
        self._refused += [
            UnsatisfiedClaim(name, ClaimRefusals(shared, name, alone=len(names) == 1))
            for name in names
        ]

    def _reasons(self, outcome: Unplaced, names: Sequence[str]) -> tuple[Refusal, ...]:
        # Claims of one pod speak of each other by name, and so does an error.
        if len(names) > 1 or outcome.kind is None:
            return outcome.refusals
        if outcome.kind not in self._known:
            self._known[outcome.kind] = outcome.refusals
        return self._known[outcome.kind]

    def _refuse_missing(self, party: Party) -> None:
        self._refused += [
            UnsatisfiedClaim(each.claim, (for_lack_of(each),)) for each in party.missing
        ]
        pod = f"pod {party.pod.full_name}" if party.pod else ""
        for name in map(claim_name, party.claims):
            if name not in self._there:
                fact = f"{pod} uses a claim or template that does not exist"
                refusal = on_any_node(name, Code.OTHER_CLAIM, fact, "see its other claims")
                self._refused.append(UnsatisfiedClaim(name, (refusal,)))


def _together(parties: Iterator[Party]) -> list[list[Party]]:
    """Parties with those that are served with them: all of a gang, when the first has its turn."""
    turns: dict[object, list[Party]] = {}
    for number, party in enumerate(parties):
        said = party.membership
        key = said.key if isinstance(said, Membership) else number
        turns.setdefault(key, []).append(party)
    return list(turns.values())


def _up_to(claim: str | None, turns: list[list[Party]]) -> Iterable[list[Party]]:
    """Those up to the last who ask for the claim; all, if it is not about one."""
    if claim is None:
        return turns
    asking = [
        number
        for number, parties in enumerate(turns)
        if any(claim in map(claim_name, party.claims) for party in parties)
    ]
    return turns[: asking[-1] + 1] if asking else turns


def _is_queued_turn(parties: Sequence[Party]) -> bool:
    """Return whether the scheduler of a cluster has pods of this turn in its queue."""
    pods = (party.pod for party in parties if party.pod is not None and not party.is_bound)
    return any(pod.metadata.uid for pod in pods)


def _is_created_again(party: Party) -> bool:
    """Return whether a workload creates a pod in the place of this one when it is deleted."""
    owners = () if party.pod is None else party.pod.metadata.owner_references
    return any(each.controller for each in owners)


def _without_node(party: Party) -> Party:
    """Return the pod with its claims as its workload creates it again."""
    pod = party.pod
    assert pod is not None, "only a pod is preempted"
    new = changed(pod, spec=changed(pod.spec, node_name=""))
    return replace(party, pod=new, claims=tuple(map(_without_allocation, party.claims)))


def _without_allocation(claim: ResourceClaim) -> ResourceClaim:
    """Return the claim without devices: it has none any more if it is to be allocated."""
    if claim.status.allocation is None:
        return claim
    return changed(claim, status=changed(claim.status, allocation=None, reserved_for=()))


def _pod_of(party: Party) -> str:
    assert party.pod is not None, "a claim by itself is in no gang"
    return party.pod.full_name


def _waits_for_gang(
    member: Member, nodes: Mapping[str, str], lacking: str, outcome: GangRefused
) -> list[Refusal]:
    """Return what is said of the claims of a member that waits for others, or for its gang."""
    fact = outcome.message
    remedy = ""
    if member.name in nodes:
        known = (
            "it is unknown whether its gang fits" if outcome.undecided else "its gang does not fit"
        )
        fact = f"{known}; the pod alone fits on node {nodes[member.name]}"
        remedy = f"see pod {lacking}"
    return [on_any_node(claim, Code.GANG, fact, remedy) for claim in member.claims]


def _unknown(member: Member) -> list[Refusal]:
    """Return what is said of the claims of a member for which the search found no place."""
    return [on_any_node(claim, Code.UNDECIDED, *UNKNOWN_GANG) for claim in member.claims]


def for_lack_of(missing: Missing) -> Refusal:
    """Return the refusal of a claim that cannot be created."""
    return on_any_node(missing.claim, missing.code, missing.fact, missing.remedy)


def on_any_node(claim: str, code: Code, fact: str, remedy: str) -> Refusal:
    """Return the refusal of a claim for what is so on every node."""
    reason = Reason(claim=claim, request="", device="", code=code, fact=fact, remedy=remedy)
    return Refusal("", (reason,))


def _allocator(world: World, settings: Settings) -> RememberingAllocator:
    """Gives out the devices of the world."""
    features = settings.features or Features.defaults(settings.release)
    memory = settings.memory or Memory()
    live = LiveAllocator(
        features=features,
        release=settings.release,
        chance=settings.chance,
        memo=memory.endings,
    )
    slices = world.slices
    if features.device_taints:
        slices = apply_taint_rules(slices, world.taint_rules)
    for number, each in enumerate(slices):
        # A slice that has yet to be named is not another one.
        metadata = changed(each.metadata, name=each.metadata.name or f"unnamed-{number}")
        live.put_slice(each if each.metadata.name else changed(each, metadata=metadata))
    for device_class in world.classes:
        live.put_class(device_class)
    return RememberingAllocator(live, memory, slices, world.classes)


def lack_of_nodes(world: World, settings: Settings) -> tuple[str, str] | None:
    """Return what has no nodes at all, and what to do; None if there is a node."""
    if settings.assumes_nodes:
        return None if nodes_of(world)[0] else _FILES_EMPTY
    return None if world.nodes else _CLUSTER_EMPTY


def nodes_of(world: World) -> tuple[tuple[Node, ...], tuple[str, ...]]:
    """Return the nodes to use, with notes about them."""
    if world.nodes:
        return world.nodes, ()
    if not world.slices:
        return (), ("; ".join(_FILES_EMPTY),)
    names = sorted(_named_nodes(world.slices))
    note = (
        f"no Node objects found; assuming the nodes of the ResourceSlices and checking only "
        f"devices: {listed(names)}"
        if names
        else "no Node objects found, and no ResourceSlice names a node; assuming a node 'node'"
    )
    status = NodeStatus(allocatable=_UNKNOWN_SIZE)
    assumed = (Node(metadata=ObjectMeta(name=name), status=status) for name in names or ["node"])
    return tuple(assumed), (note,)


def _nodes(world: World, settings: Settings) -> tuple[tuple[Node, ...], tuple[str, ...]]:
    """Return the nodes with their sizes, or only the requested node."""
    only = settings.node
    nodes, notes = nodes_of(world) if settings.assumes_nodes else (world.nodes, ())
    if world.nodes:
        nodes = tuple(map(sized, world.nodes))
        silent = [
            n.metadata.name for n, was in zip(nodes, world.nodes, strict=True) if n is not was
        ]
        notes += (f"{SIZE_ASSUMED}: {listed(silent)}",) if silent else ()
    if only is None:
        return nodes, notes
    chosen = tuple(node for node in nodes if node.metadata.name == only)
    if not chosen:
        known = listed(node.metadata.name for node in nodes)
        raise DryrackError(f"node {only!r} not found; use one of: {known}")
    return chosen, notes


def _named_nodes(slices: Iterable[ResourceSlice]) -> set[str]:
    names: set[str] = set()
    for each in slices:
        names.add(each.spec.node_name or "")
        names.update(device.node_name or "" for device in each.spec.devices)
    return names - {""}
