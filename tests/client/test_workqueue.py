"""The queue's promises: once, one at a time, and again after a failure."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from dryrack.client.timekeeping import VirtualClock, settle
from dryrack.client.workqueue import TURNS_MAX, WorkQueue


@given(
    st.lists(st.tuples(st.sampled_from(["add", "take", "done"]), st.integers(0, 3)), max_size=60)
)
def test_a_key_is_in_one_pair_of_hands(script: list[tuple[str, int]]) -> None:
    """No key is taken twice at once, and none that was added is forgotten."""

    async def play() -> None:
        queue: WorkQueue[int] = WorkQueue(VirtualClock())
        taken: list[int] = []
        owed: set[int] = set()
        for word, key in script:
            if word == "add":
                queue.add(key)
                owed.add(key)
            elif word == "done" and taken:
                queue.done(taken.pop(0))
            elif word == "take" and owed - set(taken):
                got = await queue.take()
                assert got not in taken
                taken.append(got)
                owed.discard(got)
        assert len(queue) == len(owed)
        assert queue.is_idle == (not owed and not taken)

    asyncio.run(play())


async def test_the_earliest_time_counts() -> None:
    """A key that is wanted twice later comes once, at the earlier time."""
    clock = VirtualClock()
    queue: WorkQueue[str] = WorkQueue(clock)
    queue.add_after("a", 10)
    queue.add_after("a", 5)
    queue.add_after("a", 20)
    await clock.advance(4)
    assert len(queue) == 0
    await clock.advance(2)
    assert await queue.take() == "a"
    queue.done("a")
    await clock.advance(60)
    assert len(queue) == 0


async def test_failures_wait_longer_each_time() -> None:
    """Waits double from 5 ms, and start over after a success."""
    clock = VirtualClock()
    queue: WorkQueue[str] = WorkQueue(clock)
    waits = []
    for number in range(6):
        if number == 4:
            queue.forget("a")
        queue.retry("a")
        start = clock.now()
        while not len(queue):
            await clock.advance(0.005)
        await queue.take()
        queue.done("a")
        waits.append(round((clock.now() - start) / 0.005))
    assert waits == [1, 2, 4, 8, 1, 2]


async def test_workers_share_the_keys() -> None:
    """Each added key is handled once, also when a worker fails at another."""
    queue: WorkQueue[int] = WorkQueue(VirtualClock())
    handled: list[int] = []

    async def handle(key: int) -> None:
        await asyncio.sleep(0)
        handled.append(key)

    async with asyncio.TaskGroup() as group:
        workers = [group.create_task(queue.work(handle)) for _ in range(3)]
        for key in range(20):
            queue.add(key)
        await settle()
        for worker in workers:
            worker.cancel()
    assert sorted(handled) == list(range(20))


async def test_a_key_that_comes_back_at_once_starves_nobody() -> None:
    """For any requests of a handler, other keys have their turn and time goes on."""
    clock = VirtualClock()
    told: list[str] = []
    queue: WorkQueue[str] = WorkQueue(clock, told.append)
    handled: list[str] = []

    async def again(key: str) -> None:
        handled.append(key)
        if key == "restless":
            queue.add_after(key, -1.0)

    async with asyncio.TaskGroup() as group:
        worker = group.create_task(queue.work(again), name="worker")
        queue.add("restless")
        await settle(3)
        queue.add("other")
        await settle(3)
        assert "other" in handled
        for _ in range(60):
            await clock.advance(1)
        worker.cancel()
    assert handled.count("restless") < TURNS_MAX * 2 + 60
    assert told == ["restless"]


async def test_a_key_that_leaves_off_has_all_its_turns_again() -> None:
    """Being held back is no lasting mark."""
    clock = VirtualClock()
    queue: WorkQueue[str] = WorkQueue(clock)

    async def turns() -> int:
        for turn in range(TURNS_MAX):
            queue.add("busy")
            if not len(queue):
                return turn
            queue.done(await queue.take())
        queue.add("busy")
        return TURNS_MAX

    first = [await turns()]
    for _ in range(4):
        await clock.advance(1)
        queue.done(await queue.take())
        first.append(await turns() + 1)
    await clock.advance(1)
    queue.done(await queue.take())
    await clock.advance(20)

    assert first[0] == TURNS_MAX
    assert first[1:] == [TURNS_MAX >> excess for excess in range(1, 5)]
    assert await turns() == TURNS_MAX
