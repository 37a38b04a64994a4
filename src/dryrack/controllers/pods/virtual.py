"""Which nodes are played: those marked for KWOK, and those that dryrack made."""

from dryrack.controllers.objects import annotations_of, labels_of
from dryrack.kinds.raw import Raw

KWOK_NODE = "kwok.x-k8s.io/node"
OWN_NODE = "dryrack.dev/node"
SILENT = "dryrack.dev/silent"


def is_virtual(node: Raw) -> bool:
    """Whether no machine stands behind a node."""
    marks = (KWOK_NODE, OWN_NODE)
    return any(mark in annotations_of(node) or mark in labels_of(node) for mark in marks)


def is_played(node: Raw | None) -> bool:
    """Whether a virtual node acts: one that is annotated as silent has lost its kubelet."""
    if node is None or not is_virtual(node):
        return False
    return annotations_of(node).get(SILENT) != "true"
