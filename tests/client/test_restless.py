"""A simulation in which time never passes ends, and says so."""

from __future__ import annotations

import asyncio

import pytest

from dryrack.client import timekeeping
from dryrack.client.timekeeping import RestlessError, VirtualClock, run_virtual


def test_two_that_undo_each_other_at_once_do_not_keep_a_simulation_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The simulation raises an error instead of never reaching the next second."""
    monkeypatch.setattr(timekeeping, "RESTLESS_STEPS", 1000)

    async def contend(mine: asyncio.Event, theirs: asyncio.Event) -> None:
        while True:
            await mine.wait()
            mine.clear()
            theirs.set()

    async def run() -> None:
        here = asyncio.Event()
        there = asyncio.Event()
        tasks = [asyncio.create_task(contend(*each)) for each in ((here, there), (there, here))]
        here.set()
        try:
            await VirtualClock().advance(1)
        finally:
            for each in tasks:
                each.cancel()

    with pytest.raises(RestlessError, match="nothing comes to rest: 1000 steps, and no time"):
        run_virtual(run())


def test_much_work_at_one_moment_is_no_unrest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps before the last advance of time do not count."""
    monkeypatch.setattr(timekeeping, "RESTLESS_STEPS", 1000)

    async def run() -> float:
        clock = VirtualClock(0.0)

        async def work() -> None:
            for _ in range(900):
                await asyncio.sleep(0)

        for _ in range(5):
            task = asyncio.create_task(work())
            await clock.advance(1)
            await task
        return clock.now()

    assert run_virtual(run()) == 5
