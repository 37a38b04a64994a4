"""The small parts of the publisher, each by itself."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from tests.client.planes import site

from dryrack.client.client import Listing
from dryrack.client.endpoints import EVENTS
from dryrack.client.informer import Informers, Name
from dryrack.client.timekeeping import settle
from dryrack.controllers.slices.current_inventory import CurrentInventory
from dryrack.controllers.slices.desired import SharedMatches
from dryrack.controllers.slices.events import WAITING_MAX, EventQueue
from dryrack.controllers.slices.publishing import missed
from dryrack.controllers.writes import EngineContext, Report
from dryrack.hardware.inventory import Inventory, Source, SourceKind

if TYPE_CHECKING:
    import pytest

CALLS = st.tuples(st.sampled_from("xyz"), st.frozensets(st.integers(0, 4)).map(sorted))


@given(st.lists(CALLS))
def test_a_shared_pool_is_matched_by_any_node(
    story: list[tuple[str, list[int]]],
) -> None:
    """The matches are those of all nodes; `replace` returns True only for a change."""
    matches = SharedMatches()
    nodes = dict[str, list[int]]()
    for node, called in story:
        before = matches.matched
        nodes[node] = called
        is_change = matches.replace(node, tuple(called))

        assert matches.matched == {number for each in nodes.values() for number in each}
        assert is_change == (matches.matched != before)


def test_events_wait_for_calm_but_not_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    """Under load one a second is written; the newest remain, and the log counts the others."""

    async def scene() -> None:
        where = site()
        calm = asyncio.Event()
        informers = Informers(where.client, clock=where.clock, chance=where.chance)
        context = EngineContext(where.client, informers, where.clock, where.chance)
        events = EventQueue(context, "test", calm.is_set)
        node = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}}
        for number in range(WAITING_MAX + 10):
            events.post(Report(node, "Normal", "Test", str(number)))
        async with asyncio.TaskGroup() as group:
            task = group.create_task(events.run())
            await where.clock.advance(3.5)
            told = {each["message"] for each in (await where.client.list(EVENTS)).items}
            assert told == {"10", "11", "12"}
            calm.set()
            await where.clock.advance(0.5)
            await settle(WAITING_MAX * 100)
            assert len((await where.client.list(EVENTS)).items) == WAITING_MAX
            task.cancel()

    asyncio.run(scene())
    assert [each.message for each in caplog.records if each.levelname == "WARNING"] == [
        f"dropped 10 events about slices: more than {WAITING_MAX} were waiting to be written"
    ]


def test_listeners_are_told_of_every_other_inventory() -> None:
    """Late listeners hear of what is there; the same again is no news."""
    current = CurrentInventory()
    heard = list[int]()
    current.listen(lambda: heard.append(1))
    empty_heard = list(heard)
    for _ in range(2):
        current.replace(Inventory())
    current.listen(lambda: heard.append(2))
    current.replace(Inventory(unread=(Source(SourceKind.CONFIG, "x"),)))

    assert (empty_heard, heard) == ([], [1, 2, 1, 2])
    assert current.known.is_set()


def test_what_a_cache_has_missed_is_what_a_listing_knows_better() -> None:
    """New, changed and gone; not what the cache knows better, nor what came after the listing."""

    def obj(name: str, revision: int) -> dict[str, object]:
        return {"metadata": {"name": name, "resourceVersion": str(revision)}}

    cached = {
        Name("", name): obj(name, revision)
        for name, revision in (("same", 1), ("old", 2), ("ahead", 9), ("gone", 3), ("newer", 11))
    }
    listed = (obj("same", 1), obj("old", 4), obj("ahead", 5), obj("unknown", 6))
    found = dict(missed(cached, Listing(listed, "10")))

    assert sorted(name.name for name in found) == ["gone", "old", "unknown"]
    assert found[Name("", "unknown")] is None
