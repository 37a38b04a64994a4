"""Watches over WebSocket, on the embedded plane and on a real kube-apiserver, byte by byte."""

from __future__ import annotations

import asyncio
import base64
import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
import yaml
from tests.apiserver.websocket_client import HANDSHAKE, masked_frame, read_frame
from tests.clients.served import ServedPlane

from dryrack.apiserver.http.websocket import Opcode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.realcluster.controlplane import ControlPlane

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

WATCH = "/api/v1/namespaces?watch=true&fieldSelector=metadata.name%3Ddefault"
HANDSHAKES: dict[str, dict[str, str | None]] = {
    "plain": {},
    "no key": {"Sec-WebSocket-Key": None},
    "old version": {"Sec-WebSocket-Version": "8"},
    "no origin": {"Origin": None},
    "null origin": {"Origin": "null"},
    "path as origin": {"Origin": "/"},
    "words as origin": {"Origin": "some where"},
    "one protocol": {"Sec-WebSocket-Protocol": "binary.k8s.io"},
    "any protocol": {"Sec-WebSocket-Protocol": "whatever"},
    "two protocols": {"Sec-WebSocket-Protocol": "binary.k8s.io, base64.binary.k8s.io"},
}


class Server:
    """An API server by its kubeconfig."""

    def __init__(self, kubeconfig: Path, scratch: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        address = urlsplit(config["clusters"][0]["cluster"]["server"])
        self.host = address.hostname
        self.port = address.port
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.tls.check_hostname = False
        self.tls.verify_mode = ssl.CERT_NONE
        self.tls.set_alpn_protocols(["http/1.1"])
        user = config["users"][0]["user"]
        for part in ("certificate", "key"):
            content = user.get(f"client-{part}-data")
            path = scratch / part
            if content:
                path.write_bytes(base64.b64decode(content))
            user.setdefault(f"client-{part}", str(path))
        self.tls.load_cert_chain(user["client-certificate"], user["client-key"])

    @asynccontextmanager
    async def asked(
        self, path: str = WATCH, changes: dict[str, str | None] | None = None
    ) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter, list[str]]]:
        """Send a handshake; yield both ends and the head of the answer."""
        headers: dict[str, str | None] = {**HANDSHAKE, **(changes or {})}
        lines = [f"{name}: {value}" for name, value in headers.items() if value is not None]
        reader, writer = await asyncio.open_connection(self.host, self.port, ssl=self.tls)
        try:
            writer.write("\r\n".join([f"GET {path} HTTP/1.1", *lines, "", ""]).encode())
            head = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
            yield reader, writer, head
        finally:
            writer.transport.abort()

    async def handshake(self, changes: dict[str, str | None]) -> tuple[str, list[str]]:
        """The status, and the headers that concern the WebSocket."""
        async with self.asked(changes=changes) as (_, _, head):
            kept = [line.lower() for line in head[1:] if "websocket" in line.lower()]
            return head[0].split()[1], sorted(line for line in kept if "upgrade" not in line)

    async def answers(self) -> dict[str, Any]:
        """Return what the server sends after a watch's events when the client sends a frame."""
        found: dict[str, Any] = {}
        async with self.asked() as (reader, writer, _):
            opcode, payload = await read_frame(reader)
            found["event"] = (opcode, payload[:16], payload[-1:])
            writer.write(masked_frame(Opcode.TEXT, b"ignored", is_final=False))
            writer.write(masked_frame(Opcode.PING, b"here?"))
            writer.write(masked_frame(Opcode.CONTINUATION, b" too"))
            found["ping"] = await read_frame(reader)
            writer.write(masked_frame(Opcode.CLOSE, (1000).to_bytes(2)))
            found["close"] = await read_frame(reader)
        async with self.asked() as (reader, writer, _):
            await read_frame(reader)
            writer.write(b"\x81\x05hello")
            opcode, payload = await read_frame(reader)
            found["unmasked"] = (opcode, payload[:2])
        async with self.asked(f"{WATCH}&timeoutSeconds=1") as (reader, _, _):
            await read_frame(reader)
            found["end"] = await read_frame(reader)
        async with self.asked("/api/v1/namespaces/default") as (_, _, head):
            found["no watch"] = head[0].split()[1]
        async with self.asked("/api/v1/nothing?watch=true") as (_, _, head):
            found["no kind"] = head[0].split()[1]
        return found


async def everything(server: Server) -> tuple[dict[str, tuple[str, list[str]]], dict[str, Any]]:
    shakes = {name: await server.handshake(changes) for name, changes in HANDSHAKES.items()}
    return shakes, await server.answers()


def test_websockets_are_those_of_kube_apiserver(real_plane: ControlPlane, tmp_path: Path) -> None:
    """Handshakes, events, pings, closes and breaches get the same answers."""
    real = asyncio.run(everything(Server(real_plane.kubeconfig, tmp_path)))
    with ServedPlane(tmp_path, name="websockets") as plane:
        ours = asyncio.run(everything(Server(plane.kubeconfig, tmp_path)))
    assert ours == real
