"""
The pools of a node, and of the whole cluster, from an inventory.

A `Matcher` compiles an inventory once; the cost per node depends only on the inventory. For a node,
the heaviest overlay that matches decides; without one, all assignments that match; without any, the
catalog. Devices that several origins put into one pool become one valid pool: of two devices with
one name the first stays, a device whose counters do not exist is left out, and a note informs the
owner.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dryrack.hardware.inventory import Pool, ThisNode
from dryrack.hardware.node_terms import INSTANCE_TYPE, compile_terms, of_labels
from dryrack.hardware.overlay_capacity import find_capacity_mismatches
from dryrack.hardware.pooling import Note, PoolTemplate, make_templates

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dryrack.hardware.inventory import Assignment, Inventory
    from dryrack.hardware.node_terms import Terms
    from dryrack.kinds.core import Node

__all__ = ["Matched", "Matcher", "Note", "pools_of"]

# Nodes match only a few different sets of assignments; a larger cache would be a leak.
_CACHED_MAX = 4096


@dataclass(frozen=True, slots=True)
class Matched:
    """Pools, in the order of driver and name, and notes for their owners."""

    pools: tuple[Pool, ...] = ()
    notes: tuple[Note, ...] = ()


def pools_of(inventory: Inventory, node: Node) -> Matched:
    """Return the pools of a node; for many nodes, use one `Matcher`."""
    return Matcher(inventory).pools_of(node)


class Matcher:
    """Finds the pools of nodes for one inventory."""

    def __init__(self, inventory: Inventory) -> None:
        # As in Karpenter, the later name wins among overlays of one weight.
        overlays = sorted(
            inventory.overlays,
            key=lambda overlay: (overlay.weight, overlay.assignment.origin.name),
            reverse=True,
        )
        # An entry of the catalog without terms is for the instance type of its name.
        catalogue = [
            each if each.terms else replace(each, terms=of_labels({INSTANCE_TYPE: name}))
            for name, each in (inventory.instance_types or {}).items()
        ]
        self._all: list[Assignment] = [each.assignment for each in overlays]
        self._overlays = _Index(0, self._all)
        self._assignments = _Index(len(self._all), inventory.assignments)
        self._all += inventory.assignments
        self._catalogue = _Index(len(self._all), catalogue)
        self._all += catalogue
        self._capacity_notes = {
            position: tuple(
                Note(overlay.assignment.origin, each.message)
                for each in find_capacity_mismatches(overlay)
            )
            for position, overlay in enumerate(overlays)
        }
        self._is_shared = [
            any(not isinstance(batch.reach, ThisNode) for batch in each.batches)
            for each in self._all
        ]
        shared = make_templates(self._all, shared=True).templates
        self._shared_names = {(template.driver, template.name_on("")) for template in shared}
        self._cache: dict[tuple[int, ...], tuple[tuple[PoolTemplate, ...], tuple[Note, ...]]] = {}

    def pools_of(self, node: Node) -> Matched:
        """Return the pools of a node."""
        positions = self._match(node)
        if positions not in self._cache:
            if len(self._cache) >= _CACHED_MAX:
                self._cache.clear()
            made = make_templates([self._all[position] for position in positions], shared=False)
            notes = [note for each in positions for note in self._capacity_notes.get(each, ())]
            self._cache[positions] = (made.templates, (*notes, *made.notes))
        templates, notes_of_templates = self._cache[positions]
        name = node.metadata.name
        pools = [template.pool_on(name) for template in templates]
        own = [pool for pool in pools if (pool.driver, pool.name) not in self._shared_names]
        conflicts = tuple(
            Note(
                pool.sections[0].origin,
                f"pool {pool.name} is already published for the whole cluster",
            )
            for pool in pools
            if (pool.driver, pool.name) in self._shared_names
        )
        return Matched(tuple(sorted(own, key=_pool_order)), (*notes_of_templates, *conflicts))

    def shared_of(self, node: Node) -> tuple[int, ...]:
        """Return the numbers of assignments with shared pools that match a node."""
        if not self._shared_names:
            return ()
        return tuple(position for position in self._match(node) if self._is_shared[position])

    def shared_pools(self, positions: Iterable[int]) -> Matched:
        """Return the pools of the whole cluster, of assignments that match at least one node."""
        assignments = [self._all[position] for position in sorted(set(positions))]
        made = make_templates(assignments, shared=True)
        pools = (template.pool_on("") for template in made.templates)
        return Matched(tuple(sorted(pools, key=_pool_order)), made.notes)

    def _match(self, node: Node) -> tuple[int, ...]:
        """Return the numbers of the assignments that decide about a node."""
        heaviest = self._overlays.match(node)[:1]
        return heaviest or self._assignments.match(node) or self._catalogue.match(node)


class _Index:
    """Finds the assignments that match a node without checking all of them."""

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

    def match(self, node: Node) -> tuple[int, ...]:
        """Return the numbers of the assignments that match, in order."""
        of_type = self._by_type.get(node.metadata.labels.get(INSTANCE_TYPE, ""), ())
        candidates = sorted((*of_type, *self._others)) if of_type else self._others
        return tuple(position for position in candidates if self._terms[position].match(node))


def _pool_order(pool: Pool) -> tuple[str, str]:
    return pool.driver, pool.name
