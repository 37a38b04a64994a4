"""Requests without the token, by another host name or from another page are refused."""

from __future__ import annotations

import asyncio

import pytest
from tests.dashboard.visit import BEARER, TOKEN, Visit, visit

from dryrack.dashboard.access import Access


@pytest.mark.parametrize("path", ["/", "/static/icon.svg", "/api/v1/fleet", "/api/v1/stream", "/x"])
def test_without_the_token_there_is_nothing(path: str) -> None:
    """Neither the page nor its data, nor whether there is such a path."""

    async def story(page: Visit) -> None:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Cookie": "dryrack-0=x"}):
            async with page.http.get(path, headers=headers) as response:
                assert response.status == 401
                assert "open the URL that dryrack printed" in await response.text()
        assert page.road.asked == []

    visit(story)


def test_probes_need_no_token() -> None:
    """A kubelet asks for /healthz by the address of the Pod; the answer contains nothing else."""

    async def story(page: Visit) -> None:
        async with page.http.get("/healthz", headers={"Host": "10.0.0.7:8080"}) as response:
            assert (response.status, await response.text()) == (200, "ok")
        async with page.http.get("/healthz/x", headers={"Host": "10.0.0.7:8080"}) as response:
            assert response.status == 403
        assert page.road.asked == []

    visit(story)


@pytest.mark.parametrize("bearer", [b"\xff", b"\xed\xa0\x80", "é".encode()])
def test_a_token_that_is_no_text_is_a_wrong_token(bearer: bytes) -> None:
    """Bytes that are no UTF-8 are refused like others, not an error of the server."""

    async def story(page: Visit) -> None:
        async with page.http.get("/") as response:
            server = response.url
        # A client library refuses to send such a header.
        reader, writer = await asyncio.open_connection(server.host, server.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n")
        writer.write(b"Authorization: Bearer %b\r\n\r\n" % bearer)
        assert (await reader.read()).startswith(b"HTTP/1.1 401")
        writer.close()

    visit(story)


def test_the_token_is_in_the_address_once_and_in_a_cookie_from_then_on() -> None:
    """The cookie is out of reach of scripts and of other pages."""

    async def story(page: Visit) -> None:
        async with page.http.get(f"/?token={TOKEN}") as response:
            assert response.status == 200
            cookie = response.headers["Set-Cookie"]
        assert cookie.endswith("; HttpOnly; SameSite=Strict")
        async with page.http.get("/api/v1/claims") as response:
            assert response.status == 200
            assert "Set-Cookie" not in response.headers

    visit(story)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8080", 200),
        ("localhost", 200),
        ("LOCALHOST:1", 200),
        ("[::1]:8080", 200),
        ("evil.example", 403),
        ("evil.example:8080", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost.evil.example:80", 403),
    ],
)
def test_other_names_for_this_machine_are_refused(host: str, status: int) -> None:
    """A foreign name that resolves to this address is refused, even with the token."""

    async def story(page: Visit) -> None:
        async with page.http.get("/", headers=BEARER | {"Host": host}) as response:
            assert response.status == status
        async with page.http.get(f"/?token={TOKEN}", headers={"Host": host}) as response:
            assert ("Set-Cookie" in response.headers) == (status == 200)

    visit(story, empty=True)


def test_a_name_that_was_allowed_is_ours() -> None:
    """For a proxy on this machine."""
    access = Access(TOKEN, ("cluster.example",))

    assert access.is_host("cluster.example:443")
    assert not access.is_host("other.example")


@pytest.mark.parametrize("path", ["/", "/static/icon.svg", "/api/v1/claims", "/nothing"])
def test_every_answer_says_what_a_browser_may_do(path: str) -> None:
    """Browsers run and frame nothing of another origin, and send no referrer."""

    async def story(page: Visit) -> None:
        async with page.http.get(path, headers=BEARER) as response:
            assert response.headers["Content-Security-Policy"].startswith(
                "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
            )
            assert "unsafe" not in response.headers["Content-Security-Policy"]
            assert response.headers["X-Content-Type-Options"] == "nosniff"
            assert response.headers["Referrer-Policy"] == "no-referrer"

    visit(story, empty=True)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_nothing_can_be_written(method: str) -> None:
    """There is nothing but reading."""

    async def story(page: Visit) -> None:
        for path in ("/", "/api/v1/fleet", "/api/v1/claims"):
            async with page.http.request(method, path, headers=BEARER) as response:
                assert response.status == 405

    visit(story, empty=True)
