"""Which versions are served, by default and as `--runtime-config` says."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.apiserver.replay import EmbeddedServer, embedded_server

from dryrack.apiserver.runtime_config import RuntimeConfig, RuntimeConfigError, parse
from dryrack.client.client import Client
from dryrack.client.timekeeping import VirtualClock
from dryrack.cluster.assembly import assemble_engines
from dryrack.cluster.control_plane import ControlPlaneOptions, build_control_plane
from dryrack.cluster.engines import Wiring, running_engines
from dryrack.kinds.registry import builtin_kinds
from dryrack.kinds.releases import Release

if TYPE_CHECKING:
    from dryrack.client.transport import Request, Response, Transport

RELEASE = Release.V1_36
UNSTABLE = {"resource.k8s.io/v1beta1", "resource.k8s.io/v1beta2", "scheduling.k8s.io/v1alpha2"}
CLASSES = "/apis/resource.k8s.io/v1beta1/deviceclasses"


def served(config: RuntimeConfig) -> set[str]:
    return {
        f"{each.group}/{each.version}" for each in builtin_kinds(RELEASE) if config.serves(each)
    }


@pytest.mark.parametrize(
    ("text", "unstable"),
    [
        ("", set()),
        ("resource.k8s.io/v1beta1=true", {"resource.k8s.io/v1beta1"}),
        ("scheduling.k8s.io/v1alpha2", {"scheduling.k8s.io/v1alpha2"}),
        ("api/all=true", UNSTABLE),
        ("api/beta=true", UNSTABLE - {"scheduling.k8s.io/v1alpha2"}),
        ("api/alpha=true", {"scheduling.k8s.io/v1alpha2"}),
        ("api/all=true, api/beta=false", {"scheduling.k8s.io/v1alpha2"}),
        ("resource.k8s.io/v1beta1=0,api/beta=true", {"resource.k8s.io/v1beta2"}),
        ("resource.k8s.io/v1beta2/devicetaintrules=true", {"resource.k8s.io/v1beta2"}),
    ],
)
def test_the_narrowest_word_decides_what_is_served(text: str, unstable: set[str]) -> None:
    """By default what is stable; a version goes before a stage, and a stage before all."""
    found = served(parse(text, RELEASE))

    assert {each for each in found if "beta" in each or "alpha" in each} == unstable
    assert {"apps/v1", "/v1", "resource.k8s.io/v1"} <= found


def test_one_resource_of_a_version_can_be_served_alone() -> None:
    """The other kinds of its version are not there."""
    config = parse("resource.k8s.io/v1beta2/devicetaintrules=true")
    found = [
        each.plural
        for each in builtin_kinds(RELEASE)
        if config.serves(each) and each.version == "v1beta2"
    ]

    assert found == ["devicetaintrules"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("resource.k8s.io/v9=true", "group version resource.k8s.io/v9 that has not been regis"),
        ("example.com/v1=true", "unknown api groups example.com/v1; there are"),
        ("v1=true", "invalid key v1; write GROUP/VERSION"),
        ("a/b/c/d=true", "invalid key a/b/c/d"),
        ("api/all=false", "leaves nothing to serve"),
        ("api/all=yes", "invalid value api/all=yes; write api/all=true or api/all=false"),
        ("apps/v1=yes", "invalid value apps/v1=yes"),
        ("apps/v1/Deployments=true", "its lowercase plural, 'deployments'"),
    ],
)
def test_what_no_server_starts_with_is_refused(text: str, why: str) -> None:
    """Errors about unknown versions, groups and values list the known ones."""
    with pytest.raises(RuntimeConfigError) as caught:
        parse(text)

    assert why in str(caught.value)


def asked(server: EmbeddedServer, path: str, body: Any = None) -> tuple[int, Any]:
    content = json.dumps(body).encode() if body else b""
    headers = {"content-type": "application/json"} if body else {}
    method = "POST" if body else "GET"
    status, _, answer = server.send(method, path, headers=headers, content=content)
    return status, json.loads(answer) if answer.startswith(b"{") else answer.decode()


def test_what_is_not_served_is_nowhere() -> None:
    """Neither under its path nor in discovery nor in OpenAPI, until it is switched on."""
    usual = embedded_server(RuntimeConfig())
    more = embedded_server(parse("api/beta=true"))

    def seen(server: EmbeddedServer) -> tuple[int, list[str], bool, bool]:
        versions = asked(server, "/apis/resource.k8s.io")[1]["versions"]
        paths = asked(server, "/openapi/v3")[1]["paths"]
        old = asked(server, "/openapi/v2")[1]["paths"]
        names = [each["version"] for each in versions]
        return asked(server, CLASSES)[0], names, CLASSES[1:-14] in paths, CLASSES in old

    assert seen(usual) == (404, ["v1"], False, False)
    assert seen(more) == (200, ["v1", "v1beta2", "v1beta1"], True, True)
    usual.close()
    more.close()


def test_a_body_of_a_version_that_is_not_served_is_recognised() -> None:
    """It is refused as another version of the same kind, not as an unknown kind."""
    server = embedded_server(RuntimeConfig())
    body = {"apiVersion": "resource.k8s.io/v1beta1", "kind": "DeviceClass", "metadata": {}}
    status, answer = asked(server, "/apis/resource.k8s.io/v1/deviceclasses", body)
    server.close()

    assert status == 400
    assert answer["message"] == (
        "the API version in the data (resource.k8s.io/v1beta1) does not match the expected API "
        "version (resource.k8s.io/v1)"
    )


class _Unstable:
    """Notes who asks for alpha and beta versions."""

    def __init__(self, inner: Transport) -> None:
        self.inner = inner
        self.asked: list[str] = []

    async def send(self, request: Request) -> Response:
        if "beta" in request.path or "alpha" in request.path:
            self.asked.append(request.path)
        return await self.inner.send(request)


def test_engines_do_not_ask_again_for_what_is_not_served(caplog: pytest.LogCaptureFixture) -> None:
    """Each looks once whether taint rules and pod groups are there, and then rests."""

    async def scenario() -> tuple[list[str], list[str]]:
        clock = VirtualClock()
        plane = build_control_plane(ControlPlaneOptions(clock=clock))
        noting = _Unstable(plane.transport)

        def around(engine: str) -> Wiring:
            return Wiring(Client(noting, agent=engine), clock, plane.options.chance)

        async with running_engines(assemble_engines(), around):
            await clock.advance(5)
            first = list(noting.asked)
            await clock.advance(3600)
            return first, noting.asked[len(first) :]

    first, later = asyncio.run(scenario())
    optional = ("/apis/resource.k8s.io/v1beta2", "/apis/scheduling.k8s.io/v1alpha2")

    assert set(optional) <= set(first)
    assert [path for path in later if path.startswith(optional)] == []
    assert [each.message for each in caplog.records if each.levelname != "INFO"] == []
