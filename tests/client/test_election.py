"""One leader at a time, in whatever way it goes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.client.planes import Road, Site, refusal, site

from dryrack.client.client import Client
from dryrack.client.election import LeaderElection, LostLeadershipError
from dryrack.client.informer import Name
from dryrack.client.timekeeping import sleep

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

LEASE = Name("default", "engine")


def candidate(here: Site, identity: str, road: Road | None = None) -> LeaderElection:
    client = Client(road) if road else here.client
    return LeaderElection(client, LEASE, identity, clock=here.clock, chance=here.chance)


def working(here: Site, leaders: list[str], name: str) -> Callable[[], Awaitable[None]]:
    async def work() -> None:
        leaders.append(name)
        try:
            await sleep(here.clock, 1e9)
        finally:
            leaders.remove(name)

    return work


def test_the_second_waits_for_the_first() -> None:
    """A candidate begins when the leader has given the lease back, and not before."""

    async def play() -> None:
        here, leaders = site(), list[str]()
        async with asyncio.TaskGroup() as group:
            first = group.create_task(candidate(here, "a").lead(working(here, leaders, "a")))
            await here.clock.advance(5)
            second = group.create_task(candidate(here, "b").lead(working(here, leaders, "b")))
            await here.clock.advance(120)
            assert leaders == ["a"]
            first.cancel()
            await here.clock.advance(5)
            assert leaders == ["b"]
            second.cancel()

    asyncio.run(play())


def test_who_cannot_renew_stops_before_another_begins() -> None:
    """A leader that is cut off ends its work within the lease; then another takes over."""

    async def play() -> None:
        here, leaders = site(), list[str]()
        road = Road(here.road)
        async with asyncio.TaskGroup() as group:
            first = group.create_task(self_ending(candidate(here, "a", road), here, leaders))
            await here.clock.advance(5)
            second = group.create_task(candidate(here, "b").lead(working(here, leaders, "b")))
            await here.clock.advance(5)
            road.refuse = lambda _: refusal(503, "ServiceUnavailable")
            for _ in range(60):
                await here.clock.advance(0.5)
                assert leaders in (["a"], [], ["b"])
            assert leaders == ["b"]
            assert first.done()
            second.cancel()

    asyncio.run(play())


async def self_ending(election: LeaderElection, here: Site, leaders: list[str]) -> None:
    with pytest.raises(LostLeadershipError):
        await election.lead(working(here, leaders, "a"))
