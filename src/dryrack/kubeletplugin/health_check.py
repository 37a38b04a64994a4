"""
The gRPC health service (`grpc.health.v1`) for probes of Kubernetes.

The plugin is healthy if it answers on the sockets that the kubelet uses: requests for its identity,
and for the preparation of no claims.
"""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc

from dryrack.kubeletapi import DRA_V1, REGISTRATION
from dryrack.kubeletplugin.serving import SocketError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from dryrack.kubeletplugin.serving import Sockets

_logger = logging.getLogger(__name__)

_SERVICE = "grpc.health.v1.Health"
# The messages have one field each: a status that is 1 or 2, and the name of a service, which is
# empty or `liveness`.
_SERVING = b"\x08\x01"
_NOT_SERVING = b"\x08\x02"
_KNOWN_REQUESTS = (b"", b"\x0a\x00", b"\x0a\x08liveness")
_ANSWER_SECONDS_MAX = 5.0


@asynccontextmanager
async def serving_health(host: str, port: int, plugins: Sequence[Sockets]) -> AsyncIterator[int]:
    """Answer probes during a block, and yield the port; 0 requests a free port."""

    async def check(request: bytes, context: Any) -> bytes:
        if request not in _KNOWN_REQUESTS:
            await context.abort(grpc.StatusCode.NOT_FOUND, "unknown service; use liveness")
        return _SERVING if await _is_healthy(plugins) else _NOT_SERVING

    server = grpc.aio.server()
    handlers: dict[str, Any] = {"Check": grpc.unary_unary_rpc_method_handler(check)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, handlers),))
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        bound = server.add_insecure_port(where)
    except RuntimeError:
        raise SocketError(
            f"{where}: cannot listen; choose another port with --grpc-health-address, or 0 for none"
        ) from None
    await server.start()
    try:
        yield bound
    finally:
        await server.stop(None)


async def _is_healthy(plugins: Sequence[Sockets]) -> bool:
    try:
        for sockets in plugins:
            await _ask(sockets.registration, f"/{REGISTRATION}.Registration/GetInfo")
            await _ask(sockets.dra, f"/{DRA_V1}.DRAPlugin/NodePrepareResources")
    except grpc.aio.AioRpcError as error:
        _logger.warning("a socket does not answer: %s", error.details())
        return False
    return True


async def _ask(path: Path, method: str) -> None:
    """Call a method with an empty message."""
    async with grpc.aio.insecure_channel(f"unix:{path}") as channel:
        ask: Any = channel.unary_unary(method)
        await ask(b"", timeout=_ANSWER_SECONDS_MAX)
