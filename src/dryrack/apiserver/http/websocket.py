"""
WebSocket (RFC 6455), the server's half: the handshake, the frames and the control messages.

`accept` answers a handshake, `MessageReader` turns the bytes of a client into messages, and
`ServerSocket` answers pings and closes. Nothing here does I/O: the caller passes bytes in and a
function that writes. The module says nothing about what the messages mean.
"""

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple
from urllib.parse import urlsplit

PROTOCOL_HEADER = "sec-websocket-protocol"
_VERSION = "13"
# RFC 6455, section 1.3: proves that the server has read the key as one of a WebSocket.
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CONTROL_BYTES_MAX = 125
_FINAL = 0x80
_RESERVED = 0x70
_OPCODE = 0x0F
_MASKED = 0x80
_LENGTH = 0x7F
_MASK_BYTES = 4
_APPLICATION_CODES = range(3000, 5000)


class Opcode(IntEnum):
    """The types of frames."""

    CONTINUATION = 0
    TEXT = 1
    BINARY = 2
    CLOSE = 8
    PING = 9
    PONG = 10

    @property
    def is_control(self) -> bool:
        return self >= Opcode.CLOSE


class CloseCode(IntEnum):
    """The reasons for the end of a connection that this module sends or accepts by name."""

    NORMAL = 1000
    GOING_AWAY = 1001
    PROTOCOL_ERROR = 1002
    UNSUPPORTED_DATA = 1003
    INVALID_PAYLOAD = 1007
    POLICY_VIOLATION = 1008
    TOO_LARGE = 1009
    EXTENSION_MISSING = 1010
    INTERNAL_ERROR = 1011


class Message(NamedTuple):
    """A whole message; its fragments are joined, and its mask is removed."""

    opcode: Opcode
    payload: bytes


