"""
Drain nodes that are being removed: evict their pods, and later delete those that cannot go.

Each pod is evicted by itself, so a pod that a PodDisruptionBudget protects does not hold up the
others. Pods of DaemonSets stay until the node is gone.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dryrack.base.durations import seconds_in
from dryrack.client.endpoints import NODE_CLAIMS, NODES, POD_DISRUPTION_BUDGETS, PODS
from dryrack.client.informer import Name, name_of
from dryrack.client.timekeeping import seconds_of
from dryrack.controllers.objects import (
    annotations_of,
    controller_of,
    is_deleted,
    is_terminal,
    node_names,
    spec_of,
    uid_of,
)
from dryrack.controllers.provisioning.lifecycle import drain_deadline
from dryrack.controllers.reconciler import Reconciler
from dryrack.controllers.writes import NOTHING, Delete, EngineContext, Evict, Plan, Report
from dryrack.kinds.expansion.workloads import tolerates
from dryrack.kinds.paths import get
from dryrack.kinds.provisioning import DISRUPTED_TAINT, DO_NOT_DISRUPT

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

_TAINT = {"key": DISRUPTED_TAINT, "effect": "NoSchedule"}
_MIRROR = "kubernetes.io/config.mirror"
# A pod whose grace period ended so long ago will not end by itself: its kubelet is gone.
_STUCK_SECONDS = 60.0


def must_leave(pod: Raw, now: float) -> bool:
    """Return whether a node can go only after this pod."""
    if is_terminal(pod) or _MIRROR in annotations_of(pod) or _is_of_daemon_set(pod):
        return False
    if any(tolerates(each, _TAINT) for each in get(pod, "spec.tolerations", ())):
        return False
    deleted = pod["metadata"].get("deletionTimestamp")
    return not deleted or now < seconds_of(deleted) + _STUCK_SECONDS


def _is_of_daemon_set(pod: Raw) -> bool:
    owner = controller_of(pod)
    return owner is not None and owner.get("kind") == "DaemonSet"


def protected_until(pod: Raw) -> float:
    """
    Return until when an annotation forbids to move a pod, 0 if there is none.

    Its value is `true`, or a duration from the start of the pod. Another value has no effect.
    """
    value = annotations_of(pod).get(DO_NOT_DISRUPT, "")
    seconds = math.inf if value == "true" else seconds_in(value)
    started = get(pod, "status.startTime", "")
    if seconds is None:
        return 0.0
    return seconds_of(started) + seconds if started else math.inf


def plan(pod: Raw, claim: Raw, now: float) -> Plan:
    """Return how a pod leaves the node of a NodeClaim that is being removed."""
    if is_deleted(pod) or not must_leave(pod, now):
        return NOTHING
    deadline = drain_deadline(claim)
    grace = spec_of(pod).get("terminationGracePeriodSeconds") or 0
    if deadline is not None and now >= deadline - grace:
        left = max(0, int(deadline - now))
        text = "the node has reached its terminationGracePeriod"
        report = Report(pod, "Normal", "Disrupted", f"the pod is deleted: {text}", once=text)
        return Plan((report, Delete(PODS, name_of(pod), uid_of(pod), grace_seconds=left)))
    again = None if deadline is None else max(0.05, deadline - grace - now)
    until = protected_until(pod)
    if until > now:
        ends = [each for each in (again, until - now) if each is not None and each < math.inf]
        return Plan((), min(ends, default=None))
    text = f"the pod is evicted: node {spec_of(pod)['nodeName']} is being removed"
    return Plan((Evict(name_of(pod), uid_of(pod)), Report(pod, "Normal", "Evicted", text)), again)


class Draining(Reconciler[Name]):
    """Moves the pods away from nodes that are being removed."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "dryrack-provisioner")
        self._pods = self.watch(PODS)
        self._by_node = self._pods.index("node", node_names)
        self._claims = self.watch(NODE_CLAIMS)
        self._nodes = self.watch(NODES, self._on_node)
        self.watch(POD_DISRUPTION_BUDGETS, self._on_budget)
        self._pods.listen(self._on_pod)

    def _on_node(self, old: Raw | None, new: Raw | None) -> None:
        if new is None or not is_deleted(new):
            return
        for pod in self._by_node.get(new["metadata"]["name"]):
            self.queue.add(name_of(pod))

    def _on_pod(self, old: Raw | None, new: Raw | None) -> None:
        if new is not None and self._claim_to_drain(new) is not None:
            self.queue.add(name_of(new))

    def _on_budget(self, old: Raw | None, new: Raw | None) -> None:
        # A refused eviction is retried less and less often, but soon after its budget changes.
        namespace = name_of(new or old or {}).namespace
        for name in tuple(self.queue.delayed_keys()):
            if name.namespace == namespace:
                self.queue.add(name)

    def _claim_to_drain(self, pod: Raw) -> Raw | None:
        """Return the NodeClaim of the pod's node if the node is being removed."""
        name = Name("", spec_of(pod).get("nodeName") or "")
        node = self._nodes.objects.get(name)
        claim = self._claims.objects.get(name)
        if node is None or claim is None or not is_deleted(node) or not is_deleted(claim):
            return None
        return claim

    async def decide(self, name: Name) -> Plan:
        pod = self._pods.objects.get(name)
        claim = None if pod is None else self._claim_to_drain(pod)
        if pod is None or claim is None:
            return NOTHING
        return plan(pod, claim, self._clock.now())
