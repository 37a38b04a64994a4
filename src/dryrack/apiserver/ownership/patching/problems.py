"""Why a patch is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Problem:
    """The `Status` of a refused patch."""

    code: int
    reason: str
    message: str
    details: dict[str, Any] | None = None


class PatchError(ValueError):
    """A patch that cannot be read or does not fit; its text is for people who look closer."""

    def __init__(self, problem: Problem, text: str = "") -> None:
        super().__init__(text or problem.message)
        self.problem = problem


def bad_patch(message: str) -> PatchError:
    """It cannot be read."""
    return PatchError(Problem(400, "BadRequest", message))


def failed(message: str) -> PatchError:
    """What the real server did not expect anybody to send."""
    return PatchError(Problem(500, "", message))


def does_not_apply(text: str) -> PatchError:
    """It can be read and does not fit the object. The server does not tell why."""
    message = "the server rejected our request due to an error in our request"
    return PatchError(Problem(422, "Invalid", message, {}), text)
