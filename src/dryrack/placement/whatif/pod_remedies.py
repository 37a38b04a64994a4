"""
Small changes to a pod, to a node, or to other pods, with which the pod might fit.

They are derived from the requirements of the pod and from the nearest nodes. They are only
proposals: the caller tries each of them. Changes to claims and devices are in `remedies`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace as changed

from dryrack.kinds.core import Toleration
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.selectors import tolerates_taint
from dryrack.placement.demand import demand

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from dryrack.kinds.core import Node, Pod, PodSpec
    from dryrack.placement.node_state import NodeState

_REPELLING = ("NoSchedule", "NoExecute")
# The number of pods of a node, those of the lowest priority first.
_LEAVING_TRIED_MAX = 4


@dataclass(frozen=True, slots=True)
class PodChange:
    """A change that a person could make: to the pod, to a node, or to a pod on a node."""

    text: str
    # Only the first helpful change of a kind is reported.
    kind: str
    # The cost of the change for the person, on the scale of `remedies`.
    cost: float = 0.0
    pod: Pod | None = None
    node: Node | None = None
    leaving: Hashable = None


def possible_changes(
    pod: Pod, nearest: Sequence[NodeState], alike: Sequence[NodeState]
) -> Iterator[PodChange]:
    """
    Yield changes that might help; of each kind the smallest change first.

    `nearest` are nodes that refuse for different reasons, `alike` all that refuse for these.
    """
    yield from _uncordon(nearest)
    yield from _tolerate(pod, nearest)
    yield from _request_less(pod, alike)
    yield from _select_less(pod)
    yield from _spread_less(pod)
    yield from _delete_pod(nearest)


def _uncordon(nearest: Sequence[NodeState]) -> Iterator[PodChange]:
    for state in nearest:
        if state.node.spec.unschedulable:
            node = changed(state.node, spec=changed(state.node.spec, unschedulable=False))
            taints = tuple(t for t in node.spec.taints if not t.key.endswith("/unschedulable"))
            node = changed(node, spec=changed(node.spec, taints=taints))
            yield PodChange(f"uncordon node {state.name}", "uncordon", 1.0, node=node)


def _tolerate(pod: Pod, nearest: Sequence[NodeState]) -> Iterator[PodChange]:
    for state in nearest:
        taints = [
            taint
            for taint in state.node.spec.taints
            if taint.effect in _REPELLING
            and not any(tolerates_taint(each, taint) for each in pod.spec.tolerations)
        ]
        if taints:
            more = [
                Toleration(key=t.key, operator="Equal", value=t.value, effect=t.effect)
                for t in taints
            ]
            named = " and ".join(
                f"{t.key}{f'={t.value}' if t.value else ''}:{t.effect}" for t in taints
            )
            tolerant = _with(pod, tolerations=(*pod.spec.tolerations, *more))
            text = f"tolerate {named} of node {state.name}"
            yield PodChange(text, "tolerate", 1.0, pod=tolerant)


def _select_less(pod: Pod) -> Iterator[PodChange]:
    selector = pod.spec.node_selector
    for key, value in selector.items():
        rest = {name: each for name, each in selector.items() if name != key}
        text = f"remove the nodeSelector {key}: {value}, or add this label to a node"
        yield PodChange(text, "select", 3.0, pod=_with(pod, node_selector=rest))
    affinity = pod.spec.affinity
    if affinity is not None and affinity.node_affinity is not None:
        yield PodChange(
            "remove the node affinity",
            "select",
            3.0,
            pod=_with(pod, affinity=changed(affinity, node_affinity=None)),
        )


def _spread_less(pod: Pod) -> Iterator[PodChange]:
    for each in pod.spec.topology_spread_constraints:
        rest = tuple(e for e in pod.spec.topology_spread_constraints if e is not each)
        text = f"remove the topologySpreadConstraint over {each.topology_key}"
        yield PodChange(text, "spread", 3.0, pod=_with(pod, topology_spread_constraints=rest))
    affinity = pod.spec.affinity
    if affinity is None:
        return
    if affinity.pod_anti_affinity is not None:
        without = _with(pod, affinity=changed(affinity, pod_anti_affinity=None))
        yield PodChange("remove the pod anti-affinity", "spread", 3.0, pod=without)
    if affinity.pod_affinity is not None:
        without = _with(pod, affinity=changed(affinity, pod_affinity=None))
        yield PodChange("remove the pod affinity", "spread", 3.0, pod=without)


def _request_less(pod: Pod, alike: Sequence[NodeState]) -> Iterator[PodChange]:
    """
    Yield smaller requests that fit on a node, the smallest change first.

    With several containers it is unknown which of them could request less.
    """
    if len(pod.spec.containers) != 1 or pod.spec.init_containers or pod.spec.resources:
        return
    container = pod.spec.containers[0]
    requests = container.resources.requests
    asked = demand(pod)
    changes: dict[str, PodChange] = {}
    for state in alike:
        fewer: dict[str, Quantity] = {}
        for name, wanted in requests.items():
            free = state.allocatable.get(name, 0) - state.used.get(name, 0)
            most = free - (asked.get(name, 0) - wanted.nanos)
            if most < wanted.nanos:
                fewer[name] = Quantity.of(most, wanted.format)
        if not fewer or any(each.nanos <= 0 for each in fewer.values()):
            continue
        text = " and ".join(_compare(name, each, requests[name]) for name, each in fewer.items())
        share = sum(1 - each.nanos / requests[name].nanos for name, each in fewer.items())
        resources = changed(container.resources, requests={**requests, **fewer})
        smaller = _with(pod, containers=(changed(container, resources=resources),))
        changes.setdefault(text, PodChange(f"request {text}", "request", 2.0 + share, pod=smaller))
    yield from sorted(changes.values(), key=lambda change: change.cost)


def _compare(name: str, amount: Quantity, wanted: Quantity) -> str:
    if name == "cpu" and amount.nanos % 10**9 == 0:
        noun = "CPU" if amount.nanos == 10**9 else "CPUs"
        return f"{amount} {noun} instead of {wanted}"
    return f"{amount} of {name} instead of {wanted}"


def _delete_pod(nearest: Sequence[NodeState]) -> Iterator[PodChange]:
    for state in nearest:
        pods = sorted(state.occupants.items(), key=lambda item: (item[1].priority, item[1].name))
        for key, occupant in pods[:_LEAVING_TRIED_MAX]:
            named = "/".join(occupant.name)
            if occupant.name[1]:
                text = f"delete pod {named} of node {state.name}"
                yield PodChange(text, "leave", 4.0, leaving=key)


def _with(pod: Pod, **spec: object) -> Pod:
    new: PodSpec = changed(pod.spec, **spec)
    return changed(pod, spec=new)
