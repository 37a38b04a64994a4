"""The clock of the machine, and long computations."""

from __future__ import annotations

import asyncio
import threading

from dryrack.cluster.ports import SystemClock


def test_the_loop_runs_during_a_long_computation() -> None:
    """A computation that waits for the loop ends, because the loop is not blocked."""
    turn = threading.Event()

    async def run() -> bool:
        computing = asyncio.ensure_future(SystemClock().compute(lambda: turn.wait(30)))
        await asyncio.sleep(0)
        turn.set()
        return await computing

    assert asyncio.run(run())
