"""
The plugins of a profile that have something to say about one pod, and what they say of nodes.

What they raise is told as an error of the plugin: it ends the attempt for this pod, and no other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from functools import partial
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
    from dryrack.placement.framework import Check, NodeGroups, Plugin, PluginCall, Profile, Scorer
    from dryrack.placement.node_queue import NodeQueue
    from dryrack.placement.node_state import NodeState
    from dryrack.placement.pod_constraints import PodConstraints

# Pods come from few templates at a time.
TEMPLATES_MAX = 256

# The score of each device plugin for what a node would give, before normalization.
DeviceScores = tuple[int, ...]
# A kind of pods: what nodes by themselves look at, and how nodes are grouped.
Kind = tuple[Hashable, Hashable]
# What each scorer that groups nodes says of one.
Group = tuple[Hashable, ...]


class PluginsInPlay(msgspec.Struct, frozen=True):
    """Checks and scorers for one pod, each with its plugin; scorers with their weights."""

    pod: PodConstraints
    profile: Profile
    # All, and apart those that look at the node alone, and at others, too.
    checks: Sequence[tuple[Plugin, Check]]
    node_checks: Sequence[tuple[Plugin, Check]]
    cluster_checks: Sequence[tuple[Plugin, Check]]
    node_scorers: Sequence[tuple[Plugin, int, NodeScorer]]
    device_scorers: Sequence[tuple[Plugin, int, DeviceScorer]]
    cluster_scorers: Sequence[tuple[Plugin, int, ClusterScorer]]
    # How scorers group nodes that are held against each other, if all of them do; and those checks
    # that look at other nodes, if all of them say the same of a group.
    groups: Sequence[NodeGroups]
    grouped_checks: Sequence[GroupedCheck]

    @staticmethod
    def of(pod: PodConstraints, fleet: Fleet, profile: Profile) -> PluginsInPlay:
        calls = _calls_of(pod, fleet, profile)
        checks = _checks(pod, fleet, profile.naming, calls.filters)
        scorers = _scorers(pod, fleet, calls.scores)
        of_cluster = [each for each in checks if each[0].sees_cluster]
        cluster_scorers = [(p, w, s) for p, w, s in scorers if isinstance(s, ClusterScorer)]
        return PluginsInPlay(
            pod,
            profile,
            checks,
            [each for each in checks if not each[0].sees_cluster] if of_cluster else checks,
            of_cluster,
            [(p, w, s) for p, w, s in scorers if isinstance(s, NodeScorer)],
            [(p, w, s) for p, w, s in scorers if isinstance(s, DeviceScorer)],
            cluster_scorers,
            _groups([scorer for _, _, scorer in cluster_scorers]) if cluster_scorers else (),
            _grouped_checks([check for _, check in of_cluster]) if of_cluster else (),
        )

    @property
    def see_cluster(self) -> bool:
        """Whether every node has to be held against the others."""
        return bool(self.cluster_scorers or self.cluster_checks)

    def signature(self) -> Kind:
        """The same for pods that every node by itself treats alike, and how these group nodes."""
        local = [plugin for plugin, _ in self.node_checks]
        local += [plugin for plugin, _, _ in (*self.node_scorers, *self.device_scorers)]
        signs: dict[str, Hashable] = {}
        for plugin in local:
            if plugin.name not in signs:
                signs[plugin.name] = call(plugin, plugin.sign, self.pod)
        return (self.profile, tuple(signs.items())), tuple(each.key for each in self._grouping())

    def queue(self, fleet: Fleet) -> NodeQueue:
        """The nodes for pods that each node by itself treats like this one."""
        groupings = [each.group for each in self._grouping()]

        def group(node: NodeState) -> Group:
            return tuple([grouping(node) for grouping in groupings])

        return fleet.queue(self.signature(), self.node_score, group)

    def _grouping(self) -> Sequence[NodeGroups | GroupedCheck]:
        return [*self.groups, *self.grouped_checks]

    def group_totals(self, numbers: Mapping[Group, int]) -> Mapping[Group, int]:
        """What scorers give to the nodes of each group, weighed, by how many these are."""
        totals = dict.fromkeys(numbers, 0)
        for index, (plugin, weight, scorer) in enumerate(self.cluster_scorers):
            assert scorer.groups is not None, "all of them group nodes"
            of_plugin: Counter[Hashable] = Counter()
            for group, number in numbers.items():
                of_plugin[group[index]] += number
            scores = call(plugin, scorer.groups.scores, of_plugin)
            for group in totals:
                totals[group] += weight * _in_range(plugin, scores[group[index]])
        return totals

    def node_score(self, node: NodeState) -> int:
        """What scorers say that look at the node alone, weighed."""
        total = 0
        for plugin, weight, scorer in self.node_scorers:
            try:
                score = scorer.score(node)
            except Exception as error:
                raise _failed(plugin, error) from error
            if not 0 <= score <= SCORE_MAX:
                raise _out_of_range(plugin, score)
            total += weight * score
        return total

    def device_scores(
        self, node: NodeState, allocations: Sequence[AllocationResult]
    ) -> DeviceScores:
        """What scorers say of the devices that the node would give."""
        return tuple(
            call(plugin, scorer.score, node, allocations)
            for plugin, _, scorer in self.device_scorers
        )

    def device_total(self, scores: DeviceScores, highest: DeviceScores) -> int:
        """The same weighed, where the highest of all nodes are these."""
        total = 0
        for (plugin, weight, scorer), score, most in zip(
            self.device_scorers, scores, highest, strict=True
        ):
            normal = SCORE_MAX * score // most if scorer.is_relative and most else score
            total += weight * _in_range(plugin, normal)
        return total

    def cluster_scores(self, nodes: Sequence[NodeState]) -> Sequence[int]:
        """What scorers say that hold nodes against each other, weighed and added up."""
        totals = [0] * len(nodes)
        for plugin, weight, scorer in self.cluster_scorers:
            scores = call(plugin, scorer.scores, nodes)
            for index, score in enumerate(scores):
                totals[index] += weight * _in_range(plugin, score)
        return totals


def call(plugin: Plugin, function: Callable[..., Answer], *args: object) -> Answer:
    """What a function of the plugin says; whatever it raises is an error of the plugin."""
    try:
        return function(*args)
    except Exception as error:
        raise _failed(plugin, error) from error


def _failed(plugin: Plugin, error: Exception) -> PluginError:
    if isinstance(error, PluginError):
        return PluginError(f"plugin {plugin.name}: {error}")
    what = f"{type(error).__name__}: {error}"
    return PluginError(f"plugin {plugin.name}: {what}; mend it, or disable it")


def first_refusal(checks: Sequence[tuple[Plugin, Check]], node: NodeState) -> NodeRefusal | None:
    """What the first of the filters says that has something against the node."""
    for plugin, check in checks:
        try:
            refusal = check(node)
        except Exception as error:
            raise _failed(plugin, error) from error
        if refusal is not None:
            return refusal
    return None


def _calls_of(pod: PodConstraints, fleet: Fleet, profile: Profile) -> PluginCalls:
    """What is left to call for pods of its template; kept for the templates that came last."""
    known, template = profile.calls_by_template, pod.template
    found = known.get(template)
    if found is None:
        filters, scores = profile.calls
        found = PluginCalls(tuple(_left(filters, pod, fleet)), tuple(_left(scores, pod, fleet)))
        if len(known) >= TEMPLATES_MAX:
            del known[next(iter(known))]
        known[template] = found
    return found


def _left(
    calls: Sequence[PluginCall[Answer]], pod: PodConstraints, fleet: Fleet
) -> Iterator[PluginCall[Answer]]:
    """Without plugins that say nothing of any pod of the template; others answer once for all."""
    for plugin, weight, function, args in calls:
        if not plugin.of_template:
            yield plugin, weight, function, args
        elif (answer := call(plugin, function, pod, fleet, args)) is not None:
            yield plugin, weight, partial(_always, answer), args


def _always(answer: Answer, *_asked: object) -> Answer:
    return answer


def _checks(
    pod: PodConstraints, fleet: Fleet, naming: Sequence[Plugin], calls: Sequence[PluginCall[Check]]
) -> list[tuple[Plugin, Check]]:
    found = [
        (plugin, _named(plugin, names))
        for plugin in naming
        if plugin.names is not None and (names := call(plugin, plugin.names, pod)) is not None
    ]
    for plugin, _, function, args in calls:
        try:
            check = function(pod, fleet, args)
        except Exception as error:
            raise _failed(plugin, error) from error
        if check is not None:
            found.append((plugin, check))
    return found


def _named(plugin: Plugin, names: frozenset[str]) -> Check:
    """Nodes that are not among those that a plugin names are out, whatever others say of them."""
    words = f"node(s) didn't satisfy plugin(s) [{plugin.name}]"
    fact, remedy = "the pod is for other nodes, by their names", "use one that it names"
    refusal = NodeRefusal(words, fact, remedy, is_unresolvable=True)
    return lambda node: None if node.name in names else refusal


def _scorers(
    pod: PodConstraints, fleet: Fleet, calls: Sequence[PluginCall[Scorer]]
) -> list[tuple[Plugin, int, Scorer]]:
    found = []
    for plugin, weight, function, args in calls:
        try:
            scorer = function(pod, fleet, args)
        except Exception as error:
            raise _failed(plugin, error) from error
        if scorer is not None:
            found.append((plugin, weight, scorer))
    return found


def _groups(scorers: Sequence[ClusterScorer]) -> Sequence[NodeGroups]:
    found = [scorer.groups for scorer in scorers]
    return [each for each in found if each is not None] if all(found) else ()


def _grouped_checks(checks: Sequence[Check]) -> Sequence[GroupedCheck]:
    found = [check for check in checks if isinstance(check, GroupedCheck)]
    return found if len(found) == len(checks) else ()


def _in_range(plugin: Plugin, score: int) -> int:
    if not 0 <= score <= SCORE_MAX:
        raise _out_of_range(plugin, score)
    return score


def _out_of_range(plugin: Plugin, score: int) -> PluginError:
    return PluginError(
        f"plugin {plugin.name}: a score of {score}; it has to be from 0 to {SCORE_MAX}"
    )
