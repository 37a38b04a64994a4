"""Views of gangs: their needed, existing and placed members, and why they wait."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from dryrack.placement.gangs.dialects import (
    Flaw,
    GangKey,
    definitions,
    gang_of,
    key_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dryrack.kinds.core import Pod
    from dryrack.kinds.meta import KubernetesObject
    from dryrack.placement.gangs.dialects import Gang


class GangStatus(StrEnum):
    """The state of a gang."""

    PLACED = "placed"
    """As many members as it needs are on nodes."""
    FINISHED = "finished"
    """All its members have succeeded, and they are as many as it needs."""
    WAITING = "waiting"
    GATHERING = "gathering"
    """It has fewer members than it needs."""
    INCOMPLETE = "incomplete"
    """Some members are on nodes, and fewer than it needs."""
    INVALID = "invalid"


_PLACED = (GangStatus.PLACED, GangStatus.FINISHED)


@dataclass(frozen=True, slots=True, kw_only=True)
class GangView:
    """A gang, as it is now."""

    key: GangKey
    status: GangStatus
    # None if it is unknown how many members it needs.
    min_count: int | None
    # The names of members with and without a node.
    placed: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    created: str = ""
    why: str = ""

    @property
    def name(self) -> str:
        """Return its name within the namespace; in a Workload with the group and its replica."""
        parts = (self.key.name, self.key.group, self.key.replica)
        return "/".join(part for part in parts if part)

    @property
    def is_placed(self) -> bool:
        """Return True if as many members as it needs are placed, or have succeeded."""
        return self.status in _PLACED

    def document(self) -> dict[str, Any]:
        """Return the gang as programs read it."""
        return {
            "namespace": self.key.namespace,
            "name": self.name,
            "dialect": self.key.dialect.value,
            "status": str(self.status),
            "minCount": self.min_count,
            "placed": list(self.placed),
            "waiting": list(self.waiting),
            "created": self.created,
            "why": self.why,
        }


def gangs_of(pods: Iterable[Pod], groups: Iterable[KubernetesObject] = ()) -> tuple[GangView, ...]:
    """Return every gang that pods or objects name, by namespace and name."""
    known = {each.key: each for group in groups for each in definitions(group)}
    members: dict[GangKey, list[Pod]] = defaultdict(list)
    for pod in pods:
        key = key_of(pod)
        has_left = pod.metadata.deletion_timestamp is not None or pod.status.phase == "Failed"
        if key is not None and not has_left:
            members[key].append(pod)
    named = {key.definition for key in members}
    views = [_view(key, gang_of(key, own, known), own) for key, own in members.items()]
    views += [
        _view(key, gang_of(key, (), known), ())
        for key, each in known.items()
        if key not in named and (each.flaw or each.min_count > 1)
    ]
    return tuple(sorted(views, key=lambda each: (each.key.namespace, each.name, str(each.key))))


def _view(key: GangKey, gang: Gang | Flaw, pods: Iterable[Pod]) -> GangView:
    pods = sorted(pods, key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.name))
    placed = tuple(pod.metadata.name for pod in pods if pod.spec.node_name)
    waiting = tuple(pod.metadata.name for pod in pods if not pod.spec.node_name)
    if isinstance(gang, Flaw):
        ages = [pod.metadata.creation_timestamp for pod in pods]
        created = min(filter(None, ages), default="")
        status = GangStatus.INVALID
        why = gang.message
        minimum = None
    else:
        created = gang.created
        minimum = gang.min_count
        status = _status(minimum, pods)
        why = "" if status in _PLACED else gang.too_few or _scheduler_message(pods)
    return GangView(
        key=key,
        status=status,
        min_count=minimum,
        placed=placed,
        waiting=waiting,
        created=created,
        why=why,
    )


def _status(minimum: int, pods: Sequence[Pod]) -> GangStatus:
    placed = sum(bool(pod.spec.node_name) for pod in pods)
    if placed >= minimum:
        is_done = all(pod.status.phase == "Succeeded" for pod in pods)
        return GangStatus.FINISHED if is_done else GangStatus.PLACED
    if placed:
        return GangStatus.INCOMPLETE
    return GangStatus.WAITING if len(pods) >= minimum else GangStatus.GATHERING


def _scheduler_message(pods: Iterable[Pod]) -> str:
    """Return the gates or the scheduler's message of the first pod that has any."""
    for pod in pods:
        if pod.spec.scheduling_gates:
            gates = ", ".join(gate.name for gate in pod.spec.scheduling_gates)
            return f"pod {pod.metadata.name} has scheduling gates: {gates}"
        for condition in pod.status.conditions:
            if condition.type == "PodScheduled" and condition.status == "False":
                return condition.message
    return ""
