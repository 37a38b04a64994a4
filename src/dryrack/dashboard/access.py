"""
Authentication of dashboard requests, and the security headers of responses.

The token is part of the printed URL, as in Jupyter. A browser that sends it gets a cookie; programs
send it as a bearer token. The Host header must be a loopback address or an allowed name, so that a
foreign page whose name resolves to this address (DNS rebinding) cannot read anything. Browsers
load, run and frame nothing of another origin. Only /healthz is open, for the probes of a kubelet.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aiohttp.typedefs import Middleware

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

HEALTH_PATH = "/healthz"
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "form-action 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_NO_TOKEN = (
    "dryrack: the dashboard needs a token; open the URL that dryrack printed, with ?token=..."
)


@dataclass(frozen=True, slots=True)
class Access:
    """The token that a request needs, and the host names that it may use."""

    token: str
    hosts: tuple[str, ...] = ()

    @property
    def cookie(self) -> str:
        """All ports of a host share cookies, so each token has its own cookie."""
        return f"dryrack-{hashlib.sha256(self.token.encode()).hexdigest()[:12]}"

    def is_host(self, header: str) -> bool:
        name = header if header.endswith("]") else header.rpartition(":")[0] or header
        return name.lower() in (*LOOPBACK_NAMES, *self.hosts)

    def is_known(self, request: web.Request) -> bool:
        """Return whether the request has the token in the URL, a header or the cookie."""
        scheme, _, bearer = request.headers.get("Authorization", "").partition(" ")
        given = (
            request.query.get("token", ""),
            request.cookies.get(self.cookie, ""),
            bearer.strip() if scheme.lower() in ("bearer", "token") else "",
        )
        # Header bytes that are not UTF-8 arrive as halves of surrogate pairs.
        sent = (each.encode(errors="surrogatepass") for each in given)
        return any(hmac.compare_digest(each, self.token.encode()) for each in sent)

    def middleware(self) -> Middleware:
        """Reject requests without the token or with an unknown host name."""

        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            if request.path == HEALTH_PATH:
                # A kubelet sends the address of the Pod as Host, and no token.
                return web.Response(text="ok")
            if not self.is_host(request.host):
                return web.Response(status=403, text=_wrong_host(request.host))
            if not self.is_known(request):
                return web.Response(status=401, text=_NO_TOKEN)
            return await handler(request)

        return guard

    async def sign(self, request: web.Request, response: web.StreamResponse) -> None:
        """Add the security headers and the cookie to a response."""
        response.headers.update(HEADERS)
        if "token" in request.query and self.is_host(request.host) and self.is_known(request):
            # Without a path it is for where the browser thinks it is, also below a base path.
            cookie = f"{self.cookie}={self.token}; HttpOnly; SameSite=Strict"
            response.headers.add("Set-Cookie", cookie)


def _wrong_host(name: str) -> str:
    return (
        f"dryrack: {name!r} is not a host name of this server; use 127.0.0.1 or localhost, or "
        "start dryrack dashboard with --allow-host NAME"
    )
