"""
Inter-pod affinity terms, parsed: which pods a term means, and by which label of their nodes.

A term that a pod brings is about pods that run already; one of a pod that runs is about those that
come. Both are asked by `matches`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dryrack.kinds.selectors import LabelMatcher, parse_label_selector

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dryrack.kinds.core import Affinity, PodAffinity, PodAffinityTerm

_NO_LABELS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """Pods of some namespaces with some labels, on nodes that are alike in one label."""

    topology_key: str
    selector: LabelMatcher
    namespaces: frozenset[str]
    namespace_selector: LabelMatcher

    @staticmethod
    def of(term: PodAffinityTerm, namespace: str) -> AffinityTerm:
        """A term of a pod in the namespace; raises `SelectorError`."""
        names = frozenset(term.namespaces)
        if not names and term.namespace_selector is None:
            names = frozenset((namespace,))
        return AffinityTerm(
            term.topology_key,
            parse_label_selector(term.label_selector),
            names,
            parse_label_selector(term.namespace_selector),
        )

    def among(self, namespaces: Mapping[str, Mapping[str, str]]) -> AffinityTerm:
        """With the names of the namespaces, of those that there are, which it selects."""
        if self.namespace_selector.is_empty or self.namespace_selector.requirements is None:
            return self
        selected = {
            n for n, labels in namespaces.items() if self.namespace_selector.matches(labels)
        }
        return replace(self, namespaces=self.namespaces | selected)

    def matches(
        self,
        namespace: str,
        labels: Mapping[str, str],
        namespace_labels: Mapping[str, str] = _NO_LABELS,
    ) -> bool:
        """
        Whether a pod is meant; a term that was told of the namespaces needs no labels of theirs.

        As in kube-scheduler, one that selects namespaces only by what they lack means all of them.
        """
        if namespace not in self.namespaces and not self.namespace_selector.matches(
            namespace_labels
        ):
            return False
        return self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class PodTerms:
    """All that a pod asks of other pods; preferences with their weights, against with negative."""

    affinity: tuple[AffinityTerm, ...] = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred: tuple[tuple[AffinityTerm, int], ...] = ()

    @staticmethod
    def of(affinity: Affinity | None, namespace: str) -> PodTerms:
        """The terms of a pod in the namespace; raises `SelectorError`."""
        if affinity is None or not (affinity.pod_affinity or affinity.pod_anti_affinity):
            return NO_TERMS
        toward = affinity.pod_affinity
        against = affinity.pod_anti_affinity
        return PodTerms(
            _required(toward, namespace),
            _required(against, namespace),
            (*_preferred(toward, namespace, 1), *_preferred(against, namespace, -1)),
        )

    def among(self, namespaces: Mapping[str, Mapping[str, str]]) -> PodTerms:
        """With the names of the namespaces that terms select."""
        if self is NO_TERMS:
            return self
        return PodTerms(
            tuple(term.among(namespaces) for term in self.affinity),
            tuple(term.among(namespaces) for term in self.anti_affinity),
            tuple((term.among(namespaces), weight) for term, weight in self.preferred),
        )


NO_TERMS = PodTerms()


def _required(part: PodAffinity | None, namespace: str) -> tuple[AffinityTerm, ...]:
    terms = part.required_during_scheduling_ignored_during_execution if part else ()
    return tuple(AffinityTerm.of(term, namespace) for term in terms)


def _preferred(
    part: PodAffinity | None, namespace: str, sign: int
) -> Iterable[tuple[AffinityTerm, int]]:
    terms = part.preferred_during_scheduling_ignored_during_execution if part else ()
    for each in terms:
        yield AffinityTerm.of(each.pod_affinity_term, namespace), sign * each.weight
