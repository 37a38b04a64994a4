"""
Queueing hints: which pods, when they come to a node, may help a pod that waits for others.

A pod that has to be near others waits for one of them; one that is spread evenly waits for another
domain to get more. Nobody else is helped by who comes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.selectors import SelectorError, parse_label_selector
from dryrack.placement.index.affinity_terms import PodTerms

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.kinds.core import Pod
    from dryrack.placement.fleet import Fleet
    from dryrack.placement.occupant import Occupant


def queueing_hint(pod: Pod, fleet: Fleet) -> Callable[[Occupant], bool] | None:
    """Whether a pod that comes may help this one; None if none ever does."""
    namespace = pod.metadata.namespace
    try:
        terms = PodTerms.of(pod.spec.affinity, namespace).among(fleet.namespaces).affinity
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
