"""
Fragmentation: how much of the devices that are left the typical pods of a workload cannot use.

The measure is that of "Beware of Fragmentation" (ATC'23), as its published code computes it. The
typical pods are the most frequent shapes that make up 95 % of the pods. For one of them, all that
is left on a node counts if the node does not take the pod, and otherwise what is left of the
devices that are too full for it. F is the mean over typical pods.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from dryrack.placement import NodeState
    from dryrack.simulation.policies.devices import Ask, DeviceSight, Left
    from dryrack.simulation.workload import Kind, Shape

# The share of the pods that typical shapes make up, in percent.
TYPICAL_PERCENT = 95


class _Group(NamedTuple):
    """Typical pods that ask for the same devices: their CPU requests, and their shares so far."""

    ask: Ask
    cpu: Sequence[int]
    shares: Sequence[float]

    def share(self, cpu: int) -> float:
        """Return the share of pods whose CPU request is at most this."""
        index = bisect_right(self.cpu, cpu)
        return self.shares[index - 1] if index else 0.0


def typical_pods(counts: Sequence[tuple[Shape, int]]) -> Sequence[tuple[Shape, float]]:
    """Return the typical shapes with their shares of the pods."""
    total = sum(count for _, count in counts)
    # Memory makes no difference here.
    by_kind: dict[Kind, tuple[Shape, int]] = {}
    for shape, count in counts:
        first, known = by_kind.get(shape.kind, (shape, 0))
        by_kind[shape.kind] = first, known + count
    ordered = sorted(by_kind.values(), key=lambda it: (it[1], it[0].kind), reverse=True)
    taken: list[tuple[Shape, int]] = []
    pods = 0
    for shape, count in ordered:
        if 100 * pods >= TYPICAL_PERCENT * total:
            break
        taken.append((shape, count))
        pods += count
    return [(shape, count / pods) for shape, count in taken]


class Fragmentation:
    """The measure F of nodes, which depends on the typical pods of a workload."""

    def __init__(self, sight: DeviceSight, counts: Sequence[tuple[Shape, int]]) -> None:
        self._sight = sight
        self._typical = typical_pods(counts)
        self._cpus = sorted({shape.cpu for shape, _ in self._typical})
        self._groups: dict[object, tuple[_Group, ...]] = {}
        # Hardware of which every typical pod can have all devices, or none.
        self._uniform: dict[object, bool] = {}
        # What each group cannot use, and F itself, by hardware and what is left.
        self._unusable: dict[tuple[object, Left], tuple[int, ...]] = {}
        self._known: dict[tuple[object, Left, int], float] = {}

    def of(self, node: NodeState) -> float:
        """Return how much of the node the typical pods cannot use, in thousandths of a device."""
        seen = self._sight.see(node)
        return self.after(node, seen.hardware, seen.left, free_cpu(node))

    def after(self, node: NodeState, hardware: Hashable, left: Left, cpu: int) -> float:
        """Return F if so much of the devices and of the CPU were left on the node."""
        uniform = self._uniform.get(hardware)
        if uniform is None:
            uniform = self._uniform[hardware] = self._is_uniform(node, hardware)
        if uniform:
            left = tuple(sorted(left))
        rank = bisect_right(self._cpus, cpu)
        known = self._known.get((hardware, left, rank))
        if known is None:
            known = self._compute(node, hardware, left, self._cpus[rank - 1] if rank else -1)
            self._known[hardware, left, rank] = known
        return known

    def _is_uniform(self, node: NodeState, hardware: object) -> bool:
        groups = self._groups_of(node, hardware)
        number = len(self._sight.see(node).left)
        needs = (need for group in groups for need in group.ask.needs)
        return all(
            not need.milli
            or (len(need.milli) == number and len({amount for _, amount in need.milli}) == 1)
            for need in needs
        )

    def _compute(self, node: NodeState, hardware: object, left: Left, cpu: int) -> float:
        groups = self._groups_of(node, hardware)
        total = sum(left)
        unusable = self._unusable.get((hardware, left))
        if unusable is None:
            unusable = tuple(
                group.ask.unusable(left) if group.ask.needs and group.ask.fits(left) else total
                for group in groups
            )
            self._unusable[hardware, left] = unusable
        fragmented = 0.0
        for group, rest in zip(groups, unusable, strict=True):
            fits = group.share(cpu)
            fragmented += fits * rest + (group.shares[-1] - fits) * total
        return fragmented

    def _groups_of(self, node: NodeState, hardware: object) -> tuple[_Group, ...]:
        groups = self._groups.get(hardware)
        if groups is None:
            by_ask: dict[Ask, list[tuple[int, float]]] = {}
            for shape, share in self._typical:
                ask = self._sight.ask(node, shape.claims)
                by_ask.setdefault(ask, []).append((shape.cpu, share))
            made = []
            for ask, pods in by_ask.items():
                pods.sort()
                shares = tuple(accumulate(share for _, share in pods))
                made.append(_Group(ask, tuple(cpu for cpu, _ in pods), shares))
            groups = self._groups[hardware] = tuple(made)
        return groups


def free_cpu(node: NodeState) -> int:
    """Return the CPU of the node that pods have not requested, in thousandths."""
    return (node.allocatable.get("cpu", 0) - node.used.get("cpu", 0)) // 10**6
