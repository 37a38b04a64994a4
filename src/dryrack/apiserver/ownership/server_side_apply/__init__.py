"""
Who owns which field: `managedFields`, and server-side apply.

Every write tells which fields its author now owns; an apply also takes away what its author no
longer names, and is refused where it would change what somebody else owns. Pure functions: the
time is an argument, and no object that is passed in is changed.
"""

from __future__ import annotations

from dryrack.apiserver.ownership.server_side_apply.pipeline import (
    ApplyConflicts,
    ApplyProblem,
    applied,
    keep_times,
    managed_after_update,
    manager_name,
)
from dryrack.apiserver.ownership.server_side_apply.tracked import Tracked, Versions

__all__ = [
    "ApplyConflicts",
    "ApplyProblem",
    "Tracked",
    "Versions",
    "applied",
    "keep_times",
    "managed_after_update",
    "manager_name",
]
