"""
The scheduling framework: what a plugin is, and which of them a profile asks.

A plugin is one small pure function per extension point. Each looks at the pod once (PreFilter,
PreScore) and answers with something that is asked of nodes (Filter, Score), or with None if it has
nothing to say about such a pod, as upstream's Skip:

    def filter(pod: PodConstraints, fleet: Fleet, args: Args) -> Check | None
    def score(pod: PodConstraints, fleet: Fleet, args: Args) -> Scorer | None

What a node answers by itself is remembered until something happens on that node, for all pods with
the same signature, and costs nothing then. So a filter says if it `sees_cluster`, and a scorer is
one of three: a `NodeScorer` looks at one node, a `DeviceScorer` at the devices that a node would
give, a `ClusterScorer` at all nodes that are left. A pod that a plugin `sees_cluster` or a
`ClusterScorer` has something to say about is held against every node, unless nodes come in groups
(`GroupedCheck`, `NodeGroups`): then only the best of each group is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import msgspec

from dryrack.base.errors import DryrackError

if TYPE_CHECKING:
    from dryrack.kinds.resource import AllocationResult
    from dryrack.placement.fleet import Fleet
    from dryrack.placement.node_state import NodeRefusal, NodeState
    from dryrack.placement.pod_constraints import PodConstraints, PodTemplate

# The range of a score, before its weight.
SCORE_MAX = 100

Answer = TypeVar("Answer")
Args: TypeAlias = Mapping[str, Any]
# Why the node does not take the pod, None if nothing is in the way.
Check: TypeAlias = "Callable[[NodeState], NodeRefusal | None]"


class PluginError(DryrackError):
    """A plugin that does not keep its contract; no node can help."""


@dataclass(frozen=True, slots=True)
class GroupedCheck:
    """A check that sees the cluster, and says the same of all nodes of a group."""

    check: Check
    # Equal for pods that group nodes alike.
    key: Hashable
    # Of a node by itself.
    group: Callable[[NodeState], Hashable]

    def __call__(self, node: NodeState) -> NodeRefusal | None:
        return self.check(node)


@dataclass(frozen=True, slots=True)
class NodeScorer:
    """The score of a node, which depends on that node alone."""

    score: Callable[[NodeState], int]


@dataclass(frozen=True, slots=True)
class DeviceScorer:
    """The score of a node by the devices that its claims would be given there, in order."""

    score: Callable[[NodeState, Sequence[AllocationResult]], int]
    # The highest that there can be.
    most: int = SCORE_MAX
    # Whether the highest of all nodes counts as 100 (upstream's NormalizeScore).
    is_relative: bool = False


@dataclass(frozen=True, slots=True)
class NodeGroups:
    """Nodes of a group have the same score; groups are held against each other."""

    # Equal for pods that group nodes alike.
    key: Hashable
    # Of a node by itself.
    group: Callable[[NodeState], Hashable]
    # The score of each group, by how many nodes are in it.
    scores: Callable[[Mapping[Any, int]], Mapping[Any, int]]

    def scorer(self) -> ClusterScorer:
        return ClusterScorer(self._of_nodes, self)

    def _of_nodes(self, nodes: Sequence[NodeState]) -> Sequence[int]:
        groups = [self.group(node) for node in nodes]
        scores = self.scores(Counter(groups))
        return [scores[group] for group in groups]


@dataclass(frozen=True, slots=True)
class ClusterScorer:
    """The scores of all nodes that are left, normalized: each is held against the others."""

    scores: Callable[[Sequence[NodeState]], Sequence[int]]
    # Where few things about a node matter; then not every node has to be looked at.
    groups: NodeGroups | None = None


Scorer: TypeAlias = NodeScorer | DeviceScorer | ClusterScorer
PluginFunction: TypeAlias = "Callable[[PodConstraints, Fleet, Args], Answer | None]"
FilterFunction: TypeAlias = "PluginFunction[Check]"
ScoreFunction: TypeAlias = "PluginFunction[Scorer]"


def whole_pod(pod: PodConstraints) -> Hashable:
    """A signature that is true of every plugin: all that a pod says but its name."""
    metadata = pod.pod.metadata
    said = (metadata.namespace, metadata.labels, metadata.annotations, pod.pod.spec)
    return msgspec.json.encode(said, enc_hook=str, order="deterministic")


@dataclass(frozen=True, slots=True)
class Plugin:
    """The functions of a plugin, by extension point."""

    name: str
    filter: FilterFunction | None = None
    score: ScoreFunction | None = None
    # The only nodes that can do, by name, if a pod names some (upstream's PreFilterResult).
    names: Callable[[PodConstraints], frozenset[str] | None] | None = None
    # Whether the filter's answer about a node depends on other nodes, or the pods on them.
    sees_cluster: bool = False
    # All of a pod that its answers depend on (upstream's SignPod): nodes treat pods that have it
    # in common alike.
    sign: Callable[[PodConstraints], Hashable] = whole_pod
    # Whether its functions look at nothing but what `PodConstraints.template` is made of, so that
    # what they answer for one pod of a template serves all.
    of_template: bool = False


# A plugin, the weight of its score, the function that is called, its arguments, and what it says of
# every pod of a template, None if it has to be called.
PluginCall: TypeAlias = "tuple[Plugin, int, PluginFunction[Answer], Args, Answer | None]"


class PluginCalls(NamedTuple):
    """What is called for a pod, in this order."""

    filters: Sequence[PluginCall[Check]]
    scores: Sequence[PluginCall[Scorer]]
    # The signatures of plugins that answered for every pod of a template, by their names.
    signs: tuple[tuple[str, Hashable], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """What a profile of a KubeSchedulerConfiguration comes to."""

    scheduler_name: str = "default-scheduler"
    # In the order in which they are asked.
    filters: tuple[Plugin, ...] = ()
    # With their weights.
    scores: tuple[tuple[Plugin, int], ...] = ()
    # By the name of the plugin.
    args: Mapping[str, Args] = field(default_factory=dict)
    # Those that are on of what the scheduler does itself, such as preemption.
    scheduler_plugins: frozenset[str] = frozenset()
    # All that is called, and what of it is left for pods of a template (see `active_plugins`).
    calls: PluginCalls = field(init=False)
    calls_by_template: dict[PodTemplate, PluginCalls] = field(init=False, default_factory=dict)
    # Filters that may name the only nodes that can do.
    naming: tuple[Plugin, ...] = field(init=False)

    def __post_init__(self) -> None:
        filters = [(it, 0, it.filter, self.args_of(it), None) for it in self.filters if it.filter]
        scores = [
            (it, weight, it.score, self.args_of(it), None) for it, weight in self.scores if it.score
        ]
        object.__setattr__(self, "calls", PluginCalls(filters, scores))
        naming = tuple(each for each in self.filters if each.names is not None)
        object.__setattr__(self, "naming", naming)

    def has(self, name: str) -> bool:
        """Whether a plugin is on, at any point."""
        asked = (plugin.name for plugin in (*self.filters, *(each for each, _ in self.scores)))
        return name in self.scheduler_plugins or name in asked

    def args_of(self, plugin: Plugin) -> Args:
        return self.args.get(plugin.name, {})


def normalized_groups(numbers: Mapping[int, int], *, reverse: bool = False) -> Mapping[int, int]:
    """As `default_normalize`, of groups that are named by their score."""
    groups = list(numbers)
    return dict(zip(groups, default_normalize(groups, reverse=reverse), strict=True))


def default_normalize(scores: Sequence[int], *, reverse: bool = False) -> Sequence[int]:
    """As upstream's DefaultNormalizeScore: the highest becomes 100, or 0 if it is the worst."""
    highest = max(scores, default=0)
    if highest == 0:
        return [SCORE_MAX] * len(scores) if reverse else scores
    scaled = [SCORE_MAX * score // highest for score in scores]
    return [SCORE_MAX - score for score in scaled] if reverse else scaled
