"""
The trace of a decision: the answer of every plugin about every node for one pod.

It calls every plugin for every node, without remembered answers. So it defines the decision that
`place` makes quickly. `place` itself records nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dryrack.allocation import Allocated, AllocationError, Search, Undecided
from dryrack.placement.active_plugins import ActivePlugins, call
from dryrack.placement.framework import SCORE_MAX
from dryrack.placement.outcomes import NO_DEVICES, NOT_DECIDED
from dryrack.placement.place import SEARCHES_MAX
from dryrack.placement.plugins import DEFAULT_PROFILE
from dryrack.placement.plugins.dynamic_resources import DYNAMIC_RESOURCES
from dryrack.placement.pod_constraints import PodConstraints

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.kinds.core import Pod
    from dryrack.kinds.resource import AllocationResult, ResourceClaim
    from dryrack.placement.extended_resources import ExtendedResources
    from dryrack.placement.framework import Profile
    from dryrack.placement.node_state import NodeState
    from dryrack.placement.outcomes import Cluster


@dataclass(frozen=True, slots=True)
class PluginScore:
    """The score of a node by a plugin, from 0 to 100, and the weight of the plugin."""

    plugin: str
    score: int
    weight: int


@dataclass(slots=True)
class NodeTrace:
    """The answers of plugins about a node, in the order of the calls."""

    node: str
    passed: list[str] = field(default_factory=list)
    # The plugin that refuses, and its message; empty if none refuses.
    refused_by: str = ""
    refusal: str = ""
    scores: list[PluginScore] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(each.score * each.weight for each in self.scores)

    def document(self) -> dict[str, Any]:
        """Return the trace as programs read it."""
        verdicts = [{"plugin": plugin, "verdict": "passed"} for plugin in self.passed]
        if self.refused_by:
            refused = {"plugin": self.refused_by, "verdict": "refused", "reason": self.refusal}
            return {"node": self.node, "filters": [*verdicts, refused]}
        scores = [
            {"plugin": each.plugin, "score": each.score, "weight": each.weight}
            for each in self.scores
        ]
        return {"node": self.node, "filters": verdicts, "scores": scores, "total": self.total}


@dataclass(frozen=True, slots=True)
class DecisionTrace:
    """The traces of all nodes by name, and the chosen node, empty if none takes the pod."""

    pod: str
    scheduler_name: str
    nodes: tuple[NodeTrace, ...]
    chosen: str

    def document(self) -> dict[str, Any]:
        """Return the trace as programs read it."""
        return {
            "pod": self.pod,
            "schedulerName": self.scheduler_name,
            "chosen": self.chosen,
            "nodes": [each.document() for each in self.nodes],
        }


def trace(
    pod: Pod,
    wanted: Sequence[ResourceClaim],
    allocated: Sequence[ResourceClaim],
    cluster: Cluster,
    *,
    extended: ExtendedResources | None = None,
    profile: Profile = DEFAULT_PROFILE,
) -> DecisionTrace:
    """Return the decision of `place` with its causes; raises `PluginError`, `AllocationError`."""
    constraints = PodConstraints.of(pod, wanted, allocated, extended=extended)
    plugins = ActivePlugins.of(constraints, cluster.fleet, profile)
    traces = {node.name: NodeTrace(node.name) for node in cluster.fleet.states()}
    feasible = list(_filter_nodes(plugins, cluster, traces))
    if feasible:
        _score_nodes(plugins, feasible, traces)
    ranks = [(-traces[node.name].total, node.pods, node.name) for node, _ in feasible]
    name = pod.full_name
    chosen = min(ranks)[2] if ranks else ""
    return DecisionTrace(name, profile.scheduler_name, tuple(traces.values()), chosen)


def _filter_nodes(
    plugins: ActivePlugins, cluster: Cluster, traces: dict[str, NodeTrace]
) -> Iterator[tuple[NodeState, Sequence[AllocationResult]]]:
    """Yield the nodes that take the pod, with the allocations of its claims there."""
    for node in cluster.fleet.states():
        trace = traces[node.name]
        for plugin, check in plugins.checks:
            refusal = call(plugin, check, node)
            if refusal is not None:
                # A plugin that names nodes has passed before, by the names.
                trace.passed = [each for each in trace.passed if each != plugin.name]
                trace.refused_by = plugin.name
                trace.refusal = ", ".join((refusal.words, *refusal.further))
                break
            if plugin.name not in trace.passed:
                trace.passed.append(plugin.name)
        if trace.refused_by:
            continue
        results = _allocate(plugins.pod, cluster, node)
        if isinstance(results, str):
            trace.passed = [each for each in trace.passed if each != DYNAMIC_RESOURCES.name]
            trace.refused_by = DYNAMIC_RESOURCES.name
            trace.refusal = results
        else:
            yield node, results


def _allocate(
    pod: PodConstraints, cluster: Cluster, node: NodeState
) -> Sequence[AllocationResult] | str:
    """Return the allocations of the pod's claims on the node, or why there are none."""
    wanted = pod.wanted_on(node.node)
    if not wanted:
        return ()
    try:
        for _ in range(SEARCHES_MAX):
            outcome = cluster.allocator.begin(node.node, wanted)
            if not isinstance(outcome, Search):
                break
            outcome.finish()
    except AllocationError as error:
        return str(error)
    if isinstance(outcome, Allocated):
        return outcome.results
    return NOT_DECIDED if isinstance(outcome, Search | Undecided) else NO_DEVICES


def _score_nodes(
    plugins: ActivePlugins,
    feasible: Sequence[tuple[NodeState, Sequence[AllocationResult]]],
    traces: dict[str, NodeTrace],
) -> None:
    """Add the score of each plugin to the traces of the feasible nodes."""
    nodes = [node for node, _ in feasible]
    columns = [
        (plugin.name, weight, [call(plugin, scorer.score, node) for node in nodes])
        for plugin, weight, scorer in plugins.node_scorers
    ]
    columns += [
        (plugin.name, weight, list(call(plugin, scorer.scores, nodes)))
        for plugin, weight, scorer in plugins.cluster_scorers
    ]
    for plugin, weight, scorer in plugins.device_scorers:
        raw = [call(plugin, scorer.score, node, results) for node, results in feasible]
        highest = max(raw, default=0)
        if scorer.is_relative and highest:
            raw = [SCORE_MAX * each // highest for each in raw]
        columns.append((plugin.name, weight, raw))
    for name, weight, scores in columns:
        for node, score in zip(nodes, scores, strict=True):
            traces[node.name].scores.append(PluginScore(name, score, weight))
