"""
Evict pods from nodes whose NoExecute taints they do not tolerate.

A pod that tolerates all taints for a time is evicted when the shortest of these times is over,
counted from the time at which the taint was added. A pod that tolerates all taints forever stays.
"""

from collections.abc import Sequence

from dryrack.client.endpoints import NODES, PODS
from dryrack.client.informer import Name, name_of
from dryrack.client.timekeeping import seconds_of, timestamp
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
from dryrack.controllers.writes import (
    NOTHING,
    Delete,
    EngineContext,
    Plan,
    Report,
    Update,
    Write,
)
from dryrack.kinds.expansion.workloads import tolerates
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw

REASON = "DeletionByTaintManager"
MESSAGE = "Taint manager: deleting due to NoExecute taint"


def plan(pod: Raw, taints: Sequence[Raw], now: float) -> Plan:
    """Return the writes that evict a pod, or the time until then."""
    no_execute = [each for each in taints if each.get("effect") == "NoExecute"]
    if not no_execute or is_deleted(pod) or is_terminal(pod):
        return NOTHING
    deadline = eviction_time(get(pod, "spec.tolerations", ()), no_execute, now)
    if deadline is None:
        return NOTHING
    if deadline > now:
        return Plan(again_seconds=deadline - now)
    name = name_of(pod)
    message = f"Marking for deletion Pod {name.namespace}/{name.name}"
    report = Report(pod, "Normal", "TaintManagerEviction", message)
    return Plan((report, *evict(pod, REASON, MESSAGE, now)))


def evict(pod: Raw, reason: str, message: str, now: float) -> tuple[Write, ...]:
    """Write the reason of an eviction to the status of a pod, and delete the pod."""
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason}
    if "generation" in pod["metadata"]:
        condition["observedGeneration"] = pod["metadata"]["generation"]
    condition |= {"message": message, "lastTransitionTime": timestamp(now)}
    conditions = with_condition(get(pod, "status.conditions", ()), condition)
    writes: list[Write] = []
    if conditions != status_of(pod).get("conditions"):
        status = status_of(pod) | {"conditions": conditions}
        writes.append(Update(PODS, pod | {"status": status}, "status"))
    return (*writes, Delete(PODS, name_of(pod), uid_of(pod)))


def eviction_time(tolerations: Sequence[Raw], taints: Sequence[Raw], now: float) -> float | None:
    """Return when a pod with these tolerations is evicted, or None."""
    ends: list[float] = []
    for taint in taints:
        matching = [each for each in tolerations if tolerates(each, taint)]
        added = taint.get("timeAdded")
        since = seconds_of(added) if added else now
        if not matching:
            return since
        limits = [each.get("tolerationSeconds") for each in matching]
        ends += [since + max(0, limit) for limit in limits if limit is not None]
    return min(ends, default=None)


class TaintEviction(Reconciler[Name]):
    """Evicts pods from tainted nodes."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "taint-eviction-controller")
        self._pods = self.watch(PODS, self._on_pod)
        self._by_node = self._pods.index("node", node_names)
        self._nodes = self.watch(NODES, self._on_node)

    def _on_pod(self, old: Raw | None, new: Raw | None) -> None:
        if new is None or not spec_of(new).get("nodeName"):
            return
        if old is None or not spec_of(old).get("nodeName"):
            self.queue.add(name_of(new))

    def _on_node(self, old: Raw | None, new: Raw | None) -> None:
        if new is None or _taints(old) == _taints(new):
            return
        for pod in self._by_node.get(new["metadata"]["name"]):
            self.queue.add(name_of(pod))

    async def decide(self, name: Name) -> Plan:
        pod = self._pods.objects.get(name)
        node = self._nodes.get("", spec_of(pod).get("nodeName", "")) if pod else None
        if pod is None or node is None:
            return NOTHING
        return plan(pod, _taints(node), self._clock.now())


def _taints(node: Raw | None) -> Sequence[Raw]:
    return get(node, "spec.taints", ()) if node else ()
