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
from dryrack.placement.index.affinity_terms import NO_TERMS, PodTerms
from dryrack.placement.plugins.inter_pod_affinity import INTER_POD_AFFINITY
from dryrack.placement.plugins.pod_topology_spread import HOSTNAME, POD_TOPOLOGY_SPREAD
from dryrack.placement.plugins.volumes import VOLUME_BINDING, VOLUME_ZONE

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from dryrack.kinds.core import Pod
    from dryrack.kinds.meta import LabelSelector
    from dryrack.placement.framework import Check, Plugin
    from dryrack.placement.plugins_in_play import PluginsInPlay

_ABOUT_VOLUMES = (VOLUME_BINDING.name, VOLUME_ZONE.name)


@dataclass(frozen=True, slots=True)
class PodRelations:
    """What one member requires of other pods."""

    pod: Pod
    terms: PodTerms
    # Whether it has to be spread, or a plugin that is not known here looks at the cluster.
    is_spread: bool
    is_unknown: bool

    @staticmethod
    def of(plugins: PluginsInPlay, namespaces: Mapping[str, Mapping[str, str]]) -> PodRelations:
        pod, names = plugins.pod.pod, {plugin.name for plugin, _ in plugins.cluster_checks}
        try:
            terms = PodTerms.of(pod.spec.affinity, pod.metadata.namespace).among(namespaces)
        except SelectorError:
            # It is refused everywhere.
            terms = NO_TERMS
        known = (INTER_POD_AFFINITY.name, POD_TOPOLOGY_SPREAD.name, *_ABOUT_VOLUMES)
        return PodRelations(
            pod, terms, POD_TOPOLOGY_SPREAD.name in names, not names.issubset(known)
        )

    @property
    def looks_around(self) -> bool:
        """Whether it matters on which other nodes members are."""
        far = any(term.topology_key != HOSTNAME for term in self.terms.anti_affinity)
        return self.needs_others or far

    @property
    def needs_others(self) -> bool:
        """Whether other pods could help it, and not only be in its way."""
        return bool(self.terms.affinity) or self.is_spread or self.is_unknown

    @property
    def topology_keys(self) -> frozenset[str]:
        """The labels of nodes that matter to it, but for members on the same node."""
        terms = (*self.terms.affinity, *self.terms.anti_affinity)
        keys = {term.topology_key for term in terms}
        if not self.needs_others:
            keys.discard(HOSTNAME)
        keys |= {each.topology_key for each in self.pod.spec.topology_spread_constraints}
        return frozenset(keys)

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
        metadata, spec = self.pod.metadata, self.pod.spec
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
    plugins: PluginsInPlay, relations: PodRelations
) -> tuple[tuple[Plugin, Check], ...]:
    """Checks that look at the cluster, and say of a node no less when members are placed."""
    if relations.needs_others:
        return tuple(each for each in plugins.cluster_checks if each[0].name in _ABOUT_VOLUMES)
    return tuple(plugins.cluster_checks)
