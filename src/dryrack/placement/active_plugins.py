"""
The plugins of a profile that apply to one pod, and their answers about nodes.

An exception of a plugin is reported as an error of that plugin: it ends the attempt for this pod,
and for no other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import TYPE_CHECKING

import msgspec

from dryrack.placement.framework import (
    SCORE_MAX,
    Answer,
    ClusterScorer,
    DeviceScorer,
    GroupedCheck,
    NodeScorer,
    PluginCalls,
    PluginError,
)
from dryrack.placement.node_state import NodeRefusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from dryrack.kinds.resource import AllocationResult
    from dryrack.placement.fleet import Fleet
    from dryrack.placement.framework import (
        Args,
        Check,
        FilterFunction,
        NodeGroups,
        Plugin,
        PluginCall,
        Profile,
        Scorer,
    )
    from dryrack.placement.node_queue import NodeQueue
    from dryrack.placement.node_state import NodeState
    from dryrack.placement.pod_constraints import PodConstraints

# Pods come from few templates at a time.
TEMPLATES_MAX = 256

# The score of each device plugin for what a node would give, before normalization.
DeviceScores = tuple[int, ...]
# A kind of pods: what plugins that look at one node depend on, and how nodes are grouped.
Kind = tuple[Hashable, Hashable]
# The groups of a node: one for each plugin that groups nodes.
Group = tuple[Hashable, ...]


class ActivePlugins(msgspec.Struct, frozen=True):
    """Checks and scorers for one pod, each with its plugin; scorers with their weights."""

    pod: PodConstraints
    profile: Profile
    # All checks, and separately those that look at one node and those that see the cluster.
    checks: Sequence[tuple[Plugin, Check]]
    node_checks: Sequence[tuple[Plugin, Check]]
    cluster_checks: Sequence[tuple[Plugin, Check]]
    node_scorers: Sequence[tuple[Plugin, int, NodeScorer]]
    device_scorers: Sequence[tuple[Plugin, int, DeviceScorer]]
    cluster_scorers: Sequence[tuple[Plugin, int, ClusterScorer]]
    # The groups of cluster scorers, if all of them group nodes; and the checks that see the
    # cluster, if all of them have the same answer for a group.
    groups: Sequence[NodeGroups]
    grouped_checks: Sequence[GroupedCheck]

    # Signatures of plugins that answered for the template, and the plugins called for this pod.
    signs: tuple[tuple[str, Hashable], ...]
    signing: Sequence[Plugin]

    @staticmethod
    def of(pod: PodConstraints, fleet: Fleet, profile: Profile) -> ActivePlugins:
        """Call the plugins for the pod; raises `PluginError`."""
        calls = _calls_for_template(pod, fleet, profile)
        checks: list[tuple[Plugin, Check]] = []
        signing: list[Plugin] = []
        for plugin, _, function, args, check in calls.filters:
            if check is None:
                try:
                    check = function(pod, fleet, args)
                except Exception as error:
                    raise _error_of(plugin, error) from error
                if check is None:
                    continue
                if not plugin.sees_cluster:
                    signing.append(plugin)
            checks.append((plugin, check))
        node_scorers: list[tuple[Plugin, int, NodeScorer]] = []
        device_scorers: list[tuple[Plugin, int, DeviceScorer]] = []
        cluster_scorers: list[tuple[Plugin, int, ClusterScorer]] = []
        for plugin, weight, score, args, scorer in calls.scores:
            if scorer is None:
                try:
                    scorer = score(pod, fleet, args)
                except Exception as error:
                    raise _error_of(plugin, error) from error
                if scorer is None:
                    continue
                if not isinstance(scorer, ClusterScorer):
                    signing.append(plugin)
            if isinstance(scorer, NodeScorer):
                node_scorers.append((plugin, weight, scorer))
            elif isinstance(scorer, DeviceScorer):
                device_scorers.append((plugin, weight, scorer))
            else:
                cluster_scorers.append((plugin, weight, scorer))
        cluster_checks = [each for each in checks if each[0].sees_cluster]
        groups = [it.groups for _, _, it in cluster_scorers if it.groups is not None]
        grouped_checks = [check for _, check in cluster_checks if isinstance(check, GroupedCheck)]
        return ActivePlugins(
            pod,
            profile,
            checks,
            [each for each in checks if not each[0].sees_cluster] if cluster_checks else checks,
            cluster_checks,
            node_scorers,
            device_scorers,
            cluster_scorers,
            groups if len(groups) == len(cluster_scorers) else (),
            grouped_checks if len(grouped_checks) == len(cluster_checks) else (),
            calls.signs,
            signing,
        )

    def signature(self) -> Kind:
        """Return a key of pods that each node treats alike, and how the pods group nodes."""
        signs = {each.name: call(each, each.sign, self.pod) for each in self.signing}
        base = (self.profile, self.signs, tuple(signs.items()))
        return base, tuple([each.key for each in self._all_groups])

    def queue(self, fleet: Fleet) -> NodeQueue:
        """Return the queue of nodes for pods with this signature."""
        return fleet.queue(self.signature(), self)

    def check_node(self, node: NodeState) -> NodeRefusal | None:
        """Return the refusal of the first filter that looks at the node alone, and refuses it."""
        return first_refusal(self.node_checks, node)

    def groups_of(self, node: NodeState) -> Group:
        return tuple([each.group(node) for each in self._all_groups])

    @property
    def _all_groups(self) -> Sequence[NodeGroups | GroupedCheck]:
        return (*self.groups, *self.grouped_checks)

    def group_totals(self, numbers: Mapping[Group, int]) -> Mapping[Group, int]:
        """Return the weighted score for the nodes of each group, from the number of its nodes."""
        totals = dict.fromkeys(numbers, 0)
        for index, (plugin, weight, scorer) in enumerate(self.cluster_scorers):
            assert scorer.groups is not None, "all of them group nodes"
            of_plugin: Counter[Hashable] = Counter()
            for group, number in numbers.items():
                of_plugin[group[index]] += number
            scores = call(plugin, scorer.groups.scores, of_plugin)
            for group in totals:
                totals[group] += weight * _check_range(plugin, scores[group[index]])
        return totals

    def node_score(self, node: NodeState) -> int:
        """Return the weighted score by scorers that look at the node alone."""
        total = 0
        for plugin, weight, scorer in self.node_scorers:
            try:
                score = scorer.score(node)
            except Exception as error:
                raise _error_of(plugin, error) from error
            if not 0 <= score <= SCORE_MAX:
                _check_range(plugin, score)
            total += weight * score
        return total

    def device_scores(
        self, node: NodeState, allocations: Sequence[AllocationResult]
    ) -> DeviceScores:
        """Return the scores for the devices that the node would allocate, before weights."""
        return tuple(
            call(plugin, scorer.score, node, allocations)
            for plugin, _, scorer in self.device_scorers
        )

    def device_total(self, scores: DeviceScores, highest: DeviceScores) -> int:
        """Return the weighted sum of device scores, given the highest of all nodes."""
        total = 0
        for (plugin, weight, scorer), score, most in zip(
            self.device_scorers, scores, highest, strict=True
        ):
            normal = SCORE_MAX * score // most if scorer.is_relative and most else score
            total += weight * _check_range(plugin, normal)
        return total

    def cluster_scores(self, nodes: Sequence[NodeState]) -> Sequence[int]:
        """Return the weighted score of each node by scorers that compare nodes."""
        totals = [0] * len(nodes)
        for plugin, weight, scorer in self.cluster_scorers:
            scores = call(plugin, scorer.scores, nodes)
            for index, score in enumerate(scores):
                totals[index] += weight * _check_range(plugin, score)
        return totals


def call(plugin: Plugin, function: Callable[..., Answer], *args: object) -> Answer:
    """Call a function of the plugin; raise `PluginError` for any exception."""
    try:
        return function(*args)
    except Exception as error:
        raise _error_of(plugin, error) from error


def _error_of(plugin: Plugin, error: Exception) -> PluginError:
    if isinstance(error, PluginError):
        return PluginError(f"plugin {plugin.name}: {error}")
    what = f"{type(error).__name__}: {error}"
    return PluginError(f"plugin {plugin.name}: {what}; correct or disable the plugin")


def first_refusal(checks: Sequence[tuple[Plugin, Check]], node: NodeState) -> NodeRefusal | None:
    """Return the refusal of the first filter that refuses the node."""
    for plugin, check in checks:
        try:
            refusal = check(node)
        except Exception as error:
            raise _error_of(plugin, error) from error
        if refusal is not None:
            return refusal
    return None


def _calls_for_template(pod: PodConstraints, fleet: Fleet, profile: Profile) -> PluginCalls:
    """Return the calls for pods of the template; kept for the templates that came last."""
    by_template = profile.calls_by_template
    template = pod.template
    calls = by_template.get(template)
    if calls is None:
        naming: list[PluginCall[Check]] = [
            (plugin, 0, _check_names(plugin), {}, None) for plugin in profile.naming
        ]
        filters = tuple(_answer_for_template((*naming, *profile.calls.filters), pod, fleet))
        scores: Sequence[PluginCall[Scorer]] = tuple(
            _answer_for_template(profile.calls.scores, pod, fleet)
        )
        # Only answers that depend on one node are part of a signature.
        local = [plugin for plugin, *_, check in filters if check and not plugin.sees_cluster]
        local += [
            it for it, *_, scorer in scores if scorer and not isinstance(scorer, ClusterScorer)
        ]
        signs = {plugin.name: call(plugin, plugin.sign, pod) for plugin in local}
        calls = PluginCalls(filters, scores, tuple(signs.items()))
        if len(by_template) >= TEMPLATES_MAX:
            del by_template[next(iter(by_template))]
        by_template[template] = calls
    return calls


def _answer_for_template(
    calls: Sequence[PluginCall[Answer]], pod: PodConstraints, fleet: Fleet
) -> Iterator[PluginCall[Answer]]:
    """Yield the calls with the answer for the template, except plugins that do not apply to it."""
    for plugin, weight, function, args, _ in calls:
        if not plugin.of_template:
            yield plugin, weight, function, args, None
        elif (answer := call(plugin, function, pod, fleet, args)) is not None:
            yield plugin, weight, function, args, answer


def _check_names(plugin: Plugin) -> FilterFunction:
    """Return a filter that refuses the nodes which the plugin does not name for the pod."""

    def filter_by_name(pod: PodConstraints, _fleet: Fleet, _args: Args) -> Check | None:
        names = plugin.names(pod) if plugin.names is not None else None
        if names is None:
            return None
        words = f"node(s) didn't satisfy plugin(s) [{plugin.name}]"
        fact = f"plugin {plugin.name} selects other nodes"
        remedy = "use a node that it selects"
        refusal = NodeRefusal(words, fact, remedy, is_unresolvable=True)
        return lambda node: None if node.name in names else refusal

    return filter_by_name


def _check_range(plugin: Plugin, score: int) -> int:
    if not 0 <= score <= SCORE_MAX:
        message = f"the score {score} is invalid; return 0 to {SCORE_MAX}"
        raise PluginError(f"plugin {plugin.name}: {message}")
    return score
