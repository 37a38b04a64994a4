"""What the request pipeline calls, whichever kind of patch it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dryrack.apiserver.schemas import Schema

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"


@dataclass(frozen=True, slots=True)
class Patched:
    """
    The object with the patch applied.

    `strict` are the complaints about the patch itself (not about the object) that a request with
    `fieldValidation` Warn shows as warnings and one with Strict refuses, in the server's words.
    """

    object: Any
    strict: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PatchProblem:
    """Why a patch cannot be applied, as the server's `Status` tells it."""

    code: int
    reason: str
    message: str


def patched(
    live: dict[str, Any], patch: bytes, *, content_type: str, schema: Schema | None
) -> Patched | PatchProblem:
    """The live object with the patch applied; `schema` is needed by strategic merge alone."""
    raise NotImplementedError
