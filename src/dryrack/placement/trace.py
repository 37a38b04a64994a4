"""
The trace of a decision: what every plugin says of every node about one pod.

Every node is asked everything, with nothing remembered, so it is the definition of what `place`
decides quickly; and nothing is written down where nobody wants to see it.
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
    """What a plugin gives a node, from 0 to 100, and what that counts."""

    plugin: str
    score: int
    weight: int


@dataclass(slots=True)
class NodeTrace:
    """What plugins say of a node, in the order in which they are asked."""

    node: str
    passed: list[str] = field(default_factory=list)
    # The one that refuses, and its words; empty, if none does.
    refused_by: str = ""
    refusal: str = ""
    scores: list[PluginScore] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(each.score * each.weight for each in self.scores)

    def document(self) -> dict[str, Any]:
        """The trace as programs read it."""
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
    """All nodes by name, and the one that is chosen, empty if none takes the pod."""

    pod: str
    scheduler_name: str
    nodes: tuple[NodeTrace, ...]
    chosen: str

    def document(self) -> dict[str, Any]:
        """The trace as programs read it."""
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
    """What `place` decides, and all that speaks for it; raises `PluginError`, `AllocationError`."""
    constraints = PodConstraints.of(pod, wanted, allocated, extended=extended)
    plugins = ActivePlugins.of(constraints, cluster.fleet, profile)
    traces = {node.name: NodeTrace(node.name) for node in cluster.fleet.states()}
    feasible = list(_feasible(plugins, cluster, traces))
    if feasible:
        _score(plugins, feasible, traces)
    ranks = [(-traces[node.name].total, node.pods, node.name) for node, _ in feasible]
    name = pod.full_name
    chosen = min(ranks)[2] if ranks else ""
    return DecisionTrace(name, profile.scheduler_name, tuple(traces.values()), chosen)


def _feasible(
    plugins: ActivePlugins, cluster: Cluster, traces: dict[str, NodeTrace]
) -> Iterator[tuple[NodeState, Sequence[AllocationResult]]]:
    """The nodes that take the pod, with the devices that they would give."""
    for node in cluster.fleet.states():
        it = traces[node.name]
        for plugin, check in plugins.checks:
            refusal = call(plugin, check, node)
            if refusal is not None:
                # A plugin that names nodes is asked of those as well.
                it.passed = [each for each in it.passed if each != plugin.name]
                it.refused_by = plugin.name
                it.refusal = ", ".join((refusal.words, *refusal.further))
                break
            if plugin.name not in it.passed:
                it.passed.append(plugin.name)
        if it.refused_by:
            continue
        given = _devices(plugins.pod, cluster, node)
        if isinstance(given, str):
            it.passed = [each for each in it.passed if each != DYNAMIC_RESOURCES.name]
            it.refused_by = DYNAMIC_RESOURCES.name
            it.refusal = given
        else:
            yield node, given


def _devices(
    pod: PodConstraints, cluster: Cluster, node: NodeState
) -> Sequence[AllocationResult] | str:
    """What the node would give, or why it does not."""
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


def _score(
    plugins: ActivePlugins,
    feasible: Sequence[tuple[NodeState, Sequence[AllocationResult]]],
    traces: dict[str, NodeTrace],
) -> None:
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
        raw = [call(plugin, scorer.score, node, given) for node, given in feasible]
        highest = max(raw, default=0)
        if scorer.is_relative and highest:
            raw = [SCORE_MAX * each // highest for each in raw]
        columns.append((plugin.name, weight, raw))
    for name, weight, scores in columns:
        for node, score in zip(nodes, scores, strict=True):
            traces[node.name].scores.append(PluginScore(name, score, weight))
