"""The client's side of a WebSocket: the handshake, and frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.http.websocket import Message, Opcode

if TYPE_CHECKING:
    import asyncio

ORIGIN = "https://localhost"
# The key and its answer are the example of RFC 6455.
KEY = "dGhlIHNhbXBsZSBub25jZQ=="
ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
HANDSHAKE = {
    "Host": "localhost",
    "Connection": "keep-alive, Upgrade",
    "Upgrade": "WebSocket",
    "Sec-WebSocket-Key": KEY,
    "Sec-WebSocket-Version": "13",
    "Origin": ORIGIN,
}
MASK = b"\x0b\xad\xf0\x0d"


def masked_frame(opcode: int, payload: bytes, *, is_final: bool = True) -> bytes:
    """Return a frame as a client sends it."""
    size = len(payload)
    length = (
        bytes((0x80 | size,))
        if size < 126
        else b"\xfe" + size.to_bytes(2)
        if size < 1 << 16
        else b"\xff" + size.to_bytes(8)
    )
    content = bytes(byte ^ MASK[index % 4] for index, byte in enumerate(payload))
    return bytes((0x80 * is_final | opcode,)) + length + MASK + content


async def read_frame(reader: asyncio.StreamReader) -> Message:
    """Return the next frame of the server."""
    first, second = await reader.readexactly(2)
    assert first & 0xF0 == 0x80, "final, without extensions"
    assert second < 0x80, "not masked"
    size = second
    if second >= 126:
        size = int.from_bytes(await reader.readexactly(2 if second == 126 else 8))
    return Message(Opcode(first & 0x0F), await reader.readexactly(size))
