"""The order of the queue: starving gangs, priority, age, arrival; and parked units."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from dryrack.client.timekeeping import VirtualClock
from dryrack.placement import Change
from dryrack.scheduler.queue import (
    BACKOFF_SECONDS_MAX,
    UNSCHEDULABLE_SECONDS_MAX,
    PriorityOrder,
    Rank,
    SchedulingQueue,
)

START = 1_800_000_000.0


def taken(queue: SchedulingQueue[str]) -> list[str]:
    """All that can be taken now, in order."""

    async def take() -> list[str]:
        found = []
        while len(queue):
            found.append(await queue.take())
            queue.done(found[-1])
        return found

    return asyncio.run(take())


ranks = st.builds(
    Rank,
    st.integers(-1, 1),
    st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"]),
    st.sampled_from([None, START - 1, START + 1]),
)


@given(st.lists(ranks, max_size=12))
def test_the_order_is_that_of_the_ranks(given_ranks: list[Rank]) -> None:
    """Starving first, then the higher priority, then the older, then who came first."""
    order = PriorityOrder[int](VirtualClock(START), lambda key: given_ranks[key])
    for key in range(len(given_ranks)):
        order.append(key)

    got = [order.popleft() for _ in range(len(order))]

    def expected(key: int) -> tuple[bool, int, str, int]:
        rank = given_ranks[key]
        starves = rank.starves_at is not None and rank.starves_at <= START
        return (not starves, -rank.priority, rank.created, key)

    assert got == sorted(range(len(given_ranks)), key=expected)


def test_one_that_begins_to_starve_in_the_queue_comes_next() -> None:
    """Though a higher priority waits beside it."""

    async def play() -> list[str]:
        clock = VirtualClock(START)
        ranks = {"low": Rank(0, "b", START + 60), "high": Rank(9, "a"), "higher": Rank(10, "c")}
        queue = SchedulingQueue[str](clock, ranks.__getitem__)
        for key in ranks:
            queue.add(key)
        found = [await queue.take()]
        await clock.advance(60)
        return [*found, await queue.take(), await queue.take()]

    assert asyncio.run(play()) == ["higher", "low", "high"]


def test_parked_units_come_back_when_woken_and_not_before() -> None:
    """Any change wakes those who wait for anything; a claim wakes those who wait for it."""
    queue = SchedulingQueue[str](VirtualClock(START), lambda _: Rank(0, ""))
    queue.park("anything")
    queue.park_until_claim("claim", "ns/a")
    queue.park_until_claim("other", "ns/b")
    queue.park("gone")
    queue.drop("gone")
    assert taken(queue) == []

    queue.wake()
    assert taken(queue) == ["anything"]
    queue.wake()
    queue.wake_for_claim("ns/a")
    assert taken(queue) == ["claim"]
    queue.park_until_claim("other", "ns/c")
    queue.wake_for_claim("ns/b")
    assert taken(queue) == []
    queue.wake_for_claim("ns/c")
    assert taken(queue) == ["other"]


def test_one_that_is_refused_again_and_again_comes_back_later_and_later() -> None:
    """However often it is woken; the wait has a bound, and who is dropped starts over."""

    async def play() -> list[float]:
        clock = VirtualClock(START)
        queue = SchedulingQueue[str](clock, lambda _: Rank(0, ""))
        waits = []
        for _ in range(6):
            began = clock.now()
            queue.park_backed_off("gang")
            queue.wake()
            while not len(queue):
                await clock.advance(0.5)
            await queue.take()
            queue.done("gang")
            waits.append(clock.now() - began)
        return waits

    assert asyncio.run(play()) == [1.0, 2.0, 4.0, 8.0, BACKOFF_SECONDS_MAX, BACKOFF_SECONDS_MAX]


def test_one_that_fails_again_and_again_waits_no_longer_than_one_that_is_refused() -> None:
    """After an error the wait grows from milliseconds, and has the bound of the back-off."""

    async def play() -> float:
        clock = VirtualClock(START)
        queue = SchedulingQueue[str](clock, lambda _: Rank(0, ""))
        for _ in range(20):
            began = clock.now()
            queue.retry("pod")
            await clock.advance(BACKOFF_SECONDS_MAX)
            assert await queue.take() == "pod"
            queue.done("pod")
        return clock.now() - began

    assert asyncio.run(play()) == BACKOFF_SECONDS_MAX


def test_a_change_wakes_only_those_whom_it_may_help() -> None:
    """A deleted pod helps units without capacity, a deleted node those with spread constraints."""
    queue = SchedulingQueue[str](VirtualClock(START), lambda _: Rank(0, ""))
    queue.park("devices", Change.OTHER)
    queue.park("room")
    queue.park("spread", Change.OTHER | Change.NODE_LEFT)

    queue.wake(Change.NODE_LEFT)
    assert taken(queue) == ["spread"]
    queue.wake(Change.POD_LEFT)
    assert taken(queue) == ["room"]
    queue.wake()
    assert taken(queue) == ["devices"]


def test_what_nothing_helps_comes_back_after_five_minutes_with_nothing_remembered() -> None:
    """All that come back together forget once, and are counted as active alone by then."""

    async def play() -> tuple[dict[str, int], list[str], int]:
        clock = VirtualClock(START)
        flushes = []
        queue = SchedulingQueue[str](clock, lambda _: Rank(0, ""))
        queue.on_flush = lambda: flushes.append(clock.now())
        queue.park("pod")
        queue.park_backed_off("gang")
        queue.park_until_claim("claimant", "ns/claim")
        queue.park("gone")
        queue.drop("gone")
        await clock.advance(UNSCHEDULABLE_SECONDS_MAX - 1)
        assert not len(queue)
        await clock.advance(1)
        counts = queue.counts(lambda _: 1)
        return counts, [await queue.take() for _ in range(len(queue))], len(flushes)

    counts, order, flushes = asyncio.run(play())

    assert counts == {"active": 3, "backoff": 0, "unschedulable": 0}
    assert sorted(order) == ["claimant", "gang", "pod"]
    assert flushes == 1
