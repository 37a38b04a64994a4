"""
The node filter: which nodes have devices published for them.

Without a selector it is the nodes that carry Karpenter's annotation, and no others: labels that
look like KWOK's do not count. A node with a kubelet of its own is left alone, even if a selector
means it: its pods would wait for devices that no driver there can prepare.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dryrack.controllers.objects import annotations_of, fault_annotations, labels_of
from dryrack.controllers.pods.virtual import KWOK_NODE, is_virtual
from dryrack.kinds.core import Node
from dryrack.kinds.meta import ObjectMeta
from dryrack.kinds.paths import get
from dryrack.kinds.selectors import strict_node_selector

if TYPE_CHECKING:
    from dryrack.controllers.slices import PublisherSettings
    from dryrack.kinds.raw import Raw

# What a kubelet says of itself; KWOK says "kwok-v0.7.0", or "fake".
_KUBELET_VERSION = re.compile(r"v[0-9]+\.")


def is_kwok_node(node: Raw) -> bool:
    """Whether a node is marked as Karpenter marks those of its KWOK provider."""
    return KWOK_NODE in annotations_of(node)


def has_kubelet(node: Raw) -> bool:
    """Whether a machine stands behind a node, by what it tells about itself."""
    told = get(node, "status.nodeInfo", {})
    return not is_virtual(node) and bool(_KUBELET_VERSION.match(told.get("kubeletVersion") or ""))


def typed(node: Raw) -> Node:
    """As much of a node as selectors look at."""
    metadata = ObjectMeta(
        name=node["metadata"]["name"], labels=labels_of(node), annotations=_mark(node)
    )
    return Node(metadata=metadata)


class NodeFilter:
    """Tells the nodes that devices are published for from the others."""

    def __init__(self, options: PublisherSettings) -> None:
        self._selected = strict_node_selector(options.nodes) if options.nodes else None
        self._real_nodes = options.real_nodes

    def matches(self, node: Raw) -> bool:
        if has_kubelet(node) and not self._real_nodes:
            return False
        if self._selected is not None:
            return self._selected.matches(typed(node))
        return is_kwok_node(node) or self._real_nodes


def relevant_fields(node: Raw | None) -> tuple[object, ...]:
    """All about a node that decides which devices it has; its reports on itself do not."""
    if node is None:
        return ()
    return (
        node["metadata"].get("uid"),
        labels_of(node),
        _mark(node),
        has_kubelet(node),
        fault_annotations(node),
    )


def _mark(node: Raw) -> dict[str, str]:
    """Karpenter's annotation; no other says which devices there are."""
    return {key: value for key, value in annotations_of(node).items() if key == KWOK_NODE}
