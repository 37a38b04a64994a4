"""
The scores of published policies, as plugins: best fit, packing, clustering, dot product, and FGD.

The formulas are those of the code that was published with "Beware of Fragmentation" (ATC'23). Its
constants for the largest node grow with the fleet. A score is cut to a whole number from 0 to 100.
"""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING, NamedTuple

from dryrack.allocation import WHOLE
from dryrack.placement import NodeScorer, Plugin
from dryrack.simulation.policies.devices import DeviceSight
from dryrack.simulation.policies.fragmentation import Fragmentation, free_cpu

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from dryrack.placement import Args, Fleet, NodeState, PodConstraints
    from dryrack.simulation.policies.devices import Ask, Left
    from dryrack.simulation.workload import Shape

# The largest node of the published experiment.
_CPU_MAX = 128_000
_DEVICES_MAX = 8 * WHOLE
# The pods of a node by the devices that they ask for, on the label of pods.
CLASS_LABEL = "simulated-device-class"


class Workload(NamedTuple):
    """The facts that a policy may know in advance: the fleet, and how many pods have each shape."""

    fleet: Fleet
    counts: Sequence[tuple[Shape, int]]

    def sight(self) -> DeviceSight:
        return DeviceSight(self.fleet, [shape for shape, _ in self.counts])


class _Free(NamedTuple):
    """The free amounts of a node before the pod is placed."""

    node: NodeState
    cpu: int
    hardware: Hashable
    left: Left
    ask: Ask


def _plugin(name: str, sight: DeviceSight, formula: Callable[[_Free, int], float]) -> Plugin:
    def score(pod: PodConstraints, _fleet: Fleet, _args: Args) -> NodeScorer:
        claims = pod.wanted
        cpu = pod.amounts.get("cpu", 0) // 10**6

        asks: dict[Hashable, Ask] = {}

        def score_node(node: NodeState) -> int:
            _, hardware, left = sight.see(node)
            ask = asks.get(hardware)
            if ask is None:
                ask = asks[hardware] = sight.ask(node, claims)
            free = _Free(node, free_cpu(node), hardware, left, ask)
            return max(0, min(100, int(formula(free, cpu))))

        return NodeScorer(score_node)

    return Plugin(name, score=score, sign=_sign)


def _sign(pod: PodConstraints) -> Hashable:
    # The claims are in the signature of DynamicResources.
    return pod.amounts.get("cpu", 0)


def _scales(fleet: Fleet, sight: DeviceSight) -> tuple[int, int]:
    """Return the CPU and the devices of the largest node, at least those of the experiment."""
    states = fleet.states()
    cpus = (state.allocatable.get("cpu", 0) // 10**6 for state in states)
    devices = (len(sight.see(state).left) * WHOLE for state in states)
    return max([_CPU_MAX, *cpus]), max([_DEVICES_MAX, *devices])


def best_fit(workload: Workload) -> Plugin:
    """Prefer nodes on which the least is left."""
    sight = workload.sight()
    cpu_max, devices_max = _scales(workload.fleet, sight)

    def formula(free: _Free, cpu: int) -> float:
        cpu_left = (free.cpu - cpu) / cpu_max
        devices_left = (sum(free.left) - free.ask.total) / devices_max
        return 100 * (1 - 0.5 * cpu_left - 0.5 * devices_left)

    return _plugin("BestFit", sight, formula)


def dot_product(workload: Workload) -> Plugin:
    """Prefer nodes where the free amounts have a small dot product with the requests."""
    sight = workload.sight()
    cpu_max, devices_max = _scales(workload.fleet, sight)

    def formula(free: _Free, cpu: int) -> float:
        by_cpu = free.cpu / cpu_max * cpu / cpu_max
        by_devices = sum(free.left) / devices_max * free.ask.total / devices_max
        return 100 * (1 - 0.5 * (by_cpu + by_devices))

    return _plugin("DotProduct", sight, formula)


def gpu_packing(workload: Workload) -> Plugin:
    """Prefer devices that are in use, then nodes with devices in use."""
    sight = workload.sight()

    def formula(free: _Free, _cpu: int) -> float:
        if not free.ask.devices:
            return 0
        number = len(free.left)
        if min(free.left, default=0) == WHOLE:
            return max(33 - number, number)
        milli = free.ask.milli
        chosen = sorted(each for each in free.left if each >= milli)[: free.ask.devices]
        idle = sum(each == WHOLE for each in chosen)
        if idle:
            return max(50 - idle, 33)
        return max(100 - sum(each // 10 for each in chosen) // 10, 50)

    return _plugin("GpuPacking", sight, formula)


def gpu_clustering(workload: Workload) -> Plugin:
    """Prefer nodes whose pods ask for the same number of devices."""
    sight = workload.sight()
    _, devices_max = _scales(workload.fleet, sight)
    # The classes of pods on a node, while its devices have the same use.
    known: dict[str, tuple[Left, int, frozenset[str]]] = {}

    def classes_on(node: NodeState, left: Left) -> frozenset[str]:
        pods = len(node.occupants)
        before = known.get(node.name)
        if before is None or before[0] is not left or before[1] != pods:
            labels = (each.labels.get(CLASS_LABEL, "") for each in node.occupants.values())
            before = known[node.name] = left, pods, frozenset(filter(None, labels))
        return before[2]

    def formula(free: _Free, _cpu: int) -> float:
        if not free.ask.devices:
            return 0
        classes = classes_on(free.node, free.left)
        own = class_of(free.ask.devices, shared=free.ask.milli < WHOLE)
        base = 25 * (devices_max - sum(free.left)) // devices_max
        if not classes:
            return 25 + base
        if own not in classes:
            return base
        return base + (75 if len(classes) == 1 else 50)

    return _plugin("GpuClustering", sight, formula)


def class_of(devices: int, *, shared: bool) -> str:
    """Return the class of pods that ask for so many devices, or for a share of one."""
    return "share" if shared else str(devices)


def fgd(workload: Workload) -> Plugin:
    """Prefer nodes whose fragmentation grows the least (fragmentation gradient descent)."""
    sight = workload.sight()
    fragmentation = Fragmentation(sight, workload.counts)

    def formula(free: _Free, cpu: int) -> float:
        if not free.ask.fits(free.left):
            return 0
        after = fragmentation.after(
            free.node, free.hardware, free.ask.after(free.left), free.cpu - cpu
        )
        before = fragmentation.after(free.node, free.hardware, free.left, free.cpu)
        gradient = (before - after) / WHOLE
        return 100 / (1 + exp(-gradient))

    return _plugin("FGD", sight, formula)
