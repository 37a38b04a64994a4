"""Which pod goes where: what a pod asks of a node, which nodes can give it, and which is taken."""

from dryrack.placement.explain import Explanation, NodeStory, explain_claim
from dryrack.placement.fleet import Fleet
from dryrack.placement.node_state import NodeState
from dryrack.placement.occupant import Occupant
from dryrack.placement.place import Cluster, Placed, Refusal, Unfinished, Unplaced, decide, place
from dryrack.placement.whatif import Given, Refused, Settings, WhatIf, what_if
from dryrack.placement.world import World

__all__ = [
    "Cluster",
    "Explanation",
    "Fleet",
    "Given",
    "NodeState",
    "NodeStory",
    "Occupant",
    "Placed",
    "Refusal",
    "Refused",
    "Settings",
    "Unfinished",
    "Unplaced",
    "WhatIf",
    "World",
    "decide",
    "explain_claim",
    "place",
    "what_if",
]
