"""A plane with pods, devices and names that are markup, and a browser that looks at its page."""

from __future__ import annotations

import asyncio
import os
import re
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.cli.command import dryrack
from tests.dashboard.browser import requirements
from tests.dashboard.browser.chromium import opened
from tests.dashboard.browser.scene import OBJECTS, STATUSES

from dryrack.client.client import Client
from dryrack.client.https import connected
from dryrack.cluster import connection_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from pathlib import Path

    from tests.dashboard.browser.chromium import Tab

_ADDRESS = re.compile(r"dashboard: (http://\S+)")


@dataclass(frozen=True, slots=True)
class Look:
    """Somebody who looks at the page, and a way to change the cluster meanwhile."""

    tab: Tab
    client: Client
    address: str
    kubeconfig: Path
    runner: asyncio.Runner

    def __call__(self, story: Callable[[Look], Coroutine[Any, Any, None]]) -> None:
        """Plays a story, in which the page complains of nothing."""
        self.tab.complaints.clear()
        self.runner.run(self._played(story))
        assert self.tab.complaints == []

    async def _played(self, story: Callable[[Look], Coroutine[Any, Any, None]]) -> None:
        await self.tab.size(1280, 800)
        await self.tab.open("about:blank")
        await self.tab.open(self.address)
        await self.tab.until("document.querySelector('#connection').textContent === 'live'")
        await story(self)


@pytest.fixture(scope="session")
def look(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Look]:
    """One plane and one browser for all."""
    requirements.ensure()
    home = tmp_path_factory.mktemp("page")
    objects = home / "objects.yaml"
    objects.write_text(yaml.safe_dump_all(OBJECTS))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRYRACK_HOME", str(home / "state"))
        try:
            up = dryrack(
                *("up", "--detach", "--nodes", "3", "--devices", "gpu:4", "--config", objects)
            )
            told = _ADDRESS.search(up.stderr)
            assert told is not None, up.stderr
            kubeconfig = home / "state" / "default" / "kubeconfig"
            with asyncio.Runner() as runner:
                stack = AsyncExitStack()
                tab, client = runner.run(_entered(stack, kubeconfig))
                try:
                    yield Look(tab, client, told[1], kubeconfig, runner)
                finally:
                    runner.run(stack.aclose())
        finally:
            dryrack("down", "--all")


async def _entered(stack: AsyncExitStack, kubeconfig: Path) -> tuple[Tab, Client]:
    connection = connection_of(os.environ, kubeconfig=str(kubeconfig), context="")
    transport = await stack.enter_async_context(connected(connection))
    client = Client(transport, agent="test")
    for kind, name, status in STATUSES:
        found = await client.get(kind, name, "team")
        await client.update(kind, found | {"status": status}, subresource="status")
    return await stack.enter_async_context(opened()), client
