"""Waiting until a part of the cluster answers, and saying why when it does not."""

from __future__ import annotations

import asyncio
import http.client
import socket
import ssl
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from tests.realcluster.pki import Identity
    from tests.realcluster.processes import Processes

READY_SECONDS_MAX = 120.0
_POLL_SECONDS = 0.1
_ANSWER_SECONDS_MAX = 5.0
_OK = 200


class NotReadyError(Exception):
    """Something did not get ready in time."""


def wait(what: str, ready: Callable[[], bool], processes: Processes) -> None:
    """Returns when `ready`; says at once when a process has died meanwhile."""
    deadline = time.monotonic() + READY_SECONDS_MAX
    while not ready():
        processes.check()
        if time.monotonic() > deadline:
            problem = f"{what}: not ready after {READY_SECONDS_MAX:.0f} s"
            raise NotReadyError(f"{problem}; {processes.tail(what)}")
        time.sleep(_POLL_SECONDS)


async def until(what: str, holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait until a condition holds on a real cluster, by polling."""
    deadline = time.monotonic() + READY_SECONDS_MAX
    while not await holds():
        assert time.monotonic() < deadline, f"not {what}"
        await asyncio.sleep(_POLL_SECONDS)


def answers_http(port: int, path: str) -> bool:
    return _answers(
        http.client.HTTPConnection("127.0.0.1", port, timeout=_ANSWER_SECONDS_MAX), path
    )


def answers_https(port: int, path: str, *, authority: Path | None, user: Identity | None) -> bool:
    """Return whether a GET returns 200; without an authority the server is not verified."""
    context = ssl.create_default_context(cafile=str(authority) if authority else None)
    if authority is None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if user is not None:
        context.load_cert_chain(user.certificate, user.key)
    connection = http.client.HTTPSConnection(
        "127.0.0.1", port, timeout=_ANSWER_SECONDS_MAX, context=context
    )
    return _answers(connection, path)


def _answers(connection: http.client.HTTPConnection, path: str) -> bool:
    try:
        connection.request("GET", path)
        return connection.getresponse().status == _OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
