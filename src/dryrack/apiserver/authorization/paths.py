"""Permission for paths that are no resources, such as discovery."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from dryrack.apiserver.answer.status import Status
from dryrack.apiserver.authorization.attributes import Attributes, denial
from dryrack.client.transport import Response

if TYPE_CHECKING:
    from dryrack.apiserver.authorization import Authorization
    from dryrack.client.transport import Request


@dataclass(frozen=True, slots=True)
class PathGuard:
    """A page before all others that refuses a user who may not read a path."""

    authorization: Authorization

    async def __call__(self, request: Request) -> Response | None:
        if not _is_no_resource(request.path):
            return None
        asked = Attributes(request.user, request.method.lower(), path=request.path)
        if self.authorization.allows(asked):
            return None
        status = Status(403, "Forbidden", f"forbidden: {denial(asked)}", {})
        headers = (("content-type", "application/json"), ("x-content-type-options", "nosniff"))
        return Response(403, headers, msgspec.json.encode(status.to_raw()) + b"\n")


def _is_no_resource(path: str) -> bool:
    """Return whether a path is no resource: discovery paths are short."""
    parts = path.strip("/").split("/")
    return len(parts) <= {"api": 2, "apis": 3}.get(parts[0], len(parts))
