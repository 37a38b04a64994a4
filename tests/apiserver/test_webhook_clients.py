"""Webhook clients: addresses, trusted certificates, and limits of answers."""

from __future__ import annotations

import asyncio
import datetime
import gzip
import ipaddress
import ssl
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web
from aiohttp.test_utils import RawTestServer
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.apiserver.whole_plane import WholePlane

from dryrack.apiserver.webhooks.admission_reviews import (
    ReviewRequest,
    ReviewResponse,
    Unanswered,
    endpoint_of,
)
from dryrack.apiserver.webhooks.webhook_client import ask_webhook
from dryrack.base.limits import WEBHOOK_ANSWER_BYTES_MAX
from dryrack.cluster import certificates

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
    from pathlib import Path

    from dryrack.apiserver.webhooks.admission_reviews import WebhookAnswer
    from dryrack.kinds.raw import Raw


REGISTRATIONS = "/apis/admissionregistration.k8s.io/v1"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_FORM = "; desired format: https://host[/path]"
_BAD_PORT = 'parse "https://h:x/": invalid port ":x" after host'

# What kube-apiserver 1.36 says about the URL of a webhook.
COMPLAINTS = [
    ("http://h/x", f"Invalid value: \"http\": 'https' is the only allowed URL scheme{_FORM}"),
    (
        "file://h/x",
        f"Invalid value: \"file\": 'https' is the only allowed URL scheme{_FORM}",
    ),
    ("https:///x", f'Invalid value: "": host must be specified{_FORM}'),
    ("https://u:p@h/x", 'Invalid value: "u:p": user information is not permitted in the URL'),
    ("https://h/x#f", 'Invalid value: "f": fragments are not permitted in the URL'),
    ("https://h/x?a=b", 'Invalid value: "a=b": query parameters are not permitted in the URL'),
    (
        "https://h:x/",
        f"Required value: url must be a valid URL: {_BAD_PORT}{_FORM}",
    ),
]


def _configuration(kind: str, client: Raw, **more: Any) -> tuple[str, Raw]:
    webhook = {
        "name": "hook.example.com",
        "clientConfig": client,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **more,
    }
    body = {"metadata": {"name": "hooks"}, "webhooks": [webhook]}
    return f"{REGISTRATIONS}/{kind}webhookconfigurations", body


def _definition(client: Raw) -> tuple[str, Raw]:
    schema = {"openAPIV3Schema": {"type": "object"}}
    webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
    spec = {
        "group": "example.com",
        "names": {"plural": "things", "kind": "Thing"},
        "scope": "Namespaced",
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        "conversion": {"strategy": "Webhook", "webhook": webhook},
    }
    return DEFINITIONS, {"metadata": {"name": "things.example.com"}, "spec": spec}


def _causes(path: str, body: Raw) -> list[tuple[str, str]]:
    answer = asyncio.run(WholePlane().asked("POST", path, body))
    assert answer.status == 422, answer
    return [(each["field"], each["message"]) for each in answer.body["details"]["causes"]]


@pytest.mark.parametrize(("url", "complaint"), COMPLAINTS)
def test_the_url_of_a_webhook_is_https_and_nothing_else(url: str, complaint: str) -> None:
    """Configurations and definitions are refused in the words of kube-apiserver."""
    for kind in ("validating", "mutating"):
        found = _causes(*_configuration(kind, {"url": url}))
        assert found == [("webhooks[0].clientConfig.url", complaint)]
    found = _causes(*_definition({"url": url}))
    assert found == [("spec.conversion.webhookClientConfig.url", complaint)]


@pytest.mark.parametrize("client", [{}, {"url": "https://h", "service": {"name": "n"}}])
def test_a_webhook_is_at_a_url_or_a_service(client: Raw) -> None:
    """One of the two is there, never both."""
    complaint = "Required value: exactly one of url or service is required"
    found = _causes(*_configuration("validating", client))
    assert found == [("webhooks[0].clientConfig", complaint)]


