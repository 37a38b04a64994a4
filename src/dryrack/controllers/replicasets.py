"""
ReplicaSets and ReplicationControllers: create and delete pods, and report the status.

Both kinds share the code, as in Kubernetes; their selectors are written differently.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from dryrack.base.numbers import read_int64
from dryrack.client.endpoints import REPLICA_SETS, REPLICATION_CONTROLLERS, Endpoint
from dryrack.client.errors import ApiError, ConflictError
from dryrack.client.informer import Name, name_of
from dryrack.client.timekeeping import seconds_of, timestamp
from dryrack.controllers.objects import (
    annotations_of,
    condition_of,
    is_deleted,
    is_ready,
    is_terminal,
    labels_of,
    spec_of,
    status_of,
)
from dryrack.controllers.workloads import (
    OwnerReconciler,
    creation_of,
    deletions_of,
    family_of,
    is_active,
    is_available,
    min_ready_seconds_of,
    pod_from,
    replicas_of,
    status_update,
    waits_for_availability,
)
from dryrack.controllers.writes import EngineContext, Plan, Write
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw

# The most pods that one decision about a replica set creates or deletes.
BURST = 500
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
FAILURE = "ReplicaFailure"


def plan(
    replica_set: Raw,
    candidates: Sequence[Raw],
    now: float,
    failure: str = "",
    *,
    endpoint: Endpoint = REPLICA_SETS,
) -> Plan:
    """
    Return the writes of the status, and of the pods that are missing or too many.

    `failure` is the error of the last creation or deletion; the status reports it first.
    """
    family = family_of(replica_set, endpoint, candidates)
    if family.writes:
        return Plan(family.writes)
    conditions = _failures(replica_set, family.members, failure, now)
    writes = [
        *_status(replica_set, endpoint, family.members, conditions, now),
        *_scale(replica_set, endpoint, family.members),
    ]
    min_ready = min_ready_seconds_of(replica_set)
    return Plan(tuple(writes), waits_for_availability(family.members, min_ready, now))


def _scale(replica_set: Raw, endpoint: Endpoint, pods: Sequence[Raw]) -> list[Write]:
    if is_deleted(replica_set):
        return []
    active = [pod for pod in pods if is_active(pod)]
    missing = replicas_of(replica_set) - len(active)
    if missing > 0:
        pod = pod_from(get(replica_set, "spec.template", {}), replica_set, endpoint)
        return [creation_of(pod, replica_set)] * min(missing, BURST)
    if missing == 0:
        return []
    return deletions_of(least_wanted(active)[: min(-missing, BURST)], replica_set)


def least_wanted(pods: Sequence[Raw]) -> list[Raw]:
    """
    Return the pods in the order in which they are deleted.

    Pods that run least come first: not bound, not running, not ready. Then come pods with a low
    deletion cost, on nodes with many others, recently ready, often restarted, and young.
    """
    ready_on_node = Counter(spec_of(pod).get("nodeName", "") for pod in pods if is_ready(pod))

    def rank(pod: Raw) -> tuple[Any, ...]:
        since = get(condition_of(pod, "Ready"), "lastTransitionTime") if is_ready(pod) else None
        statuses = get(pod, "status.containerStatuses", ())
        return (
            bool(spec_of(pod).get("nodeName")),
            ("Pending", "Unknown", "Running").index(status_of(pod).get("phase") or "Pending"),
            is_ready(pod),
            read_int64(annotations_of(pod).get(DELETION_COST, "")) or 0,
            -ready_on_node[spec_of(pod).get("nodeName", "")],
            -(seconds_of(since) if since else 0.0),
            -max((each.get("restartCount", 0) for each in statuses), default=0),
            -seconds_of(pod["metadata"]["creationTimestamp"]),
            name_of(pod),
        )

    return sorted(pods, key=rank)


def _failures(replica_set: Raw, pods: Sequence[Raw], failure: str, now: float) -> list[Raw]:
    """Return the conditions; the first failure stays as long as one lasts."""
    conditions = get(replica_set, "status.conditions", ())
    if not failure:
        return [each for each in conditions if each["type"] != FAILURE]
    if condition_of(replica_set, FAILURE) is not None:
        return list(conditions)
    is_missing_pods = sum(is_active(pod) for pod in pods) < replicas_of(replica_set)
    condition = {
        "type": FAILURE,
        "status": "True",
        "lastTransitionTime": timestamp(now),
        "reason": "FailedCreate" if is_missing_pods else "FailedDelete",
        "message": failure,
    }
    return [*conditions, condition]


def _status(
    replica_set: Raw,
    endpoint: Endpoint,
    pods: Sequence[Raw],
    conditions: Sequence[Raw],
    now: float,
) -> list[Write]:
    living = [pod for pod in pods if not is_terminal(pod)]
    active = [pod for pod in living if not is_deleted(pod)]
    template = get(replica_set, "spec.template.metadata", {})
    labels = get(template, "labels", {}).items()
    min_ready = min_ready_seconds_of(replica_set)
    counted = {
        "replicas": len(active),
        "fullyLabeledReplicas": sum(labels <= labels_of(pod).items() for pod in active),
        "readyReplicas": sum(is_ready(pod) for pod in active),
        "availableReplicas": sum(is_available(pod, min_ready, now) for pod in active),
        "terminatingReplicas": len(living) - len(active),
        "observedGeneration": replica_set["metadata"].get("generation"),
        "conditions": conditions,
    }
    kept = status_of(replica_set) | counted
    status = {key: value for key, value in kept.items() if value}
    status["replicas"] = len(active)
    if endpoint == REPLICA_SETS:
        status["terminatingReplicas"] = counted["terminatingReplicas"]
    else:
        status.pop("terminatingReplicas", None)
    return status_update(endpoint, replica_set, status)


class ReplicaSetController(OwnerReconciler):
    """Keeps the pods and the status of ReplicaSets."""

    def __init__(
        self,
        context: EngineContext,
        name: str = "replicaset-controller",
        endpoint: Endpoint = REPLICA_SETS,
    ) -> None:
        super().__init__(context, name, endpoint, ignores_status=True)
        self._failures: dict[Name, str] = {}
        self.owners.listen(self._on_set)

    def _on_set(self, old: Raw | None, new: Raw | None) -> None:
        if new is None and old is not None:
            self._failures.pop(name_of(old), None)

    def plan_owner(self, replica_set: Raw) -> Plan:
        failure = self._failures.get(name_of(replica_set), "")
        candidates = self.candidates.of(replica_set)
        return plan(replica_set, candidates, self._clock.now(), failure, endpoint=self._endpoint)

    def on_success(self, key: Name, plan: Plan, stored: Sequence[Raw | None]) -> None:
        if self._failures.pop(key, None) is not None:
            self.queue.add(key)

    def on_failure(self, key: Name, error: Exception) -> None:
        # A conflict is retried and is no failure.
        if isinstance(error, ApiError) and not isinstance(error, ConflictError):
            self._failures[key] = str(error)


class ReplicationController(ReplicaSetController):
    """Keeps the pods and the status of ReplicationControllers."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "replication-controller", REPLICATION_CONTROLLERS)
