"""
The members of each gang, and the progress of the gang.

A gang is *complete* from the moment when as many of its members are bound as it needs. From then on
its other members are scheduled like any other pods, and it continues to run if bound members are
deleted. It is *unfinished* while some members are bound and never enough of them were: a plan is
being written, or was interrupted, and the gang has to be completed or dissolved. The scheduler
knows both from its own writes, or, after a restart, from the time of the plan by which the pods
were bound (see `plan_watermark`).
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
    STARVATION_SECONDS,
    Dialect,
    Flaw,
    Membership,
    disruption_group,
    gang_of,
    membership,
)
from dryrack.scheduler.plan_watermark import plan_of
from dryrack.scheduler.queue import Rank

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
    """A gang with its pending and its bound members."""

    gang: Gang | Flaw
    pending: tuple[Raw, ...]
    bound: tuple[Raw, ...]
    pods: Mapping[Name, Pod]


@dataclass(slots=True)
class _Group:
    """The members of one gang, with the facts that are updated at every change."""

    members: dict[Name, Raw] = field(default_factory=dict)
    bound: set[Name] = field(default_factory=set)
    # Members that wait for a claim which has yet to be created.
    unready: set[Name] = field(default_factory=set)
    # From the labels of the pods.
    min_count: int | None = None
    grown_at: float = 0.0
    # Whether an attempt was made while no member was bound.
    was_waiting: bool = False
    # The largest number of bound members so far.
    bound_max: int = 0


class GangTable:
    """The members of each gang, updated as pods change."""

    def __init__(
        self,
        clock: Clock,
        is_enabled: Callable[[Raw, Membership | Flaw], bool],
    ) -> None:
        """Build an empty table; `is_enabled` returns whether a pod's profile schedules gangs."""
        self._is_enabled = is_enabled
        self.definitions: Mapping[GangKey, Definition] = {}
        self.complete: set[GangKey] = set()
        # The time of the newest plan by which members were bound.
        self.newest_plan = ""
        # The gangs that are unfinished, with the time since when.
        self.unfinished: dict[GangKey, float] = {}
        self._clock = clock
        self._gang_of: dict[Name, GangKey | Flaw] = {}
        self._groups: dict[GangKey, _Group] = {}
        self._decoded: dict[Name, tuple[Raw, Pod]] = {}
        # Uids of pods that this scheduler has bound, until the informer shows it.
        self._newly_bound: dict[Name, str] = {}

    def find_gang(self, name: Name) -> GangKey | Flaw | None:
        """Return the gang of a pod, or the flaw in the fields that name its gang."""
        return self._gang_of.get(name)

    def is_in_native_group(self, pod: Hashable) -> bool:
        """Return whether a pod names a PodGroup of `scheduling.k8s.io`."""
        gang = self._gang_of.get(pod) if isinstance(pod, Name) else None
        return gang is not None and not isinstance(gang, Flaw) and gang.dialect is Dialect.POD_GROUP

    def is_scheduled_alone(self, name: Name) -> bool:
        """Return whether a pod is in no gang, or in one that is complete already."""
        gang = self._gang_of.get(name)
        return gang is None or isinstance(gang, Flaw) or gang in self.complete

    def update(self, old: Raw | None, new: Raw | None) -> tuple[GangKey, ...]:
        """Store a change of a pod; return the gangs whose member it was or is."""
        name = name_of(new or old or {})
        before = self._gang_of.get(name)
        if before is None and (new is None or not _may_be_member(new)):
            return ()
        member_of = None
        if new is not None and not _has_failed(new):
            member_of = membership(self._decode(name, new))
            if member_of is not None and not self._is_enabled(new, member_of):
                member_of = None
        now = member_of.key if isinstance(member_of, Membership) else member_of
        if now != before or member_of is None:
            self._forget(name)
        if now is not None and new is not None:
            self._gang_of[name] = now
        if isinstance(member_of, Membership) and new is not None:
            self._add(name, new, member_of)
        gangs = [each for each in (before, now) if each is not None and not isinstance(each, Flaw)]
        return tuple(dict.fromkeys(gangs))

    def _add(self, name: Name, raw: Raw, member_of: Membership) -> None:
        group = self._groups.setdefault(member_of.key, _Group())
        if name not in group.members:
            group.grown_at = self._clock.now()
        group.members[name] = raw
        group.min_count = member_of.min_count
        if raw["spec"].get("nodeName"):
            self._newly_bound.pop(name, None)
            group.bound.add(name)
            group.bound_max = max(group.bound_max, len(group.bound))
            self.newest_plan = max(self.newest_plan, plan_of(raw))
        pod = self._decode(name, raw)
        if any(named_claim(pod, each) is None for each in pod.spec.resource_claims):
            group.unready.add(name)
        else:
            group.unready.discard(name)

    def mark_bound(self, pod: Raw) -> None:
        """Count a pod as bound, before the informer shows it."""
        name = name_of(pod)
        key = self._gang_of.get(name)
        if key is not None and not isinstance(key, Flaw):
            self._newly_bound[name] = pod["metadata"]["uid"]
            self._groups[key].bound.add(name)

    def has_enough_members(self, key: GangKey) -> bool:
        """Return whether as many members exist as the gang needs, each with its claims."""
        group = self._groups.get(key)
        definition = self.definitions.get(key.definition)
        if group is None:
            return False
        minimum = group.min_count if definition is None else definition.min_count
        return minimum is not None and len(group.members) - len(group.unready) >= minimum

    def grown_at(self, key: GangKey) -> float:
        """Return when the last member was created."""
        group = self._groups.get(key)
        return 0.0 if group is None else group.grown_at

    def state(self, key: GangKey, victims: Set[Name] = frozenset()) -> GangState | None:
        """Return the gang, without pods that are preemption victims; None without a member."""
        group = self._groups.get(key)
        if group is None or group.members.keys() <= victims:
            return None
        pending = []
        bound = []
        for raw in sorted(group.members.values(), key=_age):
            name = name_of(raw)
            if name in victims:
                continue
            if raw["spec"].get("nodeName") or (
                self._newly_bound.get(name) == raw["metadata"]["uid"]
            ):
                bound.append(raw)
            elif not raw["spec"].get("schedulingGates"):
                pending.append(raw)
        pods = {name_of(raw): self._decode(name_of(raw), raw) for raw in (*bound, *pending)}
        gang = gang_of(key, tuple(pods.values()), self.definitions)
        return GangState(gang, tuple(pending), tuple(bound), pods)

    def pending_members(self, key: GangKey) -> tuple[Name, ...]:
        """Return the members that are on no node."""
        group = self._groups.get(key)
        return () if group is None else tuple(group.members.keys() - group.bound)

    def disruption_group(
        self, pod: Hashable, victims: Set[Name] = frozenset()
    ) -> DisruptionGroup | None:
        """
        Return the pods that are preempted together with a pod; None if it may go by itself.

        Pods that are victims already do not count.
        """
        key = self._gang_of.get(pod) if isinstance(pod, Name) else None
        if key is None or isinstance(key, Flaw) or pod in victims:
            return None
        group = self._groups[key]
        definition = self.definitions.get(key.definition)
        members = group.members.keys() - victims if victims else group.members
        return disruption_group(key, members, group.min_count, definition)

    def rank(self, key: GangKey) -> Rank:
        """Return the rank of a gang in the queue; see `placement.Gang` for priority and age."""
        members = self._groups.get(key, _Group()).members.values()
        definition = self.definitions.get(key.definition)
        priority = min((raw["spec"].get("priority", 0) for raw in members), default=0)
        created = min((raw["metadata"]["creationTimestamp"] for raw in members), default="")
        if definition is not None:
            priority = priority if definition.priority is None else definition.priority
            created = definition.created or created
        starves_at = seconds_of(created) + STARVATION_SECONDS if created else None
        return Rank(priority, created, starves_at)

    def find_gangs(self, definition: GangKey) -> tuple[GangKey, ...]:
        """Return the gangs that have a definition: one, or its replicas."""
        if not definition.group:
            return (definition,)
        return tuple(key for key in self._groups if key.definition == definition)

    def oldest_open_plan(self) -> str | None:
        """Return the time of the oldest plan whose gang is bound only in part, if it is known."""
        plans = [
            plan_of(group.members[name])
            for key, group in self._groups.items()
            if key not in self.complete
            for name in group.bound
        ]
        return min(filter(None, plans), default=None)

    def update_progress(
        self, key: GangKey, state: GangState, is_open: Callable[[str], bool]
    ) -> None:
        """
        Mark the gang as complete or unfinished once some members are bound.

        After a restart `is_open` returns whether a plan was interrupted. If it was not, the bound
        members are the rest of a complete gang, and are not dissolved.
        """
        gang = state.gang
        group = self._groups[key]
        if not state.bound:
            group.was_waiting = True
        if isinstance(gang, Flaw) or not state.bound or key in self.complete:
            return
        if max(len(state.bound), group.bound_max) >= gang.min_count:
            self.complete.add(key)
            self.unfinished.pop(key, None)
        elif key not in self.unfinished:
            if group.was_waiting or any(is_open(plan_of(raw)) for raw in state.bound):
                self.unfinished[key] = self._clock.now()
            else:
                self.complete.add(key)

    def _decode(self, name: Name, raw: Raw) -> Pod:
        entry = self._decoded.get(name)
        if entry is None or entry[0] is not raw:
            entry = self._decoded[name] = (raw, decode(raw, Pod))
        return entry[1]

    def _forget(self, name: Name) -> None:
        key = self._gang_of.pop(name, None)
        self._newly_bound.pop(name, None)
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
            # Without a bound member the gang starts again.
            group.bound_max = 0
            self.complete.discard(key)
            self.unfinished.pop(key, None)


def _may_be_member(pod: Raw) -> bool:
    """Return whether a pod has a field or a label that can name a gang; most pods have none."""
    labels = get(pod["metadata"], "labels", {})
    return any(each in labels for each in _LABELS) or any(pod["spec"].get(it) for it in _FIELDS)


def _has_failed(pod: Raw) -> bool:
    """Return whether another pod has to replace this one; a pod that succeeded still counts."""
    return "deletionTimestamp" in pod["metadata"] or pod.get("status", {}).get("phase") == "Failed"


def _age(pod: Raw) -> tuple[str, Name]:
    return pod["metadata"]["creationTimestamp"], name_of(pod)
