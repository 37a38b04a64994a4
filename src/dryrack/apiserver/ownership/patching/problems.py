"""Refusals of patches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dryrack.apiserver.answer.status import StatusError, Subject, invalid
from dryrack.kinds.validation.problems import invalid as invalid_value


@dataclass(frozen=True, slots=True)
class PatchProblem:
    """The `Status` of a refused patch."""

    code: int
    reason: str
    message: str
    details: dict[str, Any] | None = None


class PatchError(ValueError):
    """A patch that cannot be read or does not fit; the text has details for developers."""

    def __init__(self, problem: PatchProblem, text: str = "") -> None:
        super().__init__(text or problem.message)
        self.problem = problem


def bad_patch(message: str) -> PatchError:
    """Return the refusal of a patch that cannot be read."""
    return PatchError(PatchProblem(400, "BadRequest", message))


def failed(message: str) -> PatchError:
    """Return the refusal of a patch that the real server answers with an internal error."""
    return PatchError(PatchProblem(500, "", message))


def does_not_apply(text: str) -> PatchError:
    """Return the refusal of a patch that does not fit the object; the server gives no reason."""
    message = "the server rejected our request due to an error in our request"
    return PatchError(PatchProblem(422, "Invalid", message, {}), text)


def invalid_patch(shown: str, detail: str) -> StatusError:
    """Return the refusal of a patched object that is no object of the kind."""
    return invalid(Subject("", ""), "", (invalid_value("patch", shown, detail),))
