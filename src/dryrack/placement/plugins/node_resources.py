"""NodePorts and NodeResourcesFit: nodes with free host ports and enough free resources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.quantity import ZERO, Quantity
from dryrack.placement.demand import PODS, HostPort
from dryrack.placement.framework import Plugin
from dryrack.placement.node_state import NodeRefusal
from dryrack.placement.plugins.resource_scores import score_balance, score_fit

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from dryrack.placement.fleet import Fleet
    from dryrack.placement.framework import Args, Check
    from dryrack.placement.node_state import NodeState
    from dryrack.placement.pod_constraints import PodConstraints


def _filter_by_ports(pod: PodConstraints, _fleet: Fleet, _args: Args) -> Check | None:
    wanted = [each for each in pod.amounts if isinstance(each, HostPort)]
    if not wanted:
        return None

    def check(node: NodeState) -> NodeRefusal | None:
        taken = [each for each in node.used if isinstance(each, HostPort)]
        for each in wanted:
            if any(each.conflicts(other) for other in taken):
                words = "node(s) didn't have free ports for the requested pod ports"
                fact = f"another pod has port {each.number}/{each.protocol} of the node"
                return NodeRefusal(words, fact, "use another port")
        return None

    return check


def _filter_by_amounts(pod: PodConstraints, _fleet: Fleet, args: Args) -> Check:
    ignored = frozenset(args.get("ignoredResources", ()))
    groups = frozenset(args.get("ignoredResourceGroups", ()))
    wanted: dict[str, int] = {
        name: amount
        for name, amount in pod.amounts.items()
        if amount and isinstance(name, str) and not _is_ignored(name, ignored, groups)
    }

    by_devices = pod.by_devices

    def check(node: NodeState) -> NodeRefusal | None:
        used = node.used
        allocatable = node.allocatable
        missing = []
        for name, amount in wanted.items():
            has = allocatable.get(name, 0)
            if used.get(name, 0) + amount > has and (name not in by_devices or has):
                missing.append(name)
        return _refuse(wanted, node, missing) if missing else None

    return check


def _is_ignored(name: str, ignored: frozenset[str], groups: frozenset[str]) -> bool:
    group, slash, _ = name.partition("/")
    return bool(slash) and (name in ignored or group in groups)


def _refuse(wanted: dict[str, int], node: NodeState, missing: Sequence[str]) -> NodeRefusal:
    """Return the missing resources, places for pods first, as kube-scheduler does."""
    ordered = sorted(missing, key=lambda each: (each != PODS, each))
    name, *others = ordered
    further = tuple(f"Insufficient {other}" for other in others)
    never = any(wanted[each] > node.allocatable.get(each, 0) for each in missing if each != PODS)

    def describe() -> str:
        return " and ".join(_describe(each, wanted[each], node) for each in ordered)

    if name == PODS:
        remedy = "use a node that allows more pods"
        return NodeRefusal("Too many pods", describe, remedy, further, never, is_shortage=True)
    remedy = f"request less {' and '.join(ordered)}, or free some"
    words = f"Insufficient {name}"
    return NodeRefusal(words, describe, remedy, further, never, is_shortage=True)


def _describe(name: str, amount: int, node: NodeState) -> str:
    total = node.node.status.allocatable.get(name, ZERO)
    if name == PODS:
        return f"the node allows {total} pods and has {total}"
    left = Quantity.of(max(total.nanos - node.used.get(name, 0), 0), total.format)
    asked = Quantity.of(amount, total.format)
    return f"the pod requests {asked} of {name}; the node has {left} of {total} left"


def _sign(pod: PodConstraints) -> Hashable:
    amounts = frozenset(pod.amounts.items())
    return amounts, tuple(pod.non_zero.values()), tuple(pod.by_devices)


NODE_PORTS = Plugin("NodePorts", filter=_filter_by_ports, sign=_sign, of_template=True)
NODE_RESOURCES_FIT = Plugin(
    "NodeResourcesFit", filter=_filter_by_amounts, score=score_fit, sign=_sign, of_template=True
)
NODE_RESOURCES_BALANCED_ALLOCATION = Plugin(
    "NodeResourcesBalancedAllocation", score=score_balance, sign=_sign, of_template=True
)
