"""What a start of `dryrack up` waits for."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from dryrack.cluster import ControlPlaneOptions, build_control_plane
from dryrack.cluster.initial_objects import add_nodes
from dryrack.cluster.process import Launch, service, state_of

if TYPE_CHECKING:
    from pathlib import Path

# The face, the plane, and what serves it: all that is loaded before the first request.
_PARTS = (
    "cli.main",
    "cli.virtual.up",
    "cluster.process.service",
    "apiserver.http.https_server",
    "dashboard.late_start",
)
_START = f"import sys, {', '.join(f'dryrack.{part}' for part in _PARTS)}"
_SHOW = "print('\\n'.join(sys.modules))"


@pytest.fixture(scope="module")
def loaded() -> frozenset[str]:
    """The modules of a process that is about to serve."""
    code = f"{_START}; {_SHOW}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return frozenset(done.stdout.splitlines())


@pytest.mark.parametrize(
    "late",
    [
        "aiohttp",
        "cryptography",
        "dryrack.allocation",
        "dryrack.apiserver.custom.serving",
        "dryrack.apiserver.ownership.server_side_apply",
        "dryrack.apiserver.pages.openapi",
        "dryrack.apiserver.ownership.patching",
        "dryrack.apiserver.protobuf",
        "dryrack.kinds.schemas",
        "dryrack.apiserver.strategies.catalog",
        "dryrack.apiserver.strategy",
        "dryrack.kinds.schemas.strict_decode",
        "dryrack.cel",
        "dryrack.client.informer",
        "dryrack.controllers.engines",
        "dryrack.dashboard.server",
        "dryrack.kinds.decode",
        "dryrack.kinds.resource",
        "dryrack.kinds.validation.device_rules",
        "dryrack.placement",
        "dryrack.scheduler",
        "email",
        "rich",
        "sqlite3",
        "yaml",
    ],
)
def test_a_start_does_not_wait_for_what_comes_later(loaded: frozenset[str], late: str) -> None:
    """Expressions, patches, engines and the like are loaded by those who first need them."""
    assert late not in loaded


def test_a_start_says_which_nodes_it_does_not_wait_for_any_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes that stay as they are do not hold up a start for ever."""
    monkeypatch.setattr(service, "_NODES_STALL_SECONDS_MAX", 0.05)
    monkeypatch.setattr(service, "_PROGRESS_SECONDS", 0.01)
    stages: list[str] = []

    async def play() -> None:
        plane = build_control_plane(ControlPlaneOptions())
        await add_nodes(plane.client(), 3)
        launch = Launch(state=state_of("x", tmp_path), nodes=3)
        await service._wait_for_nodes(launch, plane, asyncio.Event(), stages.append)
        plane.expiry.stop()

    asyncio.run(play())
    assert stages[0] == "… 0 of 3 nodes are Ready"
    assert stages[-1] == "! 3 of 3 nodes are not Ready yet; see: kubectl get nodes"
