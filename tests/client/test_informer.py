"""The cache is finally correct, also after errors."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.client.planes import Site, config_map, refusal, site

from dryrack.client.client import Selection
from dryrack.client.endpoints import CONFIG_MAPS
from dryrack.client.errors import NotFoundError
from dryrack.client.informer import Informer, Name
from dryrack.client.timekeeping import settle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from dryrack.client.transport import Request, Response
    from dryrack.kinds.raw import Raw


@asynccontextmanager
async def informed(here: Site) -> AsyncIterator[Informer]:
    informer = Informer(
        here.client,
        CONFIG_MAPS,
        clock=here.clock,
        chance=here.chance,
        selection=Selection(namespace="default"),
    )
    async with asyncio.TaskGroup() as group:
        task = group.create_task(informer.run())
        yield informer
        task.cancel()


async def truth(here: Site) -> dict[Name, str]:
    listing = await here.client.list(CONFIG_MAPS, Selection(namespace="default"))
    return {
        Name("default", each["metadata"]["name"]): each["metadata"]["resourceVersion"]
        for each in listing.items
    }


def known(informer: Informer) -> dict[Name, str]:
    return {name: obj["metadata"]["resourceVersion"] for name, obj in informer.objects.items()}


async def do(here: Site, word: str, number: int) -> None:
    name = f"c{number}"
    match word:
        case "put":
            await here.client.apply(
                CONFIG_MAPS, config_map(name, x=here.chance.uuid()), manager="t", force=True
            )
        case "delete":
            try:
                await here.client.delete(CONFIG_MAPS, name, namespace="default")
            except NotFoundError:
                return
        case "cut":
            here.road.cuts = 1
        case "lose":
            here.road.refuse = lambda request: (
                refusal(410, "Expired") if "resourceVersion=" in request.query else None
            )
            here.road.cuts = 1
        case "settle":
            await here.clock.advance(60)
            here.road.refuse = lambda _: None


WORDS = st.sampled_from(["put", "put", "put", "delete", "cut", "lose", "settle"])


@settings(max_examples=40)
@given(st.lists(st.tuples(WORDS, st.integers(0, 4)), max_size=25))
def test_the_cache_is_right_in_the_end(script: list[tuple[str, int]]) -> None:
    """After any changes, broken watches and lost revisions, cache and listeners agree with it."""

    async def play() -> None:
        here = site()
        heard: dict[str, Raw] = {}

        def listen(old: Raw | None, new: Raw | None) -> None:
            if old is not None:
                assert heard.pop(old["metadata"]["uid"]) is old
            if new is not None:
                assert new["metadata"]["uid"] not in heard
                heard[new["metadata"]["uid"]] = new

        async with informed(here) as informer:
            informer.listen(listen)
            for word, number in [*script, ("settle", 0), ("put", 9), ("settle", 0)]:
                await do(here, word, number)
            assert known(informer) == await truth(here)
            assert sorted(map(id, heard.values())) == sorted(map(id, informer.objects.values()))

    asyncio.run(play())


async def test_a_server_without_initial_events_is_listed() -> None:
    """If a server refuses initial events, the informer lists, and watches from there."""

    def refuse(request: Request) -> Response | None:
        return refusal(422, "Invalid") if "sendInitialEvents" in request.query else None

    here = site()
    here.road.refuse = refuse
    await here.client.create(CONFIG_MAPS, config_map("a"))
    async with informed(here) as informer:
        await informer.synced.wait()
        await here.client.create(CONFIG_MAPS, config_map("b"))
        await settle()
        assert known(informer) == await truth(here)


async def test_an_unreachable_server_is_asked_less_and_less() -> None:
    """Attempts spread out: few in the first minute, and not given up."""
    here = site()
    here.road.refuse = lambda _: refusal(503, "ServiceUnavailable")
    async with informed(here) as informer:
        await here.clock.advance(60)
        assert 4 <= len(here.road.asked) <= 10
        here.road.refuse = lambda _: None
        await here.clock.advance(31)
        assert informer.synced.is_set()


async def test_an_index_follows_the_objects() -> None:
    """An index returns the objects that have the key now."""
    here = site()
    async with informed(here) as informer:
        index = informer.index("x", lambda obj: (obj.get("data") or {}).values())
        await informer.synced.wait()
        await here.client.create(CONFIG_MAPS, config_map("a", k="one"))
        await settle()
        assert [each["metadata"]["name"] for each in index.get("one")] == ["a"]
        patch = {"data": {"k": "two"}}
        await here.client.patch(CONFIG_MAPS, "a", patch, namespace="default")
        await settle()
        assert index.get("one") == ()
        assert len(index.get("two")) == 1


async def test_an_index_takes_an_object_that_has_a_key_twice() -> None:
    """A pod that names one claim template twice is one entry, which goes with the pod."""
    here = site()
    async with informed(here) as informer:
        index = informer.index("x", lambda obj: (obj.get("data") or {}).values())
        await informer.synced.wait()
        await here.client.create(CONFIG_MAPS, config_map("a", k="one", l="one"))
        await settle()
        assert index.count("one") == 1
        await here.client.delete(CONFIG_MAPS, "a", namespace="default")
        await settle()
        assert index.get("one") == ()


async def test_a_revision_can_be_waited_for() -> None:
    """`reached` returns when the cache has seen a write, and not before."""
    here = site()
    async with informed(here) as informer:
        await informer.synced.wait()
        made = await here.client.create(CONFIG_MAPS, config_map("a"))
        await informer.wait_for_revision(made["metadata"]["resourceVersion"])
        assert informer.get("default", "a") is not None
