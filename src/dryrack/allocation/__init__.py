"""Claims × slices × what is in use → an allocation, or the reasons there is none."""

from dryrack.allocation.model.errors import AllocationError
from dryrack.allocation.model.features import Features, Release
from dryrack.allocation.model.identity import DeviceId, PoolId, SharedDeviceId, claim_name
from dryrack.allocation.model.reasons import Code, Reason
from dryrack.allocation.obstacles import Obstacle, brief
from dryrack.allocation.search.allocator import (
    Allocated,
    Allocator,
    Outcome,
    Undecided,
    Unsatisfiable,
)
from dryrack.allocation.search.incremental import LiveAllocator
from dryrack.allocation.search.long_search import Search
from dryrack.allocation.supply.usage import AllocatedState

__all__ = [
    "Allocated",
    "AllocatedState",
    "AllocationError",
    "Allocator",
    "Code",
    "DeviceId",
    "Features",
    "LiveAllocator",
    "Obstacle",
    "Outcome",
    "PoolId",
    "Reason",
    "Release",
    "Search",
    "SharedDeviceId",
    "Undecided",
    "Unsatisfiable",
    "brief",
    "claim_name",
]
