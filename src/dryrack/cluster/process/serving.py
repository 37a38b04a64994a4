"""
Serve a control plane on a socket with TLS.

Loopback is the default. Users who choose another address get a warning of its consequences.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.base.errors import DryrackError
from dryrack.cluster.bootstrap import Bootstrap

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from dryrack.client.transport import Transport
    from dryrack.cluster.certificates import Keys
    from dryrack.cluster.control_plane import ControlPlane

LOOPBACK = "127.0.0.1"


class AddressError(DryrackError):
    """The address cannot be served."""


@dataclass(frozen=True, slots=True)
class Address:
    """The address to listen on; port 0 is any free port."""

    host: str = LOOPBACK
    port: int = 0

    @property
    def is_loopback(self) -> bool:
        return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback


def listen(
    address: Address, remedy: str = "choose another port, or 0 for a free one"
) -> socket.socket:
    """Bind a socket, so that the port is known, without accepting connections yet."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((address.host, address.port))
    except OSError as error:
        listening.close()
        where = f"{address.host}:{address.port}"
        why = (error.strerror or str(error)).lower()
        raise AddressError(f"{where}: {why}; {remedy}") from None
    return listening


def address_of(listening: socket.socket) -> tuple[str, int]:
    """Return the host and port for clients of this machine."""
    host, port = listening.getsockname()[:2]
    return LOOPBACK if ipaddress.ip_address(host).is_unspecified else host, port


def url_of(listening: socket.socket) -> str:
    host, port = address_of(listening)
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


@asynccontextmanager
async def served(
    plane: ControlPlane, listening: socket.socket, keys: Keys, *, door: Transport | None = None
) -> AsyncIterator[str]:
    """
    Serve for the length of a block; yield the URL for clients.

    `door` handles the requests, if it is not the transport of the control plane.
    """
    from dryrack.apiserver import Authentication, Flow, HttpServer

    authentication = Authentication(plane.tokens, plane.authorization.allows)
    http = HttpServer(door or plane.transport, authentication, Flow())
    await http.start(listening, tls_context(keys))
    bootstrap = Bootstrap(plane.store, plane.options.clock, plane.options.chance)
    bootstrap.own_endpoints(*address_of(listening))
    try:
        yield url_of(listening)
    finally:
        await http.stop()


def tls_context(keys: Keys) -> ssl.SSLContext:
    """Return a TLS context with the server's certificate that verifies client certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(keys.server.certificate, keys.server.key)
    context.load_verify_locations(keys.authority.certificate)
    # A token will do instead, so a certificate is not required; one that is shown must be true.
    context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["http/1.1"])
    return context
