"""
Patches as functions: an object and a patch in, the patched object or the problem out.

JSON patch (RFC 6902), JSON merge patch (RFC 7386) and Kubernetes' strategic merge patch. Neither
the object nor the patch is changed. Server-side apply is not a patch of values but of owners: it
is in `dryrack.apiserver.ownership.server_side_apply`.
"""

from __future__ import annotations

from dryrack.apiserver.ownership.patching.pipeline import (
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    Patched,
    PatchProblem,
    patched,
)

__all__ = [
    "JSON_PATCH",
    "MERGE_PATCH",
    "STRATEGIC_MERGE_PATCH",
    "PatchProblem",
    "Patched",
    "patched",
]
