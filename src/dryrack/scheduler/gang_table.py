"""
Gangs as the scheduler knows them: which pods are in which, and how far each has come.

A gang is *whole* from the moment when as many of its members are bound as it needs. From then on
its other members are pods like any others: they come late, alone, and if bound ones are deleted the
rest runs on. It is *unfinished* while some members are bound and never enough of them were: that
is so in the middle of a plan only, and has to end. Both are known from what this scheduler did
itself, or, after a restart, from what its pods and their claims say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.client.informer import Name, name_of
from dryrack.client.timekeeping import seconds_of
from dryrack.kinds.core import Pod
from dryrack.kinds.decode import decode
from dryrack.kinds.scheduling import CoschedulingPodGroup
from dryrack.placement import Flaw, Membership, gang_of, membership
from dryrack.scheduler.queue import STARVATION_SECONDS, Rank

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from dryrack.base.ports import Clock
    from dryrack.kinds.raw import Raw
    from dryrack.placement import Definition, Gang, GangKey

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


class GangTable:
    """Members by gang, kept as pods change."""

    def __init__(
        self,
        clock: Clock,
        reads: Callable[[Raw, Membership | Flaw], bool] = lambda _pod, _said: True,
    ) -> None:
        """`reads` tells if what a pod says about its gang counts."""
        self._reads = reads
        self.definitions: Mapping[GangKey, Definition] = {}
        self.whole: set[GangKey] = set()
        # Since when.
        self.unfinished: dict[GangKey, float] = {}
        self._clock = clock
        self._gang_of: dict[Name, GangKey | Flaw] = {}
        self._members: dict[GangKey, dict[Name, Raw]] = {}
        self._decoded: dict[Name, tuple[Raw, Pod]] = {}
        # Those that were bound here, until the caches show it.
        self._arrived: dict[Name, str] = {}
        self._grown_at: dict[GangKey, float] = {}

    def of(self, name: Name) -> GangKey | Flaw | None:
        """The gang of a pod, or what is wrong with how the pod says it."""
        return self._gang_of.get(name)

    def change(self, old: Raw | None, new: Raw | None) -> tuple[GangKey, ...]:
        """A pod changed; the gangs that this is about."""
        name = name_of(new or old or {})
        before = self._gang_of.get(name)
        if before is None and (new is None or not _may_be_member(new)):
            return ()
        if new is None or _has_left(new):
            self._forget(name)
            return () if before is None or isinstance(before, Flaw) else (before,)
        if new["spec"].get("nodeName"):
            self._arrived.pop(name, None)
        said = membership(self._pod(name, new))
        if said is not None and not self._reads(new, said):
            said = None
        now = said.key if isinstance(said, Membership) else said
        if now != before:
            self._forget(name)
        if now is None:
            return () if before is None or isinstance(before, Flaw) else (before,)
        self._gang_of[name] = now
        if isinstance(now, Flaw):
            return () if before is None or isinstance(before, Flaw) else (before,)
        members = self._members.setdefault(now, {})
        if name not in members:
            self._grown_at[now] = self._clock.now()
        members[name] = new
        return (now,) if before in (None, now) or isinstance(before, Flaw) else (before, now)

    def arrived(self, pod: Raw) -> None:
        """The pod is bound, whatever the caches show."""
        self._arrived[name_of(pod)] = pod["metadata"]["uid"]

    def grown_at(self, key: GangKey) -> float:
        """When the last member came."""
        return self._grown_at.get(key, 0.0)

    def state(self, key: GangKey) -> GangState | None:
        """The gang as it is; None if it has no member."""
        members = self._members.get(key)
        if not members:
            return None
        pending, bound = [], []
        for raw in sorted(members.values(), key=_age):
            if self._is_bound(raw):
                bound.append(raw)
            elif not raw["spec"].get("schedulingGates"):
                pending.append(raw)
        if not bound:
            self.whole.discard(key)
            self.unfinished.pop(key, None)
        pods = {name_of(raw): self._pod(name_of(raw), raw) for raw in (*bound, *pending)}
        gang = gang_of(key, tuple(pods.values()), self.definitions)
        return GangState(gang, tuple(pending), tuple(bound), pods)

    def pending(self, key: GangKey) -> tuple[Name, ...]:
        """The members that are on no node."""
        members = self._members.get(key, {})
        return tuple(name for name, raw in members.items() if not self._is_bound(raw))

    def together(self) -> Mapping[Hashable, tuple[Name, ...]]:
        """Members on nodes that preemption takes all or none of, by each of them."""
        found: dict[Hashable, tuple[Name, ...]] = {}
        for key, members in self._members.items() if self._is_any_whole() else ():
            definition = self.definitions.get(key.definition)
            if definition is not None and definition.disrupted_whole:
                bound = tuple(name for name, raw in members.items() if self._is_bound(raw))
                found.update(dict.fromkeys(bound, bound))
        return found

    def _is_any_whole(self) -> bool:
        return any(each.disrupted_whole for each in self.definitions.values())

    def rank(self, key: GangKey) -> Rank:
        """As a gang comes in the queue; see `placement.Gang` for its priority and age."""
        members = self._members.get(key, {}).values()
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
        return tuple(key for key in self._members if key.definition == definition)

    def judge(self, key: GangKey, state: GangState, holds: Callable[[Pod], bool]) -> None:
        """
        Finds out, once some members are bound, whether the gang is whole or unfinished.

        After a restart nobody remembers. Members that wait with claims reserved for them, or that
        were there when others were bound and have no claims, were left out by an interrupted plan.
        Where nothing says so, bound members are taken for the rest of a whole gang, and left alone.
        """
        gang = state.gang
        if isinstance(gang, Flaw) or not state.bound or key in self.whole:
            return
        if len(state.bound) >= gang.min_count:
            self.whole.add(key)
            self.unfinished.pop(key, None)
        elif key not in self.unfinished:
            last = max(map(_bound_at, state.bound))
            left = [state.pods[name_of(raw)] for raw in state.pending]
            if any(_was_left_out(pod, last, holds) for pod in left):
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
        self._members[key].pop(name, None)
        if not self._members[key]:
            del self._members[key]
            self._grown_at.pop(key, None)
            self.whole.discard(key)
            self.unfinished.pop(key, None)


def _may_be_member(pod: Raw) -> bool:
    """Whether it is worth reading what the pod says about gangs."""
    labels = pod["metadata"].get("labels") or {}
    return any(each in labels for each in _LABELS) or any(pod["spec"].get(it) for it in _FIELDS)


def _has_left(pod: Raw) -> bool:
    """One that has done its work still counts: nobody has to come in its place."""
    return "deletionTimestamp" in pod["metadata"] or pod.get("status", {}).get("phase") == "Failed"


def _age(pod: Raw) -> tuple[str, Name]:
    return pod["metadata"]["creationTimestamp"], name_of(pod)


def _bound_at(pod: Raw) -> str:
    for condition in pod.get("status", {}).get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "True":
            return str(condition.get("lastTransitionTime", ""))
    return ""


def _was_left_out(pod: Pod, bound_at: str, holds: Callable[[Pod], bool]) -> bool:
    if pod.spec.resource_claims:
        return holds(pod)
    return (pod.metadata.creation_timestamp or "") <= bound_at
