"""
The order in which a recorded cluster comes to be again.

Pods that had a node come in the order in which they got it, because a pod that waited longer must
not take what another pod held. Two kinds of pods come earlier: pods of a DaemonSet, which can run
on one node only, and pods with a higher priority, which could preempt those before them. A pod that
had no node comes last. A node that was cordoned, tainted or not ready although pods run there
becomes so when all pods that had a node have one. So does a device that got a taint while a claim
had it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.client.timekeeping import seconds_of
from dryrack.kinds.core import Taint, Toleration
from dryrack.kinds.decode import decode
from dryrack.kinds.paths import get
from dryrack.kinds.resource import DeviceTaint, DeviceToleration
from dryrack.kinds.selectors import tolerates_device_taint, untolerated_taint

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
    """One moment of the replay: pods are created, a node closes, or devices get taints."""

    at: float
    pods: list[Raw]
    closed_node: str = ""
    tainting: Raw | None = None
    """A DeviceTaintRule, or a ResourceSlice with the taints that it did not have before."""


@dataclass(frozen=True, slots=True)
class _Happening:
    """One pod, node, rule or slice, by the time of the recorded cluster."""

    time: float
    pod: Raw | None = None
    closed_node: str = ""
    tainting: Raw | None = None

    @property
    def pods(self) -> list[Raw]:
        """Return the pod in a new list, which is empty if this is no pod."""
        return [] if self.pod is None else [self.pod]

    @property
    def waits(self) -> bool:
        """Return whether this is a pod without a node."""
        return self.pod is not None and not node_of(self.pod)

    @property
    def has_template(self) -> bool:
        """Return whether this is a pod that gets a claim from a template."""
        claims = get(self.pod["spec"], "resourceClaims", ()) if self.pod is not None else ()
        return any(each.get("resourceClaimTemplateName") for each in claims)

    def moment(self, at: float) -> Moment:
        """Return this alone as a moment of the replay."""
        return Moment(at, self.pods, self.closed_node, self.tainting)


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


def slices_without_late_taints(slices: Iterable[Raw], claims: Iterable[Raw]) -> list[Raw]:
    """
    Return the slices with a device that a claim has although its taints do not allow it.

    The device got these taints after the claim got the device, so they are left out here.
    """
    tolerations = {
        _device_key(each, each.get("device")): [
            decode(toleration, DeviceToleration) for toleration in get(each, "tolerations", ())
        ]
        for claim in claims
        for each in _results(claim)
        if not each.get("adminAccess")
    }
    earlier = []
    for each in slices:
        spec = each["spec"]
        driver = {"driver": spec.get("driver"), "pool": get(spec, "pool.name")}
        devices = [
            _without_late_taints(device, tolerations.get(_device_key(driver, device["name"])))
            for device in get(spec, "devices", ())
        ]
        if devices != get(spec, "devices", []):
            earlier.append({**each, "spec": {**spec, "devices": devices}})
    return earlier


def _results(claim: Raw) -> Sequence[Raw]:
    allocation = get(claim, "status.allocation", {})
    results: Sequence[Raw] = get(allocation, "devices.results", ())
    return results


def _device_key(place: Raw, device: object) -> tuple[str, str, str]:
    return str(place.get("driver")), str(place.get("pool")), str(device)


def _without_late_taints(device: Raw, tolerations: Sequence[DeviceToleration] | None) -> Raw:
    """Return the device without the NoSchedule taints that its claim does not tolerate."""
    if tolerations is None or not device.get("taints"):
        return device
    taints = [
        each
        for each in device["taints"]
        if each.get("effect") != "NoSchedule"
        or any(tolerates_device_taint(it, decode(each, DeviceTaint)) for it in tolerations)
    ]
    return device if len(taints) == len(device["taints"]) else {**device, "taints": taints}


def moments_of(
    pods: Sequence[Raw],
    closed_late: frozenset[str],
    *,
    rules: Sequence[Raw],
    slices_tainted_late: Sequence[Raw],
) -> list[Moment]:
    """Return the moments in their order, with long times between them cut short."""
    placed = sorted((each for each in pods if node_of(each)), key=_placement_order)
    waiting = sorted((each for each in pods if not node_of(each)), key=_creation_order)
    happenings = [_Happening(placed_at(each), pod=each) for each in placed]
    for rule in sorted(rules, key=created_at, reverse=True):
        # A rule comes after the pods of its second.
        earlier = [at for at, each in enumerate(happenings) if each.time <= created_at(rule)]
        position = earlier[-1] + 1 if earlier else 0
        happenings.insert(position, _Happening(created_at(rule), tainting=rule))
    last = happenings[-1].time if happenings else 0.0
    happenings += [_Happening(last, tainting=each) for each in slices_tainted_late]
    happenings += [_Happening(last, closed_node=each) for each in sorted(closed_late)]
    happenings += [_Happening(created_at(each), pod=each) for each in waiting]
    return _shorten_gaps(happenings)


def _shorten_gaps(happenings: Sequence[_Happening]) -> list[Moment]:
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
    conditions: Sequence[Mapping[str, str]] = get(node, "status.conditions", ())
    ready = [each for each in conditions if each.get("type") == "Ready"]
    return not ready or ready[0].get("status") == "True"


def own_taints(node: Raw) -> list[Raw]:
    """Return the taints that people or their controllers gave to a node."""
    return [
        {key: value for key, value in each.items() if key != "timeAdded"}
        for each in get(node, "spec.taints", ())
        if not each["key"].startswith(STATE_TAINTS)
    ]


def node_of(pod: Raw) -> str:
    """Return the node of a pod; empty while it waits."""
    return str(pod["spec"].get("nodeName") or "")


def placed_at(pod: Raw) -> float:
    """Return when a pod got its node, or when it was created if that is not known."""
    conditions = get(pod, "status.conditions", ())
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
    state = [_CORDONED] if get(node, "spec.unschedulable") else []
    state += [] if is_ready(node) else [_NOT_READY]
    return [*state, *(decode(each, Taint) for each in own_taints(node))]


def _is_refused(pod: Raw, taints: Sequence[Taint] | None) -> bool:
    tolerations = [decode(each, Toleration) for each in get(pod["spec"], "tolerations", ())]
    return untolerated_taint(taints or (), tolerations, ("NoSchedule",)) is not None


def _is_mirror(pod: Raw) -> bool:
    return MIRROR in get(pod["metadata"], "annotations", {})


def _placement_order(pod: Raw) -> tuple[bool, int, float, float, int, str, str]:
    """Times are whole seconds; within one, the last writes of pods mostly have their order."""
    owners = get(pod["metadata"], "ownerReferences", ())
    has_choice = all(each.get("kind") != "DaemonSet" for each in owners)
    priority = int(pod["spec"].get("priority") or 0)
    version = str(pod["metadata"].get("resourceVersion") or "")
    write = int(version) if version.isdecimal() else 0
    return has_choice, -priority, placed_at(pod), created_at(pod), write, *_name_of(pod)


def _creation_order(pod: Raw) -> tuple[float, int, str, str]:
    version = str(pod["metadata"].get("resourceVersion") or "")
    write = int(version) if version.isdecimal() else 0
    return created_at(pod), write, *_name_of(pod)


def _name_of(pod: Raw) -> tuple[str, str]:
    return str(pod["metadata"].get("namespace") or "default"), str(pod["metadata"].get("name", ""))
