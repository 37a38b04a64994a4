"""
Which nodes are meant, compiled once and asked for every node.

Terms are those of a node selector, with upstream's meaning, and one more field: documents name
the label `kwok.x-k8s.io/node` where nodes carry an annotation of that name. Such a requirement is
kept as a field of the term, `metadata.annotations['kwok.x-k8s.io/node']`, beside a term that asks
for the label.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.kinds.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dryrack.kinds.selectors import NAME_FIELD, NodeTerm, parse_node_selector

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.kinds.core import Node

KWOK_NODE = "kwok.x-k8s.io/node"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"

_ANNOTATION = f"metadata.annotations['{KWOK_NODE}']"

# Upstream's own machinery takes it, and every node has a name.
EVERY_NODE = NodeSelectorTerm(
    match_fields=(NodeSelectorRequirement(key=NAME_FIELD, operator="NotIn", values=("",)),)
)


def of_labels(labels: Mapping[str, str]) -> tuple[NodeSelectorTerm, ...]:
    """Terms for nodes that have all these labels; KWOK's may be an annotation instead."""
    wanted = tuple(
        NodeSelectorRequirement(key=key, operator="In", values=(value,))
        for key, value in labels.items()
    )
    if KWOK_NODE not in labels:
        return (NodeSelectorTerm(match_expressions=wanted),)
    annotated = NodeSelectorRequirement(key=_ANNOTATION, operator="In", values=(labels[KWOK_NODE],))
    others = tuple(each for each in wanted if each.key != KWOK_NODE)
    return (
        NodeSelectorTerm(match_expressions=wanted),
        NodeSelectorTerm(match_expressions=others, match_fields=(annotated,)),
    )


@dataclass(frozen=True, slots=True)
class _Alternative:
    term: NodeTerm
    annotation: str | None

    def matches(self, node: Node) -> bool:
        meta = node.metadata
        if self.annotation is not None and meta.annotations.get(KWOK_NODE) != self.annotation:
            return False
        return self.term.matches(meta.labels, meta.name)


@dataclass(frozen=True, slots=True)
class Terms:
    """Alternatives, of which one must hold."""

    alternatives: tuple[_Alternative, ...]
    instance_types: frozenset[str] | None
    """The values of that label without which nothing matches; None if others may match too."""

    def match(self, node: Node) -> bool:
        return any(each.matches(node) for each in self.alternatives)


def compile_terms(terms: Sequence[NodeSelectorTerm]) -> Terms:
    """The terms, ready to match; those that are empty select nothing and are left out."""
    wanted = [term for term in terms if term.match_expressions or term.match_fields]
    return Terms(tuple(map(_alternative, wanted)), _instance_types(wanted))


def _alternative(term: NodeSelectorTerm) -> _Alternative:
    annotation = next((r.values[0] for r in term.match_fields if r.key == _ANNOTATION), None)
    fields = tuple(r for r in term.match_fields if r.key != _ANNOTATION)
    plain = NodeSelectorTerm(match_expressions=term.match_expressions, match_fields=fields)
    parsed = parse_node_selector(NodeSelector(node_selector_terms=(plain,))).terms
    # With nothing but the annotation to ask for, every node meets what is left.
    return _Alternative(parsed[0] if parsed else NodeTerm((), (), ()), annotation)


def _instance_types(terms: Sequence[NodeSelectorTerm]) -> frozenset[str] | None:
    found: set[str] = set()
    for term in terms:
        named = [r for r in term.match_expressions if (r.key, r.operator) == (INSTANCE_TYPE, "In")]
        if not named:
            return None
        found.update(named[0].values)
    return frozenset(found)
