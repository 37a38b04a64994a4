"""
Pods without a kubelet.

A pod on a node that no longer exists, and a pod that was deleted before it was bound, have no
kubelet that would confirm their end.
"""

from contextlib import suppress

from dryrack.client.endpoints import NODES, PODS
from dryrack.client.errors import NotFoundError
from dryrack.client.informer import Name, name_of
from dryrack.client.timekeeping import timestamp
from dryrack.controllers.objects import (
    is_deleted,
    is_terminal,
    node_names,
    spec_of,
    status_of,
    uid_of,
    with_condition,
)
from dryrack.controllers.reconciler import Reconciler
from dryrack.controllers.writes import NOTHING, Delete, EngineContext, Plan, Update, Write
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw

# A node that is deleted may only register again; kube-controller-manager waits as long.
QUARANTINE_SECONDS = 40.0


def plan(pod: Raw, *, node_gone_seconds: float | None, now: float) -> Plan:
    """
    Return the writes that end a pod without a kubelet.

    `node_gone_seconds` is the time for which its node is known not to exist; None if the node
    exists or the pod is not bound.
    """
    has_node = bool(spec_of(pod).get("nodeName"))
    if node_gone_seconds is None and (has_node or not is_deleted(pod)):
        return NOTHING
    if node_gone_seconds is not None and node_gone_seconds < QUARANTINE_SECONDS:
        return Plan(again_seconds=QUARANTINE_SECONDS - node_gone_seconds)
    writes: list[Write] = []
    if not is_terminal(pod):
        # The phase comes before the deletion: a program with a finalizer waits for it.
        status = status_of(pod) | {"phase": "Failed"}
        if has_node:
            condition = {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "DeletionByPodGC",
                "message": "PodGC: node no longer exists",
                "lastTransitionTime": timestamp(now),
            }
            status["conditions"] = with_condition(get(status, "conditions", ()), condition)
        writes.append(Update(PODS, pod | {"status": status}, "status"))
    if not is_deleted(pod) or pod["metadata"].get("deletionGracePeriodSeconds"):
        # Otherwise only a finalizer keeps the pod.
        writes.append(Delete(PODS, name_of(pod), uid_of(pod), grace_seconds=0))
    return Plan(tuple(writes))


class PodCollection(Reconciler[Name]):
    """Ends pods that are on deleted nodes, or were deleted before they were bound."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "pod-garbage-collector")
        self._gone: dict[str, float] = {}
        self._nodes = self.watch(NODES)
        self._pods = self.watch(PODS, self._on_pod)
        self._by_node = self._pods.index("node", node_names)
        self._nodes.listen(self._on_node)

    def _on_pod(self, old: Raw | None, new: Raw | None) -> None:
        if new is None:
            return
        node = spec_of(new).get("nodeName")
        if (not node and is_deleted(new)) or (node and self._nodes.get("", node) is None):
            self.queue.add(name_of(new))

    def _on_node(self, old: Raw | None, new: Raw | None) -> None:
        if new is not None:
            self._gone.pop(new["metadata"]["name"], None)
            return
        for pod in self._by_node.get(old["metadata"]["name"] if old else ""):
            self.queue.add(name_of(pod))

    async def decide(self, name: Name) -> Plan:
        pod = self._pods.objects.get(name)
        if pod is None:
            return NOTHING
        now = self._clock.now()
        node = spec_of(pod).get("nodeName")
        if not node or self._nodes.get("", node) is not None:
            return plan(pod, node_gone_seconds=None, now=now)
        seconds = now - self._gone.setdefault(node, now)
        if seconds >= QUARANTINE_SECONDS:
            with suppress(NotFoundError):
                await self._client.get(NODES, node)
                return plan(pod, node_gone_seconds=None, now=now)
        return plan(pod, node_gone_seconds=seconds, now=now)
