"""
InterPodAffinity: affinity and anti-affinity between pods.

The terms of a new pod are matched with running pods, and the terms of running pods with the new
pod. Pods are in one domain if the labels of their nodes have the same value. A pod with affinity to
itself may be the first of its kind.

Preferences count by weight, those of running pods too; a running pod with required affinity prefers
matching pods by `hardPodAffinityWeight`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from dryrack.kinds.selectors import SelectorError
from dryrack.placement.framework import SCORE_MAX, GroupedCheck, NodeGroups, Plugin
from dryrack.placement.index.affinity_terms import NO_TERMS, AffinityTerm, PodTerms
from dryrack.placement.index.pod_counts import Brought, KeptCounts, PodCounts
from dryrack.placement.node_state import NodeRefusal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.kinds.core import Pod
    from dryrack.placement.fleet import Fleet
    from dryrack.placement.framework import Args, Check, ClusterScorer
    from dryrack.placement.node_state import NodeState
    from dryrack.placement.occupant import Occupant
    from dryrack.placement.pod_constraints import PodConstraints

HOSTNAME = "kubernetes.io/hostname"
HARD_POD_AFFINITY_WEIGHT = 1

# A label of nodes, and the number of pods by its value.
_Domains = tuple[str, "Mapping[str, int]"]
_Places: TypeAlias = "tuple[str | int | None, ...]"


def _filter(pod: PodConstraints, fleet: Fleet, _args: Args) -> Check | None:
    """Check the required terms of the pod, and those of other pods that match it."""
    if pod.pod.spec.affinity is None and not fleet.pods.anti_affinity:
        return None
    namespace = pod.pod.metadata.namespace
    labels = pod.pod.metadata.labels
    try:
        terms = PodTerms.of(pod.pod.spec.affinity, namespace).among(fleet)
    except SelectorError as error:
        fact = f"the pod's affinity is invalid: {error}"
        words = f"parsing pod: {error}"
        refusal = NodeRefusal(words, fact, "correct the affinity", is_unresolvable=True)
        return lambda _node: refusal
    against = _against(pod, fleet)
    if not (against or terms.affinity or terms.anti_affinity):
        return None
    near = [
        (term.topology_key, pods_meant(terms.affinity, term.topology_key, fleet).domains)
        for term in terms.affinity
    ]
    matches_itself = all(term.matches(namespace, labels) for term in terms.affinity)
    requirements = _Requirements(
        near,
        may_be_first=matches_itself and not any(domains for _, domains in near),
        far=_far(terms, fleet),
        against=[(each.term.topology_key, counts.domains) for each, counts in against],
    )
    own = [
        *((term.topology_key, terms.affinity) for term in terms.affinity),
        *((term.topology_key, (term,)) for term in terms.anti_affinity),
    ]
    here = [(key, KeptCounts(partial(pods_meant, all_of, key, fleet))) for key, all_of in own]
    here += [
        (each.term.topology_key, KeptCounts(partial(fleet.pods.anti_affinity.__getitem__, each)))
        for each, _ in against
    ]
    key = (tuple(own), tuple(each for each, _ in against))
    return GroupedCheck(requirements.refusal, key, partial(_places, here, most=1))


def check_anti_affinity(pod: PodConstraints, fleet: Fleet) -> Check | None:
    """
    Return the anti-affinity of the filter, which does not start to pass when a pod arrives.

    The terms of the pod must be valid.
    """
    terms = PodTerms.of(pod.pod.spec.affinity, pod.pod.metadata.namespace).among(fleet)
    against = _against(pod, fleet)
    if not (against or terms.anti_affinity):
        return None
    domains = [(each.term.topology_key, counts.domains) for each, counts in against]
    return _Requirements((), may_be_first=False, far=_far(terms, fleet), against=domains).refusal


def _against(pod: PodConstraints, fleet: Fleet) -> list[tuple[Brought, PodCounts]]:
    """Return the anti-affinity terms of pods on nodes that match the pod."""
    return [
        (each, counts)
        for each, counts in fleet.pods.anti_affinity.about(pod.pod.metadata.namespace)
        if _matches(each.term, pod.pod, fleet)
    ]


def _far(terms: PodTerms, fleet: Fleet) -> list[_Domains]:
    """Return the pods that each anti-affinity term matches, by domain."""
    return [
        (term.topology_key, pods_meant((term,), term.topology_key, fleet).domains)
        for term in terms.anti_affinity
    ]


def _places(
    here: Sequence[tuple[str, KeptCounts]], node: NodeState, *, most: int | None = None
) -> _Places:
    """Return the node's domain for each label, or its number of pods if it is its own domain."""
    labels = node.node.metadata.labels
    places = []
    for key, counts in here:
        place: str | int | None = labels.get(key)
        if key == HOSTNAME and place == node.name:
            place = counts().on(node.name)
            place = place if most is None else min(place, most)
        places.append(place)
    return tuple(places)


class _Preference(NamedTuple):
    """A term of the pod, or of running pods, with its weight for nodes near the matched pods."""

    term: AffinityTerm
    weight: int
    source: Literal["pod", "preferring pods", "requiring pods"]

    def counts(self, fleet: Fleet) -> PodCounts:
        match self.source:
            case "pod":
                return pods_meant((self.term,), self.term.topology_key, fleet)
            case "preferring pods":
                return fleet.pods.preferred[Brought(self.term, self.weight)]
            case "requiring pods":
                return fleet.pods.affinity[Brought(self.term)]


