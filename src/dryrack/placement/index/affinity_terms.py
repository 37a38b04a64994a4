"""
Inter-pod affinity terms, parsed: the pods that a term matches, and the topology key.

The terms of a new pod match pods that run already; those of a running pod match new pods. Both use
`matches`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from dryrack.kinds.selectors import LabelMatcher, SelectorError, parse_label_selector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from dryrack.kinds.core import Affinity, Pod, PodAffinity, PodAffinityTerm
    from dryrack.placement.fleet import Fleet
    from dryrack.placement.occupant import Occupant


_NO_LABELS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """A selector of pods in some namespaces, and the label that their nodes have in common."""

    topology_key: str
    selector: LabelMatcher
    namespaces: frozenset[str]
    namespace_selector: LabelMatcher

    @staticmethod
    def of(term: PodAffinityTerm, namespace: str) -> AffinityTerm:
        """Parse a term of a pod in the namespace; raises `SelectorError`."""
        names = frozenset(term.namespaces)
        if not names and term.namespace_selector is None:
            names = frozenset((namespace,))
        return AffinityTerm(
            term.topology_key,
            parse_label_selector(term.label_selector),
            names,
            parse_label_selector(term.namespace_selector),
        )

    def among(self, namespaces: Mapping[str, Mapping[str, str]], *, is_exact: bool) -> AffinityTerm:
        """
        Return the term with the names of the existing namespaces that it selects.

        Unless `is_exact`, a selector with only negative conditions still matches every namespace.
        """
        if self.namespace_selector.is_empty or self.namespace_selector.requirements is None:
            return self
        selected = {
            n for n, labels in namespaces.items() if self.namespace_selector.matches(labels)
        }
        rest = LabelMatcher(None) if is_exact else self.namespace_selector
        return replace(self, namespaces=self.namespaces | selected, namespace_selector=rest)

    def matches(
        self,
        namespace: str,
        labels: Mapping[str, str],
        namespace_labels: Mapping[str, str] = _NO_LABELS,
    ) -> bool:
        """Return True if a pod matches; after `among` the labels of namespaces are not needed."""
        if namespace not in self.namespaces and not self.namespace_selector.matches(
            namespace_labels
        ):
            return False
        return self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class PodTerms:
    """All terms of a pod; preferences with their weights, which anti-affinity makes negative."""

    affinity: tuple[AffinityTerm, ...] = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred: tuple[tuple[AffinityTerm, int], ...] = ()

    @staticmethod
    def of(affinity: Affinity | None, namespace: str) -> PodTerms:
        """Parse the terms of a pod in the namespace; raises `SelectorError`."""
        if affinity is None or not (affinity.pod_affinity or affinity.pod_anti_affinity):
            return NO_TERMS
        toward = affinity.pod_affinity
        against = affinity.pod_anti_affinity
        return PodTerms(
            _parse_required(toward, namespace),
            _parse_required(against, namespace),
            (*_parse_preferred(toward, namespace, 1), *_parse_preferred(against, namespace, -1)),
        )

    def among(self, fleet: Fleet) -> PodTerms:
        """Return the terms with the names of the namespaces that they select."""
        if self is NO_TERMS:
            return self
        is_exact = fleet.behaviour.has_exact_namespace_selectors
        name = partial(AffinityTerm.among, namespaces=fleet.namespaces, is_exact=is_exact)
        return PodTerms(
            tuple(map(name, self.affinity)),
            tuple(map(name, self.anti_affinity)),
            tuple((name(term), weight) for term, weight in self.preferred),
        )


NO_TERMS = PodTerms()


def _parse_required(part: PodAffinity | None, namespace: str) -> tuple[AffinityTerm, ...]:
    terms = part.required_during_scheduling_ignored_during_execution if part else ()
    return tuple(AffinityTerm.of(term, namespace) for term in terms)


def _parse_preferred(
    part: PodAffinity | None, namespace: str, sign: int
) -> Iterable[tuple[AffinityTerm, int]]:
    terms = part.preferred_during_scheduling_ignored_during_execution if part else ()
    for each in terms:
        yield AffinityTerm.of(each.pod_affinity_term, namespace), sign * each.weight


def queueing_hint(pod: Pod, fleet: Fleet) -> Callable[[Occupant], bool] | None:
    """
    Return a predicate for pods whose arrival may help this pending pod; None if none can.

    A pod with required affinity waits for a pod that it matches; a pod with a topology spread
    constraint waits for more pods in another domain.
    """
    namespace = pod.metadata.namespace
    try:
        terms = PodTerms.of(pod.spec.affinity, namespace).among(fleet).affinity
        spreads = [
            parse_label_selector(each.label_selector)
            for each in pod.spec.topology_spread_constraints
            if each.when_unsatisfiable == "DoNotSchedule"
        ]
    except SelectorError:
        return None
    if not terms and not spreads:
        return None

    def helps(other: Occupant) -> bool:
        return bool(
            (terms and all(term.matches(other.name[0], other.labels) for term in terms))
            or (other.name[0] == namespace and any(s.matches(other.labels) for s in spreads))
        )

    return helps
