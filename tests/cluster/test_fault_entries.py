"""Faults of a live plane, as entries of a ConfigMap."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.controllers import scenes
from tests.scheduler.gang_scenes import lone

from dryrack.client.endpoints import CONFIG_MAPS, PODS, TEMPLATES
from dryrack.cluster import SeededChance
from dryrack.cluster.faults import (
    CONFIG_MAP,
    FaultWordsError,
    Injection,
    entry_of,
    read_injection,
)
from dryrack.cluster.faults.config_map import FaultEntries

if TYPE_CHECKING:
    from tests.stage import Stage

NOW = 1_767_323_045.0  # 2026-01-02T03:04:05Z
pytestmark = pytest.mark.stage(start=NOW)


async def start_a_pod(stage: Stage, data: dict[str, str]) -> None:
    """Create a node and a pod, in a cluster whose ConfigMap has these entries from the start."""
    client = stage.client
    await scenes.make_class(client)
    await client.create(TEMPLATES, scenes.template_in("default"))
    await scenes.make_node(client, "node", devices=1)
    await client.create(CONFIG_MAPS, {"metadata": config_map(), "data": data})
    entries = FaultEntries(stage.control_plane.client(), stage.board, SeededChance(2))
    stage.run_beside(entries.run())
    await stage.advance(1)
    await client.create(PODS, lone("pod"))


def config_map() -> dict[str, str]:
    return {"namespace": CONFIG_MAP.namespace, "name": CONFIG_MAP.name}


async def test_an_entry_that_goes_ends_its_fault(stage: Stage) -> None:
    """Although no request of any engine came through."""
    await start_a_pod(stage, {"api": "api errors=1"})
    await stage.advance(60)
    assert await stage.bound() == []
    namespace, name = CONFIG_MAP
    await stage.client.patch(CONFIG_MAPS, name, {"data": {"api": None}}, namespace=namespace)
    await stage.advance(60)
    assert await stage.bound() == ["pod"]


async def test_an_entry_ends_by_its_time(stage: Stage) -> None:
    """An entry whose time has passed when the control plane starts has no effect."""
    entries = {
        "engine.scheduler": "engine scheduler crash until 2026-01-02T03:04:30Z",
        "engine.controllers": "engine controllers crash until 2026-01-02T03:04:00Z",
        "nonsense": "node a ready=false",
    }
    await start_a_pod(stage, entries)
    await stage.advance(10)
    assert await stage.bound() == []
    await stage.advance(60)
    assert await stage.bound() == ["pod"]


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
