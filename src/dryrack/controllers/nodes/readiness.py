"""
Conditions of nodes without heartbeats, and taints for the conditions of all nodes.

When a node has not renewed its lease for longer than the grace period, its conditions become
Unknown. The taints follow the conditions: NoSchedule for the scheduler, and NoExecute to evict
pods.
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
# A node that has never reported may still be starting.
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
    """Return the writes of a silent node's conditions, or of the taints of any node."""
    left = _seconds_left(node, renewed_at, now, grace_seconds)
    if left <= 0 and (writes := _set_unknown(node, now)):
        return Plan(tuple(writes))
    again_seconds = left if left > 0 else None
    return Plan(tuple(_update_taints(node, now)), again_seconds)


def _seconds_left(node: Raw, renewed_at: float | None, now: float, grace_seconds: float) -> float:
    if renewed_at is not None:
        return renewed_at + grace_seconds - now
    heartbeats = [
        seconds_of(each["lastHeartbeatTime"])
        for each in get(node, "status.conditions", ())
        if each.get("lastHeartbeatTime")
    ]
    if heartbeats:
        return max(heartbeats) + GRACE_SECONDS - now
    return seconds_of(node["metadata"]["creationTimestamp"]) + STARTUP_SECONDS - now


def _set_unknown(node: Raw, now: float) -> list[Write]:
    conditions: list[Raw] = get(node, "status.conditions", [])
    known = {each["type"]: each for each in conditions}
    changed: list[Raw] = list(conditions)
    for kind in _KINDS:
        old = known.get(kind)
        if old is not None and old["status"] == "Unknown":
            continue
        reason = "NodeStatusUnknown"
        message = "Kubelet stopped posting node status."
        if old is None:
            reason = "NodeStatusNeverUpdated"
            message = "Kubelet never posted node status."
        new = {"type": kind, "status": "Unknown", "reason": reason, "message": message}
        heartbeat = get(old, "lastHeartbeatTime") or node["metadata"]["creationTimestamp"]
        new |= {"lastHeartbeatTime": heartbeat, "lastTransitionTime": timestamp(now)}
        changed = with_condition(changed, new)
    if changed == conditions:
        return []
    metadata = {key: node["metadata"][key] for key in ("uid", "resourceVersion")}
    patch = {"metadata": metadata, "status": {"conditions": changed}}
    return [Patch(NODES, name_of(node), patch, "status")]


def wanted_taints(node: Raw) -> list[tuple[str, str]]:
    """Return the key and effect of the taints that a node should have."""
    conditions = {each["type"]: each["status"] for each in get(node, "status.conditions", ())}
    taints = []
    ready = conditions.get("Ready")
    # Before its first report a node is not ready, but its pods are not evicted.
    if ready is None:
        taints.append((NOT_READY, "NoSchedule"))
    elif ready != "True":
        key = UNREACHABLE if ready == "Unknown" else NOT_READY
        taints += [(key, "NoSchedule"), (key, "NoExecute")]
    taints += [
        (key, "NoSchedule") for kind, key in _PRESSURES.items() if conditions.get(kind) == "True"
    ]
    if spec_of(node).get("unschedulable"):
        taints.append((UNSCHEDULABLE, "NoSchedule"))
    return taints


def _update_taints(node: Raw, now: float) -> list[Write]:
    taints: list[Raw] = get(node, "spec.taints", [])
    wanted = wanted_taints(node)
    kept = [
        each
        for each in taints
        if each["key"] not in _OURS or (each["key"], each["effect"]) in wanted
    ]
    present = {(each["key"], each["effect"]) for each in kept}
    missing = [
        {"key": key, "effect": effect, "timeAdded": timestamp(now)}
        for key, effect in wanted
        if (key, effect) not in present
    ]
    if not missing and len(kept) == len(taints):
        return []
    metadata = {"uid": uid_of(node), "resourceVersion": node["metadata"]["resourceVersion"]}
    spec = {"taints": [*kept, *missing] or None}
    return [Patch(NODES, name_of(node), {"metadata": metadata, "spec": spec})]


class NodeLifecycleController(Reconciler[str]):
    """Watches the heartbeats of nodes."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "node-controller")
        self._nodes = self.watch(NODES, self._on_node)
        self._leases = self.watch(LEASES, self._on_lease)

    def _on_node(self, old: Raw | None, new: Raw | None) -> None:
        if new is not None:
            self.queue.add(new["metadata"]["name"])

    def _on_lease(self, old: Raw | None, new: Raw | None) -> None:
        """Decide a node whose lease is shortened; renewals are seen when the lease expires."""
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
            # The grace period of a virtual node grows with its lease.
            grace += max(0, _seconds(lease) - LEASE_SECONDS)
        return plan(node, renewed_at, self._clock.now(), grace_seconds=grace)


def _seconds(lease: Raw) -> int:
    return int(spec_of(lease).get("leaseDurationSeconds") or 0)
