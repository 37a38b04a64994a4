"""
The kubelet of every virtual node: report the status, and renew the lease.

Existing values of a status, such as capacity and conditions, are never replaced, so nodes can be
created with any sizes.
"""

import logging
from dataclasses import replace

from dryrack.client.endpoints import LEASES, NODES
from dryrack.client.informer import name_of
from dryrack.client.timekeeping import micro_timestamp, seconds_of, timestamp
from dryrack.controllers.objects import (
    annotations_of,
    is_deleted,
    labels_of,
    status_of,
    uid_of,
    with_condition,
)
from dryrack.controllers.pods.virtual import host_address, is_virtual
from dryrack.controllers.reconciler import Reconciler
from dryrack.controllers.writes import (
    NOTHING,
    Create,
    EngineContext,
    Patch,
    Plan,
    Report,
    Update,
    Write,
)
from dryrack.hardware import NO_FAULTS, NodeFaults, faults_of, node_annotation
from dryrack.kinds.expansion.virtual_nodes import sizes
from dryrack.kinds.paths import get, spec_of
from dryrack.kinds.raw import Raw
from dryrack.kinds.releases import FeatureSet, Release

_logger = logging.getLogger(__name__)

LEASE_NAMESPACE = "kube-node-lease"
LEASE_SECONDS = 40
# The kubelet renews every 10 s. In a big fleet that would be the main load of a small control
# plane, so renewals stretch with the number of nodes, up to the last that is safe.
RENEW_SECONDS_MIN = 10.0
RENEW_SECONDS_MAX = 35.0
RENEWALS_PER_SECOND = 20.0
# The features that a kubelet must declare before a real server resizes pods or init containers.
_FEATURES = ["InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers"]
# The feature without which the scheduler ignores devices of slices with skipNodeOperations.
_OPTIONAL_OPERATIONS = "DRAOptionalNodeOperations"
_DEFAULT_FEATURES = FeatureSet()
_HEALTHY = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "is posting ready status"),
)


# The message distinguishes the fault from conditions that others write, which stay.
_FAULTY = (
    "Ready",
    "False",
    "KubeletNotReady",
    f"is not ready: {node_annotation('ready')} is false",
)


def plan(
    node: Raw,
    lease: Raw | None,
    now: float,
    *,
    renew_seconds: float,
    lease_seconds: int = LEASE_SECONDS,
    faults: NodeFaults = NO_FAULTS,
    features: FeatureSet = _DEFAULT_FEATURES,
) -> Plan:
    """Return what a virtual node writes about itself now, and the time until the next write."""
    writes = [*_labels(node), *_status(node, now, faults, features)]
    renewed = get(lease, "spec.renewTime")
    due = (seconds_of(renewed) if renewed else 0.0) + renew_seconds
    is_valid = lease is not None and (
        spec_of(lease).get("holderIdentity") == node["metadata"]["name"]
        and spec_of(lease).get("leaseDurationSeconds") == lease_seconds
    )
    if not is_valid or now >= due:
        writes.append(_lease(node, lease, now, lease_seconds))
        due = now + renew_seconds
    if faults.next_expiry is not None:
        due = min(due, faults.next_expiry)
    return Plan(tuple(writes), max(0.05, due - now))


def plan_silence(node: Raw, lease: Raw | None, now: float) -> Plan:
    """Shorten a long lease of a node that becomes silent to the lease of a kubelet."""
    duration = get(lease, "spec.leaseDurationSeconds", 0)
    if duration <= LEASE_SECONDS:
        return NOTHING
    return Plan((_lease(node, lease, now, LEASE_SECONDS),))


def _labels(node: Raw) -> list[Write]:
    name = node["metadata"]["name"]
    usual = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
    }
    missing = {key: value for key, value in usual.items() if key not in labels_of(node)}
    if not missing:
        return []
    patch = {"metadata": {"uid": uid_of(node), "labels": missing}}
    return [Patch(NODES, name_of(node), patch)]


def _status(node: Raw, now: float, faults: NodeFaults, features: FeatureSet) -> list[Write]:
    status = status_of(node)
    capacity, allocatable = sizes(status)
    wanted = {
        "capacity": capacity,
        "allocatable": allocatable,
        "addresses": status.get("addresses")
        or [
            {"type": "InternalIP", "address": host_address(node)},
            {"type": "Hostname", "address": node["metadata"]["name"]},
        ],
        "nodeInfo": _node_info(node, features.release),
        "declaredFeatures": status.get("declaredFeatures") or _list_features(features),
        "conditions": _conditions(node, now, faults),
    }
    changed = {key: value for key, value in wanted.items() if status.get(key) != value}
    if not changed:
        return []
    patch = {"metadata": {"uid": uid_of(node)}, "status": changed}
    return [Patch(NODES, name_of(node), patch, "status")]