def _score(pod: PodConstraints, fleet: Fleet, args: Args) -> ClusterScorer | None:
    """Score nodes by the preferences of the pod, and those of running pods that match it."""
    if pod.pod.spec.affinity is None and not (fleet.pods.preferred or fleet.pods.affinity):
        return None
    try:
        terms = PodTerms.of(pod.pod.spec.affinity, pod.pod.metadata.namespace)
    except SelectorError:
        terms = NO_TERMS
    if not terms.preferred and args.get("ignorePreferredTermsOfExistingPods"):
        return None
    namespace = pod.pod.metadata.namespace
    own = terms.among(fleet).preferred
    hard = args.get("hardPodAffinityWeight")
    hard = HARD_POD_AFFINITY_WEIGHT if hard is None else hard
    preferences = [_Preference(term, weight, "pod") for term, weight in own]
    existing = [
        _Preference(*each, "preferring pods") for each, _ in fleet.pods.preferred.about(namespace)
    ]
    if hard:
        required = fleet.pods.affinity.about(namespace)
        existing += [_Preference(each.term, hard, "requiring pods") for each, _ in required]
    preferences += [each for each in existing if _matches(each.term, pod.pod, fleet)]
    preferences = [each for each in preferences if each.counts(fleet).domains]
    if not preferences:
        return None
    here = [
        (each.term.topology_key, KeptCounts(partial(each.counts, fleet))) for each in preferences
    ]
    scores = partial(_scores, preferences, fleet)
    return NodeGroups(tuple(preferences), partial(_places, here), scores).scorer()


def _scores(
    preferences: Sequence[_Preference], fleet: Fleet, groups: Mapping[_Places, int]
) -> Mapping[_Places, int]:
    """Return scores from 0 for the least to 100 for the most preferred domains."""
    weights = [(each.weight, each.counts(fleet).domains) for each in preferences]
    totals = {
        places: sum(
            weight * (place if isinstance(place, int) else domains.get(place, 0))
            for place, (weight, domains) in zip(places, weights, strict=True)
            if place is not None
        )
        for places in groups
    }
    least = min(totals.values(), default=0)
    most = max(totals.values(), default=0)
    if least == most:
        return dict.fromkeys(totals, 0)
    width = most - least
    return {each: int(SCORE_MAX * ((total - least) / width)) for each, total in totals.items()}


@dataclass(frozen=True, slots=True)
class _Requirements:
    near: Sequence[_Domains]
    # Whether no running pod matches the affinity, and the pod itself does.
    may_be_first: bool
    far: Sequence[_Domains]
    against: Sequence[_Domains]

    def refusal(self, state: NodeState) -> NodeRefusal | None:
        labels = state.node.metadata.labels
        for key, domains in self.near:
            if key not in labels:
                fact = f"the node has no label {key}"
                return _refuse("match pod affinity rules", fact, is_unresolvable=True)
            if not domains.get(labels[key]) and not self.may_be_first:
                fact = f"{key}={labels[key]} has no pod that the pod affinity requires"
                return _refuse("match pod affinity rules", fact, is_unresolvable=True)
        for key, domains in self.far:
            if key in labels and domains.get(labels[key]):
                fact = f"{key}={labels[key]} has a pod that the pod anti-affinity excludes"
                return _refuse("match pod anti-affinity rules", fact)
        for key, domains in self.against:
            if key in labels and domains.get(labels[key]):
                fact = f"{key}={labels[key]} has a pod whose anti-affinity excludes this pod"
                return _refuse("satisfy existing pods anti-affinity rules", fact)
        return None


def pods_meant(terms: Sequence[AffinityTerm], topology_key: str, fleet: Fleet) -> PodCounts:
    """Return the pods that match all terms; the terms must have their namespaces."""

    def selects(occupant: Occupant) -> bool:
        namespace, _ = occupant.name
        return all(term.matches(namespace, occupant.labels) for term in terms)

    anywhere = any(term.namespace_selector.matches({}) for term in terms)
    namespaces = None if anywhere else frozenset[str]().union(*(t.namespaces for t in terms))
    return fleet.pods.counts(
        (__name__, terms, topology_key),
        lambda: PodCounts(topology_key, selects, namespaces=namespaces),
    )


def _matches(term: AffinityTerm, pod: Pod, fleet: Fleet) -> bool:
    namespace = pod.metadata.namespace
    return term.matches(namespace, pod.metadata.labels, fleet.namespaces.get(namespace, {}))


def _refuse(rule: str, fact: str, *, is_unresolvable: bool = False) -> NodeRefusal:
    remedy = "change the affinity, or move the other pods"
    return NodeRefusal(f"node(s) didn't {rule}", fact, remedy, is_unresolvable=is_unresolvable)


INTER_POD_AFFINITY = Plugin(
    "InterPodAffinity",
    filter=_filter,
    score=_score,
    sees_cluster=True,
    sign=lambda _pod: None,
)
