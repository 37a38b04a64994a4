"""
Symmetry: nodes that a search can exchange for each other, so that it tries only one of them.

The topology keys of a gang divide the nodes into domains. If the keys nest, as zones, racks and
hosts do, the domains form a tree. Two domains are alike if they consist of the same domains and
nodes, whatever their names are. As long as no member is in either, the same members fit in both.
Nodes of one domain are alike if they can take the same members.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from dryrack.placement.node_state import NodeState

# The values of the topology keys of a node, the widest domain first.
Path = tuple["Hashable", ...]


class Symmetry:
    """The domains of the nodes, and which of the domains and nodes are alike."""

    def __init__(
        self, keys: Iterable[str], states: Iterable[NodeState], signs: Mapping[str, Hashable]
    ) -> None:
        """`signs` are equal for nodes that are alike; a node without one has no effect."""
        labels = {each.name: each.node.metadata.labels for each in states if each.name in signs}
        wide_first = sorted(keys, key=lambda key: len({each.get(key) for each in labels.values()}))
        paths: dict[str, Path] = {
            name: tuple(each.get(key) for key in wide_first) for name, each in labels.items()
        }
        self._is_tree = _nests(paths.values())
        self._paths = paths if self._is_tree else {name: (path,) for name, path in paths.items()}
        self._numbers: dict[Hashable, int] = {}
        self._nodes = {name: self._number(signs[name]) for name in self._paths}
        self._domains = self._number_domains()

    def _number(self, value: Hashable) -> int:
        return self._numbers.setdefault(value, len(self._numbers))

    def _number_domains(self) -> Mapping[Path, int]:
        """Return the class of each domain, which is known by its path."""
        numbers: dict[Path, int] = {}
        inside: defaultdict[Path, Counter[int]] = defaultdict(Counter)
        for name, path in self._paths.items():
            inside[path][self._nodes[name]] += 1
        depth = max(map(len, self._paths.values()), default=0)
        for length in range(depth, 0, -1):
            for path in [each for each in inside if len(each) == length]:
                # Domains that overlap cannot be exchanged: each is a class of its own.
                parts = frozenset(inside[path].items()) if self._is_tree else path
                # A node without the label is in no domain, unlike a node that has it.
                numbers[path] = self._number((length, path[-1] is None, parts))
                inside[path[:-1]][numbers[path]] += 1
        return numbers

    def groups(self, states: Iterable[NodeState]) -> list[list[NodeState]]:
        """Return the nodes, those of one domain that are alike together."""
        found: defaultdict[Hashable, list[NodeState]] = defaultdict(list)
        for state in states:
            found[self._paths[state.name], self._nodes[state.name]].append(state)
        return list(found.values())

    def domains_of(self, names: Iterable[str]) -> set[Path]:
        """Return all domains that contain one of the nodes."""
        paths = (self._paths[name] for name in names)
        return {path[:length] for path in paths for length in range(1, len(path) + 1)}

    def place(self, name: str, touched: set[Path]) -> Hashable:
        """Return a key of nodes that can be exchanged when these domains are touched."""
        path = self._paths[name]
        domains = (path[:length] for length in range(1, len(path) + 1))
        place = (each if each in touched else self._domains[each] for each in domains)
        return (*place, self._nodes[name])

    def shape(self, taken: Mapping[str, Hashable]) -> Hashable:
        """Return a key of placements that differ in the names of nodes only."""
        inside: defaultdict[Path, Counter[Hashable]] = defaultdict(Counter)
        depth = 0
        for name, content in taken.items():
            path = self._paths[name]
            depth = max(depth, len(path))
            inside[path][(self._nodes[name], content)] += 1
        for length in range(depth, 0, -1):
            for path in [each for each in inside if len(each) == length]:
                content = frozenset(inside.pop(path).items())
                inside[path[:-1]][(self._domains[path], content)] += 1
        return frozenset(inside[()].items())


def _nests(paths: Iterable[Path]) -> bool:
    """Return True if each domain is within one domain of the next wider key."""
    within: dict[tuple[int, Hashable], Path] = {}
    for path in paths:
        for level, value in enumerate(path):
            if (
                value is not None
                and within.setdefault((level, value), path[:level]) != path[:level]
            ):
                return False
    return True
