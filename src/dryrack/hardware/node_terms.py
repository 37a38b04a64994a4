"""
Node selector terms, compiled once and matched with every node.

Terms are those of a node selector in the API, with one more field: documents name the label
`kwok.x-k8s.io/node` although nodes have an annotation of that name. Such a requirement becomes two
terms: one for the label, and one with the field `metadata.annotations['kwok.x-k8s.io/node']`.
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

# A valid term of the API that matches every node, because every node has a name.
EVERY_NODE = NodeSelectorTerm(
    match_fields=(NodeSelectorRequirement(key=NAME_FIELD, operator="NotIn", values=("",)),)
)


def of_labels(labels: Mapping[str, str]) -> tuple[NodeSelectorTerm, ...]:
    """Return terms for nodes that have all these labels; KWOK's may be an annotation instead."""
    requirements = tuple(
        NodeSelectorRequirement(key=key, operator="In", values=(value,))
        for key, value in labels.items()
    )
    if KWOK_NODE not in labels:
        return (NodeSelectorTerm(match_expressions=requirements),)
    annotation = NodeSelectorRequirement(
        key=_ANNOTATION, operator="In", values=(labels[KWOK_NODE],)
    )
    others = tuple(each for each in requirements if each.key != KWOK_NODE)
    return (
        NodeSelectorTerm(match_expressions=requirements),
        NodeSelectorTerm(match_expressions=others, match_fields=(annotation,)),
    )


def without_kwok_label(terms: tuple[NodeSelectorTerm, ...]) -> tuple[NodeSelectorTerm, ...]:
    """Return terms without KWOK's label and annotation, which `of_labels` requires."""
    kept = []
    for term in terms:
        if any(each.key == _ANNOTATION for each in term.match_fields):
            others = term.match_expressions
            kept.append(NodeSelectorTerm(match_expressions=others) if others else EVERY_NODE)
        elif len(terms) == 1 or all(each.key != KWOK_NODE for each in term.match_expressions):
            kept.append(term)
    return tuple(kept)


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
    """Terms of which one must match."""

    alternatives: tuple[_Alternative, ...]
    instance_types: frozenset[str] | None
    """The instance types of all nodes that can match; None if the terms do not limit them."""

    def match(self, node: Node) -> bool:
        return any(each.matches(node) for each in self.alternatives)


def compile_terms(terms: Sequence[NodeSelectorTerm]) -> Terms:
    """Compile terms, without empty ones, which match no node."""
    alternatives = []
    instance_types: set[str] | None = set()
    for term in terms:
        if not term.match_expressions and not term.match_fields:
            continue
        annotation = next((r.values[0] for r in term.match_fields if r.key == _ANNOTATION), None)
        fields = tuple(r for r in term.match_fields if r.key != _ANNOTATION)
        plain = NodeSelectorTerm(match_expressions=term.match_expressions, match_fields=fields)
        parsed = parse_node_selector(NodeSelector(node_selector_terms=(plain,))).terms
        # Without other requirements than the annotation, every node matches the rest.
        alternatives.append(_Alternative(parsed[0] if parsed else NodeTerm((), (), ()), annotation))
        types = [r for r in term.match_expressions if (r.key, r.operator) == (INSTANCE_TYPE, "In")]
        if not types:
            instance_types = None
        elif instance_types is not None:
            instance_types.update(types[0].values)
    limits = None if instance_types is None else frozenset(instance_types)
    return Terms(tuple(alternatives), limits)
