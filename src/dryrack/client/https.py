"""
A transport over HTTPS.

It has one pool of connections per cluster. A watch returns a stream, every other request the whole
body, with a limit for its decompressed size. After a 401, new credentials are tried once, if there
are any. Redirects are not followed, so that another server does not get the request.
"""

import asyncio
import os
import ssl
import tempfile
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from yarl import URL

from dryrack.base.limits import API_ANSWER_BYTES_MAX
from dryrack.client.credentials import KeyPair
from dryrack.client.errors import TransportError
from dryrack.client.kubeconfig import Connection
from dryrack.client.pool import Pool
from dryrack.client.transport import Request, Response

CONNECT_SECONDS = 10.0
# A little more than the longest time that the server takes for a request.
ANSWER_SECONDS = 70.0
_REDIRECTS = range(300, 400)
_GZIP = "gzip"
# Lets zlib expect the header of gzip.
_GZIP_WINDOW = zlib.MAX_WBITS | 16


class _Chunks:
    """A streamed body; raises errors of the connection as TransportError."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self._chunks = response.content.iter_any()

    def __aiter__(self) -> "_Chunks":
        return self

    async def __anext__(self) -> bytes:
        try:
            return await self._chunks.__anext__()
        except (aiohttp.ClientError, OSError, asyncio.IncompleteReadError) as error:
            raise TransportError(f"watch broken off: {error}") from error

    async def aclose(self) -> None:
        # A clean end of TLS waits for the server, and keeps the socket open.
        connection = self._response.connection
        transport = connection.transport if connection is not None else None
        self._response.close()
        if transport is not None:
            transport.abort()


class HttpsTransport:
    """A transport to one cluster; see `connected`."""

    def __init__(
        self, connection: Connection, *, answer_bytes_max: int = API_ANSWER_BYTES_MAX
    ) -> None:
        self._connection = connection
        self._answer_bytes_max = answer_bytes_max
        self._session: aiohttp.ClientSession | None = None
        self._pair: KeyPair | None = None
        self._retiring: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def send(self, request: Request) -> Response:
        response = await self._attempt(request)
        if response.status == 401 and self._connection.credentials.renew():
            return await self._attempt(request)
        return response

    async def _attempt(self, request: Request) -> Response:
        query = f"?{request.query}" if request.query else ""
        url = URL(f"{self._connection.server}{request.path}{query}", encoded=True)
        goes_on = "watch=true" in request.query or "follow=true" in request.query
        headers = {
            **request.headers,
            **await self._connection.credentials.headers(),
            "accept-encoding": "identity" if goes_on else _GZIP,
        }
        session = await self._current_session()
        timeout = aiohttp.ClientTimeout(
            total=None if goes_on else ANSWER_SECONDS, sock_connect=CONNECT_SECONDS
        )
        where = f"{request.method} {self._connection.server}{request.path}"
        try:
            response = await session.request(
                request.method,
                url,
                headers=headers,
                data=request.body or None,
                timeout=timeout,
                server_hostname=self._connection.server_name or None,
                allow_redirects=False,
            )
            if response.status in _REDIRECTS:
                response.close()
                to = response.headers.get("location", "nowhere")
                raise TransportError(f"{where}: redirected to {to}, which is not followed")
            streams = goes_on and response.status == 200
            body = (
                _Chunks(response)
                if streams
                else await _read_body(response, where, self._answer_bytes_max)
            )
            answered = tuple((key.lower(), value) for key, value in response.headers.items())
            return Response(response.status, answered, body)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise TransportError(f"{where}: {_describe(error)}") from error

    async def _current_session(self) -> aiohttp.ClientSession:
        """Return a session with the current certificate; a credential command may change it."""
        pair = await self._connection.credentials.key_pair()
        if self._is_closed:
            raise TransportError(f"{self._connection.server}: the connection is closed")
        if self._session is not None and pair == self._pair:
            return self._session
        self._retire()
        pool = Pool(tls_context(self._connection, pair))
        self._session = aiohttp.ClientSession(connector=pool, auto_decompress=False)
        self._pair = pair
        return self._session

    def _retire(self) -> None:
        """Close the session in the background, so that a new one can be used at once."""
        if self._session is not None:
            closing = asyncio.create_task(self._session.close())
            self._retiring.add(closing)
            closing.add_done_callback(self._retiring.discard)
            self._session = None

    async def aclose(self) -> None:
        """Close all sockets, and wait until they are closed."""
        self._is_closed = True
        self._retire()
        await asyncio.gather(*self._retiring)


async def _read_body(response: aiohttp.ClientResponse, where: str, bytes_max: int) -> bytes:
    """Return the whole body, decompressed; raise if it exceeds the limit or is damaged."""
    encoding = response.headers.get("content-encoding", "identity").lower()
    if encoding not in ("identity", _GZIP):
        response.close()
        raise TransportError(f"{where}: the answer has the encoding {encoding}; expected gzip")
    inflater = zlib.decompressobj(_GZIP_WINDOW) if encoding == _GZIP else None
    parts: list[bytes] = []
    size = 0
    try:
        async for chunk in response.content.iter_any():
            part = inflater.decompress(chunk, bytes_max + 1 - size) if inflater else chunk
            size += len(part)
            if size > bytes_max:
                raise TransportError(f"{where}: the answer is larger than {bytes_max} bytes")
            parts.append(part)
        if inflater and parts and not inflater.eof:
            raise TransportError(f"{where}: the compressed answer is cut off")
    except zlib.error as error:
        raise TransportError(f"{where}: the compressed answer is damaged: {error}") from None
    finally:
        if not response.content.at_eof():
            # A connection with an unread rest cannot be used again.
            response.close()
    return b"".join(parts)


def _describe(error: Exception) -> str:
    """Return the message of an error, without names of classes and files."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, aiohttp.ClientSSLError) or not isinstance(error, aiohttp.ClientOSError):
        return str(error) or type(error).__name__
    # Errors of name resolution have numbers of their own, below zero.
    number = error.errno or 0
    return (os.strerror(number) if number > 0 else error.strerror or str(error)).lower()


@asynccontextmanager
async def connected(
    connection: Connection, *, answer_bytes_max: int = API_ANSWER_BYTES_MAX
) -> AsyncIterator[HttpsTransport]:
    """Yield a transport for the length of a block."""
    transport = HttpsTransport(connection, answer_bytes_max=answer_bytes_max)
    try:
        yield transport
    finally:
        await transport.aclose()


def tls_context(connection: Connection, pair: KeyPair | None) -> ssl.SSLContext:
    """
    Return the TLS settings of a connection.

    As in Go, each certificate of the authority is trusted by itself, also a serving certificate
    that is no authority. Fields that RFC 5280 requires may be missing, because programs leave them
    out of their own certificates; Python 3.13 requires them by default.
    """
    authority = connection.authority
    context = ssl.create_default_context(cadata=authority.decode() if authority else None)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not connection.is_verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if pair is not None:
        # OpenSSL reads keys only from files; this one is private, and is deleted at once.
        descriptor, path = tempfile.mkstemp()
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(pair.certificate + b"\n" + pair.key)
            context.load_cert_chain(path)
        finally:
            os.unlink(path)
    return context
