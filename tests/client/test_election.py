"""There is one leader at a time, for every way in which it ends."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import pytest
from tests.client.planes import Road, Site, refusal, site

from dryrack.client.client import Client
from dryrack.client.election import LeaderElection, LostLeadershipError
from dryrack.client.endpoints import LEASES
from dryrack.client.informer import Name
from dryrack.client.timekeeping import sleep

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dryrack.client.transport import Request, Response, Transport

LEASE = Name("default", "engine")


class Silent:
    """A server that accepts requests and, on request, answers none."""

    def __init__(self, to: Transport) -> None:
        self._to = to
        self.is_silent = False

    async def send(self, request: Request) -> Response:
        if self.is_silent:
            await asyncio.Event().wait()
        return await self._to.send(request)


def candidate(here: Site, identity: str, road: Transport | None = None) -> LeaderElection:
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


def test_the_second_waits_for_the_first(caplog: pytest.LogCaptureFixture) -> None:
    """A candidate begins when the leader has given the lease back, and says once why it waits."""
    caplog.set_level(logging.INFO)

    async def play() -> None:
        here = site()
        leaders = list[str]()
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
    assert caplog.text.count("lease default/engine: held by a; waiting") == 1


async def test_who_cannot_renew_stops_before_another_begins() -> None:
    """A leader that is cut off ends its work within the lease; then another takes over."""
    here = site()
    leaders = list[str]()
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


async def self_ending(election: LeaderElection, here: Site, leaders: list[str]) -> None:
    with pytest.raises(LostLeadershipError):
        await election.lead(working(here, leaders, "a"))


async def test_a_server_that_does_not_answer_moves_no_deadline() -> None:
    """A leader whose renewal hangs stops before the lease is over, and another takes over."""
    here = site()
    leaders = list[str]()
    road = Road(here.road)
    silent = Silent(road)
    async with asyncio.TaskGroup() as group:
        first = group.create_task(self_ending(candidate(here, "a", silent), here, leaders))
        await here.clock.advance(5)
        second = group.create_task(candidate(here, "b").lead(working(here, leaders, "b")))
        await here.clock.advance(5)
        silent.is_silent = True
        for _ in range(60):
            await here.clock.advance(0.5)
            assert leaders in (["a"], [], ["b"])
        assert leaders == ["b"]
        assert first.done()
        second.cancel()


async def test_who_finds_another_in_his_place_stops_at_once() -> None:
    """A lease that another client took by force ends the work at the next renewal."""
    here = site()
    leaders = list[str]()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(self_ending(candidate(here, "a"), here, leaders))
        await here.clock.advance(5)
        lease = await here.client.get(LEASES, LEASE.name, LEASE.namespace)
        stolen = lease | {"spec": lease["spec"] | {"holderIdentity": "thief"}}
        await here.client.update(LEASES, stolen)
        await here.clock.advance(2)
        assert leaders == []
        assert first.done()


async def test_what_fails_under_a_lease_gives_it_back() -> None:
    """The error of the work comes out, and the next candidate need not wait."""
    here = site()
    leaders = list[str]()

    async def failing() -> None:
        raise ZeroDivisionError

    with pytest.raises(ExceptionGroup) as failure:
        await candidate(here, "a").lead(failing)
    assert failure.group_contains(ZeroDivisionError)
    async with asyncio.TaskGroup() as group:
        second = group.create_task(candidate(here, "b").lead(working(here, leaders, "b")))
        await here.clock.advance(0.1)
        assert leaders == ["b"]
        second.cancel()
