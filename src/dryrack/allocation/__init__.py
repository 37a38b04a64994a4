"""Claims × slices × what is in use → an allocation, or the reasons there is none."""

from dryrack.allocation.allocator import Allocated, Allocator, Outcome, Undecided, Unsatisfiable
from dryrack.allocation.errors import AllocationError
from dryrack.allocation.explain import Explanation, NodeStory, Obstacle, brief, explain_claim
from dryrack.allocation.features import Features, Release
from dryrack.allocation.identity import DeviceId, PoolId, SharedDeviceId, claim_name
from dryrack.allocation.live import LiveAllocator
from dryrack.allocation.long_search import Search
from dryrack.allocation.reasons import Code, Reason
from dryrack.allocation.state import AllocatedState
from dryrack.allocation.whatif import Given, Refusal, Refused, Settings, WhatIf, what_if
from dryrack.allocation.world import World

__all__ = [
    "Allocated",
    "AllocatedState",
    "AllocationError",
    "Allocator",
    "Code",
    "DeviceId",
    "Explanation",
    "Features",
    "Given",
    "LiveAllocator",
    "NodeStory",
    "Obstacle",
    "Outcome",
    "PoolId",
    "Reason",
    "Refusal",
    "Refused",
    "Release",
    "Search",
    "Settings",
    "SharedDeviceId",
    "Undecided",
    "Unsatisfiable",
    "WhatIf",
    "World",
    "brief",
    "claim_name",
    "explain_claim",
    "what_if",
]