class HandshakeError(Exception):
    """A request that asks for a WebSocket and cannot get one."""

    def __init__(self, status: int, text: str, headers: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(text)
        self.status = status
        self.headers = headers


class WebSocketError(Exception):
    """The client broke the protocol or a limit; the connection ends with this code."""

    def __init__(self, code: CloseCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def is_requested(headers: Mapping[str, str]) -> bool:
    """Return whether a request asks for a WebSocket; `headers` ignore case or are lower case."""
    if headers.get("upgrade", "").lower() != "websocket":
        return False
    tokens = headers.get("connection", "").lower().split(",")
    return any(token.strip() == "upgrade" for token in tokens)


def protocols_of(headers: Mapping[str, str]) -> list[str]:
    """Return the subprotocols that a client offers."""
    offered = headers.get(PROTOCOL_HEADER, "").strip()
    return [each.strip() for each in offered.split(",")] if offered else []


def accept(headers: Mapping[str, str]) -> bytes:
    """
    Return the answer that opens a WebSocket, or raise a `HandshakeError`.

    The checks are those of kube-apiserver: a watch needs an Origin, and takes any subprotocol but
    only one.
    """
    key = headers.get("sec-websocket-key", "")
    if not key:
        raise HandshakeError(400, "the header Sec-WebSocket-Key is missing")
    if headers.get("sec-websocket-version") != _VERSION:
        version = (("sec-websocket-version", _VERSION),)
        raise HandshakeError(400, f"the version of WebSocket must be {_VERSION}", version)
    if not _is_origin(headers.get("origin", "")):
        raise HandshakeError(403, "the header Origin is missing or not a URL")
    protocols = protocols_of(headers)
    if len(protocols) > 1:
        raise HandshakeError(400, "more than one subprotocol is offered")
    lines = [
        "HTTP/1.1 101 Switching Protocols",
        "upgrade: websocket",
        "connection: Upgrade",
        f"sec-websocket-accept: {accept_key(key)}",
        *(f"{PROTOCOL_HEADER}: {each}" for each in protocols),
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def accept_key(key: str) -> str:
    """Return the answer to the key of a client, which proves that the server read it."""
    # The protocol demands SHA-1; nothing depends on its strength.
    digest = hashlib.sha1(key.encode("latin-1") + _GUID, usedforsecurity=False).digest()
    return base64.b64encode(digest).decode()


def _is_origin(text: str) -> bool:
    try:
        return text.startswith("/") or bool(urlsplit(text).scheme)
    except ValueError:
        return False


def frame(opcode: Opcode, payload: bytes) -> bytes:
    """Return a whole message as one frame; a server does not mask its frames."""
    size = len(payload)
    if size <= _CONTROL_BYTES_MAX:
        return bytes((_FINAL | opcode, size)) + payload
    if size < 1 << 16:
        return bytes((_FINAL | opcode, 126)) + size.to_bytes(2) + payload
    return bytes((_FINAL | opcode, 127)) + size.to_bytes(8) + payload


class _Frame(NamedTuple):
    is_final: bool
    opcode: Opcode
    payload: bytes


class MessageReader:
    """Reads the messages of a client from bytes that arrive in any pieces."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._buffer = bytearray()
        self._fragments = bytearray()
        self._fragmented: Opcode | None = None

    def read(self, data: bytes) -> Iterator[Message]:
        """Yield the messages that `data` completes; raise a `WebSocketError` for invalid data."""
        self._buffer += data
        while (found := self._take_frame()) is not None:
            if found.opcode.is_control:
                yield Message(found.opcode, found.payload)
            else:
                yield from self._join(found)

    def _join(self, part: _Frame) -> Iterator[Message]:
        is_first = part.opcode is not Opcode.CONTINUATION
        if is_first == (self._fragmented is not None):
            raise WebSocketError(CloseCode.PROTOCOL_ERROR, "unexpected order of fragments")
        opcode = part.opcode if is_first else self._fragmented
        assert opcode is not None, "a continuation without a beginning is refused above"
        self._fragments += part.payload
        if not part.is_final:
            self._fragmented = opcode
            return
        payload = bytes(self._fragments)
        self._fragments.clear()
        self._fragmented = None
        if opcode is Opcode.TEXT:
            try:
                payload.decode()
            except UnicodeDecodeError:
                raise WebSocketError(CloseCode.INVALID_PAYLOAD, "the text is not UTF-8") from None
        yield Message(opcode, payload)

    def _take_frame(self) -> _Frame | None:
        """Return the next frame if all of it has arrived."""
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        opcode = _opcode(buffer[0])
        is_final = bool(buffer[0] & _FINAL)
        if not buffer[1] & _MASKED:
            raise WebSocketError(CloseCode.PROTOCOL_ERROR, "the frame is not masked")
        short = buffer[1] & _LENGTH
        if opcode.is_control and (short > _CONTROL_BYTES_MAX or not is_final):
            raise WebSocketError(CloseCode.PROTOCOL_ERROR, "the control frame is too long or split")
        start = 2 + {126: 2, 127: 8}.get(short, 0)
        if len(buffer) < start:
            return None
        size = int.from_bytes(buffer[2:start]) if start > 2 else short
        # Checked before the payload arrives, so that nothing larger is ever kept.
        if not opcode.is_control and size + len(self._fragments) > self._bytes_max:
            raise WebSocketError(
                CloseCode.TOO_LARGE, f"the message is larger than {self._bytes_max} bytes"
            )
        end = start + _MASK_BYTES + size
        if len(buffer) < end:
            return None
        mask = bytes(buffer[start : start + _MASK_BYTES])
        payload = _unmask(bytes(buffer[start + _MASK_BYTES : end]), mask)
        del buffer[:end]
        return _Frame(is_final, opcode, payload)


def _opcode(first: int) -> Opcode:
    if first & _RESERVED:
        raise WebSocketError(CloseCode.PROTOCOL_ERROR, "no extension is in use")
    try:
        return Opcode(first & _OPCODE)
    except ValueError:
        raise WebSocketError(CloseCode.PROTOCOL_ERROR, "the opcode is unknown") from None


def _unmask(payload: bytes, mask: bytes) -> bytes:
    # One operation on large integers takes a hundredth of the time of a loop over the bytes.
    size = len(payload)
    repeated = (mask * (size // _MASK_BYTES + 1))[:size]
    return (int.from_bytes(payload) ^ int.from_bytes(repeated)).to_bytes(size)


class ServerSocket:
    """
    An open WebSocket: frames messages, answers pings, and closes as the protocol demands.

    `write` sends bytes to the client; `ended` is called once, when the client has closed the
    WebSocket or broken the protocol. Bytes that arrive after that are ignored.
    """

    def __init__(
        self, write: Callable[[bytes], object], ended: Callable[[], object], *, bytes_max: int
    ) -> None:
        self._write = write
        self._ended = ended
        self._reader = MessageReader(bytes_max)
        self._has_closed = False
        self._has_ended = False
        self.is_broken = False
        """Whether the client broke the protocol, and may still be sending."""

    def receive(self, data: bytes) -> list[Message]:
        """Return the text and binary messages that `data` completes."""
        messages: list[Message] = []
        if self._has_ended:
            return messages
        try:
            for message in self._reader.read(data):
                match message.opcode:
                    case Opcode.PING:
                        if not self._has_closed:
                            self._write(frame(Opcode.PONG, message.payload))
                    case Opcode.PONG:
                        continue
                    case Opcode.CLOSE:
                        self._end(*_answer_to_close(message.payload))
                        break
                    case _:
                        messages.append(message)
        except WebSocketError as error:
            self.is_broken = True
            self._end(error.code, str(error))
        return messages

    def frames(self, opcode: Opcode, payloads: Iterable[bytes]) -> bytes:
        """Return each payload as a message of its own; nothing follows the end."""
        return b"" if self._has_closed else b"".join([frame(opcode, each) for each in payloads])

    def close(self, code: int = CloseCode.NORMAL, reason: str = "") -> None:
        """Send the end to the client; only the first call counts."""
        if not self._has_closed:
            self._has_closed = True
            self._write(frame(Opcode.CLOSE, code.to_bytes(2) + reason.encode()))

    def _end(self, code: int, reason: str) -> None:
        self.close(code, reason)
        self._has_ended = True
        self._ended()


def _answer_to_close(payload: bytes) -> tuple[int, str]:
    """Return the code and the reason that answer a client's close frame: its own, if valid."""
    if not payload:
        return CloseCode.NORMAL, ""
    code = int.from_bytes(payload[:2])
    if len(payload) == 1 or not (code in _APPLICATION_CODES or code in set(CloseCode)):
        return CloseCode.PROTOCOL_ERROR, "the code of the close frame is invalid"
    return code, ""
