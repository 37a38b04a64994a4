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


class ActivePlugins(msgspec.Struct, frozen=True):
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

    # Signatures of plugins that answered for its template, and the plugins that did for this pod.
    signs: tuple[tuple[str, Hashable], ...]
    signing: Sequence[Plugin]

    @staticmethod
    def of(pod: PodConstraints, fleet: Fleet, profile: Profile) -> ActivePlugins:
        calls = _calls_of(pod, fleet, profile)
        checks, signing = _checks(pod, fleet, calls.filters)
        of_cluster = [each for each in checks if each[0].sees_cluster]
        node_scorers: list[tuple[Plugin, int, NodeScorer]] = []
        device_scorers: list[tuple[Plugin, int, DeviceScorer]] = []
        cluster_scorers: list[tuple[Plugin, int, ClusterScorer]] = []
        for plugin, weight, function, args, answer in calls.scores:
            scorer = answer
            if scorer is None:
                try:
                    scorer = function(pod, fleet, args)
                except Exception as error:
                    raise _failed(plugin, error) from error
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
        return ActivePlugins(
            pod,
            profile,
            checks,
            [each for each in checks if not each[0].sees_cluster] if of_cluster else checks,
            of_cluster,
            node_scorers,
            device_scorers,
            cluster_scorers,
            _groups([scorer for _, _, scorer in cluster_scorers]) if cluster_scorers else (),
            _grouped_checks([check for _, check in of_cluster]) if of_cluster else (),
            calls.signs,
            signing,
        )

    @property
    def see_cluster(self) -> bool:
        """Whether every node has to be held against the others."""
        return bool(self.cluster_scorers or self.cluster_checks)

    def signature(self) -> Kind:
        """The same for pods that every node by itself treats alike, and how these group nodes."""
        signs = {each.name: call(each, each.sign, self.pod) for each in self.signing}
        base = (self.profile, self.signs, tuple(signs.items()))
        return base, tuple([each.key for each in self._grouping()])

    def queue(self, fleet: Fleet) -> NodeQueue:
        """The nodes for pods that each node by itself treats like this one."""
        return fleet.queue(self.signature(), self.node_score, self._group)

    def _group(self, node: NodeState) -> Group:
        return tuple([each.group(node) for each in self._grouping()])

    def _grouping(self) -> Sequence[NodeGroups | GroupedCheck]:
        return (*self.groups, *self.grouped_checks)

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
    return PluginError(f"plugin {plugin.name}: {what}; correct or disable the plugin")


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
    known = profile.calls_by_template
    template = pod.template
    found = known.get(template)
    if found is None:
        naming: list[PluginCall[Check]] = [
            (each, 0, partial(_named, each), {}, None) for each in profile.naming
        ]
        filters = tuple(_left((*naming, *profile.calls.filters), pod, fleet))
        scores: Sequence[PluginCall[Scorer]] = tuple(_left(profile.calls.scores, pod, fleet))
        found = PluginCalls(filters, scores, tuple(_signs(filters, scores, pod)))
        if len(known) >= TEMPLATES_MAX:
            del known[next(iter(known))]
        known[template] = found
    return found


def _left(
    calls: Sequence[PluginCall[Answer]], pod: PodConstraints, fleet: Fleet
) -> Iterator[PluginCall[Answer]]:
    """Without plugins that say nothing of any pod of the template; others answer once for all."""
    for plugin, weight, function, args, _ in calls:
        if not plugin.of_template:
            yield plugin, weight, function, args, None
        elif (answer := call(plugin, function, pod, fleet, args)) is not None:
            yield plugin, weight, function, args, answer


def _signs(
    filters: Sequence[PluginCall[Check]], scores: Sequence[PluginCall[Scorer]], pod: PodConstraints
) -> Iterator[tuple[str, Hashable]]:
    """The signatures of plugins that answered for the template, and look at a node by itself."""
    local = [plugin for plugin, _, _, _, check in filters if check and not plugin.sees_cluster]
    local += [plugin for plugin, _, _, _, it in scores if it and not isinstance(it, ClusterScorer)]
    for name, plugin in {each.name: each for each in local}.items():
        yield name, call(plugin, plugin.sign, pod)


def _checks(
    pod: PodConstraints, fleet: Fleet, calls: Sequence[PluginCall[Check]]
) -> tuple[list[tuple[Plugin, Check]], list[Plugin]]:
    """The checks, and the plugins that were called and looked at a node by itself."""
    found: list[tuple[Plugin, Check]] = []
    signing: list[Plugin] = []
    for plugin, _, function, args, answer in calls:
        if answer is not None:
            found.append((plugin, answer))
            continue
        try:
            check = function(pod, fleet, args)
        except Exception as error:
            raise _failed(plugin, error) from error
        if check is not None:
            found.append((plugin, check))
            if not plugin.sees_cluster:
                signing.append(plugin)
    return found, signing


def _named(plugin: Plugin, pod: PodConstraints, *_asked: object) -> Check | None:
    """Nodes that are not among those that a plugin names are out, whatever others say of them."""
    names = plugin.names(pod) if plugin.names is not None else None
    if names is None:
        return None
    words = f"node(s) didn't satisfy plugin(s) [{plugin.name}]"
    fact = f"plugin {plugin.name} selects other nodes"
    remedy = "use a node that it selects"
    refusal = NodeRefusal(words, fact, remedy, is_unresolvable=True)
    return lambda node: None if node.name in names else refusal


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
        f"plugin {plugin.name}: the score {score} is invalid; return 0 to {SCORE_MAX}"
    )
