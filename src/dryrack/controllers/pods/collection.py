"""
Pods that nobody runs any more.

A pod on a node that is gone, and a pod that was deleted before it found a node, have no kubelet
that would ever confirm their end.
"""

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

# A node that vanishes may only be registering anew; kube-controller-manager waits as long.
QUARANTINE_SECONDS = 40.0


def plan(pod: Raw, *, node_gone_seconds: float | None, now: float) -> Plan:
    """
    What happens to a pod.

    `node_gone_seconds`: for how long its node is known not to exist; None if it exists or is not
    named.
    """
    has_node = bool(spec_of(pod).get("nodeName"))
    if node_gone_seconds is None and (has_node or not is_deleted(pod)):
        return NOTHING
    if node_gone_seconds is not None and node_gone_seconds < QUARANTINE_SECONDS:
        return Plan(again_seconds=QUARANTINE_SECONDS - node_gone_seconds)
    ending = _failed(pod, _disruption(now) if has_node else None)
    if is_deleted(pod) and not pod["metadata"].get("deletionGracePeriodSeconds"):
        # Nothing but a finalizer keeps it.
        return Plan(tuple(ending))
    return Plan((*ending, Delete(PODS, name_of(pod), uid_of(pod), grace_seconds=0)))


def _disruption(now: float) -> Raw:
    reason = "DeletionByPodGC"
    message = "PodGC: node no longer exists"
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason}
    return condition | {"message": message, "lastTransitionTime": timestamp(now)}


def _failed(pod: Raw, condition: Raw | None = None) -> list[Write]:
    """Its end, told before it goes: whoever keeps it by a finalizer waits for that."""
    if is_terminal(pod):
        return []
    status = status_of(pod) | {"phase": "Failed"}
    if condition is not None:
        status["conditions"] = with_condition(get(status, "conditions", ()), condition)
    return [Update(PODS, pod | {"status": status}, "status")]


class PodCollection(Reconciler[Name]):
    """Watches pods and nodes."""

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
        since = await self._gone_since(node, now) if node else None
        return plan(pod, node_gone_seconds=None if since is None else now - since, now=now)

    async def _gone_since(self, node: str, now: float) -> float | None:
        if self._nodes.get("", node) is not None:
            return None
        since = self._gone.setdefault(node, now)
        if now - since < QUARANTINE_SECONDS:
            return since
        try:
            await self._client.get(NODES, node)
        except NotFoundError:
            return since
        return None
