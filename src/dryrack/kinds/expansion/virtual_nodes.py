"""
The default size of a virtual node.

What a node says is kept; what is missing is that of a machine of ordinary size, so that no pod that
people try fails for lack of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from dryrack.kinds.paths import get
from dryrack.kinds.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.kinds.core import Node

CAPACITY = {"cpu": "32", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "110"}
_QUANTITIES = {name: Quantity.parse(amount) for name, amount in CAPACITY.items()}


def sizes(status: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return capacity and allocatable of a node with this status."""
    capacity = CAPACITY | get(status, "capacity", {})
    return capacity, capacity | get(status, "allocatable", {})


def with_default_size(node: Node) -> Node:
    """Return the node with defaults in its allocatable."""
    status = node.status
    if _QUANTITIES.keys() <= status.allocatable.keys():
        return node
    allocatable = {**_QUANTITIES, **status.capacity, **status.allocatable}
    return msgspec.structs.replace(
        node, status=msgspec.structs.replace(status, allocatable=allocatable)
    )
