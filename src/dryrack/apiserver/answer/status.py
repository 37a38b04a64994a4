"""
Refusals of the API server.

Every refusal is a `Status` object with the code, reason, message and details that the real server
gives; `StatusError` carries one through the pipeline. The functions below are the refusals that
Kubernetes knows, named as there. `qualified` names are what the server shows of a resource or a
kind: the plain name in the core group, `name.group` elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem


@dataclass(frozen=True, slots=True)
class Status:
    """A refusal, as a value."""

    code: int
    reason: str
    message: str
    details: Mapping[str, Any] | None = None
    retry_after_seconds: int = 0
    continue_token: str = ""

    def to_raw(self) -> Raw:
        raw: Raw = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"continue": self.continue_token} if self.continue_token else {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            raw["reason"] = self.reason
        if self.details is not None:
            raw["details"] = dict(self.details)
        raw["code"] = self.code
        return raw


class StatusError(Exception):
    """Ends a request with a `Status`."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a refusal; `name` is a plural (`pods`) or, when invalid, a kind (`Pod`)."""

    group: str
    name: str

    @property
    def qualified(self) -> str:
        return f"{self.name}.{self.group}" if self.group else self.name

    def details(self, name: str = "", **more: Any) -> Raw:
        """Details as the server orders and omits them."""
        found: Raw = {}
        if name:
            found["name"] = name
        if self.group:
            found["group"] = self.group
        if self.name:
            found["kind"] = self.name
        found.update(more)
        return found


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason of several; empty parts are left out."""

    reason: str = ""
    message: str = ""
    field: str = ""

    def to_raw(self) -> Raw:
        given = (("reason", self.reason), ("message", self.message), ("field", self.field))
        return {key: value for key, value in given if value}


def not_found(subject: Subject, name: str) -> StatusError:
    message = f'{subject.qualified} "{name}" not found'
    return StatusError(Status(404, "NotFound", message, subject.details(name)))


def already_exists(subject: Subject, name: str, *, is_generated: bool = False) -> StatusError:
    """Return a refusal of a name that is taken; of the last of several if it is generated."""
    message = f'{subject.qualified} "{name}" already exists'
    if not is_generated:
        return StatusError(Status(409, "AlreadyExists", message, subject.details(name)))
    message += ", the server was not able to generate a unique name for the object"
    details = subject.details(name, retryAfterSeconds=1)
    return StatusError(Status(409, "AlreadyExists", message, details, retry_after_seconds=1))


def conflict(subject: Subject, name: str, detail: str) -> StatusError:
    message = f'Operation cannot be fulfilled on {subject.qualified} "{name}": {detail}'
    return StatusError(Status(409, "Conflict", message, subject.details(name)))


def forbidden(subject: Subject, name: str, detail: str) -> StatusError:
    """`detail` is the whole reason: the server says it after naming the object."""
    shown = (
        f'{subject.qualified} "{name}" is forbidden'
        if name
        else f"{subject.qualified} is forbidden"
    )
    message = f"{shown}: {detail}"
    return StatusError(Status(403, "Forbidden", message, subject.details(name)))


def invalid(kind: Subject, name: str, problems: Sequence[FieldProblem]) -> StatusError:
    """An object that is understood and not accepted."""
    told = [(each.reason.value, each.message, each.field) for each in problems]
    causes = [Cause(*each).to_raw() for each in told]
    details = kind.details(name, **({"causes": causes} if causes else {}))
    message = f'{kind.qualified} "{name}" is invalid'
    # The server drops repeated messages from the sentence, not from the causes.
    errors = list(dict.fromkeys(f"{field}: {detail}" for _, detail, field in told))
    if len(errors) == 1:
        message += f": {errors[0]}"
    elif errors:
        message += f": [{', '.join(errors)}]"
    return StatusError(Status(422, "Invalid", message, details))


def bad_request(message: str) -> StatusError:
    return StatusError(Status(400, "BadRequest", message))


def unauthorized() -> StatusError:
    return StatusError(Status(401, "Unauthorized", "Unauthorized"))


def page_not_found() -> StatusError:
    """No such path: what a client sees for a kind that is not served."""
    message = "the server could not find the requested resource"
    return StatusError(Status(404, "NotFound", message, {}))


def method_not_allowed() -> StatusError:
    """The path is served, and not with this method."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(Status(405, "MethodNotAllowed", message, {}))


def unsupported_media_type(accepted: Sequence[str]) -> StatusError:
    """Return a refusal that shows the accepted media types, if there are any."""
    if not accepted:
        return StatusError(Status(415, "UnsupportedMediaType", "415: Unsupported Media Type", {}))
    shown = ", ".join(accepted)
    message = (
        f"the body of the request was in an unknown format - accepted media types include: {shown}"
    )
    return StatusError(Status(415, "UnsupportedMediaType", message))


def not_acceptable(accepted: Sequence[str]) -> StatusError:
    shown = ", ".join(accepted)
    message = f"only the following media types are accepted: {shown}"
    return StatusError(Status(406, "NotAcceptable", message))


def no_representation(served: Sequence[str]) -> StatusError:
    """No media type that the client accepts is served at all."""
    message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(served)}"
    return StatusError(Status(406, "NotAcceptable", message, {}))


def not_convertible(message: str) -> StatusError:
    """Return the refusal of a form in which the object cannot be shown."""
    return StatusError(Status(406, "NotAcceptable", message))


def too_large(bytes_max: int) -> StatusError:
    message = f"Request entity too large: limit is {bytes_max}"
    return StatusError(Status(413, "RequestEntityTooLarge", message))


def expired(message: str) -> StatusError:
    """Return the refusal of a revision that the log has dropped; the client lists again."""
    return StatusError(Status(410, "Expired", message))


def too_large_resource_version(asked: int, current: int) -> StatusError:
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    cause = Cause("ResourceVersionTooLarge", "Too large resource version").to_raw()
    details = {"causes": [cause], "retryAfterSeconds": 1}
    return StatusError(Status(504, "Timeout", message, details, retry_after_seconds=1))


def too_many_requests(message: str, retry_after_seconds: int) -> StatusError:
    details = {"retryAfterSeconds": retry_after_seconds} if retry_after_seconds else {}
    return StatusError(
        Status(429, "TooManyRequests", message, details, retry_after_seconds=retry_after_seconds)
    )


def internal_error(message: str) -> StatusError:
    details = {"causes": [{"message": message}]}
    return StatusError(Status(500, "InternalError", f"Internal error occurred: {message}", details))


def not_implemented(message: str) -> StatusError:
    """Return the refusal of a function that only a real server has."""
    return StatusError(Status(501, "NotImplemented", message))


@dataclass(frozen=True, slots=True)
class Success:
    """A success without an object of its own, as a deletion has."""

    details: Mapping[str, Any] = field(default_factory=dict)

    def to_raw(self) -> Raw:
        raw: Raw = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
        if self.details:
            raw["details"] = dict(self.details)
        return raw
