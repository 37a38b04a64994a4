"""
From what the sources say to the pools of a node, and of the whole cluster.

A `Matcher` compiles an inventory once; what it costs to ask for a node depends on the inventory
alone. Per node the heaviest overlay that matches decides; without one, all assignments that match;
without any, the catalogue. Whatever several origins put into one pool becomes one value, whole and
valid: of two devices with one name the first stays, a device whose counters are nowhere is left
out, and a note tells the owner.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dryrack.hardware.inventory import Pool, SourceKind, ThisNode
from dryrack.hardware.node_terms import INSTANCE_TYPE, compile_terms, of_labels
from dryrack.hardware.pooling import Note, PoolTemplate, moulds
from dryrack.hardware.promises import broken_promises

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dryrack.hardware.inventory import Assignment, Inventory, Overlay
    from dryrack.hardware.node_terms import Terms
    from dryrack.kinds.core import Node

__all__ = ["Matched", "Matcher", "Note", "pools_of"]

# Nodes differ in what they match in a few ways only; more than these would be a leak.
_REMEMBERED_MAX = 4096


@dataclass(frozen=True, slots=True)
class Matched:
    """Pools, in the order of driver and name, and what their owners should know about them."""

    pools: tuple[Pool, ...] = ()
    notes: tuple[Note, ...] = ()


def pools_of(inventory: Inventory, node: Node) -> Matched:
    """The pools that are on the node; for many nodes, keep a `Matcher`."""
    return Matcher(inventory).pools_of(node)


class Matcher:
    """One inventory, ready to be asked."""

    def __init__(self, inventory: Inventory) -> None:
        overlays = sorted(inventory.overlays, key=_precedence, reverse=True)
        catalogue = [_by_type(*each) for each in (inventory.instance_types or {}).items()]
        self._known: list[Assignment] = [each.assignment for each in overlays]
        self._overlays = _Index(0, self._known)
        self._assignments = _Index(len(self._known), inventory.assignments)
        self._known += inventory.assignments
        self._catalogue = _Index(len(self._known), catalogue)
        self._known += catalogue
        self._complaints = {
            position: tuple(
                Note(overlay.assignment.origin, each.message) for each in broken_promises(overlay)
            )
            for position, overlay in enumerate(overlays)
        }
        self._is_shared = [
            any(not isinstance(batch.reach, ThisNode) for batch in each.batches)
            for each in self._known
        ]
        everything = moulds(self._known, shared=True).moulds
        self._shared_names = {(mould.driver, mould.name_on("")) for mould in everything}
        self._remembered: dict[
            tuple[int, ...], tuple[tuple[PoolTemplate, ...], tuple[Note, ...]]
        ] = {}

    def pools_of(self, node: Node) -> Matched:
        """The pools that are on the node."""
        chosen = self._chosen(node)
        found, notes = self._moulds(chosen)
        name = node.metadata.name
        pools = [mould.pool_on(name) for mould in found]
        free = [pool for pool in pools if (pool.driver, pool.name) not in self._shared_names]
        taken = tuple(
            Note(
                pool.sections[0].origin,
                f"pool {pool.name} is already published for the whole cluster",
            )
            for pool in pools
            if (pool.driver, pool.name) in self._shared_names
        )
        return Matched(tuple(sorted(free, key=_pool_order)), (*notes, *taken))

    def shared_of(self, node: Node) -> tuple[int, ...]:
        """What the node calls for of the whole cluster's: numbers for `shared_pools`."""
        if not self._shared_names:
            return ()
        return tuple(position for position in self._chosen(node) if self._is_shared[position])

    def shared_pools(self, called: Iterable[int]) -> Matched:
        """The pools of the whole cluster, if these numbers were called for by any node."""
        found = moulds([self._known[position] for position in sorted(set(called))], shared=True)
        pools = (mould.pool_on("") for mould in found.moulds)
        return Matched(tuple(sorted(pools, key=_pool_order)), found.notes)

    def _chosen(self, node: Node) -> tuple[int, ...]:
        """Whose devices the node has, by their numbers."""
        heaviest = self._overlays.matching(node)[:1]
        return heaviest or self._assignments.matching(node) or self._catalogue.matching(node)

    def _moulds(self, chosen: tuple[int, ...]) -> tuple[tuple[PoolTemplate, ...], tuple[Note, ...]]:
        if chosen not in self._remembered:
            if len(self._remembered) >= _REMEMBERED_MAX:
                self._remembered.clear()
            found = moulds([self._known[position] for position in chosen], shared=False)
            complaints = [note for each in chosen for note in self._complaints.get(each, ())]
            self._remembered[chosen] = (found.moulds, (*complaints, *found.notes))
        return self._remembered[chosen]


class _Index:
    """Finds the assignments that match a node without trying all of them."""

    def __init__(self, first: int, assignments: Sequence[Assignment]) -> None:
        self._terms: dict[int, Terms] = {}
        self._by_type: dict[str, list[int]] = defaultdict(list)
        self._others: list[int] = []
        for position, assignment in enumerate(assignments, first):
            terms = compile_terms(assignment.terms)
            self._terms[position] = terms
            if terms.instance_types is None:
                self._others.append(position)
            for name in sorted(terms.instance_types or ()):
                self._by_type[name].append(position)

    def matching(self, node: Node) -> tuple[int, ...]:
        """Their numbers, in order."""
        named = self._by_type.get(node.metadata.labels.get(INSTANCE_TYPE, ""), ())
        likely = sorted((*named, *self._others)) if named else self._others
        return tuple(position for position in likely if self._terms[position].match(node))


def _by_type(name: str, assignment: Assignment) -> Assignment:
    """An entry of the catalogue; one that does not say so itself is for the type of its name."""
    return (
        assignment
        if assignment.terms
        else replace(assignment, terms=of_labels({INSTANCE_TYPE: name}))
    )


def _precedence(overlay: Overlay) -> tuple[int, str]:
    # Karpenter, too, lets the later name win among overlays of one weight.
    assert overlay.assignment.origin.kind is SourceKind.OVERLAY
    return overlay.weight, overlay.assignment.origin.name


def _pool_order(pool: Pool) -> tuple[str, str]:
    return pool.driver, pool.name