def test_the_service_of_a_webhook_is_checked() -> None:
    """Its port and every segment of its path, in the words of kube-apiserver."""
    service = {"name": "n", "namespace": "s", "port": 70000, "path": "/a//B"}
    found = _causes(*_configuration("mutating", {"service": service}))
    at = "webhooks[0].clientConfig.service"
    assert found[:2] == [
        (
            f"{at}.port",
            "Invalid value: 70000: port is not valid: must be between 1 and 65535, inclusive",
        ),
        (f"{at}.path", 'Invalid value: "/a//B": segment[1] may not be empty'),
    ]
    assert found[2][1].startswith('Invalid value: "/a//B": segment[2]: a lowercase RFC 1123')


@pytest.mark.parametrize("seconds", [0, 31, 2**31 - 1])
def test_a_webhook_answers_within_thirty_seconds(seconds: int) -> None:
    """A write does not wait for longer than that."""
    path, body = _configuration("validating", {"url": "https://h"}, timeoutSeconds=seconds)
    assert _causes(path, body) == [
        (
            "webhooks[0].timeoutSeconds",
            f"Invalid value: {seconds}: the timeout value must be between 1 and 30 seconds",
        )
    ]


@dataclass(frozen=True)
class Identity:
    """A certificate and its key, as PEM, and what is trusted because of it."""

    certificate: bytes
    key: bytes

    def context(self, folder: Path) -> ssl.SSLContext:
        path = folder / "webhook.pem"
        path.write_bytes(self.certificate + self.key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context


def _self_signed() -> Identity:
    """A serving certificate as tests of controllers make it: of its own, and no authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "webhook")])
    now = datetime.datetime.now(datetime.UTC)
    addresses = [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(addresses), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    form = serialization.PrivateFormat.TraditionalOpenSSL
    secret = key.private_bytes(pem, form, serialization.NoEncryption())
    return Identity(certificate.public_bytes(pem), secret)


def _issued(folder: Path) -> Identity:
    """Return a serving certificate of an authority that is not trusted."""
    keys = certificates.ensure(folder, ["127.0.0.1"], time.time())
    return Identity(keys.server.certificate.read_bytes(), keys.server.key.read_bytes())


@asynccontextmanager
async def _program(
    handle: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
    identity: Identity,
    folder: Path,
) -> AsyncIterator[str]:
    server = RawTestServer(handle, scheme="https", host="127.0.0.1")
    await server.start_server(ssl=identity.context(folder))
    try:
        yield str(server.make_url("/review"))
    finally:
        await server.close()


def _ask(
    handle: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
    folder: Path,
    identity: Identity | None = None,
) -> WebhookAnswer:
    """Call a webhook that answers so and shows this certificate, which is also the caBundle."""
    shown = identity or _self_signed()

    async def play() -> WebhookAnswer:
        async with _program(handle, shown, folder) as url:
            return await ask_webhook(_question(url, shown.certificate), "u")

    return asyncio.run(play())


def _question(url: str, authority: bytes = b"") -> ReviewRequest:
    return ReviewRequest(url, "", authority, 10, "v1", {"object": {"data": {}}}, mutates=False)


async def _allow(request: web.BaseRequest) -> web.StreamResponse:
    review = await request.json()
    response = {"uid": review["request"]["uid"], "allowed": True}
    return web.json_response({**review, "response": response})


@pytest.mark.parametrize("make", [lambda _: _self_signed(), _issued])
def test_a_ca_bundle_may_be_the_serving_certificate_itself(
    tmp_path: Path, make: Callable[[Path], Identity]
) -> None:
    """As in Go: envtest and others put the certificate that the webhook shows into the bundle."""
    (tmp_path / "keys").mkdir()
    answer = _ask(_allow, tmp_path, make(tmp_path / "keys"))
    assert isinstance(answer, ReviewResponse), answer


def test_another_certificate_is_not_trusted(tmp_path: Path) -> None:
    """A webhook that shows a certificate which is not in the bundle is not asked."""

    async def play() -> WebhookAnswer:
        async with _program(_allow, _self_signed(), tmp_path) as url:
            return await ask_webhook(_question(url, _self_signed().certificate), "u")

    answer = asyncio.run(play())
    assert isinstance(answer, Unanswered)
    assert "certificate verify failed" in answer.reason


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_does_not_lead_the_object_elsewhere(tmp_path: Path, status: int) -> None:
    """A webhook that redirects has not answered; the other place hears nothing."""
    paths: list[str] = []

    async def redirect(request: web.BaseRequest) -> web.StreamResponse:
        paths.append(request.path)
        if request.path == "/elsewhere":
            return await _allow(request)
        return web.Response(status=status, headers={"location": "/elsewhere"})

    answer = _ask(redirect, tmp_path)
    assert isinstance(answer, Unanswered)
    assert answer.reason.endswith("redirected to /elsewhere, which is not followed")
    assert paths == ["/review"]


@pytest.mark.parametrize("compressed", [False, True])
def test_an_answer_that_is_too_large_is_none(tmp_path: Path, *, compressed: bool) -> None:
    """The limit counts the bytes after decompression."""
    bomb = b" " * (WEBHOOK_ANSWER_BYTES_MAX + 1)
    headers = {"content-encoding": "gzip"} if compressed else {}
    body = gzip.compress(bomb) if compressed else bomb

    async def answer_much(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=body, headers=headers)

    answer = _ask(answer_much, tmp_path)
    assert isinstance(answer, Unanswered)
    assert f"the answer is larger than {WEBHOOK_ANSWER_BYTES_MAX} bytes" in answer.reason


def test_a_compressed_answer_counts(tmp_path: Path) -> None:
    """A webhook may compress what it answers."""

    async def squeeze(request: web.BaseRequest) -> web.StreamResponse:
        plain = await _allow(request)
        assert isinstance(plain, web.Response)
        assert isinstance(plain.body, bytes)
        return web.Response(body=gzip.compress(plain.body), headers={"content-encoding": "gzip"})

    assert isinstance(_ask(squeeze, tmp_path), ReviewResponse)


@pytest.mark.parametrize(
    ("body", "encoding", "complaint"),
    [
        (b"no gzip", "gzip", "damaged"),
        (gzip.compress(b"x" * 1000, mtime=0)[:-10], "gzip", "cut off"),
        (b"x", "br", "encoding br"),
    ],
)
def test_a_damaged_answer_is_none(
    tmp_path: Path, body: bytes, encoding: str, complaint: str
) -> None:
    """An answer that cannot be decompressed is reported."""

    async def answer_so(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=body, headers={"content-encoding": encoding})

    answer = _ask(answer_so, tmp_path)
    assert isinstance(answer, Unanswered)
    assert complaint in answer.reason


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/x", "https://u@127.0.0.1:1/x"])
def test_a_url_from_elsewhere_is_checked_when_it_is_called(url: str) -> None:
    """A Service's annotation, or a configuration that was stored before, leads nowhere else."""
    answer = asyncio.run(ask_webhook(_question(url), "u"))
    assert isinstance(answer, Unanswered)
    assert "Invalid value" in answer.reason


@pytest.mark.parametrize(
    ("url", "called"),
    [
        ("https://h:9443//mutate-jobs", "https://h:9443/mutate-jobs"),
        ("https://h/a/../b/", "https://h/b"),
        ("https://h", "https://h/"),
    ],
)
def test_the_path_of_a_webhook_is_cleaned(url: str, called: str) -> None:
    """Servers redirect a path with two slashes, and a redirect of a review is not followed."""

    class NoObjects:
        def get(self, resource: str, namespace: str, name: str) -> Raw | None:
            return None

        def list(self, resource: str, namespace: str | None) -> Sequence[Raw]:
            return ()

    assert endpoint_of({"url": url}, NoObjects()) == (called, "")
