"""
The rules of gang members about other pods, and so about each other.

A filter that sees the cluster has the same answer about a node whatever members are placed, unless
it is about pods: affinity, anti-affinity and spreading. Whether members exclude each other on one
node depends on that node (see `configurations`); the other rules depend on all members' nodes.

These rules select pods by labels, so members that differ only in labels that no rule selects by are
alike.
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
    """The requirements of one member about other pods."""

    pod: Pod
    terms: PodTerms
    # The pods that each of its topology spread constraints counts.
    spreads: tuple[PodCounts, ...]
    spread_keys: frozenset[str]
    # Whether it has PersistentVolumeClaims that are bound when it has a node.
    awaits_volumes: bool
    # Whether a plugin that is not known here sees the cluster.
    is_unknown: bool

    @staticmethod
    def of(plugins: ActivePlugins, fleet: Fleet) -> PodRelations:
        """Return the requirements of a pod; raises `PluginError`."""
        pod = plugins.pod.pod
        names = {plugin.name for plugin, _ in plugins.cluster_checks}
        try:
            terms = PodTerms.of(pod.spec.affinity, pod.metadata.namespace).among(fleet)
        except SelectorError:
            # Every node refuses the pod.
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
        """Return True if the nodes of other members matter."""
        far = any(term.topology_key != HOSTNAME for term in self.terms.anti_affinity)
        return self.needs_others or self.awaits_volumes or far

    @property
    def needs_others(self) -> bool:
        """Return True if other pods could help it, and not only block it."""
        return bool(self.terms.affinity or self.spreads or self.is_unknown)

    def depends_on_order(self, others: Iterable[PodRelations]) -> bool:
        """Return True if the order of its arrival matters to itself or to one of the others."""
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
        """Return the labels of nodes that matter to it, except for members on the same node."""
        terms = (*self.terms.affinity, *self.terms.anti_affinity)
        keys = {term.topology_key for term in terms}
        if not self.needs_others:
            keys.discard(HOSTNAME)
        return self.spread_keys | keys

    def keeps_off(
        self, other: Pod, labels: Mapping[str, str], labels_of_other: Mapping[str, str]
    ) -> bool:
        """Return True if its anti-affinity excludes the other, by the labels of their nodes."""
        return any(
            term.topology_key in labels
            and labels[term.topology_key] == labels_of_other.get(term.topology_key)
            and term.matches(other.metadata.namespace, other.metadata.labels)
            for term in self.terms.anti_affinity
        )

    def sign(self, keys: frozenset[str]) -> Hashable:
        """Return a key of members with equal rules and equal labels of these keys."""
        metadata = self.pod.metadata
        spec = self.pod.spec
        labels = metadata.labels
        if not self.is_unknown:
            labels = {key: value for key, value in labels.items() if key in keys}
        rules = (metadata.namespace, labels, spec.affinity, spec.topology_spread_constraints)
        return msgspec.json.encode(rules, order="deterministic")


def labels_asked_for(pods: Iterable[Pod]) -> frozenset[str]:
    """Return the keys of all labels by which these pods select others."""
    keys: set[str] = set()
    for pod in pods:
        affinity = pod.spec.affinity
        for part in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ():
            for term in part.required_during_scheduling_ignored_during_execution if part else ():
                keys.update(term.match_label_keys, term.mismatch_label_keys)
                keys.update(_keys_of(term.label_selector))
        for spread in pod.spec.topology_spread_constraints:
            keys.update(spread.match_label_keys, _keys_of(spread.label_selector))
    return frozenset(keys)


def _keys_of(selector: LabelSelector | None) -> Iterable[str]:
    if selector is None:
        return ()
    return (*selector.match_labels, *(each.key for each in selector.match_expressions))


def static_checks(
    plugins: ActivePlugins, relations: PodRelations, fleet: Fleet
) -> tuple[tuple[Plugin, Check], ...]:
    """
    Return checks that see the cluster and do not start to pass when a member arrives.

    Anti-affinity is one of them: pods that block a member on a node now block it later, too.
    """
    if not relations.needs_others:
        return tuple(plugins.cluster_checks)
    checks = [each for each in plugins.cluster_checks if each[0].name in _ABOUT_VOLUMES]
    if any(plugin.name == INTER_POD_AFFINITY.name for plugin, _ in plugins.cluster_checks):
        check = call(INTER_POD_AFFINITY, check_anti_affinity, plugins.pod, fleet)
        checks += [] if check is None else [(INTER_POD_AFFINITY, check)]
    return tuple(checks)
