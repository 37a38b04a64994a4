"""
Small changes to a pod, or to what is around it, each of which might find it a node.

They are derived from what the pod asks of nodes and from the nodes that came closest. They are only
proposed: whoever tells one to a person has tried it. What devices lack is in `remedies`.
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
    from dryrack.placement.fleet import Fleet
    from dryrack.placement.node_state import NodeState

_REPELLING = ("NoSchedule", "NoExecute")
# Of the pods on a node; those of the lowest priority first.
_LEAVING_TRIED_MAX = 4


@dataclass(frozen=True, slots=True)
class PodChange:
    """Something that a person could do: to the pod, to a node, or to a pod that is there."""

    text: str
    # Who knows one of a kind that helps needs no other.
    kind: str
    pod: Pod | None = None
    node: Node | None = None
    leaving: Hashable = None


def possible_changes(pod: Pod, fleet: Fleet, nearest: Sequence[NodeState]) -> Iterator[PodChange]:
    """What might help, the least intrusive first."""
    yield from _uncordon(nearest)
    yield from _tolerate(pod, nearest)
    yield from _select_less(pod)
    yield from _spread_less(pod)
    yield from _ask_for_less(pod, fleet)
    yield from _make_room(nearest)


def _uncordon(nearest: Sequence[NodeState]) -> Iterator[PodChange]:
    for state in nearest:
        if state.node.spec.unschedulable:
            node = changed(state.node, spec=changed(state.node.spec, unschedulable=False))
            taints = tuple(t for t in node.spec.taints if not t.key.endswith("/unschedulable"))
            node = changed(node, spec=changed(node.spec, taints=taints))
            yield PodChange(f"uncordon node {state.name}", "uncordon", node=node)


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
            made = _with(pod, tolerations=(*pod.spec.tolerations, *more))
            text = f"tolerate {named}, as node {state.name} has it"
            yield PodChange(text, "tolerate", pod=made)


def _select_less(pod: Pod) -> Iterator[PodChange]:
    selector = pod.spec.node_selector
    for key, value in selector.items():
        rest = {name: each for name, each in selector.items() if name != key}
        text = f"drop the nodeSelector {key}: {value}, or label a node so"
        yield PodChange(text, "select", pod=_with(pod, node_selector=rest))
    affinity = pod.spec.affinity
    if affinity is not None and affinity.node_affinity is not None:
        yield PodChange(
            "drop the node affinity",
            "select",
            pod=_with(pod, affinity=changed(affinity, node_affinity=None)),
        )


def _spread_less(pod: Pod) -> Iterator[PodChange]:
    for each in pod.spec.topology_spread_constraints:
        rest = tuple(e for e in pod.spec.topology_spread_constraints if e is not each)
        text = f"drop the topologySpreadConstraint over {each.topology_key}"
        yield PodChange(text, "spread", pod=_with(pod, topology_spread_constraints=rest))
    affinity = pod.spec.affinity
    if affinity is None:
        return
    if affinity.pod_anti_affinity is not None:
        made = _with(pod, affinity=changed(affinity, pod_anti_affinity=None))
        yield PodChange("drop the pod anti-affinity", "spread", pod=made)
    if affinity.pod_affinity is not None:
        made = _with(pod, affinity=changed(affinity, pod_affinity=None))
        yield PodChange("drop the pod affinity", "spread", pod=made)


def _ask_for_less(pod: Pod, fleet: Fleet) -> Iterator[PodChange]:
    """As much as some node has left; where several containers ask, it is not said of which."""
    if len(pod.spec.containers) != 1 or pod.spec.init_containers or pod.spec.resources:
        return
    container = pod.spec.containers[0]
    for name, wanted in container.resources.requests.items():
        asked = demand(pod).get(name, 0)
        left = [each.allocatable.get(name, 0) - each.used.get(name, 0) for each in fleet.states()]
        most = max(left, default=0) - (asked - wanted.nanos)
        if 0 < most < wanted.nanos:
            amount = Quantity.of(most, wanted.format)
            requests = {**container.resources.requests, name: amount}
            resources = changed(container.resources, requests=requests)
            made = _with(pod, containers=(changed(container, resources=resources),))
            text = f"request {amount} of {name} instead of {wanted}"
            yield PodChange(text, "request", pod=made)


def _make_room(nearest: Sequence[NodeState]) -> Iterator[PodChange]:
    for state in nearest:
        there = sorted(state.occupants.items(), key=lambda item: (item[1].priority, item[1].name))
        for key, occupant in there[:_LEAVING_TRIED_MAX]:
            named = "/".join(occupant.name)
            if occupant.name[1]:
                yield PodChange(f"delete pod {named} of node {state.name}", "leave", leaving=key)


def _with(pod: Pod, **spec: object) -> Pod:
    made: PodSpec = changed(pod.spec, **spec)
    return changed(pod, spec=made)
