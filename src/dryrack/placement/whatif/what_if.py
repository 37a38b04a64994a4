"""
What-if: the scheduler's decisions for the objects of files, as if they were a whole cluster.

Pods and claims are placed one after the other, by the code of the scheduler (see `place`), on nodes
with their remaining devices, CPU, memory, ports and places for pods. Pods that are bound occupy
their node from the start, and allocated claims keep their devices. The pods of a gang are placed
together at the turn of the first, or not at all.

A pod that does not fit preempts pods of lower priority, as in the scheduler. Victims that belong to
a workload are placed again after it; others are deleted. Objects that the API server would refuse
are not placed (see `admission`).

A claim that no pod uses is placed as a pod that requests nothing else and tolerates every taint. A
bound pod gets devices on its node only, without the checks of other filters. Without Nodes, the
nodes that slices name are assumed; their size is unknown, so that only devices count there.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace as changed

from dryrack.allocation import (
    Code,
    Features,
    Reason,
    Release,
    apply_taint_rules,
    claim_name,
)
from dryrack.base.errors import DryrackError
from dryrack.base.text import listed
from dryrack.kinds.core import Node, NodeStatus, Pod, PodSpec, Toleration
from dryrack.kinds.expansion.virtual_nodes import CAPACITY, with_default_size
from dryrack.kinds.meta import ObjectMeta
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.releases import DEFAULT_RELEASE
from dryrack.placement.demand import PODS, demand
from dryrack.placement.fleet import Fleet
from dryrack.placement.gangs.dialects import Flaw, Membership, gang_of
from dryrack.placement.gangs.group_reports import find_group_problem, group_texts
from dryrack.placement.gangs.members import Member
from dryrack.placement.gangs.search import GangRefused, place_gang_now
from dryrack.placement.index.affinity_terms import queueing_hint
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
        Iterator,
        Mapping,
        Sequence,
    )

    from dryrack.base.ports import Chance
    from dryrack.kinds.resource import AllocationResult, ResourceClaim
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
# A node of unknown size takes any number of pods.
_UNKNOWN_SIZE = {PODS: Quantity.parse("1000000000")}
# Notes name so many pending pods, and so many claims that are allocated already; a dump has
# hundreds.
_WAITING_NAMED_MAX = 5
_SETTLED_NAMED_MAX = 5
_USUAL = ", ".join(f"{name} {amount}" for name, amount in CAPACITY.items())
# The cause and the remedy for a gang whose search stopped.
UNKNOWN_GANG = (
    "the search for its gang stopped at its limit before it tried all placements",
    "see the message of the gang",
)
# The causes and the remedies without nodes.
_CLUSTER_EMPTY = ("the cluster has no nodes", "add a node")
_FILES_EMPTY = (
    "the files have no nodes",
    "add Nodes or ResourceSlices, or use --instance-type",
)
SIZE_ASSUMED = f"nodes without allocatable resources get those of a virtual node ({_USUAL})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a what-if."""

    chance: Chance
    release: Release = DEFAULT_RELEASE
    features: Features | None = None
    # Use only the node of this name.
    node: str | None = None
    # Explain only this claim, and stop after its turn.
    only: str | None = None
    # The refusals of other what-ifs with the same release and features.
    memory: Memory | None = None
    # Whether nodes that slices name are assumed if no Node exists, as files may omit them.
    assumes_nodes: bool = True
    # The profiles of schedulers by name, if they differ from the default.
    profiles: Mapping[str, Profile] = field(default_factory=dict)

    def profile_of(self, pod: Pod) -> Profile:
        """Return the profile of the pod's scheduler."""
        name = pod.spec.scheduler_name or DEFAULT_SCHEDULER
        return self.profiles.get(name) or profile_named(name, self.release)


@dataclass(frozen=True, slots=True)
class Turn:
    """A pod with its claims, and the cluster at the turn of the pod."""

    cluster: Cluster
    member: Member
    profile: Profile
    notes: tuple[str, ...]
    preempting: Preempting


def what_if(world: World, settings: Settings) -> WhatIf:
    """Place all parties of the world, in order."""
    return _WhatIfRun(world, settings).run()


