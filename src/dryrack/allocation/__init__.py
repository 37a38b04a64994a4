"""Claims × slices × what is in use → an allocation, or the reasons there is none."""

from dryrack.allocation.allocator import Allocated, Allocator, Outcome, Unsatisfiable
from dryrack.allocation.errors import AllocationError
from dryrack.allocation.features import Features, Release
from dryrack.allocation.identity import DeviceId, PoolId, SharedDeviceId, claim_name
from dryrack.allocation.state import AllocatedState

__all__ = [
    "Allocated",
    "AllocatedState",
    "AllocationError",
    "Allocator",
    "DeviceId",
    "Features",
    "Outcome",
    "PoolId",
    "Release",
    "SharedDeviceId",
    "Unsatisfiable",
    "claim_name",
]
