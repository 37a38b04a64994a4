"""
The order in which a recorded cluster comes to be again.

A pod that had a node comes when it got it, because a pod that waited longer must not take what
another pod held. A pod that had no node comes last. A node that was cordoned, tainted or not ready
although pods run there becomes so after the last of these pods.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.client.timekeeping import seconds_of
from dryrack.kinds.core import Taint, Toleration
from dryrack.kinds.decode import decode
from dryrack.kinds.selectors import untolerated_taint

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dryrack.kinds.raw import Raw

# The first pods come when nodes are ready; between two moments no more time than this passes.
_FIRST_SECONDS = 10.0
GAP_SECONDS_MAX = 10.0
# The scheduler has this long before a node is closed to further pods.
_SETTLE_SECONDS = 2.0
# Pods of one second come one after the other with this time between them.
_TURN_SECONDS = 0.2
# A scenario with more steps is hard to read.
_BATCHES_MAX = 5000
MIRROR = "kubernetes.io/config.mirror"
# Taints that controllers write because of the state of a node; a replay writes them itself.
STATE_TAINTS = "node.kubernetes.io/"
_CORDONED = Taint(key=f"{STATE_TAINTS}unschedulable", effect="NoSchedule")
_NOT_READY = Taint(key=f"{STATE_TAINTS}not-ready", effect="NoSchedule")


@dataclass(frozen=True, slots=True)
class Moment:
    """What happens at one time of the replay: pods come, a node closes, or a rule is added."""

    at: float
    pods: list[Raw]
    closed_node: str = ""
    rule: Raw | None = None


@dataclass(frozen=True, slots=True)
class _Happening:
    """One pod, node or rule, by the time of the recorded cluster."""

    time: float
    pod: Raw | None = None
    closed_node: str = ""
    rule: Raw | None = None

    @property
    def pods(self) -> list[Raw]:
        """Return the pod in a new list, which is empty for a node or a rule."""
        return [] if self.pod is None else [self.pod]

    @property
    def waits(self) -> bool:
        """Return whether this is a pod without a node."""
        return self.pod is not None and not node_of(self.pod)

    @property
    def has_template(self) -> bool:
        """Return whether this is a pod that gets a claim from a template."""
        claims = self.pod["spec"].get("resourceClaims") or () if self.pod is not None else ()
        return any(each.get("resourceClaimTemplateName") for each in claims)

    def moment(self, at: float) -> Moment:
        """Return this alone as a moment of the replay."""
        return Moment(at, self.pods, self.closed_node, self.rule)


def nodes_closed_late(nodes: Iterable[Raw], pods: Iterable[Raw]) -> frozenset[str]:
    """Return the nodes that run a pod which they would refuse by their state at the recording."""
    states = {each["metadata"]["name"]: _closing_taints(each) for each in nodes}
    return frozenset(
        node
        for each in pods
        if (node := node_of(each)) and not _is_mirror(each) and _is_refused(each, states.get(node))
    )


def rules_added_late(rules: Iterable[Raw], pods: Iterable[Raw]) -> list[Raw]:
    """Return the DeviceTaintRules that were created after the first pod got its node."""
    times = [placed_at(each) for each in pods if node_of(each)]
    return [each for each in rules if times and created_at(each) >= min(times)]


def moments_of(
    pods: Sequence[Raw], closed_late: frozenset[str], rules: Sequence[Raw]
) -> list[Moment]:
    """Return the moments in their order, with long times between them cut short."""
    placed = sorted((each for each in pods if node_of(each)), key=_placement_order)
    waiting = sorted((each for each in pods if not node_of(each)), key=_creation_order)
    last_pods = {node_of(each): each for each in placed if node_of(each) in closed_late}
    happenings: list[_Happening] = []
    for pod in placed:
        happenings.append(_Happening(placed_at(pod), pod=pod))
        if last_pods.get(node_of(pod)) is pod:
            happenings.append(_Happening(placed_at(pod), closed_node=node_of(pod)))
    happenings += [_Happening(created_at(each), rule=each) for each in rules]
    # The sort is stable: a rule comes after the pods of its second.
    happenings.sort(key=lambda each: each.time)
    last = happenings[-1].time if happenings else 0.0
    happenings += [_Happening(max(created_at(each), last), pod=each) for each in waiting]
    return _shortened(happenings)


def _shortened(happenings: Sequence[_Happening]) -> list[Moment]:
    """
    Give each happening its time in the replay, and join pods that may come together.

    A pod with a claim template ends its batch: the scheduler tries it only when its claim exists,
    and a pod that comes at the same time must not overtake it.
    """
    moments: list[Moment] = []
    at = _FIRST_SECONDS
    for before, each in zip((None, *happenings), happenings, strict=False):
        if before is None:
            moments.append(each.moment(at))
            continue
        are_alike = None not in (before.pod, each.pod) and before.waits == each.waits
        same_second = are_alike and each.time - before.time < 1.0
        is_full = are_alike and len(moments) >= _BATCHES_MAX
        if is_full or (same_second and (each.waits or not before.has_template)):
            moments[-1].pods.extend(each.pods)
            continue
        gap = min(max(each.time - before.time, _SETTLE_SECONDS), GAP_SECONDS_MAX)
        at += _TURN_SECONDS if same_second else gap
        moments.append(each.moment(at))
    return moments


def is_ready(node: Raw) -> bool:
    """Return whether a node is ready; one without conditions is, as in files."""
    conditions: Sequence[Mapping[str, str]] = (node.get("status") or {}).get("conditions") or ()
    ready = [each for each in conditions if each.get("type") == "Ready"]
    return not ready or ready[0].get("status") == "True"


def own_taints(node: Raw) -> list[Raw]:
    """Return the taints that people or their controllers gave to a node."""
    return [
        {key: value for key, value in each.items() if key != "timeAdded"}
        for each in (node.get("spec") or {}).get("taints") or ()
        if not each["key"].startswith(STATE_TAINTS)
    ]


def node_of(pod: Raw) -> str:
    """Return the node of a pod; empty while it waits."""
    return str(pod["spec"].get("nodeName") or "")


def placed_at(pod: Raw) -> float:
    """Return when a pod got its node, or when it was created if that is not known."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    times = [each.get("lastTransitionTime") for each in conditions if _is_scheduled(each)]
    return seconds_of(str(times[0])) if times and times[0] else created_at(pod)


