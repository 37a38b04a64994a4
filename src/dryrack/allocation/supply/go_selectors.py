"""Node selectors in errors, as Go prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dryrack.kinds.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm


def print_selector(selector: NodeSelector) -> str:
    """Return a node selector as Go prints it."""
    terms = map(_term, selector.node_selector_terms)
    return f"&NodeSelector{{NodeSelectorTerms:{_list('NodeSelectorTerm', terms)}}}"


def _term(term: NodeSelectorTerm) -> str:
    expressions, fields = (
        _list("NodeSelectorRequirement", map(_requirement, part))
        for part in (term.match_expressions, term.match_fields)
    )
    return f"MatchExpressions:{expressions}MatchFields:{fields}"


def _requirement(one: NodeSelectorRequirement) -> str:
    return f"Key:{one.key},Operator:{one.operator},Values:[{' '.join(one.values)}],"


def _list(kind: str, parts: Iterable[str]) -> str:
    return f"[]{kind}{{{''.join(f'{kind}{{{part}}},' for part in parts)}}},"