def turn_of(world: World, pod: str, settings: Settings) -> Turn:
    """Place all parties before the pod, and return its turn; nothing may be missing for it."""
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
        self._fleet = Fleet(settings.release)
        self._cluster = Cluster(self._fleet, self._allocator)
        # The allocations of claims, and of these the new ones; claims that were allocated before.
        self._allocations: dict[str, AllocationResult] = {}
        self._given: list[ClaimAllocation] = []
        self._settled: dict[str, None] = {}
        self._refused: list[UnsatisfiedClaim] = []
        self._nodes: dict[str, str] = {}
        # The claims of each pod that was not placed, and the message of the scheduler.
        self._unplaced: dict[str, tuple[set[str], str]] = {}
        # The refusals of pods of a kind, until the next allocation.
        self._refusals_by_kind: dict[Hashable, tuple[Refusal, ...]] = {}
        self._gangs: list[GangOutcome] = []
        self._in_gangs: set[str] = set()
        # Refused pods and gangs that other pods can help, and a predicate for such pods.
        self._hoping: dict[str, tuple[Sequence[Party], Callable[[Occupant], bool]]] = {}
        self._came: list[Occupant] = []
        self._rejected: dict[str, str] = {}
        self._preemptions: list[Preempted] = []
        self._preempting = Preempting(world, self._cluster)
        # Preempted pods.
        self._gone: set[str] = set()
        self._parties: dict[str, Party] = {}
        for node in nodes:
            self._fleet.put(node)
        world.context.load_into(self._fleet)
        for claim in world.claims:
            if claim.status.allocation is not None:
                self._allocate(claim_name(claim), claim.status.allocation)
        for pod in world.pods:
            if pod.spec.node_name:
                self._add_pod(pod, pod.spec.node_name, demand(self._without_size(pod)))

    def run(self) -> WhatIf:
        turns = _turns_of(self._world)
        left = sum(map(_is_queued_turn, turns))
        last = len(turns)
        if self._only is not None:
            # Stop after the last turn of a pod that uses the claim.
            asking = [
                number
                for number, parties in enumerate(turns)
                if any(self._only in map(claim_name, party.claims) for party in parties)
            ]
            last = asking[-1] + 1 if asking else last
        for parties in turns[:last]:
            self._serve_together(parties)
            left -= _is_queued_turn(parties)
            if not left:
                self._serve_again()
            if self._only in self._allocations:
                break
        settled = [f"claim {name} is allocated already" for name in self._settled]
        if len(settled) > _SETTLED_NAMED_MAX:
            settled = [f"{len(settled)} claims are allocated already"]
        notes = (*self._notes, *settled, *self._notes_of_pending())
        # A claim that pods share may be allocated for another of them.
        refused = [each for each in self._refused if each.claim not in self._allocations]
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
        """Return the turn of a pod after all others; other members of its gang have no turn."""
        turns = _turns_of(self._world)
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
            # The pod names its gang wrongly.
            party = parties[0]
            names = map(claim_name, party.claims)
            refusals = [on_any_node(name, Code.GANG, gang.fact, gang.remedy) for name in names]
            self._refuse_member(party, gang.message, refusals)
            pod = _pod_of(party)
            self._gangs.append(GangOutcome(f"pod {pod}", None, {}, {pod: ""}, gang.message))
        else:
            self._serve(parties[0])

    def _notes_of_pending(self) -> Iterator[str]:
        """Yield notes for pending pods whose claims are all allocated."""
        notes = [
            f"pod {pod} is pending: {message}"
            for pod, (claims, message) in self._unplaced.items()
            if self._allocations.keys() >= claims and pod not in self._in_gangs
        ]
        if self._only is None:
            yield from notes[:_WAITING_NAMED_MAX]
            if len(notes) > _WAITING_NAMED_MAX:
                yield f"{len(notes) - _WAITING_NAMED_MAX} more pods are pending"

    def _serve(self, party: Party) -> None:
        """Place a party that is in no gang, or refuse it."""
        pod = party.pod
        if party.refusal is not None:
            self._reject(party, party.refusal)
            return
        if party.missing:
            self._refuse_missing(party)
            return
        if party.is_bound and _pod_of(party) in self._gone:
            return
        wanted = tuple(c for c in party.claims if claim_name(c) not in self._allocations)
        self._settled |= {claim_name(c): None for c in party.claims if c.status.allocation}
        again: list[Party] = []
        if pod is None or party.is_bound:
            if not wanted:
                return
            outcome = self._place_for_devices(party)
        else:
            outcome = self._place(self._without_size(pod), party)
            if isinstance(outcome, Unplaced):
                profile = self._settings.profile_of(pod)
                preempting = self._preempting.for_pod(self._member(party), profile)
                if preempting is not None:
                    preemption, outcome = preempting
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
            if each not in self._allocations
        ]

    def _evict(self, by: str, preemption: Preemption) -> list[Party]:
        """Remove the victims; return those that their workload creates again, without a node."""
        self._refusals_by_kind.clear()
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
                if self._allocations.pop(claim, None) is not None:
                    self._fleet.reopen(self._allocator.set_allocation(claim, None))
            self._given = [each for each in self._given if each.claim not in freed]
            was_placed = self._nodes.pop(name, None) is not None
            party = self._parties.get(name)
            pod = None if party is None else party.pod
            owners = () if pod is None else pod.metadata.owner_references
            if party is not None and pod is not None and any(it.controller for it in owners):
                # Its workload creates the pod again, without a node and devices.
                new = changed(pod, spec=changed(pod.spec, node_name=""))
                claims = tuple(map(_without_allocation, party.claims))
                again.append(replace(party, pod=new, claims=claims))
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

    def _place(self, pod: Pod, party: Party) -> Placed | Unplaced:
        wanted, allocated = self._split(party)
        profile = self._settings.profile_of(pod)
        return place(
            pod, wanted, allocated, self._cluster, extended=party.extended, profile=profile
        )

    def _serve_gang(self, key: GangKey, parties: Sequence[Party]) -> None:
        """Place the pending members together, except pods with missing objects."""
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
        texts = group_texts(key, self._fleet.behaviour)
        problem = "" if texts is None else find_group_problem(texts, gang, gang.members)
        if problem:
            self._refuse_gang(key, members, waiting, GangRefused(f"{key}: {problem}"))
            return
        profile = self._settings.profile_of(members[0].pod)
        place_all = partial(place_gang_now, gang, members, self._cluster, profile=profile)
        outcome = place_all()
        again: list[Party] = []
        if isinstance(outcome, GangRefused) and not outcome.undecided:
            preemption = self._preempting.for_gang(gang, members, profile, place_all)
            if preemption is not None:
                again = self._evict(str(key), preemption)
                outcome = place_all()
        if isinstance(outcome, GangRefused):
            self._refuse_gang(key, members, waiting, outcome)
            hints = [queueing_hint(member.pod, self._fleet) for member in members]
            helps = [each for each in hints if each is not None]
            if helps:
                self._hoping[str(key)] = (parties, lambda other: any(h(other) for h in helps))
            return
        for each in outcome.waiting:
            party = waiting[each.member.name]
            self._refuse_member(party, each.message, self._refusals_of(party, each.member, outcome))
        for placed in outcome.placements:
            self._settle(waiting[placed.member.name], placed)
        nodes = {placed.member.name: placed.node for placed in outcome.placements}
        others = {each.member.name: each.message for each in outcome.waiting}
        self._gangs.append(GangOutcome(str(key), key, nodes, others))
        for party in again:
            self._serve(party)

    def _member(self, party: Party) -> Member:
        assert party.pod is not None, "a claim by itself is in no gang"
        wanted, allocated = self._split(party)
        pod = self._without_size(party.pod)
        return Member(pod, tuple(wanted), tuple(allocated), party.extended)

    def _refuse_gang(
        self,
        key: GangKey,
        members: Sequence[Member],
        waiting: Mapping[str, Party],
        outcome: GangRefused,
    ) -> None:
        """Place no member: some do not fit, or the search stopped, and the others wait for them."""
        lacking = {each.member.name: each.message for each in outcome.lacking}
        fitting = {each.member.name: each.node for each in outcome.fitting}
        unknown = "it is unknown whether its gang fits"
        state = unknown if outcome.undecided else "its gang does not fit"
        for member in members:
            if member.name in lacking:
                claims = member.claims if outcome.undecided else ()
                refusals = [on_any_node(each, Code.UNDECIDED, *UNKNOWN_GANG) for each in claims]
                refusals += self._refusals_of(waiting[member.name], member, outcome)
            else:
                fact = outcome.message
                remedy = ""
                if member.name in fitting:
                    fact = f"{state}; the pod alone fits on node {fitting[member.name]}"
                    remedy = f"see pod {next(iter(lacking), '')}"
                refusals = [on_any_node(each, Code.GANG, fact, remedy) for each in member.claims]
            self._refuse_member(waiting[member.name], outcome.message, refusals)
        others = {member.name: lacking.get(member.name, "") for member in members}
        self._gangs.append(
            GangOutcome(str(key), key, {}, others, outcome.message, outcome.undecided)
        )

    def _refusals_of(
        self, party: Party, member: Member, outcome: GangPlaced | GangRefused
    ) -> Sequence[Refusal]:
        """Return why each node refuses a member, if a claim to be explained is among its own."""
        names = self._names_to_allocate(party)
        is_asked = bool(names) if self._only is None else self._only in names
        return outcome.refusals(member) if is_asked else ()

    def _names_to_allocate(self, party: Party) -> tuple[str, ...]:
        names = map(claim_name, party.claims)
        return tuple(name for name in names if name not in self._allocations)

    def _refuse_member(self, party: Party, message: str, refusals: Sequence[Refusal]) -> None:
        names = self._names_to_allocate(party)
        self._unplaced[_pod_of(party)] = (set(names), message)
        self._in_gangs.add(_pod_of(party))
        self._refused += [
            UnsatisfiedClaim(name, ClaimRefusals(refusals, name, alone=len(names) == 1))
            for name in names
        ]

    def _split(self, party: Party) -> tuple[list[ResourceClaim], list[ResourceClaim]]:
        """Return the claims to be allocated, and those that are, without extended resources."""
        wanted: list[ResourceClaim] = []
        allocated: list[ResourceClaim] = []
        for claim in party.claims:
            allocation = self._allocations.get(claim_name(claim))
            if party.extended is not None and claim is party.extended.claim:
                continue
            if allocation is None:
                wanted.append(_without_allocation(claim))
            else:
                status = changed(claim.status, allocation=allocation)
                allocated.append(changed(claim, status=status))
        return wanted, allocated

    def _add_pod(
        self, pod: Pod, node: str, amounts: Amounts, claims: Sequence[str] | None = None
    ) -> None:
        """Put the pod on the node, with these claims, or with those that it names."""
        occupant = Occupant.of(pod, claims=claims, amounts=amounts)
        self._fleet.add_pod(pod.full_name, node, occupant)
        if self._hoping:
            self._came.append(occupant)

    def _place_for_devices(self, party: Party) -> Placed | Unplaced:
        """Place a claim by itself, or the claims of a bound pod."""
        node = party.pod.spec.node_name if party.pod is not None else ""
        stand_in = Pod(spec=PodSpec(node_name=node, tolerations=_ANYTHING))
        if party.pod is None:
            return self._place(stand_in, party)
        self._fleet.remove_pod(party.pod.full_name)
        outcome = self._place(stand_in, party)
        names = [claim_name(claim) for claim in party.claims]
        self._add_pod(party.pod, node, demand(self._without_size(party.pod)), names)
        return outcome

    def _without_size(self, pod: Pod) -> Pod:
        """Return the pod; without its requests if the size of nodes is unknown."""
        if self._world.nodes:
            return pod
        asks_nothing = changed(
            pod.spec, containers=(), init_containers=(), overhead={}, resources=None
        )
        return changed(pod, spec=asks_nothing)

    def _allocate(self, claim: str, allocation: AllocationResult) -> None:
        self._allocations[claim] = allocation
        self._fleet.reopen(self._allocator.set_allocation(claim, allocation))

    def _settle(self, party: Party, placed: Placed | MemberPlaced) -> None:
        """Put the party on its node, and allocate its devices."""
        self._refusals_by_kind.clear()
        names = [claim_name(claim) for claim in party.claims]
        if party.pod is None:
            # A claim by itself counts as a pod without requests.
            self._fleet.add_pod(("claim", *names), placed.node, Occupant(("", ""), placed.amounts))
        else:
            self._nodes[party.pod.full_name] = placed.node
            if not party.pod.spec.node_name:
                self._add_pod(party.pod, placed.node, placed.amounts, names)
        for name, allocation in placed.given.items():
            self._given.append(ClaimAllocation(name, placed.node, allocation))
            self._allocate(name, allocation)

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
        # Reasons of claims of one pod name each other, and so does an error.
        if len(names) > 1 or outcome.kind is None:
            return outcome.refusals
        if outcome.kind not in self._refusals_by_kind:
            self._refusals_by_kind[outcome.kind] = outcome.refusals
        return self._refusals_by_kind[outcome.kind]

    def _refuse_missing(self, party: Party) -> None:
        self._refused += [
            UnsatisfiedClaim(each.claim, (for_lack_of(each),)) for each in party.missing
        ]
        pod = f"pod {party.pod.full_name}" if party.pod else ""
        for name in self._names_to_allocate(party):
            fact = f"{pod} uses a claim or template that does not exist"
            refusal = on_any_node(name, Code.OTHER_CLAIM, fact, "see its other claims")
            self._refused.append(UnsatisfiedClaim(name, (refusal,)))


