"""
The scheduling framework: plugins, and the profiles that combine them.

A plugin is one small pure function per extension point. The function looks at the pod once
(PreFilter, PreScore) and returns a function that is called for nodes (Filter, Score), or None if
the plugin does not apply to such a pod, as upstream's Skip:

    def filter(pod: PodConstraints, fleet: Fleet, args: Args) -> Check | None
    def score(pod: PodConstraints, fleet: Fleet, args: Args) -> Scorer | None

The answer of a plugin that looks at one node is remembered until an event on that node, for all
pods with the same signature, and costs nothing then. So a filter declares if it `sees_cluster`, and
a scorer is one of three: a `NodeScorer` looks at one node, a `DeviceScorer` at the devices that a
node would allocate, a `ClusterScorer` at all feasible nodes. If a plugin that `sees_cluster` or a
`ClusterScorer` applies to a pod, every node is looked at, unless the plugin groups nodes
(`GroupedCheck`, `NodeGroups`): then only the best of each group is.

The extension points after the decision (Reserve, Permit, PreBind, PostBind) are in
`binding_points`. Only a scheduler calls them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import msgspec

from dryrack.base.draws import Draws
from dryrack.base.errors import DryrackError

if TYPE_CHECKING:
    from dryrack.kinds.resource import AllocationResult
    from dryrack.placement.binding_points import (
        BindFunction,
        Change,
        PermitFunction,
        ReserveFunction,
        UnreserveFunction,
    )
    from dryrack.placement.fleet import Fleet
    from dryrack.placement.node_state import NodeRefusal, NodeState
    from dryrack.placement.pod_constraints import PodConstraints, PodTemplate

# The range of a score, before its weight.
SCORE_MAX = 100

Answer = TypeVar("Answer")
Args: TypeAlias = Mapping[str, Any]
# Returns why the node does not take the pod, None if the filter accepts the node.
Check: TypeAlias = "Callable[[NodeState], NodeRefusal | None]"


class PluginError(DryrackError):
    """A plugin breaks its contract; the pod cannot be placed on any node."""


@dataclass(frozen=True, slots=True)
class GroupedCheck:
    """A check that sees the cluster, and has the same answer for all nodes of a group."""

    check: Check
    # Equal for pods that group nodes alike.
    key: Hashable
    # Returns the group of a node; depends on that node alone.
    group: Callable[[NodeState], Hashable]

    def __call__(self, node: NodeState) -> NodeRefusal | None:
        return self.check(node)


@dataclass(frozen=True, slots=True)
class NodeScorer:
    """The score of a node, which depends on that node alone."""

    score: Callable[[NodeState], int]


@dataclass(frozen=True, slots=True)
class DeviceScorer:
    """The score of a node by the allocations that the claims would get there, in order."""

    score: Callable[[NodeState, Sequence[AllocationResult]], int]
    # The highest possible score.
    most: int = SCORE_MAX
    # Whether the highest score of all nodes counts as 100 (upstream's NormalizeScore).
    is_relative: bool = False


@dataclass(frozen=True, slots=True)
class NodeGroups:
    """A scorer that compares groups of nodes; all nodes of a group have the same score."""

    # Equal for pods that group nodes alike.
    key: Hashable
    # Returns the group of a node; depends on that node alone.
    group: Callable[[NodeState], Hashable]
    # Returns the score of each group, from the number of nodes in it.
    scores: Callable[[Mapping[Any, int]], Mapping[Any, int]]

    def scorer(self) -> ClusterScorer:
        return ClusterScorer(self._score_nodes, self)

    def _score_nodes(self, nodes: Sequence[NodeState]) -> Sequence[int]:
        groups = [self.group(node) for node in nodes]
        scores = self.scores(Counter(groups))
        return [scores[group] for group in groups]


@dataclass(frozen=True, slots=True)
class ClusterScorer:
    """The normalized scores of all feasible nodes, which are compared with each other."""

    scores: Callable[[Sequence[NodeState]], Sequence[int]]
    # Given if the score depends on few properties of a node: then not every node is looked at.
    groups: NodeGroups | None = None


Scorer: TypeAlias = NodeScorer | DeviceScorer | ClusterScorer
PluginFunction: TypeAlias = "Callable[[PodConstraints, Fleet, Args], Answer | None]"
FilterFunction: TypeAlias = "PluginFunction[Check]"
ScoreFunction: TypeAlias = "PluginFunction[Scorer]"


def whole_pod(pod: PodConstraints) -> Hashable:
    """Return a signature that is valid for every plugin: the whole pod except its name."""
    metadata = pod.pod.metadata
    content = (metadata.namespace, metadata.labels, metadata.annotations, pod.pod.spec)
    return msgspec.json.encode(content, enc_hook=str, order="deterministic")


@dataclass(frozen=True, slots=True)
class Plugin:
    """The functions of a plugin, by extension point."""

    name: str
    filter: FilterFunction | None = None
    score: ScoreFunction | None = None
    # Returns the only nodes that the pod allows, by name, if it names some (PreFilterResult).
    names: Callable[[PodConstraints], frozenset[str] | None] | None = None
    # Whether the filter's answer about a node depends on other nodes, or the pods on them.
    sees_cluster: bool = False
    # Returns the part of a pod that the answers depend on (upstream's SignPod).
    sign: Callable[[PodConstraints], Hashable] = whole_pod
    # Whether its functions use only the fields in `PodConstraints.template`, so that their answer
    # for one pod holds for all pods of the template.
    of_template: bool = False
    # See `binding_points`.
    reserve: ReserveFunction | None = None
    unreserve: UnreserveFunction | None = None
    permit: PermitFunction | None = None
    pre_bind: BindFunction | None = None
    post_bind: BindFunction | None = None
    # The changes after which a pod that the plugin rejects is retried (upstream's queueing hints);
    # None: after any change if it rejects a binding, and for a filter those that are known.
    hints: Change | None = None


# A plugin, the weight of its score, the function that is called, its arguments, and its answer for
# every pod of a template, None if it has to be called.
PluginCall: TypeAlias = "tuple[Plugin, int, PluginFunction[Answer], Args, Answer | None]"


class PluginCalls(NamedTuple):
    """The plugins that are called for a pod, in this order."""

    filters: Sequence[PluginCall[Check]]
    scores: Sequence[PluginCall[Scorer]]
    # The signatures of plugins that answered for every pod of a template, by their names.
    signs: tuple[tuple[str, Hashable], ...] = ()


class TieRule(StrEnum):
    """Which of several nodes with the best score is chosen."""

    FEWEST_PODS = "fewest-pods"
    """The node with the fewest pods, then the first by name."""
    NAME = "name"
    """The first by name."""
    FIXED = "fixed"
    """The first in a random order of all nodes, which is the same for all pods."""
    RANDOM = "random"
    """Any of them, with equal probability, drawn for each pod."""


@dataclass(frozen=True, slots=True)
class Ties:
    """A tie rule, and the seed of its random order."""

    rule: TieRule = TieRule.FEWEST_PODS
    seed: int = 0
    _numbers: dict[str, float] = field(default_factory=dict, init=False, repr=False, compare=False)

    def number_of(self, name: str) -> float:
        """Return the number that orders a node among nodes of the same score."""
        if self.rule is not TieRule.FIXED:
            return 0.0
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = Draws(self.seed, "order of nodes", name).random()
        return number


FEWEST_PODS = Ties()


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """The plugins of one profile of a KubeSchedulerConfiguration."""

    scheduler_name: str = "default-scheduler"
    # In the order in which they are called.
    filters: tuple[Plugin, ...] = ()
    # With their weights.
    scores: tuple[tuple[Plugin, int], ...] = ()
    # By the name of the plugin.
    args: Mapping[str, Args] = field(default_factory=dict)
    # The enabled plugins that the scheduler itself implements, such as preemption.
    scheduler_plugins: frozenset[str] = frozenset()
    # How it chooses among nodes of the same score.
    ties: Ties = FEWEST_PODS
    # The plugins of the extension points after the decision, in the order in which they are called.
    reserving: tuple[Plugin, ...] = ()
    permitting: tuple[Plugin, ...] = ()
    pre_binding: tuple[Plugin, ...] = ()
    post_binding: tuple[Plugin, ...] = ()
    # All calls, and those that remain for pods of a template (see `active_plugins`).
    calls: PluginCalls = field(init=False)
    calls_by_template: dict[PodTemplate, PluginCalls] = field(init=False, default_factory=dict)
    # Filters that may name the only allowed nodes.
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
        """Return True if a plugin is enabled at any extension point."""
        plugins = (*self.filters, *(plugin for plugin, _ in self.scores), *self.binding_plugins)
        return name in self.scheduler_plugins or any(each.name == name for each in plugins)

    @property
    def binding_plugins(self) -> tuple[Plugin, ...]:
        """Return the plugins with work between the decision and the end of the binding."""
        points = (self.reserving, self.permitting, self.pre_binding, self.post_binding)
        return tuple({each.name: each for point in points for each in point}.values())

    def args_of(self, plugin: Plugin) -> Args:
        return self.args.get(plugin.name, {})


def normalize_groups(numbers: Mapping[int, int], *, reverse: bool = False) -> Mapping[int, int]:
    """Normalize the scores of groups that are named by their score (see `default_normalize`)."""
    groups = list(numbers)
    return dict(zip(groups, default_normalize(groups, reverse=reverse), strict=True))


def default_normalize(scores: Sequence[int], *, reverse: bool = False) -> Sequence[int]:
    """Scale scores so that the highest is 100, or 0 with `reverse` (DefaultNormalizeScore)."""
    highest = max(scores, default=0)
    if highest == 0:
        return [SCORE_MAX] * len(scores) if reverse else scores
    scaled = [SCORE_MAX * score // highest for score in scores]
    return [SCORE_MAX - score for score in scaled] if reverse else scaled
