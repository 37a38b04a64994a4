"""
Patches: JSON patch (RFC 6902), JSON merge patch (RFC 7386), and strategic merge patch.

Neither the object nor the patch is changed. Server-side apply is in
`dryrack.apiserver.ownership.server_side_apply`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dryrack.apiserver.decode.bodies import read_json, repeated_fields
from dryrack.apiserver.ownership.patching import json_patch, merge_patch, strategic
from dryrack.apiserver.ownership.patching.problems import PatchError, PatchProblem, bad_patch
from dryrack.kinds.text import go_json

if TYPE_CHECKING:
    from dryrack.kinds.schemas import Schema

__all__ = [
    "JSON_PATCH",
    "MERGE_PATCH",
    "STRATEGIC_MERGE_PATCH",
    "PatchProblem",
    "PatchResult",
    "apply_patch",
]

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"


@dataclass(frozen=True, slots=True)
class PatchResult:
    """
    The object with the patch applied.

    `strict` are the complaints about the patch itself (not about the object) that a request with
    `fieldValidation` Warn shows as warnings and one with Strict refuses, in the server's words.
    """

    object: Any
    strict: tuple[str, ...] = ()


def apply_patch(
    live: dict[str, Any], patch: bytes, *, content_type: str, schema: Schema | None
) -> PatchResult | PatchProblem:
    """Return the live object with the patch applied; only strategic merge needs `schema`."""
    is_strategic = content_type == STRATEGIC_MERGE_PATCH
    prefix = "" if is_strategic else "error decoding patch: "
    try:
        try:
            value = read_json(patch)
        except go_json.GoSyntaxError as error:
            raise bad_patch(f"{prefix}{error}") from error
        if content_type == JSON_PATCH:
            operations, strict = json_patch.read_operations(value)
            return PatchResult(json_patch.apply(live, operations), strict)
        if value is not None and not isinstance(value, dict):
            kind = go_json.type_name(value)
            what = f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
            raise bad_patch(f"{prefix}{what}")
        if is_strategic:
            if schema is None:
                raise bad_patch("strategic merge patch format is not supported")
            merged = strategic.merge(live, value or {}, schema)
        else:
            if value is None:
                raise bad_patch("Invalid JSON Patch")
            merged = merge_patch.merge(live, value)
        return PatchResult(merged, repeated_fields(patch, value))
    except PatchError as error:
        return error.problem
