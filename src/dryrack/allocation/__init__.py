"""Allocation of devices: claims, slices and devices in use give an allocation or reasons."""

from dryrack.allocation.model.errors import AllocationError, MissingClassError
from dryrack.allocation.model.features import FEATURE_GATES, Features
from dryrack.allocation.model.identity import DeviceId, claim_name
from dryrack.allocation.model.reasons import Code, Obstacle, Reason, brief, fold, has_some
from dryrack.allocation.proof.search_memo import SearchMemo
from dryrack.allocation.search.allocator import (
    Allocated,
    Outcome,
    Search,
    Undecided,
    Unsatisfiable,
)
from dryrack.allocation.search.device_books import WHOLE, DeviceBook, Suitable, Way
from dryrack.allocation.search.incremental import NO_NODES, AffectedNodes, LiveAllocator
from dryrack.allocation.search.problem import OPTIONAL_OPERATIONS, Site
from dryrack.allocation.supply.node_pools import NodePool
from dryrack.allocation.supply.taints import apply_taint_rules, blocking_taints, evicts_from
from dryrack.kinds.releases import Release

__all__ = [
    "FEATURE_GATES",
    "NO_NODES",
    "OPTIONAL_OPERATIONS",
    "WHOLE",
    "AffectedNodes",
    "Allocated",
    "AllocationError",
    "Code",
    "DeviceBook",
    "DeviceId",
    "Features",
    "LiveAllocator",
    "MissingClassError",
    "NodePool",
    "Obstacle",
    "Outcome",
    "Reason",
    "Release",
    "Search",
    "SearchMemo",
    "Site",
    "Suitable",
    "Undecided",
    "Unsatisfiable",
    "Way",
    "apply_taint_rules",
    "blocking_taints",
    "brief",
    "claim_name",
    "evicts_from",
    "fold",
    "has_some",
]
