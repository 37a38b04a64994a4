"""The gRPC health service, asked as a kubelet's probe asks."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import grpc
from tests.kubeletplugin.nodes import bench

from dryrack.kubeletplugin import Sockets, serving_health, serving_kubelet
from dryrack.kubeletplugin.kinds.fake import DRIVER

SERVING = b"\x08\x01"
NOT_SERVING = b"\x08\x02"


async def probe(port: int, request: bytes = b"") -> bytes | grpc.StatusCode:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        ask: Any = channel.unary_unary("/grpc.health.v1.Health/Check")
        try:
            answer: bytes = await ask(request, timeout=10)
        except grpc.aio.AioRpcError as error:
            code: grpc.StatusCode = error.code()
            return code
        return answer


def test_a_plugin_is_well_as_long_as_its_sockets_answer() -> None:
    """By any of the names that it has; of other services nothing is known."""

    async def scenario(directory: Path) -> list[bytes | grpc.StatusCode]:
        world = bench(directory)
        sockets = Sockets.of(directory, DRIVER)
        async with serving_health("127.0.0.1", 0, [sockets]) as port:
            before = await probe(port)
            async with serving_kubelet(world.plugin(), sockets):
                during = [await probe(port), await probe(port, b"\x0a\x08liveness")]
                other = await probe(port, b"\x0a\x05other")
            return [before, *during, other, await probe(port)]

    # The path of a socket has 107 bytes at most.
    with tempfile.TemporaryDirectory(prefix="dryrack-") as directory:
        answers = asyncio.run(scenario(Path(directory)))

    unknown = grpc.StatusCode.NOT_FOUND
    assert answers == [NOT_SERVING, SERVING, SERVING, unknown, NOT_SERVING]
