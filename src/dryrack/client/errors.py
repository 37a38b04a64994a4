"""
Errors of requests to a cluster.

A refusal contains the `Status` that the server sent; there is a class for each refusal that
components treat differently. Without an answer, a `TransportError` is raised.
"""

from collections.abc import Mapping
from typing import Any

from dryrack.base.errors import DryrackError
from dryrack.kinds.paths import get


class TransportError(DryrackError):
    """No answer, or an incomplete one; the request may have had an effect."""


class ApiError(DryrackError):
    """The API server refused a request."""

    def __init__(self, status: Mapping[str, Any]) -> None:
        self.status = dict(status)
        super().__init__(self.message)

    @property
    def code(self) -> int:
        return int(self.status.get("code") or 500)

    @property
    def reason(self) -> str:
        return str(self.status.get("reason") or "")

    @property
    def message(self) -> str:
        return str(self.status.get("message") or self.status)

    @property
    def retry_after_seconds(self) -> float:
        """The time to wait that the server requests, or 0."""
        details = get(self.status, "details", {})
        return float(details.get("retryAfterSeconds") or 0)


class BadRequestError(ApiError):
    """The request is malformed."""


class UnauthorizedError(ApiError):
    """The server cannot authenticate the user."""


class ForbiddenError(ApiError):
    """The user has no permission."""


class NotFoundError(ApiError):
    """The object or the kind does not exist."""


class ConflictError(ApiError):
    """The object has changed since it was read; read it again."""


class AlreadyExistsError(ConflictError):
    """An object of this name exists."""


class GoneError(ApiError):
    """The server no longer has a revision; list again."""


class InvalidError(ApiError):
    """The object is invalid."""


class TooManyRequestsError(ApiError):
    """The request may succeed later; also an eviction that a disruption budget does not allow."""


_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequestError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    422: InvalidError,
    429: TooManyRequestsError,
}


def error_of(status: Mapping[str, Any]) -> ApiError:
    """Return the error for a `Status`."""
    if status.get("reason") == "AlreadyExists":
        return AlreadyExistsError(status)
    return _BY_CODE.get(int(status.get("code") or 500), ApiError)(status)
