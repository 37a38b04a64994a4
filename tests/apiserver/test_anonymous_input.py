"""
Input of clients that are not authenticated is refused, and never an error of the server.

The whole API server with its authentication, over loopback and without TLS. Numbers and JSON that
Python itself cannot convert are refused from known clients, too.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from typing import TYPE_CHECKING, Any

import pytest
from tests.apiserver.http_serving import exchange, get, post
from tests.apiserver.replay import CountingChance
from tests.apiserver.whole_plane import WholePlane

from dryrack.apiserver import Authentication, Flow, HttpServer
from dryrack.apiserver.decode.bodies import read_json
from dryrack.client.timekeeping import VirtualClock
from dryrack.client.transport import ADMIN, User
from dryrack.cluster.control_plane import ControlPlaneOptions, build_control_plane
from dryrack.cluster.process.serving import Address, listen
from dryrack.kinds.text.go_json import GoSyntaxError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from multidict import CIMultiDict

DIGITS = "1" * 5000
DEEP = b"[" * 100_000


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


async def _answered(content: bytes) -> int:
    plane = build_control_plane(ControlPlaneOptions(clock=VirtualClock(), chance=CountingChance()))
    authentication = Authentication(plane.tokens, plane.authorization.allows)
    server = HttpServer(plane.transport, authentication, Flow())
    listening = listen(Address())
    await server.start(listening, None)
    try:
        return (await exchange(listening.getsockname()[1], content))[0]
    finally:
        await server.stop()


def bearer(token: str) -> str:
    return f"Authorization: Bearer {token}"


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"GET http://[ HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET http://[x]/healthz HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET http://[::1]/healthz HTTP/1.1\r\nHost: x\r\n\r\n", 200),
        (b"GET http://x HTTP/1.1\r\nHost: x\r\n\r\n", 401),
        (get("/api", bearer(_encoded(b"[" * 40_000) + ".e30.AAAA")), 401),
        (get("/healthz", bearer(_encoded(b"[" * 40_000) + ".e30.AAAA")), 401),
        (get("/api", bearer(_encoded(b'{"alg":' + DIGITS.encode() + b"}") + ".e30.AAAA")), 401),
        (get("/api", bearer("[" * 40_000)), 401),
        (get("/api", "Authorization: Bearer ").replace(b"Bearer ", b"Bearer \xff\xfe"), 401),
        (get("/%ff%zz?%ff=%zz"), 401),
        (get("/healthz?exclude=%ff%00"), 200),
        (get("/healthz", "Impersonate-User: root", "Impersonate-Extra-%zz: x"), 200),
        (post("/healthz", b"k8s\0\xff", "Content-Type: application/vnd.kubernetes.protobuf"), 200),
    ],
    ids=[
        *("no host", "odd host", "whole URL", "no path"),
        *("deep token", "deep token on a health page", "long number in a token", "plain token"),
        *("token of no characters", "bad percent signs", "bad percent signs on a health page"),
        *("impersonation", "no protobuf"),
    ],
)
def test_a_stranger_causes_no_error_of_the_server(
    content: bytes, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The answer is a refusal or a health page, and the log stays empty."""
    with caplog.at_level(logging.WARNING):
        assert asyncio.run(_answered(content)) == status
    assert caplog.records == []


MAPS = "/api/v1/namespaces/default/configmaps"
_CONTINUE = _encoded(b'{"v":"meta.k8s.io/v1","rv":%b,"start":"a"}' % DIGITS.encode())


@pytest.mark.parametrize(
    "query",
    [
        f"limit={DIGITS}",
        f"timeoutSeconds={DIGITS}&watch=true",
        f"continue={_CONTINUE}",
        f"continue={_encoded(DEEP[:40_000])}",
    ],
    ids=["limit", "timeout", "continue", "deep continue"],
)
def test_a_query_with_thousands_of_digits_is_a_bad_request(query: str) -> None:
    """Python converts 4,300 digits at most; the refusal says that the number is too large."""
    assert WholePlane().ask("GET", f"{MAPS}?{query}").status == 400


BODIES: dict[str, bytes] = {
    "integer": b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","generation":%b}}',
    "unknown field": b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"x":%b}',
    "negative": b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"x":-%b}',
    "repeated": b'{"kind":"ConfigMap","apiVersion":"v1","x":1,"x":%b,"metadata":{"name":"a"}}',
    "fraction": b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"x":%b.5}',
    "exponent": b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"x":1e%b}',
}


