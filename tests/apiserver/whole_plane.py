"""A whole API server to ask, with virtual time and no engines: anybody may ask, as anybody."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.apiserver.replay import CountingChance

from dryrack.client.timekeeping import VirtualClock
from dryrack.client.transport import ADMIN, Request, User
from dryrack.cluster.control_plane import ControlPlane, ControlPlaneOptions, build_control_plane

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

_WARNING = re.compile(r'^299 - "(.*)"$')


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, decoded, with the texts of its warnings."""

    status: int
    body: Any
    warnings: tuple[str, ...]

    @property
    def message(self) -> str:
        return str(self.body["message"])


@dataclass(slots=True)
class WholePlane:
    """The server of a cluster."""

    options: ControlPlaneOptions = field(
        default_factory=lambda: ControlPlaneOptions(clock=VirtualClock(), chance=CountingChance())
    )
    plane: ControlPlane = field(init=False)

    def __post_init__(self) -> None:
        self.plane = build_control_plane(self.options)

    def ask(
        self, method: str, path: str, body: Any = None, *, user: User = ADMIN, **headers: str
    ) -> Answer:
        return asyncio.run(self.asked(method, path, body, user=user, **headers))

    async def asked(
        self, method: str, path: str, body: Any = None, *, user: User = ADMIN, **headers: str
    ) -> Answer:
        """Send a request in the running event loop."""
        content = b"" if body is None else json.dumps(body).encode()
        sent = {"accept": "application/json", "content-type": "application/json"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        where, _, query = path.partition("?")
        request = Request(method, where, query, sent, content, user)
        found = await self.plane.transport.send(request)
        assert isinstance(found.body, bytes)
        warnings = [value for name, value in found.headers if name == "warning"]
        texts = (_WARNING.match(each) for each in warnings)
        told = tuple(each[1].replace('\\"', '"') for each in texts if each)
        return Answer(found.status, json.loads(found.body), told)

    def create(self, path: str, obj: Raw, *, user: User = ADMIN) -> Answer:
        return self.ask("POST", path, obj, user=user)

    def rows(self, path: str) -> list[list[Any]]:
        """Return the table that kubectl prints, without ages."""
        table = "application/json;as=Table;v=v1;g=meta.k8s.io"
        found = self.ask("GET", path, accept=table).body
        return [row["cells"] for row in found["rows"]]
