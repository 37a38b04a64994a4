"""Policies decide as a direct model does, which knows nothing of claims and nodes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import exp
from random import Random
from typing import TYPE_CHECKING

import pytest
from tests.simulation.made_up import PODS, nodes, random_nodes, random_pods

from dryrack.base.draws import Draws
from dryrack.kinds.releases import DEFAULT_RELEASE
from dryrack.placement import Placed, TieRule
from dryrack.simulation.engine import count_shapes
from dryrack.simulation.importers.openb import read_nodes, read_pods
from dryrack.simulation.policies import Workload, policy_named
from dryrack.simulation.world import World

if TYPE_CHECKING:
    from collections.abc import Sequence


POLICIES = ("best-fit", "dot-product", "fgd", "gpu-clustering", "gpu-packing")


@dataclass
class DirectNode:
    """A node as lists of what is left."""

    name: str
    cpu: int
    memory: int
    gpus: list[int]
    model: str
    classes: set[str]


@dataclass(frozen=True)
class DirectPod:
    cpu: int
    memory: int
    number: int
    milli: int
    models: frozenset[str]

    @property
    def group(self) -> str:
        return "share" if self.number == 1 and self.milli < 1000 else str(self.number)


def fits(node: DirectNode, pod: DirectPod) -> bool:
    enough = sum(left >= pod.milli for left in node.gpus) >= pod.number
    is_model = not pod.models or node.model in pod.models or not pod.number
    return node.cpu >= pod.cpu and node.memory >= pod.memory and enough and is_model


def place(node: DirectNode, pod: DirectPod) -> None:
    node.cpu -= pod.cpu
    node.memory -= pod.memory
    take(node.gpus, pod)
    if pod.number:
        node.classes.add(pod.group)


def take(gpus: list[int], pod: DirectPod) -> None:
    missing = pod.number
    for index, left in enumerate(gpus):
        if missing and left >= pod.milli:
            gpus[index] -= pod.milli
            missing -= 1


def fragmentation(
    node: DirectNode, cpu: int, gpus: Sequence[int], typical: Sequence[tuple[DirectPod, float]]
) -> float:
    total = 0.0
    for pod, share in typical:
        enough = sum(left >= pod.milli for left in gpus) >= pod.number
        is_model = not pod.models or node.model in pod.models
        if not pod.number or not is_model or not enough or cpu < pod.cpu:
            total += share * sum(gpus)
        else:
            total += share * sum(left for left in gpus if left < pod.milli)
    return total


def score(
    policy: str, node: DirectNode, pod: DirectPod, typical: Sequence[tuple[DirectPod, float]]
) -> int:
    free = sum(node.gpus)
    wanted = pod.number * pod.milli
    if policy == "best-fit":
        value = 100 * (1 - 0.5 * (node.cpu - pod.cpu) / 128000 - 0.5 * (free - wanted) / 8000)
    elif policy == "dot-product":
        by_cpu = node.cpu / 128000 * pod.cpu / 128000
        value = 100 * (1 - 0.5 * (by_cpu + free / 8000 * wanted / 8000))
    elif policy == "fgd":
        after = list(node.gpus)
        take(after, pod)
        before = fragmentation(node, node.cpu, node.gpus, typical)
        change = before - fragmentation(node, node.cpu - pod.cpu, after, typical)
        value = 100 / (1 + exp(-change / 1000))
    elif not pod.number:
        value = 0
    elif policy == "gpu-clustering":
        value = 25 * (8000 - free) // 8000
        if not node.classes:
            value += 25
        elif pod.group in node.classes:
            value += 75 if len(node.classes) == 1 else 50
    else:
        chosen = sorted(left for left in node.gpus if left >= pod.milli)[: pod.number]
        idle = chosen.count(1000)
        if all(left == 1000 for left in node.gpus):
            value = max(33 - len(node.gpus), len(node.gpus))
        elif idle:
            value = max(50 - idle, 33)
        else:
            value = max(100 - sum(left // 10 for left in chosen) // 10, 50)
    return max(0, min(100, int(value)))


def typical_of(rows: Sequence[DirectPod]) -> Sequence[tuple[DirectPod, float]]:
    """Return the most frequent kinds of pods, which make up 95 percent, without their memory."""
    counts: dict[DirectPod, int] = {}
    for row in rows:
        kind = DirectPod(row.cpu, 0, row.number, row.milli, row.models)
        counts[kind] = counts.get(kind, 0) + 1
    ordered = sorted(
        counts,
        key=lambda it: (counts[it], it.cpu, it.milli if it.milli < 1000 else 0, it.number),
        reverse=True,
    )
    taken: list[DirectPod] = []
    pods = 0
    for kind in ordered:
        if pods >= 0.95 * len(rows):
            break
        taken.append(kind)
        pods += counts[kind]
    return [(kind, counts[kind] / pods) for kind in taken]


@pytest.mark.parametrize(
    "policy", ["best-fit", "dot-product", "fgd", "gpu-clustering", "gpu-packing"]
)
@pytest.mark.parametrize("seed", range(4))
def test_each_decision_is_that_of_the_direct_model(policy: str, seed: int) -> None:
    """Both choose a node with the best score; the order of equal nodes is random, but fixed."""
    random = Random(seed)
    node_rows = random_nodes(random)
    # Distinct numbers of pods, so that the typical pods do not depend on the order of equals.
    pod_rows = random_pods(random)
    trace = read_pods(pod_rows, "pods")
    world = World(read_nodes(node_rows, "nodes"), count_shapes(trace.jobs), DEFAULT_RELEASE)
    workload = Workload(world.fleet, count_shapes(trace.jobs))
    chosen = policy_named(policy, workload, seed)
    direct = [_node(row) for row in node_rows[1:]]
    pods = {row.split(",")[0]: _pod(row) for row in pod_rows[1:]}
    typical = typical_of(list(pods.values()))
    draws = Draws(seed, "test")

    for number in range(160):
        job = draws.choice(trace.jobs)
        pod = pods[job.name]
        outcome = world.decide(job.shape, chosen)
        scores = {it.name: score(policy, it, pod, typical) for it in direct if fits(it, pod)}
        if not scores:
            assert not isinstance(outcome, Placed)
            continue
        assert isinstance(outcome, Placed)
        best = max(scores.values())
        near = 1 if policy == "fgd" else 0
        assert scores[outcome.node] >= best - near
        world.add_pod(
            (number, 0),
            job.shape,
            f"{job.name}-{number}",
            node=outcome.node,
            allocations=outcome.allocations,
            priority=0,
            started="",
        )
        place(next(it for it in direct if it.name == outcome.node), pod)
        assert world.in_use == sum(
            _taken(it, row) for it, row in zip(direct, node_rows[1:], strict=True)
        )


def _taken(node: DirectNode, row: str) -> int:
    return 1000 * int(row.split(",")[3]) - sum(node.gpus)


def _node(row: str) -> DirectNode:
    name, cpu, memory, gpus, model = row.split(",")
    return DirectNode(name, int(cpu), int(memory), [1000] * int(gpus), model, set())


def _pod(row: str) -> DirectPod:
    _, cpu, memory, number, milli, models = row.split(",")
    return DirectPod(
        int(cpu), int(memory), int(number), int(milli), frozenset(filter(None, models.split("|")))
    )


def test_random_ties_are_uniform() -> None:
    """Each of four equal nodes is chosen about as often as the others, however often it was."""
    rows = ["sn,cpu_milli,memory_mib,gpu,model", *(f"n{n},400000,262144,0," for n in range(4))]
    trace = read_pods(["name,cpu_milli,memory_mib,num_gpu,gpu_milli", "p,1,1,0,0"], "pods")
    counts = count_shapes(trace.jobs)
    world = World(read_nodes(rows, "nodes"), counts, DEFAULT_RELEASE)
    policy = policy_named("random", Workload(world.fleet, counts), 3)
    chosen: dict[str, int] = {}
    repeats = 0
    last = ""

    for number in range(2000):
        outcome = world.decide(trace.jobs[0].shape, policy)
        assert isinstance(outcome, Placed)
        chosen[outcome.node] = chosen.get(outcome.node, 0) + 1
        repeats += outcome.node == last
        last = outcome.node
        world.add_pod(
            (number, 0),
            trace.jobs[0].shape,
            f"p{number}",
            node=outcome.node,
            allocations=(),
            priority=0,
            started="",
        )

    assert all(430 < number < 570 for number in chosen.values()), chosen
    assert 430 < repeats < 570


def test_random_draws_the_device_of_a_share() -> None:
    """Each device of a node gets about as many of the first shares; whole devices come in order."""
    pods = [PODS, "share,1,1,1,300,", "whole,1,1,2,1000,"]
    trace = read_pods(pods, "pods")
    share, whole = trace.jobs
    counts = count_shapes(trace.jobs)
    world = World(read_nodes(nodes(1), "nodes"), counts, DEFAULT_RELEASE)
    policy = policy_named("random", Workload(world.fleet, counts), 3)
    chosen: Counter[str] = Counter()

    for number in range(400):
        outcome = world.decide(share.shape, policy)
        assert isinstance(outcome, Placed)
        [result] = outcome.allocations[0].devices.results
        assert str(result.consumed_capacity["milli"]) == "300"
        chosen[result.device] += 1
        world.add_pod(
            (number, 0),
            share.shape,
            f"p{number}",
            node=outcome.node,
            allocations=outcome.allocations,
            priority=0,
            started="",
        )
        # A device with a share is as likely to get the next one as a device without.
        if number % 2:
            for each in (number - 1, number):
                world.free_devices(world.remove_pod((each, 0)))
    outcome = world.decide(whole.shape, policy)

    assert sorted(chosen) == [f"gpu-{number}" for number in range(4)]
    assert all(70 < number < 130 for number in chosen.values()), chosen
    assert isinstance(outcome, Placed)
    assert [each.device for each in outcome.allocations[0].devices.results] == ["gpu-0", "gpu-1"]


@pytest.mark.parametrize("rule", list(TieRule))
def test_every_tie_rule_is_deterministic(rule: TieRule) -> None:
    """The same seed chooses the same nodes."""
    random = Random(5)
    trace = read_pods(random_pods(random), "pods")
    spec = read_nodes(random_nodes(random), "nodes")
    counts = count_shapes(trace.jobs)
    runs = []
    for _ in range(2):
        world = World(spec, counts, DEFAULT_RELEASE)
        policy = policy_named("best-fit", Workload(world.fleet, counts), 3, ties=rule)
        outcomes = [world.decide(job.shape, policy) for job in trace.jobs]
        runs.append([each.node if isinstance(each, Placed) else "" for each in outcomes])

    assert runs[0] == runs[1]