@pytest.mark.parametrize("digits", [310, 4300, 5000])
@pytest.mark.parametrize("kind", BODIES)
def test_a_number_that_go_cannot_hold_is_no_json(kind: str, digits: int) -> None:
    """It is refused like other text that is no JSON, however many digits Python takes."""
    with pytest.raises(GoSyntaxError, match=r"cannot unmarshal number [0-9.e+-]+ into"):
        read_json(BODIES[kind] % (b"1" * digits))


@pytest.mark.parametrize(
    "text",
    [b"1" * 308, b'"' + b"1" * 5000 + b'"', b"0." + b"1" * 5000],
    ids=["integer", "text", "fraction"],
)
def test_a_number_that_go_holds_is_read(text: bytes) -> None:
    """So is text that has only digits."""
    assert read_json(text) == json.loads(text)


@pytest.mark.parametrize(
    "body",
    [*BODIES.values(), DEEP, b'{"a":' * 50_000],
    ids=[*BODIES, "deep array", "deep object"],
)
@pytest.mark.parametrize(
    ("method", "content_type"),
    [
        ("POST", "application/json"),
        ("PUT", "application/json"),
        ("DELETE", "application/json"),
        ("PATCH", "application/json-patch+json"),
        ("PATCH", "application/merge-patch+json"),
        ("PATCH", "application/strategic-merge-patch+json"),
    ],
)
def test_a_body_that_cannot_be_read_is_a_bad_request(
    method: str, content_type: str, body: bytes
) -> None:
    """For each verb that takes a body; nothing but a 400 comes back."""
    content = body % DIGITS.encode() if b"%b" in body else body
    assert _sent(method, content_type, content) == 400


@pytest.mark.parametrize(
    "body", [DEEP, b"{a: " * 20_000, b"- " * 20_000], ids=["array", "object", "list"]
)
@pytest.mark.parametrize(
    ("method", "content_type"),
    [("POST", "application/yaml"), ("PATCH", "application/apply-patch+yaml")],
)
def test_yaml_that_nests_too_deep_is_a_bad_request(
    method: str, content_type: str, body: bytes
) -> None:
    """For objects and for apply."""
    assert _sent(method, content_type, body) == 400


def _sent(method: str, content_type: str, body: bytes) -> int:
    async def scene() -> int:
        plane = WholePlane()
        await plane.asked("POST", MAPS, {"metadata": {"name": "a"}})
        server = HttpServer(plane.plane.transport, _Administrators(), Flow())
        listening = listen(Address())
        await server.start(listening, None)
        path = MAPS if method == "POST" else f"{MAPS}/a?fieldManager=test"
        try:
            sent = post(path, body, f"Content-Type: {content_type}")
            content = sent.replace(b"POST", method.encode(), 1)
            return (await exchange(listening.getsockname()[1], content))[0]
        finally:
            await server.stop()

    return asyncio.run(scene())


class _Administrators:
    def user_of(
        self, path: str, headers: CIMultiDict[str], certificate: Mapping[str, object]
    ) -> User:
        return ADMIN


def test_a_custom_object_with_thousands_of_digits_is_a_bad_request() -> None:
    """Fields that no schema describes are read as well."""
    definition: dict[str, Any] = {
        "metadata": {"name": "racks.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "racks", "singular": "rack", "kind": "Rack"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "x-kubernetes-preserve-unknown-fields": True,
                        }
                    },
                }
            ],
        },
    }

    async def scene() -> int:
        plane = WholePlane()
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        await plane.asked("POST", definitions, definition)
        server = HttpServer(plane.plane.transport, _Administrators(), Flow())
        listening = listen(Address())
        await server.start(listening, None)
        body = b'{"kind":"Rack","apiVersion":"example.com/v1","metadata":{"name":"a"},"x":%b}'
        path = "/apis/example.com/v1/namespaces/default/racks"
        try:
            sent = post(path, body % DIGITS.encode(), "Content-Type: application/json")
            return (await exchange(listening.getsockname()[1], sent))[0]
        finally:
            await server.stop()

    assert asyncio.run(scene()) == 400
