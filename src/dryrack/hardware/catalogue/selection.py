"""
Which entry of the catalogue a node has: its instance type, and how its cards are used.

NVIDIA's driver offers the partitions of cards only where that is switched on. Here a label of
the node does so: a node pool can set it, and one cluster can have both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.core import NodeSelectorRequirement, NodeSelectorTerm

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.hardware.inventory import Assignment

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
MIG = "dryrack.dev/mig"
MIG_DYNAMIC = "dynamic"


def partitioned(name: str) -> str:
    """The key of an instance type whose cards are partitioned; no label's value has a slash."""
    return f"{name}/mig"


def assigned(types: Mapping[str, Assignment], labels: Mapping[str, str]) -> Assignment | None:
    """What the catalogue has for a node with these labels."""
    name = labels.get(INSTANCE_TYPE, "")
    plain = types.get(name)
    if labels.get(MIG) == MIG_DYNAMIC:
        return types.get(partitioned(name), plain)
    return plain


def term_of(name: str, *mig: NodeSelectorRequirement) -> NodeSelectorTerm:
    """Nodes of this instance type, as a selector tells them."""
    is_type = NodeSelectorRequirement(key=INSTANCE_TYPE, operator="In", values=(name,))
    return NodeSelectorTerm(match_expressions=(is_type, *mig))


def mig_requirement(operator: str) -> NodeSelectorRequirement:
    """`In`: nodes whose cards are partitioned; `NotIn`: all others."""
    return NodeSelectorRequirement(key=MIG, operator=operator, values=(MIG_DYNAMIC,))
