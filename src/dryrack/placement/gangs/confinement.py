"""Confinement: the domains to which required pod affinity confines members of a gang."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from dryrack.placement.plugins.inter_pod_affinity import pods_meant

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dryrack.placement.fleet import Fleet
    from dryrack.placement.gangs.configurations import MemberKind
    from dryrack.placement.node_state import NodeState

# The values of the topology key of each affinity term of a kind; None without restriction.
Domains: TypeAlias = "tuple[frozenset[str], ...] | None"


class Confinement:
    """The domains for members of each kind, now or when further members have arrived."""

    def __init__(
        self,
        kinds: Sequence[MemberKind],
        candidates: Sequence[Sequence[NodeState]],
        fleet: Fleet,
    ) -> None:
        self._kinds = kinds
        self._candidates = candidates
        self._fleet = fleet
        # For each kind, the other kinds whose members can open a domain for it.
        self._openers = [
            [
                index
                for index, other in enumerate(kinds)
                if other is not kind and _meets(other, kind)
            ]
            for kind in kinds
        ]

    def domains(self, left: Sequence[int]) -> tuple[Domains, ...]:
        """
        Return the domains of each kind, if so many members of each have yet to arrive.

        A member with required affinity opens no domain for its own kind, unless no pod that its
        terms match is anywhere. Members of other kinds can.
        """
        domains = [self._domains_now(kind) for kind in self._kinds]
        is_growing = True
        while is_growing:
            is_growing = False
            for index, before in enumerate(domains):
                openers = [each for each in self._openers[index] if left[each]]
                if before is None or not openers:
                    continue
                states = [s for each in openers for s in self._states(each, domains[each])]
                labels = [state.node.metadata.labels for state in states]
                keys = [term.topology_key for term in self._kinds[index].relations.terms.affinity]
                after = tuple(
                    values.union(each[key] for each in labels if key in each)
                    for key, values in zip(keys, before, strict=True)
                )
                is_growing |= after != before
                domains[index] = after
        return tuple(domains)

    def nodes(self, domains: Sequence[Domains]) -> list[frozenset[str]]:
        """Return the names of the candidates of each kind that are in its domains."""
        return [
            frozenset(state.name for state in self._states(index, each))
            for index, each in enumerate(domains)
        ]

    def _domains_now(self, kind: MemberKind) -> Domains:
        terms = kind.relations.terms.affinity
        domains = tuple(
            frozenset(
                value
                for value, pods in pods_meant(terms, term.topology_key, self._fleet).domains.items()
                if pods
            )
            for term in terms
        )
        # The first pod that its own terms match can be placed anywhere.
        may_be_first = not any(domains) and _meets(kind, kind)
        return None if not terms or may_be_first else domains

    def _states(self, index: int, domains: Domains) -> Iterable[NodeState]:
        if domains is None:
            return self._candidates[index]
        keys = [term.topology_key for term in self._kinds[index].relations.terms.affinity]
        return [
            state
            for state in self._candidates[index]
            if all(
                state.node.metadata.labels.get(key) in values
                for key, values in zip(keys, domains, strict=True)
            )
        ]


def _meets(kind: MemberKind, other: MemberKind) -> bool:
    """Return True if all affinity terms of the other kind match members of this kind."""
    metadata = kind.members[0].pod.metadata
    terms = other.relations.terms.affinity
    return bool(terms) and all(t.matches(metadata.namespace, metadata.labels) for t in terms)
