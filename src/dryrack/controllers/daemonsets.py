"""
Daemon sets: one pod on every node that the set selects.

The pod is pinned to its node by affinity and bound by the scheduler, as in Kubernetes. Nodes that
its selector, affinity and tolerations do not admit have no pod.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dryrack.client.endpoints import CONTROLLER_REVISIONS, DAEMON_SETS, NODES
from dryrack.client.informer import name_of
from dryrack.controllers.objects import (
    annotations_of,
    is_deleted,
    is_ready,
    is_terminal,
    labels_of,
    spec_of,
    status_of,
)
from dryrack.controllers.revisions import HASH_LABEL, update_history
from dryrack.controllers.workloads import (
    Candidates,
    OwnerReconciler,
    creation_of,
    deletions_of,
    family_of,
    is_available,
    min_ready_seconds_of,
    pace,
    pod_from,
    status_update,
    waits_for_availability,
)
from dryrack.controllers.writes import (
    NOTHING,
    EngineContext,
    Plan,
    Write,
)
from dryrack.kinds.expansion.workloads import daemon_tolerations, is_daemon_node, pin_to_node
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw
from dryrack.kinds.rules.int_or_percent import scaled_value

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class DaemonSetInputs:
    """Everything that the decision about a daemon set depends on."""

    daemon_set: Raw
    nodes: Sequence[Raw]
    candidates: Sequence[Raw]
    revisions: Sequence[Raw]
    now: float


def plan(inputs: DaemonSetInputs) -> Plan:
    """Return the writes about missing, misplaced and outdated pods, and the status."""
    daemon_set = inputs.daemon_set
    family = family_of(daemon_set, DAEMON_SETS, inputs.candidates)
    if family.writes:
        return Plan(family.writes)
    if is_deleted(daemon_set):
        return NOTHING
    history = update_history(
        daemon_set,
        DAEMON_SETS,
        inputs.revisions,
        in_use=[
            f"{daemon_set['metadata']['name']}-{labels_of(pod).get(HASH_LABEL, '')}"
            for pod in family.members
        ],
    )
    by_node: dict[str, list[Raw]] = {}
    for pod in sorted(
        family.members, key=lambda each: (each["metadata"]["creationTimestamp"], name_of(each))
    ):
        by_node.setdefault(target_of(pod), []).append(pod)
    wanted = [node for node in inputs.nodes if is_wanted(daemon_set, node)]
    writes = [
        *history.writes,
        *_place(inputs, by_node, wanted, digest=history.hash),
        *_update(inputs, by_node, wanted, digest=history.hash),
        *_status(inputs, by_node, wanted, digest=history.hash),
    ]
    wait = waits_for_availability(family.members, min_ready_seconds_of(daemon_set), inputs.now)
    return Plan(tuple(writes), wait)


def target_of(pod: Raw) -> str:
    """Return the node that a pod is bound to, or pinned to."""
    if spec_of(pod).get("nodeName"):
        return str(spec_of(pod)["nodeName"])
    affinity = get(pod, "spec.affinity.nodeAffinity", {})
    for term in get(affinity.get(_REQUIRED) or {}, "nodeSelectorTerms", ()):
        for field in get(term, "matchFields", ()):
            if field["key"] == "metadata.name" and len(get(field, "values", ())) == 1:
                return str(field["values"][0])
    return ""


def is_wanted(daemon_set: Raw, node: Raw) -> bool:
    """Return True if a daemon set has a pod on a node."""
    template = get(daemon_set, "spec.template.spec", {})
    return is_daemon_node(template, node)


def _place(
    inputs: DaemonSetInputs, by_node: Mapping[str, list[Raw]], wanted: Sequence[Raw], *, digest: str
) -> list[Write]:
    daemon_set = inputs.daemon_set
    names = [node["metadata"]["name"] for node in wanted]
    writes: list[Write] = []
    for name in names:
        pods = [pod for pod in by_node.get(name, ()) if not is_deleted(pod)]
        failed = [pod for pod in pods if is_terminal(pod)]
        living = [pod for pod in pods if not is_terminal(pod)]
        writes += deletions_of([*failed, *_surplus(inputs, living, digest)], daemon_set)
        if not by_node.get(name):
            writes.append(_creation(daemon_set, name, digest))
    for name in sorted(set(by_node) - set(names)):
        writes += deletions_of((p for p in by_node[name] if not is_deleted(p)), daemon_set)
    return writes


def _surplus(inputs: DaemonSetInputs, pods: Sequence[Raw], digest: str) -> list[Raw]:
    """Return the pods beside the oldest of a node; with a surge, the oldest old and new stay."""
    if not _surge(inputs.daemon_set, 1):
        return list(pods[1:])
    new = [pod for pod in pods if labels_of(pod).get(HASH_LABEL) == digest]
    old = [pod for pod in pods if pod not in new]
    surplus = [*new[1:], *old[1:]]
    if new and old and (not is_ready(old[0]) or _is_available(inputs, new[0])):
        surplus.append(old[0])
    return surplus


def _is_available(inputs: DaemonSetInputs, pod: Raw) -> bool:
    return is_available(pod, min_ready_seconds_of(inputs.daemon_set), inputs.now)


def _creation(daemon_set: Raw, node: str, digest: str) -> Write:
    pod = pod_from(get(daemon_set, "spec.template", {}), daemon_set, DAEMON_SETS)
    labels = get(pod["metadata"], "labels", {}) | {HASH_LABEL: digest}
    if TEMPLATE_GENERATION in annotations_of(daemon_set):
        labels["pod-template-generation"] = annotations_of(daemon_set)[TEMPLATE_GENERATION]
    spec = pod["spec"] | {
        "affinity": pin_to_node(get(pod["spec"], "affinity", {}), node),
        "tolerations": daemon_tolerations(pod["spec"]),
    }
    return creation_of({"metadata": pod["metadata"] | {"labels": labels}, "spec": spec}, daemon_set)


def _surge(daemon_set: Raw, nodes: int) -> int:
    """Return on how many nodes an old and a new pod may run together."""
    rolling = get(daemon_set, "spec.updateStrategy.rollingUpdate", {})
    return scaled_value(rolling.get("maxSurge"), nodes, default=0, rounds_up=True)


def _update(
    inputs: DaemonSetInputs, by_node: Mapping[str, list[Raw]], wanted: Sequence[Raw], *, digest: str
) -> list[Write]:
    """Replace pods of an older template, a few at a time."""
    strategy = get(inputs.daemon_set, "spec.updateStrategy", {})
    if strategy.get("type") == "OnDelete":
        return []
    living = {
        name: [pod for pod in by_node.get(name, ()) if not is_terminal(pod) and not is_deleted(pod)]
        for name in (node["metadata"]["name"] for node in wanted)
    }
    surge = _surge(inputs.daemon_set, len(wanted))
    if surge:
        return _surge_pods(inputs, living, surge, digest)
    gap = get(strategy, "rollingUpdate.maxUnavailable")
    allowed = scaled_value(gap, len(wanted), default=1, rounds_up=True)
    return _replace(inputs, living, allowed, digest)


def _replace(
    inputs: DaemonSetInputs, living: Mapping[str, Sequence[Raw]], allowed: int, digest: str
) -> list[Write]:
    """Delete old pods, as many at a time as may be unavailable."""
    doomed: list[Raw] = []
    for pods in living.values():
        old = [pod for pod in pods if labels_of(pod).get(HASH_LABEL) != digest]
        if pods and _is_available(inputs, pods[0]):
            doomed += old[:1]
        elif old:
            doomed.insert(0, old[0])
        else:
            allowed -= 1
    return deletions_of(doomed[: max(0, allowed)], inputs.daemon_set)


def _surge_pods(
    inputs: DaemonSetInputs, living: Mapping[str, Sequence[Raw]], surge: int, digest: str
) -> list[Write]:
    """Create new pods beside old ones; `_surplus` deletes the old ones later."""
    at_once: list[str] = []
    later: list[str] = []
    for name, pods in living.items():
        is_new = [labels_of(pod).get(HASH_LABEL) == digest for pod in pods]
        if any(is_new):
            surge -= not all(is_new) and not _is_available(inputs, pods[is_new.index(True)])
        elif pods:
            (later if _is_available(inputs, pods[0]) else at_once).append(name)
    return [
        _creation(inputs.daemon_set, name, digest) for name in (*at_once, *later[: max(0, surge)])
    ]


def _status(
    inputs: DaemonSetInputs, by_node: Mapping[str, list[Raw]], wanted: Sequence[Raw], *, digest: str
) -> list[Write]:
    names = [node["metadata"]["name"] for node in wanted]
    firsts = [by_node[name][0] for name in names if by_node.get(name)]
    min_ready = min_ready_seconds_of(inputs.daemon_set)
    available = sum(is_available(pod, min_ready, inputs.now) for pod in firsts)
    every = {node["metadata"]["name"] for node in inputs.nodes}
    status = {
        "currentNumberScheduled": len(firsts),
        "numberMisscheduled": sum(name in every and name not in names for name in by_node),
        "desiredNumberScheduled": len(names),
        "numberReady": sum(is_ready(pod) for pod in firsts),
        "observedGeneration": inputs.daemon_set["metadata"].get("generation"),
    }
    more = {
        "updatedNumberScheduled": sum(labels_of(p).get(HASH_LABEL) == digest for p in firsts),
        "numberAvailable": available,
        "numberUnavailable": len(names) - available,
    }
    status |= {key: value for key, value in more.items() if value}
    kept = {k: v for k, v in status_of(inputs.daemon_set).items() if k in ("conditions",)}
    return status_update(DAEMON_SETS, inputs.daemon_set, kept | status)


class DaemonSetController(OwnerReconciler):
    """Keeps the pods and the status of daemon sets."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "daemonset-controller", DAEMON_SETS, ignores_status=True)
        self._history = Candidates(self.watch(CONTROLLER_REVISIONS))
        self._nodes = self.watch(NODES)
        self._nodes.listen(self._on_node)

    def _on_node(self, old: Raw | None, new: Raw | None) -> None:
        if old is not None and new is not None and _placing(old) == _placing(new):
            return
        for name in sorted(self.owners.objects):
            self.queue.add_after(name, pace(len(self._nodes.objects)))

    def plan_owner(self, daemon_set: Raw) -> Plan:
        return plan(
            DaemonSetInputs(
                daemon_set,
                self._nodes.all(),
                self.candidates.of(daemon_set),
                self._history.controlled(daemon_set),
                self._clock.now(),
            )
        )


def _placing(node: Raw) -> tuple[Any, ...]:
    """Return the fields of a node that decide whether it has a pod."""
    return labels_of(node), spec_of(node).get("taints"), spec_of(node).get("unschedulable")
