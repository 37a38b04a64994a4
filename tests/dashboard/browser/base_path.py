"""A proxy that serves the page below a path, as `kubectl proxy` and the API server do."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from aiohttp import ClientSession, ClientTimeout, web

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

# Headers that are about one connection, and not about what is said on it.
_OF_A_CONNECTION = ("connection", "keep-alive", "transfer-encoding", "content-length")


@asynccontextmanager
async def served_below(path: str, port: int) -> AsyncIterator[int]:
    """
    Serves another port below a path, for the length of a block, on the port that it yields.

    The path is taken away and the Host header is that of where it goes; there is nothing elsewhere.
    """
    async with ClientSession(timeout=ClientTimeout(total=None), auto_decompress=False) as session:

        async def relayed(request: web.Request) -> web.StreamResponse:
            address = f"http://127.0.0.1:{port}/{request.raw_path.removeprefix(path)}"
            headers = {key: request.headers[key] for key in request.headers if key != "Host"}
            body = await request.read()
            async with session.request(
                request.method, address, headers=headers, data=body or None, allow_redirects=False
            ) as answer:
                response = web.StreamResponse(status=answer.status)
                for key, value in answer.headers.items():
                    if key.lower() not in _OF_A_CONNECTION:
                        response.headers.add(key, value)
                await response.prepare(request)
                with suppress(ConnectionError):
                    async for chunk in answer.content.iter_any():
                        await response.write(chunk)
                return response

        application = web.Application()
        application.router.add_route("*", f"{path}{{rest:.*}}", relayed)
        runner = web.AppRunner(application, shutdown_timeout=0)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            yield runner.addresses[0][1]
        finally:
            await runner.cleanup()
