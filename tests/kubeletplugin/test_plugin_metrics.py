"""The metrics of the plugin."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
from tests.kubeletplugin.nodes import NODE, bench
from tests.kubeletplugin.test_health_check import SERVING, probe

from dryrack.base.metrics import Registry
from dryrack.client.endpoints import NODES
from dryrack.cluster.process import node_plugins
from dryrack.cluster.process.node_plugins import NodePlugins, NodeSite
from dryrack.cluster.process.serving import Address
from dryrack.kubeletplugin import ClaimReference, Directories, NodePlugin
from dryrack.kubeletplugin.kinds.fake import DRIVER, FakeKind

if TYPE_CHECKING:
    import pytest

PREFIX = "dra_example_driver"


def test_claims_are_counted_by_how_they_ended(tmp_path: Path) -> None:
    """Prepared and unprepared, with their durations; what never happened is a zero."""

    async def scenario() -> str:
        world = bench(tmp_path)
        metrics = Registry()
        directories = Directories(world.plugin_directory, world.cdi)
        plugin = NodePlugin(world.kind, world.site.client, NODE, directories, metrics=metrics)
        plugin.recover()
        claim = await world.claim("c", ["fake-0"])
        await plugin.prepare([claim, ClaimReference("default", "nowhere", "1234")])
        await plugin.unprepare([claim])
        return metrics.render()

    lines = asyncio.run(scenario()).splitlines()

    def label(result: str) -> str:
        return f'{{driver="{DRIVER}",result="{result}"}}'

    assert f"{PREFIX}_prepare_claims_total{label('success')} 1" in lines
    assert f"{PREFIX}_prepare_claims_total{label('error')} 1" in lines
    assert f"{PREFIX}_unprepare_claims_total{label('success')} 1" in lines
    assert f"{PREFIX}_unprepare_claims_total{label('error')} 0" in lines
    assert f"{PREFIX}_prepare_claim_duration_seconds_count{label('success')} 1" in lines


class _Addresses(logging.Handler):
    """Hears in the log where probes and pages are answered."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: asyncio.Queue[str] = asyncio.Queue()

    def emit(self, record: logging.LogRecord) -> None:
        if record.msg in ("gRPC probes answered", "pages served"):
            self.heard.put_nowait(vars(record)["address"])


def test_the_numbers_are_served_where_it_was_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the plugin runs; with the errors that ended it, of which there are none."""
    caplog.set_level("INFO")
    # Sockets have short names only.
    monkeypatch.chdir(tmp_path)

    async def scenario() -> tuple[str, str]:
        world = bench(tmp_path)
        await world.site.client.create(NODES, {"metadata": {"name": NODE}})
        plugins = NodePlugins(
            world.site.client,
            [FakeKind()],
            NodeSite(NODE, Path("k"), Path("cdi")),
            clock=world.site.clock,
            chance=world.site.chance,
            metrics_address=Address(port=0),
            health_address=Address(port=0),
        )
        stopping = asyncio.Event()
        addresses = _Addresses()
        monkeypatch.setattr(node_plugins._logger, "handlers", [addresses])
        async with asyncio.TaskGroup() as group:
            group.create_task(plugins.run(stopping), name="plugin")
            port = int((await addresses.heard.get()).rpartition(":")[2])
            address = await addresses.heard.get()
            assert await probe(port) == SERVING
            async with aiohttp.ClientSession() as session:
                texts = [
                    await (await session.get(f"{address}/{page}")).text()
                    for page in ("metrics", "healthz")
                ]
            stopping.set()
        return texts[0], texts[1]

    numbers, health = asyncio.run(scenario())

    assert f"{PREFIX}_fatal_background_errors_total 0" in numbers
    assert health == "ok"