def _list_features(features: FeatureSet) -> list[str]:
    """Return the features that a virtual node declares."""
    optional = [_OPTIONAL_OPERATIONS] if features.is_on(_OPTIONAL_OPERATIONS) else []
    return [*optional, *_FEATURES]


def _node_info(node: Raw, release: Release) -> Raw:
    usual = {
        "architecture": "amd64",
        "bootID": uid_of(node),
        "containerRuntimeVersion": "dryrack://0",
        "kernelVersion": "none",
        "kubeProxyVersion": "",
        "kubeletVersion": release.git_version,
        "machineID": uid_of(node).replace("-", ""),
        "operatingSystem": "linux",
        "osImage": "dryrack virtual node",
        "systemUUID": uid_of(node),
    }
    reported = get(node, "status.nodeInfo", {})
    return usual | {key: value for key, value in reported.items() if value}


def _conditions(node: Raw, now: float, faults: NodeFaults) -> list[Raw]:
    conditions: list[Raw] = list(get(node, "status.conditions", ()))
    known = {each["type"]: each for each in conditions}
    when = timestamp(now)
    for wanted in _HEALTHY if faults.is_ready else (*_HEALTHY[:-1], _FAULTY):
        kind, status, reason, message = wanted
        old = known.get(kind, {"status": "Unknown"})
        # A status that another program wrote stays; "Unknown" means that no program wrote one.
        is_ours = (
            wanted is _FAULTY
            or old["status"] == "Unknown"
            or (old.get("message") == f"kubelet {_FAULTY[3]}")
        )
        if not is_ours or old["status"] == status:
            continue
        new = {"type": kind, "status": status, "lastHeartbeatTime": when}
        new |= {"lastTransitionTime": when, "reason": reason, "message": f"kubelet {message}"}
        conditions = with_condition(conditions, new)
    return conditions


def _lease(node: Raw, lease: Raw | None, now: float, lease_seconds: int) -> Write:
    name = node["metadata"]["name"]
    spec = {
        "holderIdentity": name,
        "leaseDurationSeconds": lease_seconds,
        "renewTime": micro_timestamp(now),
    }
    if lease is not None:
        return Update(LEASES, lease | {"spec": spec_of(lease) | spec})
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid_of(node)}
    metadata = {"name": name, "namespace": LEASE_NAMESPACE, "ownerReferences": [owner]}
    return Create(LEASES, {"metadata": metadata, "spec": spec})


class Heartbeat(Reconciler[str]):
    """Reports the status and renews the leases of virtual nodes."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "kubelet", workers=8)
        self._features = context.features
        self._lease_seconds = context.node_lease_seconds or LEASE_SECONDS
        self._reported: dict[str, tuple[str, ...]] = {}
        """By node: the problems of fault annotations that have an event."""
        self._nodes = self.watch(NODES, self._on_node)
        self._leases = self.watch(LEASES)

    def _on_node(self, old: Raw | None, new: Raw | None) -> None:
        if new is not None and (is_virtual(new) or self._context.plays(new)):
            self.queue.add(new["metadata"]["name"])
        elif new is None and old is not None:
            self._reported.pop(old["metadata"]["name"], None)

    async def decide(self, name: str) -> Plan:
        node = self._nodes.get("", name)
        if node is None or is_deleted(node):
            return NOTHING
        lease = self._leases.get(LEASE_NAMESPACE, name)
        now = self._clock.now()
        if not self._context.plays(node):
            is_ours = self._context.kubelets is None and is_virtual(node)
            return plan_silence(node, lease, now) if is_ours else NOTHING
        fleet = len(self._nodes.objects)
        renew = min(max(RENEW_SECONDS_MIN, fleet / RENEWALS_PER_SECOND), RENEW_SECONDS_MAX)
        # The renewal comes as long before the end of the lease as usual.
        renew += self._lease_seconds - LEASE_SECONDS
        faults = faults_of(annotations_of(node), now)
        decided = plan(
            node,
            lease,
            now,
            renew_seconds=renew,
            lease_seconds=self._lease_seconds,
            faults=faults,
            features=self._features,
        )
        reports = self._reports(node, faults.problems)
        return replace(decided, writes=(*reports, *decided.writes)) if reports else decided

    def _reports(self, node: Raw, problems: tuple[str, ...]) -> list[Write]:
        """Return one event for each invalid fault annotation."""
        name = node["metadata"]["name"]
        reported = self._reported.pop(name, ())
        if problems:
            self._reported[name] = problems
        new = [each for each in problems if each not in reported]
        for each in new:
            _logger.warning("node %s: %s", name, each)
        return [Report(node, "Warning", "InvalidFault", each, each) for each in new]
