"""
Gangs as the scheduler knows them: which pods are in which, and how far each has come.

A gang is *whole* from the moment when as many of its members are bound as it needs. From then on
its other members are pods like any others: they come late, alone, and if bound ones are deleted the
rest runs on. It is *unfinished* while some members are bound and never enough of them were: that
is so in the middle of a plan only, and has to end. Both are known from what this scheduler did
itself, or, after a restart, from the time of the plan by which its pods were bound (see
`plan_watermark`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dryrack.client.informer import Name, name_of
from dryrack.client.timekeeping import seconds_of
from dryrack.kinds.core import Pod
from dryrack.kinds.decode import decode
from dryrack.kinds.expansion.pod_claims import named_claim
from dryrack.kinds.paths import get
from dryrack.kinds.scheduling import CoschedulingPodGroup
from dryrack.placement import (
    Flaw,
    Membership,
    disruption_group,
    gang_of,
    membership,
)
from dryrack.scheduler.plan_watermark import plan_of
from dryrack.scheduler.queue import STARVATION_SECONDS, Rank

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Set

    from dryrack.base.ports import Clock
    from dryrack.kinds.raw import Raw
    from dryrack.placement import Definition, DisruptionGroup, Gang, GangKey

_LABELS = (
    "pod-group.scheduling.kubenexus.io/name",
    "pod-group.scheduling.sigs.k8s.io/name",
    CoschedulingPodGroup.POD_LABEL,
)
_FIELDS = ("schedulingGroup", "workloadRef")


@dataclass(frozen=True, slots=True)
class GangState:
    """A gang with its members: those that wait for a node, and those that have one."""

    gang: Gang | Flaw
    pending: tuple[Raw, ...]
    bound: tuple[Raw, ...]
    pods: Mapping[Name, Pod]


@dataclass(slots=True)
class _Group:
    """The members of one gang, and what matters about them at every change."""

    members: dict[Name, Raw] = field(default_factory=dict)
    bound: set[Name] = field(default_factory=set)
    # Those that wait for a claim which has yet to be made.
    unready: set[Name] = field(default_factory=set)
    # As the pods say it.
    min_count: int | None = None
    grown_at: float = 0.0
    # Whether it was looked at when none was bound, and how many were at most since.
    was_waiting: bool = False
    bound_max: int = 0


class GangTable:
    """Members by gang, kept as pods change."""

    def __init__(
        self,
        clock: Clock,
        reads: Callable[[Raw, Membership | Flaw], bool],
    ) -> None:
        """`reads` tells if what a pod says about its gang counts."""
        self._reads = reads
        self.definitions: Mapping[GangKey, Definition] = {}
        self.whole: set[GangKey] = set()
        # The last of those by which members were bound.
        self.newest_plan = ""
        # Since when.
        self.unfinished: dict[GangKey, float] = {}
        self._clock = clock
        self._gang_of: dict[Name, GangKey | Flaw] = {}
        self._groups: dict[GangKey, _Group] = {}
        self._decoded: dict[Name, tuple[Raw, Pod]] = {}
        # Those that were bound here, until the caches show it.
        self._arrived: dict[Name, str] = {}

    def of(self, name: Name) -> GangKey | Flaw | None:
        """The gang of a pod, or what is wrong with how the pod says it."""
        return self._gang_of.get(name)

    def is_alone(self, name: Name) -> bool:
        """Whether a pod is decided by itself: in no gang, or in one that is whole already."""
        gang = self._gang_of.get(name)
        return gang is None or isinstance(gang, Flaw) or gang in self.whole

    def change(self, old: Raw | None, new: Raw | None) -> tuple[GangKey, ...]:
        """A pod changed; the gangs that this is about."""
        name = name_of(new or old or {})
        before = self._gang_of.get(name)
        if before is None and (new is None or not _may_be_member(new)):
            return ()
        said = None
        if new is not None and not _has_left(new):
            said = membership(self._pod(name, new))
            if said is not None and not self._reads(new, said):
                said = None
        now = said.key if isinstance(said, Membership) else said
        if now != before or said is None:
            self._forget(name)
        if now is not None and new is not None:
            self._gang_of[name] = now
        if isinstance(said, Membership) and new is not None:
            self._join(name, new, said)
        gangs = [each for each in (before, now) if each is not None and not isinstance(each, Flaw)]
        return tuple(dict.fromkeys(gangs))

    def _join(self, name: Name, raw: Raw, said: Membership) -> None:
        group = self._groups.setdefault(said.key, _Group())
        if name not in group.members:
            group.grown_at = self._clock.now()
        group.members[name] = raw
        group.min_count = said.min_count
        if raw["spec"].get("nodeName"):
            self._arrived.pop(name, None)
            group.bound.add(name)
            group.bound_max = max(group.bound_max, len(group.bound))
            self.newest_plan = max(self.newest_plan, plan_of(raw))
        pod = self._pod(name, raw)
        if any(named_claim(pod, each) is None for each in pod.spec.resource_claims):
            group.unready.add(name)
        else:
            group.unready.discard(name)

    def arrived(self, pod: Raw) -> None:
        """The pod is bound, whatever the caches show."""
        name = name_of(pod)
        key = self._gang_of.get(name)
        if key is not None and not isinstance(key, Flaw):
            self._arrived[name] = pod["metadata"]["uid"]
            self._groups[key].bound.add(name)

    def is_complete(self, key: GangKey) -> bool:
        """Whether as many members are there as the gang needs, and have their claims."""
        group = self._groups.get(key)
        definition = self.definitions.get(key.definition)
        if group is None:
            return False
        minimum = group.min_count if definition is None else definition.min_count
        return minimum is not None and len(group.members) - len(group.unready) >= minimum

    def grown_at(self, key: GangKey) -> float:
        """When the last member came."""
        group = self._groups.get(key)
        return 0.0 if group is None else group.grown_at

    def state(self, key: GangKey, leaving: Set[Name] = frozenset()) -> GangState | None:
        """The gang as it is, where pods that are `leaving` count as gone; None without a member."""
        group = self._groups.get(key)
        if group is None or group.members.keys() <= leaving:
            return None
        pending = []
        bound = []
        for raw in sorted(group.members.values(), key=_age):
            if name_of(raw) in leaving:
                continue
            if self._is_bound(raw):
                bound.append(raw)
            elif not raw["spec"].get("schedulingGates"):
                pending.append(raw)
        pods = {name_of(raw): self._pod(name_of(raw), raw) for raw in (*bound, *pending)}
        gang = gang_of(key, tuple(pods.values()), self.definitions)
        return GangState(gang, tuple(pending), tuple(bound), pods)

    def pending(self, key: GangKey) -> tuple[Name, ...]:
        """The members that are on no node."""
        group = self._groups.get(key)
        return () if group is None else tuple(group.members.keys() - group.bound)

    def disruption_group(
        self, pod: Hashable, leaving: Set[Name] = frozenset()
    ) -> DisruptionGroup | None:
        """
        Who goes with a pod that makes way; nobody, if it may go by itself.

        A native group says so itself. Pods that are `leaving` count as gone.
        """
        key = self._gang_of.get(pod) if isinstance(pod, Name) else None
        if key is None or isinstance(key, Flaw) or pod in leaving:
            return None
        group = self._groups[key]
        definition = self.definitions.get(key.definition)
        members = group.members.keys() - leaving if leaving else group.members
        return disruption_group(key, members, group.min_count, definition)

    def rank(self, key: GangKey) -> Rank:
        """As a gang comes in the queue; see `placement.Gang` for its priority and age."""
        members = self._groups.get(key, _Group()).members.values()
        definition = self.definitions.get(key.definition)
        priority = min((raw["spec"].get("priority", 0) for raw in members), default=0)
        created = min((raw["metadata"]["creationTimestamp"] for raw in members), default="")
        if definition is not None:
            priority = priority if definition.priority is None else definition.priority
            created = definition.created or created
        starves_at = seconds_of(created) + STARVATION_SECONDS if created else None
        return Rank(priority, created, starves_at)

    def keys(self, definition: GangKey) -> tuple[GangKey, ...]:
        """The gangs that have a definition: one, or its replicas."""
        if not definition.group:
            return (definition,)
        return tuple(key for key in self._groups if key.definition == definition)

    def oldest_open(self) -> str | None:
        """The first plan of those whose gangs are half bound, as far as that is known."""
        plans = [
            plan_of(group.members[name])
            for key, group in self._groups.items()
            if key not in self.whole
            for name in group.bound
        ]
        return min(filter(None, plans), default=None)

    def judge(self, key: GangKey, state: GangState, is_open: Callable[[str], bool]) -> None:
        """
        Finds out, once some members are bound, whether the gang is whole or unfinished.

        After a restart nobody remembers; `is_open` tells if a plan was left in the middle. Where
        nothing says so, bound members are taken for the rest of a whole gang, and left alone.
        """
        gang = state.gang
        group = self._groups[key]
        if not state.bound:
            group.was_waiting = True
        if isinstance(gang, Flaw) or not state.bound or key in self.whole:
            return
        if max(len(state.bound), group.bound_max) >= gang.min_count:
            self.whole.add(key)
            self.unfinished.pop(key, None)
        elif key not in self.unfinished:
            if group.was_waiting or any(is_open(plan_of(raw)) for raw in state.bound):
                self.unfinished[key] = self._clock.now()
            else:
                self.whole.add(key)

    def _is_bound(self, raw: Raw) -> bool:
        return bool(raw["spec"].get("nodeName")) or (
            self._arrived.get(name_of(raw)) == raw["metadata"]["uid"]
        )

    def _pod(self, name: Name, raw: Raw) -> Pod:
        known = self._decoded.get(name)
        if known is None or known[0] is not raw:
            known = self._decoded[name] = (raw, decode(raw, Pod))
        return known[1]

    def _forget(self, name: Name) -> None:
        key = self._gang_of.pop(name, None)
        self._arrived.pop(name, None)
        self._decoded.pop(name, None)
        if key is None or isinstance(key, Flaw):
            return
        group = self._groups[key]
        del group.members[name]
        group.bound.discard(name)
        group.unready.discard(name)
        if not group.members:
            del self._groups[key]
        if not group.bound:
            # It begins anew.
            group.bound_max = 0
            self.whole.discard(key)
            self.unfinished.pop(key, None)


def _may_be_member(pod: Raw) -> bool:
    """Whether it is worth reading what the pod says about gangs."""
    labels = get(pod["metadata"], "labels", {})
    return any(each in labels for each in _LABELS) or any(pod["spec"].get(it) for it in _FIELDS)


def _has_left(pod: Raw) -> bool:
    """One that has done its work still counts: nobody has to come in its place."""
    return "deletionTimestamp" in pod["metadata"] or pod.get("status", {}).get("phase") == "Failed"


def _age(pod: Raw) -> tuple[str, Name]:
    return pod["metadata"]["creationTimestamp"], name_of(pod)
