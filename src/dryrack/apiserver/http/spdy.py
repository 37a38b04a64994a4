"""
SPDY/3.1, the server's half: what `kubectl exec` and client libraries use without WebSockets.

`SpdyReader` turns the bytes of a client into frames; the functions return the frames that a server
sends. Nothing here does I/O. Flow control is answered for what arrives, and clients of Kubernetes
do not limit what a server sends.
"""

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

# The dictionary of the draft "SPDY Protocol 3.1", section 2.6.10.1.
_WORDS = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language "
    "accept-ranges age allow authorization cache-control connection content-base content-encoding "
    "content-language content-length content-location content-md5 content-range content-type date "
    "etag expect expires from host if-match if-modified-since if-none-match if-range "
    "if-unmodified-since last-modified location max-forwards pragma proxy-authenticate "
    "proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status|200 OK|version HTTP/1.1 url "
    "public set-cookie keep-alive origin"
)
_REST = (
    "1001012012022052063003023033043053063074024054064074084094104114124134144154164175025045052"
    "03 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Una"
    "uthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Servic"
    "e UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, "
    "Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,applicati"
    "on/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8"
    "charset=iso-8859-1,utf-,*,enq=0."
)
_SYN_STREAM = 1
_SYN_REPLY = 2
_RST_STREAM = 3
_PING = 6
_GOAWAY = 7
_WINDOW_UPDATE = 9
_FINISHED = 0x01
_HEADER_BYTES = 8
_FRAME_BYTES_MAX = 1 << 20
_DATA_BYTES_MAX = 1 << 16


def _dictionary() -> bytes:
    first, ok, last = _WORDS.split("|")
    words = [*first.split(), ok, *last.split()]
    listed = b"".join(struct.pack(">I", len(each)) + each.encode() for each in words)
    return listed + _REST.encode()


DICTIONARY = _dictionary()


class SpdyError(Exception):
    """The client broke the protocol."""


@dataclass(frozen=True, slots=True)
class StreamOpened:
    """A new stream, with its headers."""

    stream: int
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StreamData:
    """Data of a stream."""

    stream: int
    data: bytes
    is_last: bool


@dataclass(frozen=True, slots=True)
class StreamReset:
    """The client ended a stream."""

    stream: int


@dataclass(frozen=True, slots=True)
class Pinged:
    """The client expects the same frame back."""

    number: int


@dataclass(frozen=True, slots=True)
class GoneAway:
    """The client opens no more streams."""


Frame = StreamOpened | StreamData | StreamReset | Pinged | GoneAway


class SpdyReader:
    """Reads the frames of a client from bytes that arrive in any pieces."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._headers = zlib.decompressobj(zdict=DICTIONARY)

    def read(self, data: bytes) -> Iterator[Frame]:
        """Yield the frames that `data` completes."""
        self._buffer += data
        while len(self._buffer) >= _HEADER_BYTES:
            first, second = struct.unpack_from(">II", self._buffer)
            size = second & 0xFFFFFF
            if size > _FRAME_BYTES_MAX:
                raise SpdyError("the frame is too large")
            end = _HEADER_BYTES + size
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[_HEADER_BYTES:end])
            del self._buffer[:end]
            if first >> 31:
                yield from self._control(first & 0xFFFF, body)
            else:
                yield StreamData(first, body, bool(second >> 24 & _FINISHED))

    def _control(self, kind: int, body: bytes) -> Iterator[Frame]:
        try:
            match kind:
                case 1:
                    (stream,) = struct.unpack_from(">I", body)
                    yield StreamOpened(stream & 0x7FFFFFFF, self._decode_headers(body[10:]))
                case 3:
                    (stream,) = struct.unpack_from(">I", body)
                    yield StreamReset(stream)
                case 6:
                    (number,) = struct.unpack_from(">I", body)
                    yield Pinged(number)
                case 7:
                    yield GoneAway()
        except (struct.error, zlib.error, UnicodeDecodeError) as error:
            raise SpdyError(str(error)) from None

    def _decode_headers(self, block: bytes) -> Mapping[str, str]:
        plain = self._headers.decompress(block)
        (count,) = struct.unpack_from(">I", plain)
        at = 4
        texts: list[str] = []
        for _ in range(2 * count):
            (size,) = struct.unpack_from(">I", plain, at)
            texts.append(plain[at + 4 : at + 4 + size].decode("latin-1"))
            at += 4 + size
        return dict(zip(texts[::2], texts[1::2], strict=True))


class SpdyWriter:
    """Returns the frames of a server. Header blocks share one compression context."""

    def __init__(self) -> None:
        self._headers = zlib.compressobj(zdict=DICTIONARY)

    def reply(self, stream: int) -> bytes:
        """Accept a stream."""
        block = self._headers.compress(struct.pack(">I", 0))
        block += self._headers.flush(zlib.Z_SYNC_FLUSH)
        return _control_frame(_SYN_REPLY, struct.pack(">I", stream) + block)

    def data(self, stream: int, data: bytes, *, is_last: bool = False) -> bytes:
        parts = [data[at : at + _DATA_BYTES_MAX] for at in range(0, len(data), _DATA_BYTES_MAX)]
        frames = [struct.pack(">II", stream, len(each)) + each for each in parts]
        if is_last:
            frames.append(struct.pack(">II", stream, _FINISHED << 24))
        return b"".join(frames)

    def ping(self, number: int) -> bytes:
        return _control_frame(_PING, struct.pack(">I", number))

    def grant(self, stream: int, size: int) -> bytes:
        """Let the client send as many bytes again as it has sent, on the stream and in total."""
        return b"".join(
            _control_frame(_WINDOW_UPDATE, struct.pack(">II", each, size)) for each in (stream, 0)
        )

    def go_away(self) -> bytes:
        return _control_frame(_GOAWAY, struct.pack(">II", 0, 0))


def _control_frame(kind: int, body: bytes) -> bytes:
    return struct.pack(">HHI", 0x8003, kind, len(body)) + body
