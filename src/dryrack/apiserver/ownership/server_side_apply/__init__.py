"""
Server-side apply and `managedFields`.

Every write records which fields its manager now owns. An apply also removes fields that its
manager no longer names, and is refused where it would change a field of another manager. Pure
functions: the time is an argument, and no argument is changed.
"""

from __future__ import annotations

from dryrack.apiserver.ownership.server_side_apply.apply import (
    ApplyConflicts,
    ApplyProblem,
    apply_configuration,
)
from dryrack.apiserver.ownership.server_side_apply.managed_fields import (
    keep_times,
    managed_after_update,
    manager_name,
)
from dryrack.apiserver.ownership.server_side_apply.owning import Tracked, Versions

__all__ = [
    "ApplyConflicts",
    "ApplyProblem",
    "Tracked",
    "Versions",
    "apply_configuration",
    "keep_times",
    "managed_after_update",
    "manager_name",
]
