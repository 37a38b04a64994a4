"""
What members of a gang say about other pods, and so about each other.

A filter that looks at the cluster says the same of a node whatever members are placed, unless it
is about pods: affinity, anti-affinity and spreading. Members that keep each other off one node are
a matter of that node (see `configurations`); all else is a matter of where all of them are.

What pods say about each other is about labels, so members with labels that nobody asks for are
alike all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from dryrack.kinds.selectors import SelectorError
from dryrack.placement.active_plugins import call
from dryrack.placement.index.affinity_terms import NO_TERMS, PodTerms
from dryrack.placement.plugins.inter_pod_affinity import INTER_POD_AFFINITY, check_anti_affinity
from dryrack.placement.plugins.pod_topology_spread import (
    HOSTNAME,
    POD_TOPOLOGY_SPREAD,
    required_spreads,
)
from dryrack.placement.plugins.volumes import VOLUME_BINDING, VOLUME_ZONE

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from dryrack.kinds.core import Pod
    from dryrack.kinds.meta import LabelSelector
    from dryrack.placement.active_plugins import ActivePlugins
    from dryrack.placement.fleet import Fleet
    from dryrack.placement.framework import Check, Plugin
    from dryrack.placement.index.pod_counts import PodCounts

_ABOUT_VOLUMES = (VOLUME_BINDING.name, VOLUME_ZONE.name)


@dataclass(frozen=True, slots=True)
class PodRelations:
    """What one member requires of other pods."""

    pod: Pod
    terms: PodTerms
    # For each constraint that it is spread by, the pods that it counts.
    spreads: tuple[PodCounts, ...]
    spread_keys: frozenset[str]
    # Whether it has claims of storage that get their volumes when it has a node.
    awaits_volumes: bool
    # Whether a plugin that is not known here looks at the cluster.
    is_unknown: bool

    @staticmethod
    def of(plugins: ActivePlugins, fleet: Fleet) -> PodRelations:
        """Return what a pod requires; raises `PluginError`."""
        pod = plugins.pod.pod
        names = {plugin.name for plugin, _ in plugins.cluster_checks}
        try:
            terms = PodTerms.of(pod.spec.affinity, pod.metadata.namespace).among(fleet.namespaces)
        except SelectorError:
            # It is refused everywhere.
            terms = NO_TERMS
        known = (INTER_POD_AFFINITY.name, POD_TOPOLOGY_SPREAD.name, *_ABOUT_VOLUMES)
        spreads: Sequence[tuple[str, PodCounts]] = ()
        if POD_TOPOLOGY_SPREAD.name in names:
            args = plugins.profile.args_of(POD_TOPOLOGY_SPREAD)
            spreads = call(POD_TOPOLOGY_SPREAD, required_spreads, plugins.pod, fleet, args)
        return PodRelations(
            pod,
            terms,
            tuple(counts for _, counts in spreads),
            frozenset(key for key, _ in spreads),
            any(True for _ in fleet.volumes.waiting(pod)),
            not names.issubset(known),
        )

    @property
    def looks_around(self) -> bool:
        """Whether it matters on which other nodes members are."""
        far = any(term.topology_key != HOSTNAME for term in self.terms.anti_affinity)
        return self.needs_others or self.awaits_volumes or far

    @property
    def needs_others(self) -> bool:
        """Whether other pods could help it, and not only be in its way."""
        return bool(self.terms.affinity or self.spreads or self.is_unknown)

    def depends_on_order(self, others: Iterable[PodRelations]) -> bool:
        """Whether it matters when it arrives, to itself or to one of the others."""
        if self.needs_others or self.awaits_volumes:
            return True
        namespace = self.pod.metadata.namespace
        labels = self.pod.metadata.labels
        return any(
            other.spreads
            or other.is_unknown
            or any(term.matches(namespace, labels) for term in other.terms.affinity)
            for other in others
        )

    @property
    def topology_keys(self) -> frozenset[str]:
        """The labels of nodes that matter to it, except for members on the same node."""
        terms = (*self.terms.affinity, *self.terms.anti_affinity)
        keys = {term.topology_key for term in terms}
        if not self.needs_others:
            keys.discard(HOSTNAME)
        return self.spread_keys | keys

    def keeps_off(
        self, other: Pod, labels: Mapping[str, str], labels_of_other: Mapping[str, str]
    ) -> bool:
        """Whether the other cannot be where it is, by labels of their nodes, which may be one."""
        return any(
            term.topology_key in labels
            and labels[term.topology_key] == labels_of_other.get(term.topology_key)
            and term.matches(other.metadata.namespace, other.metadata.labels)
            for term in self.terms.anti_affinity
        )

    def sign(self, keys: frozenset[str]) -> Hashable:
        """Equal for members that require the same and are meant alike by who asks for the keys."""
        metadata = self.pod.metadata
        spec = self.pod.spec
        labels = metadata.labels
        if not self.is_unknown:
            labels = {key: value for key, value in labels.items() if key in keys}
        said = (metadata.namespace, labels, spec.affinity, spec.topology_spread_constraints)
        return msgspec.json.encode(said, order="deterministic")


def labels_asked_for(pods: Iterable[Pod]) -> frozenset[str]:
    """The keys of all labels by which these pods select others."""
    return frozenset(
        key
        for pod in pods
        for selector, more in _selectors(pod)
        for key in (*_keys(selector), *more)
    )


def _selectors(pod: Pod) -> Iterable[tuple[LabelSelector | None, Sequence[str]]]:
    affinity = pod.spec.affinity
    for part in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ():
        for term in part.required_during_scheduling_ignored_during_execution if part else ():
            yield term.label_selector, (*term.match_label_keys, *term.mismatch_label_keys)
    for spread in pod.spec.topology_spread_constraints:
        yield spread.label_selector, spread.match_label_keys


def _keys(selector: LabelSelector | None) -> Iterable[str]:
    if selector is None:
        return ()
    return (*selector.match_labels, *(each.key for each in selector.match_expressions))


def static_checks(
    plugins: ActivePlugins, relations: PodRelations, fleet: Fleet
) -> tuple[tuple[Plugin, Check], ...]:
    """
    Return checks that look at the cluster, and that no member can make pass by its arrival.

    Anti-affinity is one of them: pods that keep a member off a node now keep it off later, too.
    """
    if not relations.needs_others:
        return tuple(plugins.cluster_checks)
    found = [each for each in plugins.cluster_checks if each[0].name in _ABOUT_VOLUMES]
    if any(plugin.name == INTER_POD_AFFINITY.name for plugin, _ in plugins.cluster_checks):
        check = call(INTER_POD_AFFINITY, check_anti_affinity, plugins.pod, fleet)
        found += [] if check is None else [(INTER_POD_AFFINITY, check)]
    return tuple(found)
