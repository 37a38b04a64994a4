"""Faults of a live plane, as entries of a ConfigMap."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.controllers import scenes
from tests.scheduler.gang_scenes import lone

from dryrack.client.endpoints import CONFIG_MAPS, PODS, TEMPLATES
from dryrack.client.timekeeping import VirtualClock, run_virtual
from dryrack.cluster import SeededChance
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import embedded
from dryrack.cluster.faults import (
    CONFIG_MAP,
    FaultBoard,
    FaultWordsError,
    Injection,
    entry_of,
    read_injection,
)
from dryrack.cluster.faults.config_map import FaultEntries

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dryrack.client.client import Client

NOW = 1_767_323_045.0  # 2026-01-02T03:04:05Z


def play(story: Callable[[Client, VirtualClock], Awaitable[None]], data: dict[str, str]) -> None:
    """A plane with a node and a pod, whose ConfigMap has these entries from the start."""

    async def run() -> None:
        clock = VirtualClock(start=NOW)
        board = FaultBoard(clock=clock, chance=SeededChance(0))
        options = ControlPlaneOptions(clock=clock, chance=SeededChance(1))
        async with embedded(options, board=board) as cluster:
            client = cluster.client
            await scenes.make_class(client)
            await client.create(TEMPLATES, scenes.template_in("default"))
            await scenes.make_node(client, "node", devices=1)
            await client.create(CONFIG_MAPS, {"metadata": config_map(), "data": data})
            entries = FaultEntries(cluster.plane.client(), board, SeededChance(2))
            task = asyncio.ensure_future(entries.run())
            await clock.advance(1)
            await client.create(PODS, lone("pod"))
            await story(client, clock)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    run_virtual(run())


def config_map() -> dict[str, str]:
    return {"namespace": CONFIG_MAP.namespace, "name": CONFIG_MAP.name}


async def is_bound(client: Client) -> bool:
    return bool((await client.get(PODS, "pod", "default"))["spec"].get("nodeName"))


async def change(client: Client, **data: str | None) -> None:
    namespace, name = CONFIG_MAP
    await client.patch(CONFIG_MAPS, name, {"data": data}, namespace=namespace)


def test_an_entry_that_goes_ends_its_fault() -> None:
    """Although no request of any engine came through."""

    async def story(client: Client, clock: VirtualClock) -> None:
        await clock.advance(60)
        assert not await is_bound(client)
        await change(client, api=None)
        await clock.advance(60)
        assert await is_bound(client)

    play(story, {"api": "api errors=1"})


def test_an_entry_ends_by_its_time() -> None:
    """One whose time has passed when the plane starts is as if it were not there."""

    async def story(client: Client, clock: VirtualClock) -> None:
        await clock.advance(10)
        assert not await is_bound(client)
        await clock.advance(60)
        assert await is_bound(client)

    play(
        story,
        {
            "engine.scheduler": "engine scheduler crash until 2026-01-02T03:04:30Z",
            "engine.controllers": "engine controllers crash until 2026-01-02T03:04:00Z",
            "nonsense": "node a ready=false",
        },
    )


def test_words_become_entries_that_end_by_themselves() -> None:
    """A moment lasts a moment, so that no plane repeats it; what is said of objects is refused."""

    def entry(words: str, seconds: float | None = None) -> tuple[str, str]:
        return entry_of(Injection(read_injection(words).fault, seconds), words, NOW)

    assert entry("api errors=1") == ("api", "api errors=1")
    assert entry("api errors=1 engine=scheduler", 9)[0] == "api.scheduler"
    assert entry("engine scheduler crash")[1].endswith(" until 2026-01-02T03:04:07Z")
    assert entry("watches") == ("watches", "watches until 2026-01-02T03:04:16Z")
    with pytest.raises(FaultWordsError, match="annotate the Node instead"):
        entry("node a ready=false")
