"""The details of a node: its labels, taints and conditions, its resources, pods, and devices."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from dryrack.kinds.quantity import Quantity
from dryrack.placement import PODS, NodeState, Occupant

if TYPE_CHECKING:
    from dryrack.dashboard.data.tracked import Tracked

Document = dict[str, Any]
_ENDED = ("Succeeded", "Failed")


def node_document(tracked: Tracked, name: str) -> Document | None:
    """Return the details of a node; None if no node has this name."""
    node = tracked.node(name)
    row = tracked.nodes.current.get(name)
    if node is None or row is None:
        return None
    pods = sorted(tracked.pods_on(name).values(), key=lambda each: each.full_name)
    state = NodeState(node)
    for pod in pods:
        if pod.status.phase not in _ENDED:
            state.put(pod.full_name, Occupant.of(pod))
    return {
        **row,
        "created": node.metadata.creation_timestamp or "",
        "labels": dict(sorted(node.metadata.labels.items())),
        "taints": [
            {
                "key": each.key,
                "value": each.value,
                "effect": each.effect,
                "since": each.time_added or "",
            }
            for each in node.spec.taints
        ],
        "conditions": [
            {
                "type": each.type,
                "status": each.status,
                "reason": each.reason,
                "message": each.message,
                "since": each.last_transition_time or "",
            }
            for each in node.status.conditions
        ],
        "resources": _resources(state),
        "pods": [tracked.pods.current[each.full_name] for each in pods],
        "devices": _devices(tracked, name),
    }


def _resources(state: NodeState) -> list[Document]:
    """Return each resource with the amounts that the scheduler compares."""
    rows = []
    for name, amount in sorted(state.node.status.allocatable.items()):
        requested = state.used.get(name, 0)
        written = (
            str(requested // 10**9) if name == PODS else str(Quantity.of(requested, amount.format))
        )
        rows.append(
            {
                "resource": name,
                "allocatable": str(amount),
                "requested": written,
                "requestedPercent": 100 * requested // amount.nanos if amount.nanos else 0,
            }
        )
    return rows


def _devices(tracked: Tracked, node: str) -> list[Document]:
    """Return devices by driver and model: their states, and how many can be allocated at once."""
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    free: Counter[tuple[str, str]] = Counter()
    inexact = set()
    for key in tracked.fleet.pools_on(node):
        pool = tracked.fleet.pools.current.get(key)
        for each in pool.devices if pool is not None else ():
            if each.node == node:
                counts[key[0], each.model][each.state] += 1
        for count in pool.free if pool is not None else ():
            if count.node == node:
                free[key[0], count.model] += count.free
                inexact |= set() if count.is_exact else {(key[0], count.model)}
    return [
        {
            "driver": driver,
            "model": model,
            "free": free[driver, model],
            "freeIsAtLeast": (driver, model) in inexact,
            "states": dict(states),
        }
        for (driver, model), states in sorted(counts.items())
    ]