def _turns_of(world: World) -> list[list[Party]]:
    """Return the parties by turn: all members of a gang have the turn of the first."""
    turns: dict[object, list[Party]] = {}
    for number, party in enumerate(world.in_order()):
        gang = party.membership
        key = gang.key if isinstance(gang, Membership) else number
        turns.setdefault(key, []).append(party)
    return list(turns.values())


def _is_queued_turn(parties: Sequence[Party]) -> bool:
    """Return True if the scheduler of a cluster has pods of this turn in its queue."""
    pods = (party.pod for party in parties if party.pod is not None and not party.is_bound)
    return any(pod.metadata.uid for pod in pods)


def _without_allocation(claim: ResourceClaim) -> ResourceClaim:
    """Return the claim without an allocation of an earlier time."""
    if claim.status.allocation is None:
        return claim
    return changed(claim, status=changed(claim.status, allocation=None, reserved_for=()))


def _pod_of(party: Party) -> str:
    assert party.pod is not None, "a claim by itself is in no gang"
    return party.pod.full_name


def for_lack_of(missing: Missing) -> Refusal:
    """Return the refusal of a claim that cannot be created."""
    return on_any_node(missing.claim, missing.code, missing.fact, missing.remedy)


def on_any_node(claim: str, code: Code, fact: str, remedy: str) -> Refusal:
    """Return the refusal of a claim for a cause that holds on every node."""
    reason = Reason(claim=claim, request="", device="", code=code, fact=fact, remedy=remedy)
    return Refusal("", (reason,))


