"""
The error that stops the whole scheduling attempt.

Kubernetes gives up on a pod when its allocator returns an error, even if another node would
do, so an error is not an outcome of one node. The text is the one Kubernetes prints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.base.errors import DryrackError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dryrack.kinds.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm


class AllocationError(DryrackError):
    """An error in claims, classes or slices that stops the scheduling attempt in Kubernetes."""

    def __init__(self, text: str, *, device: str = "", remedy: str = "") -> None:
        """`device` is the checked device; `remedy` is set if the claim is not the cause."""
        super().__init__(text)
        self.device = device
        self.remedy = remedy


class MissingClassError(AllocationError):
    """A request uses a DeviceClass that does not exist."""

    def __init__(self, claim: str, request: str, name: str) -> None:
        super().__init__(
            f"claim {claim}, request {request}: could not retrieve device class {name}: "
            f'deviceclass.resource.k8s.io "{name}" not found'
        )
        self.claim = claim
        self.request = request
        self.name = name


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
