"""
Which entry of the catalogue a node has: its instance type, and how its cards are used.

NVIDIA's driver offers the partitions of cards only where that is switched on. Here a label of
the node does so: a node pool can set it, and one cluster can have both.
"""

from __future__ import annotations

from enum import Enum

from dryrack.hardware.node_terms import INSTANCE_TYPE
from dryrack.kinds.core import NodeSelectorRequirement, NodeSelectorTerm

MIG = "dryrack.dev/mig"
MIG_DYNAMIC = "dynamic"


class Cards(Enum):
    """How the cards of a node are on offer."""

    WHOLE = ""
    PARTITIONED = "mig"


def key_of(instance_type: str, cards: Cards) -> str:
    """Under what the catalogue has a node's devices; no label's value has a slash."""
    return f"{instance_type}/{cards.value}" if cards.value else instance_type


def term_of(instance_type: str, cards: Cards | None) -> NodeSelectorTerm:
    """The nodes whose labels say so; `cards` is None where these cannot be partitioned."""
    wanted = [NodeSelectorRequirement(key=INSTANCE_TYPE, operator="In", values=(instance_type,))]
    if cards is not None:
        operator = "In" if cards is Cards.PARTITIONED else "NotIn"
        wanted.append(NodeSelectorRequirement(key=MIG, operator=operator, values=(MIG_DYNAMIC,)))
    return NodeSelectorTerm(match_expressions=tuple(wanted))
