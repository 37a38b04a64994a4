"""Claims × slices × what is in use → an allocation, or the reasons there is none."""

from dryrack.allocation.allocator import Allocated, Allocator, Outcome, Undecided, Unsatisfiable
from dryrack.allocation.errors import AllocationError
from dryrack.allocation.features import Features, Release
from dryrack.allocation.identity import DeviceId, PoolId, SharedDeviceId, claim_name
from dryrack.allocation.live import LiveAllocator
from dryrack.allocation.long_search import Search
from dryrack.allocation.obstacles import Obstacle, brief
from dryrack.allocation.reasons import Code, Reason
from dryrack.allocation.state import AllocatedState

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
