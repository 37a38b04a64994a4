"""A scenario can be looked at afterwards, from its first write to its last."""

from __future__ import annotations

import asyncio

from dryrack.client.timekeeping import seconds_of
from dryrack.dashboard.decisions import Decisions
from dryrack.dashboard.recorded_scenario import run_recorded
from dryrack.scenario import EmbeddedRun, load_packaged


def test_a_scenario_is_on_the_page_from_its_first_write_to_its_last() -> None:
    """The timeline is that of the run, what there is is what it left, and why can be asked."""
    outcome, live = run_recorded(load_packaged("gang-gpu"), EmbeddedRun(seed=1))
    assert outcome.held

    async def look() -> None:
        async with asyncio.TaskGroup() as group:
            following = group.create_task(live.run(), name="the page's view")
            await live.look()
            pods = [name for name, row in live.tracked.pods.current.items() if row["node"]]
            assert (await Decisions(live).explain("pod", pods[0]))["node"]
            following.cancel()

    asyncio.run(look())
    moments = live.history.timeline()
    first, last = (seconds_of(moments[place]["time"]) for place in (0, -1))
    placed = [
        each["name"]
        for moment in moments
        for each in moment["changes"]
        if each["what"].startswith("bound to ")
    ]
    placed_now = {name for name, row in live.tracked.pods.current.items() if row["node"]}
    assert first < last <= live.clock.now()
    assert placed_now <= set(placed)
    assert moments[0]["states"] == {}
    assert moments[-1]["states"] == live.tracked.fleet.summaries.states() != {}


def test_the_same_seed_leaves_the_same_timeline() -> None:
    """But for the revisions of the page, which rise over all that it ever served."""

    def timeline() -> list[object]:
        _, live = run_recorded(load_packaged("gang-gpu"), EmbeddedRun(seed=3))

        async def look() -> None:
            async with asyncio.TaskGroup() as group:
                following = group.create_task(live.run(), name="the page's view")
                await live.look()
                following.cancel()

        asyncio.run(look())
        return [each | {"revision": 0} for each in live.history.timeline()]

    assert timeline() == timeline()
