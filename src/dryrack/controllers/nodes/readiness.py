"""
Nodes that have fallen silent, and the taints that tell of a node's state.

A node renews its lease. When it has not for longer than the grace, its conditions become Unknown.
Whatever its conditions are, its taints say the same: NoSchedule for the scheduler, and NoExecute
where pods are to leave.
"""

from dryrack.client.endpoints import LEASES, NODES
from dryrack.client.informer import name_of
from dryrack.client.timekeeping import seconds_of, timestamp
from dryrack.controllers.nodes.heartbeat import LEASE_NAMESPACE, LEASE_SECONDS
from dryrack.controllers.objects import is_deleted, spec_of, uid_of, with_condition
from dryrack.controllers.pods.virtual import is_virtual
from dryrack.controllers.reconciler import Reconciler
from dryrack.controllers.writes import NOTHING, EngineContext, Patch, Plan, Write
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw

GRACE_SECONDS = 50.0
# A node that has never spoken may still be coming up.
STARTUP_SECONDS = 60.0
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_PRESSURES = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
_KINDS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
_OURS = frozenset({NOT_READY, UNREACHABLE, UNSCHEDULABLE, *_PRESSURES.values()})


def plan(
    node: Raw, renewed_at: float | None, now: float, *, grace_seconds: float = GRACE_SECONDS
) -> Plan:
    """The conditions of a silent node, or the taints of any; `renewed_at` is of its lease."""
    left = _seconds_left(node, renewed_at, now, grace_seconds)
    if left <= 0 and (silenced := _silenced(node, now)):
        return Plan(tuple(silenced))
    again_seconds = left if left > 0 else None
    return Plan(tuple(_tainted(node, now)), again_seconds)


def _seconds_left(node: Raw, renewed_at: float | None, now: float, grace_seconds: float) -> float:
    if renewed_at is not None:
        return renewed_at + grace_seconds - now
    heard = [
        seconds_of(each["lastHeartbeatTime"])
        for each in get(node, "status.conditions", ())
        if each.get("lastHeartbeatTime")
    ]
    if heard:
        return max(heard) + GRACE_SECONDS - now
    return seconds_of(node["metadata"]["creationTimestamp"]) + STARTUP_SECONDS - now


def _silenced(node: Raw, now: float) -> list[Write]:
    conditions: list[Raw] = get(node, "status.conditions", [])
    known = {each["type"]: each for each in conditions}
    changed: list[Raw] = list(conditions)
    for kind in _KINDS:
        old = known.get(kind)
        if old is not None and old["status"] == "Unknown":
            continue
        told = ("NodeStatusUnknown", "Kubelet stopped posting node status.")
        if old is None:
            told = ("NodeStatusNeverUpdated", "Kubelet never posted node status.")
        new = {"type": kind, "status": "Unknown", "reason": told[0], "message": told[1]}
        heard = (old or {}).get("lastHeartbeatTime") or node["metadata"]["creationTimestamp"]
        new |= {"lastHeartbeatTime": heard, "lastTransitionTime": timestamp(now)}
        changed = with_condition(changed, new)
    if changed == conditions:
        return []
    metadata = {key: node["metadata"][key] for key in ("uid", "resourceVersion")}
    patch = {"metadata": metadata, "status": {"conditions": changed}}
    return [Patch(NODES, name_of(node), patch, "status")]


def wanted_taints(node: Raw) -> list[tuple[str, str]]:
    """Key and effect of the taints that the state of a node asks for."""
    conditions = {each["type"]: each["status"] for each in get(node, "status.conditions", ())}
    found = []
    ready = conditions.get("Ready")
    # Before its first word a node is not ready, but nobody is driven from it.
    if ready is None:
        found.append((NOT_READY, "NoSchedule"))
    elif ready != "True":
        key = UNREACHABLE if ready == "Unknown" else NOT_READY
        found += [(key, "NoSchedule"), (key, "NoExecute")]
    found += [
        (key, "NoSchedule") for kind, key in _PRESSURES.items() if conditions.get(kind) == "True"
    ]
    if spec_of(node).get("unschedulable"):
        found.append((UNSCHEDULABLE, "NoSchedule"))
    return found


def _tainted(node: Raw, now: float) -> list[Write]:
    taints: list[Raw] = get(node, "spec.taints", [])
    wanted = wanted_taints(node)
    kept = [
        each
        for each in taints
        if each["key"] not in _OURS or (each["key"], each["effect"]) in wanted
    ]
    there = {(each["key"], each["effect"]) for each in kept}
    missing = [
        {"key": key, "effect": effect, "timeAdded": timestamp(now)}
        for key, effect in wanted
        if (key, effect) not in there
    ]
    if not missing and len(kept) == len(taints):
        return []
    metadata = {"uid": uid_of(node), "resourceVersion": node["metadata"]["resourceVersion"]}
    spec = {"taints": [*kept, *missing] or None}
    return [Patch(NODES, name_of(node), {"metadata": metadata, "spec": spec})]


class NodeLifecycleController(Reconciler[str]):
    """Watches nodes and leases."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "node-controller")
        self._nodes = self.watch(NODES, self._on_node)
        self._leases = self.watch(LEASES, self._on_lease)

    def _on_node(self, old: Raw | None, new: Raw | None) -> None:
        if new is not None:
            self.queue.add(new["metadata"]["name"])

    def _on_lease(self, old: Raw | None, new: Raw | None) -> None:
        """Renewals are seen when the time is up; a lease that is cut short is seen now."""
        if old is not None and new is not None and _seconds(new) < _seconds(old):
            self.queue.add(new["metadata"]["name"])

    async def decide(self, name: str) -> Plan:
        node = self._nodes.get("", name)
        if node is None or is_deleted(node):
            return NOTHING
        lease = self._leases.get(LEASE_NAMESPACE, name)
        renewed = spec_of(lease).get("renewTime") if lease else None
        renewed_at = seconds_of(renewed) if renewed else None
        grace = GRACE_SECONDS
        if lease and is_virtual(node):
            # A kubelet's grace is always the same; a virtual node that promises more has more.
            grace += max(0, _seconds(lease) - LEASE_SECONDS)
        return plan(node, renewed_at, self._clock.now(), grace_seconds=grace)


def _seconds(lease: Raw) -> int:
    return int(spec_of(lease).get("leaseDurationSeconds") or 0)