def _allocator(world: World, settings: Settings) -> RememberingAllocator:
    """Return an allocator with the devices of the world."""
    features = settings.features or Features.defaults(settings.release)
    slices = world.slices
    if features.device_taints:
        slices = apply_taint_rules(slices, world.taint_rules)
    named = []
    for number, each in enumerate(slices):
        # Slices without a name yet are different slices.
        metadata = changed(each.metadata, name=each.metadata.name or f"unnamed-{number}")
        named.append(each if each.metadata.name else changed(each, metadata=metadata))
    return RememberingAllocator(
        settings.memory or Memory(),
        named,
        world.classes,
        features=features,
        release=settings.release,
        chance=settings.chance,
    )


def lack_of_nodes(world: World, settings: Settings) -> tuple[str, str] | None:
    """Return the cause and the remedy if there are no nodes; None if there is a node."""
    if settings.assumes_nodes:
        return None if nodes_of(world)[0] else _FILES_EMPTY
    return None if world.nodes else _CLUSTER_EMPTY


def nodes_of(world: World) -> tuple[tuple[Node, ...], tuple[str, ...]]:
    """Return the nodes to use, with notes about them."""
    if world.nodes:
        return world.nodes, ()
    if not world.slices:
        return (), ("; ".join(_FILES_EMPTY),)
    named = {each.spec.node_name for each in world.slices}
    named |= {device.node_name for each in world.slices for device in each.spec.devices}
    names = sorted(filter(None, named))
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
        nodes = tuple(map(with_default_size, world.nodes))
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