def created_at(obj: Raw) -> float:
    """Return when an object was created; 0 if that is not known."""
    text = obj["metadata"].get("creationTimestamp")
    return seconds_of(str(text)) if text else 0.0


def _is_scheduled(condition: Mapping[str, str]) -> bool:
    return condition.get("type") == "PodScheduled" and condition.get("status") == "True"


def _closing_taints(node: Raw) -> list[Taint]:
    """Return all for which a node takes no further pods, as taints."""
    state = [_CORDONED] if (node.get("spec") or {}).get("unschedulable") else []
    state += [] if is_ready(node) else [_NOT_READY]
    return [*state, *(decode(each, Taint) for each in own_taints(node))]


def _is_refused(pod: Raw, taints: Sequence[Taint] | None) -> bool:
    tolerations = [decode(each, Toleration) for each in pod["spec"].get("tolerations") or ()]
    return untolerated_taint(taints or (), tolerations, ("NoSchedule",)) is not None


def _is_mirror(pod: Raw) -> bool:
    return MIRROR in (pod["metadata"].get("annotations") or {})


def _placement_order(pod: Raw) -> tuple[float, float, int, str, str]:
    """Times are whole seconds; within one, the last writes of pods mostly have their order."""
    version = str(pod["metadata"].get("resourceVersion") or "")
    write = int(version) if version.isdecimal() else 0
    return placed_at(pod), created_at(pod), write, *_name_of(pod)


def _creation_order(pod: Raw) -> tuple[float, int, str, str]:
    version = str(pod["metadata"].get("resourceVersion") or "")
    write = int(version) if version.isdecimal() else 0
    return created_at(pod), write, *_name_of(pod)


def _name_of(pod: Raw) -> tuple[str, str]:
    return str(pod["metadata"].get("namespace") or "default"), str(pod["metadata"].get("name", ""))
