"""
The embedded server in the place of a real one, for the recordings.

It has the interface of `tests.parity.server.Server` and no socket. Time is virtual: it passes
while a watch is read, so that a watch of a second takes none.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import yaml
from tests.parity.__main__ import OPTIONS
from tests.parity.recording import read
from tests.parity.run import Run
from tests.parity.script import Script, load_all
from tests.parity.server import USER_AGENT, Server

from dryrack.apiserver.runtime_config import RuntimeConfig
from dryrack.client.timekeeping import VirtualClock
from dryrack.client.transport import Request
from dryrack.cluster.control_plane import ControlPlaneOptions, build_control_plane
from dryrack.kinds.releases import DEFAULT_RELEASE, Release

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dryrack.client.transport import Body, Transport

DIFFERENCES = Path(__file__).with_name("differences.yaml")
DIFFERENCES_OVER_HTTPS = Path(__file__).with_name("differences_over_https.yaml")
_NUMBERED = re.compile(r"<(uid|revision) \d+>")
# Longer than any watch of a script.
_WATCH_SECONDS = 10.0


@dataclass(slots=True)
class CountingChance:
    """Identifiers in a row; their digits vary where a name is made of them."""

    _count: int = 0

    def uuid(self) -> str:
        self._count += 1
        mixed = self._count * 0x9E3779B97F4A7C15 % 2**64
        return f"{mixed >> 32:08x}-{mixed >> 16 & 0xFFFF:04x}-4000-8000-{self._count:012x}"


@dataclass(slots=True)
class EmbeddedServer:
    """Asked as a real server is."""

    transport: Transport
    clock: VirtualClock
    _runner: asyncio.Runner = field(default_factory=asyncio.Runner)

    def send(
        self, method: str, path: str, *, headers: Mapping[str, str], content: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        sent = {"user-agent": USER_AGENT, "accept": "application/json"}
        sent |= {name.lower(): value for name, value in headers.items()}
        where, _, query = path.partition("?")
        return self._runner.run(self._send(Request(method, where, query, sent, content)))

    async def _send(self, request: Request) -> tuple[int, dict[str, str], bytes]:
        answer = await self.transport.send(request)
        return answer.status, dict(answer.headers), await self._whole(answer.body)

    async def _whole(self, body: Body) -> bytes:
        if isinstance(body, bytes):
            return body
        chunks: list[bytes] = []

        async def read_all() -> None:
            chunks.extend([chunk async for chunk in body if isinstance(chunk, bytes)])

        reading = asyncio.create_task(read_all(), name="read a watch")
        await self.clock.advance(_WATCH_SECONDS)
        await reading
        await body.aclose()
        return b"".join(chunks)

    def make_namespace(self, name: str) -> None:
        """The namespace, with the default account that a controller would make for it."""
        headers = {"Content-Type": "application/json"}
        for path, made in (
            ("/api/v1/namespaces", name),
            (f"/api/v1/namespaces/{name}/serviceaccounts", "default"),
        ):
            body = json.dumps({"metadata": {"name": made}}).encode()
            self.send("POST", path, headers=headers, content=body)

    def close(self) -> None:
        self._runner.close()


# What the recorded server was told to serve.
AS_RECORDED = RuntimeConfig(OPTIONS.runtime_config)


def embedded_server(
    config: RuntimeConfig = AS_RECORDED, release: Release = DEFAULT_RELEASE
) -> EmbeddedServer:
    clock = VirtualClock()
    options = ControlPlaneOptions(
        clock=clock, chance=CountingChance(), runtime_config=config, release=release
    )
    plane = build_control_plane(options)
    return EmbeddedServer(plane.transport, clock)


def by_http(script: Script) -> Script:
    """The script without its kubectl steps, which need a socket."""
    return replace(script, steps=tuple(step for step in script.steps if not step.kubectl))


def replayed(script: Script, release: Release = DEFAULT_RELEASE) -> list[dict[str, Any]]:
    """The answers of a fresh embedded server to the steps of a script."""
    server = embedded_server(release=release)
    try:
        run = Run(by_http(script), cast("Server", server), Path("no-kubectl"))
        return list(run.answers())
    finally:
        server.close()


def differing(
    script: Script, answers: list[dict[str, Any]], release: Release = DEFAULT_RELEASE
) -> list[str]:
    """The steps whose answers are not the recorded ones."""
    pairs = compared(script, answers, release)
    return [step for step, recorded, answered in pairs if recorded != answered]


def compared(
    script: Script, answers: list[dict[str, Any]], release: Release = DEFAULT_RELEASE
) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Each step with what was recorded and what was answered."""
    asked = {answer["step"] for answer in answers}
    recorded = [answer for answer in read(script, release) if answer["step"] in asked]
    pairs = zip(_renumbered(recorded), _renumbered(answers), strict=True)
    for one, other in pairs:
        yield other["step"], one, other


def _renumbered(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """
    Number uids and revisions in the order of their appearance.

    A recording numbers them over all steps; without those of kubectl the numbers would differ.
    """
    seen: dict[str, str] = {}

    def again(found: re.Match[str]) -> str:
        number = sum(1 for each in seen.values() if each.startswith(f"<{found[1]} ")) + 1
        return seen.setdefault(found[0], f"<{found[1]} {number}>")

    text = json.dumps(answers, sort_keys=True)
    numbered: list[dict[str, Any]] = json.loads(_NUMBERED.sub(again, text))
    return numbered


def known_differences(
    path: Path = DIFFERENCES, release: Release = DEFAULT_RELEASE
) -> dict[str, dict[str, str]]:
    """
    Return the reasons for different answers, by script and step.

    A reason can be for some releases only: it is then a map from releases to reasons.
    """
    known: dict[str, dict[str, str | dict[float, str]]] = yaml.safe_load(path.read_text())
    reasons = {
        script: {
            step: why.get(float(release.value), "") if isinstance(why, dict) else why
            for step, why in steps.items()
        }
        for script, steps in known.items()
    }
    return {
        script: {step: why for step, why in steps.items() if why}
        for script, steps in reasons.items()
    }


def differences_of_the_server(release: Release = DEFAULT_RELEASE) -> dict[str, dict[str, str]]:
    """Those that are left when kubectl and the engines have their part."""
    return {
        script: {step: why for step, why in steps.items() if not why.startswith("without ")}
        for script, steps in known_differences(release=release).items()
    }


SCRIPTS = load_all([])
