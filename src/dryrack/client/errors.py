"""
How a cluster says no to a client.

A refusal carries the whole `Status` that the server sent; its class tells the refusals apart that
an engine treats differently. A cluster that cannot be reached is a `TransportError`.
"""

from collections.abc import Mapping
from typing import Any

from dryrack.base.errors import DryrackError
from dryrack.kinds.paths import get


class TransportError(DryrackError):
    """No answer, or half of one; whether the request had an effect is not known."""


class ApiError(DryrackError):
    """A refusal."""

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
        """How long the server asks to wait; 0 if it does not."""
        details = get(self.status, "details", {})
        return float(details.get("retryAfterSeconds") or 0)


class BadRequestError(ApiError):
    """The request makes no sense."""


class UnauthorizedError(ApiError):
    """The server does not know who asks."""


class ForbiddenError(ApiError):
    """The server knows who asks, and refuses."""


class NotFoundError(ApiError):
    """There is no such object, or no such kind."""


class ConflictError(ApiError):
    """Somebody was faster; read again."""


class AlreadyExistsError(ConflictError):
    """A name is taken."""


class GoneError(ApiError):
    """A revision is no longer known; list again."""


class InvalidError(ApiError):
    """An object is understood and not accepted."""


class TooManyRequestsError(ApiError):
    """Later, perhaps; also an eviction that a budget does not allow."""


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
    """The error for a `Status`."""
    if status.get("reason") == "AlreadyExists":
        return AlreadyExistsError(status)
    return _BY_CODE.get(int(status.get("code") or 500), ApiError)(status)
