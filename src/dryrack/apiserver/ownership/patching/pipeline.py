"""What the request pipeline calls, whichever kind of patch it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dryrack.apiserver.decode.bodies import read_json, repeated_fields
from dryrack.apiserver.ownership.patching import json_patch, merge_patch, strategic
from dryrack.apiserver.ownership.patching.problems import PatchError, Problem, bad_patch
from dryrack.kinds.text import go_json

if TYPE_CHECKING:
    from dryrack.kinds.schemas import Schema

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"

PatchProblem = Problem


@dataclass(frozen=True, slots=True)
class Patched:
    """
    The object with the patch applied.

    `strict` are the complaints about the patch itself (not about the object) that a request with
    `fieldValidation` Warn shows as warnings and one with Strict refuses, in the server's words.
    """

    object: Any
    strict: tuple[str, ...] = ()


def patched(
    live: dict[str, Any], patch: bytes, *, content_type: str, schema: Schema | None
) -> Patched | PatchProblem:
    """The live object with the patch applied; `schema` is needed by strategic merge alone."""
    try:
        match content_type:
            case "application/json-patch+json":
                return _json_patched(live, patch)
            case "application/merge-patch+json":
                return _merged(live, patch)
            case "application/strategic-merge-patch+json":
                return _strategic(live, patch, schema)
            case other:
                raise AssertionError(f"{other} is no patch")
    except PatchError as error:
        return error.problem


def _json_patched(live: dict[str, Any], patch: bytes) -> Patched:
    value = _read(patch, "error decoding patch: ")
    wanted, strict = json_patch.operations(value)
    return Patched(json_patch.apply(live, wanted), strict)


def _merged(live: dict[str, Any], patch: bytes) -> Patched:
    value = _read(patch, "error decoding patch: ")
    _check_map(value, "error decoding patch: ")
    if value is None:
        raise bad_patch("Invalid JSON Patch")
    return Patched(merge_patch.merged(live, value), repeated_fields(patch, value))


def _strategic(live: dict[str, Any], patch: bytes, schema: Schema | None) -> Patched:
    value = _read(patch, "")
    _check_map(value, "")
    if schema is None:
        raise bad_patch("strategic merge patch format is not supported")
    return Patched(strategic.merged(live, value or {}, schema), repeated_fields(patch, value))


def _read(patch: bytes, prefix: str) -> Any:
    try:
        return read_json(patch)
    except go_json.GoSyntaxError as error:
        raise bad_patch(f"{prefix}{error}") from error


def _check_map(value: Any, prefix: str) -> None:
    if value is not None and not isinstance(value, dict):
        kind = go_json.type_name(value)
        what = f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        raise bad_patch(f"{prefix}{what}")
