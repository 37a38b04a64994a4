"""Other pods are decided during a long search; its result counts only without changes."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from tests.allocation.builders import claim, counters, device_class, drawing, pool, request
from tests.allocation.knapsacks import Searches, hard_claim, hard_node
from tests.scheduler.builders import eventually, find_message, node, user_of, with_scheduler

from dryrack.allocation.search import allocator
from dryrack.allocation.search.walk import Ending, Walk
from dryrack.client.endpoints import CLAIMS, CLASSES, PODS, SLICES
from dryrack.kinds.decode import to_builtins
from dryrack.store import Key

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

    import pytest
    from tests.scheduler.builders import RecordingTransport

    from dryrack.client.client import Client
    from dryrack.cluster.embedded import EmbeddedCluster
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.resource import ResourceClaim, ResourceSlice


# Far more than it takes to schedule a pod.
TURNS_MAX = 100_000
PARTS = 16


class Watched:
    """Searches that note when they have a turn, and do not end before something is so."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.rounds = 0
        # In which round of the event loop each turn was, and how many steps it had.
        self.turns: list[tuple[int, int]] = []
        self.begun = asyncio.Event()
        self.may_end: Callable[[], bool] = lambda: True
        self._steps = 0
        self._run = Walk.run
        self._turns = allocator.Search._turns
        patch.setattr(Walk, "run", lambda *of, **limits: self._counted(*of, **limits))
        patch.setattr(allocator.Search, "_turns", lambda *of: self._noted(*of))

    def _counted(self, walk: Walk, *of: int, **limits: int) -> Any:
        before = walk.steps
        try:
            return self._run(walk, *of, **limits)
        finally:
            self._steps += walk.steps - before

    def _noted(self, search: allocator.Search, proof: Any) -> Iterator[None]:
        self.begun.set()
        self._steps = 0
        for _ in self._turns(search, proof):
            self.turns.append((self.rounds, self._steps))
            yield
            self._steps = 0
        for _ in range(TURNS_MAX):
            if self.may_end():
                return
            yield
        raise AssertionError("nothing happened while the search went on")

    @asynccontextmanager
    async def counting_rounds(self) -> AsyncIterator[None]:
        """Notes each time that the event loop gets round."""

        async def count() -> None:
            for self.rounds in range(1 << 60):
                await asyncio.sleep(0)

        task = asyncio.create_task(count(), name="rounds")
        try:
            yield
        finally:
            task.cancel()


async def create_objects(client: Client, names: str, slices: Sequence[ResourceSlice]) -> None:
    await client.create(CLASSES, to_builtins(device_class()))
    for name in names:
        await node(client, name)
    for each in slices:
        await client.create(SLICES, to_builtins(each))


async def want(client: Client, name: str, wanted: ResourceClaim) -> None:
    """A pod that wants what the claim says."""
    await client.create(
        CLAIMS, {**to_builtins(wanted), "metadata": {"name": name, "namespace": "default"}}
    )
    await client.create(PODS, user_of(name, name))


async def node_of(client: Client, name: str) -> str:
    return str((await client.get(PODS, name, "default"))["spec"].get("nodeName", ""))


async def devices_of(client: Client, name: str) -> list[str]:
    status = (await client.get(CLAIMS, name, "default")).get("status", {})
    results = status.get("allocation", {}).get("devices", {}).get("results", [])
    return [each["device"] for each in results]


def stored(cluster: EmbeddedCluster, name: str) -> Raw:
    found = cluster.plane.store.get(Key("pods", "default", name))
    return found.object if found is not None else {"spec": {}}


def test_other_pods_are_bound_while_a_search_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over unlike nodes, turns are short, with a round of everything else between any two."""
    Searches(monkeypatch, steps=200)
    watched = Watched(monkeypatch)

    async def story(cluster: EmbeddedCluster, noting: RecordingTransport) -> None:
        client = cluster.client
        unlike = [each for n, name in enumerate("abc") for each in hard_node(name, spare=n)]
        await create_objects(client, "abc", unlike)
        watched.may_end = lambda: bool(stored(cluster, "easy")["spec"].get("nodeName"))
        async with watched.counting_rounds():
            await want(client, "hard", hard_claim())
            await watched.begun.wait()
            easy = "'nic' in device.attributes['gpu.example.com']"
            await want(client, "easy", claim(request("r", select=easy)))
            all_of_them = "0/3 nodes are available: 3 timed out"

            async def hard_is_told() -> bool:
                return (await find_message(client, "hard")).startswith(all_of_them)

            await eventually(cluster, hard_is_told)
        assert await node_of(client, "easy")

    with_scheduler(story)
    rounds = [turn for turn, _ in watched.turns]
    assert len(rounds) == len(set(rounds)) > 3
    # Sixty devices are looked at in each step with proof.
    assert max(steps for _, steps in watched.turns) <= 16 * (allocator._LOOKS_A_TURN // 60)


def test_what_was_found_is_not_taken_from_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a search finds the one combination that does, a part of it is given to another pod."""
    searches = Searches(monkeypatch, steps=1000)
    watched = Watched(monkeypatch)
    offered = [drawing(f"part-{n:02}", memory=PARTS - n) for n in range(PARTS)]
    offered[-1]["attributes"] = {"last": {"bool": True}}
    enough = sum(range(1, PARTS // 2 + 1))
    slices = pool(offered, sets=[counters(memory=enough)], node="a")
    last = "'last' in device.attributes['gpu.example.com']"

    async def story(cluster: EmbeddedCluster, noting: RecordingTransport) -> None:
        client = cluster.client
        await create_objects(client, "a", slices)
        watched.may_end = lambda: bool(stored(cluster, "other")["spec"].get("nodeName"))
        await want(client, "half", claim(request("r", PARTS // 2)))
        await watched.begun.wait()
        await want(client, "other", claim(request("r", select=last)))

        async def half_is_told() -> bool:
            return "1 cannot allocate all claims" in await find_message(client, "half")

        await eventually(cluster, half_is_told)
        assert await devices_of(client, "other") == [f"part-{PARTS - 1}"]
        assert await devices_of(client, "half") == []

    with_scheduler(story)
    assert searches.endings[0] is Ending.FOUND


def test_pods_that_want_the_same_wait_for_one_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second pod comes while the search for the first goes on, and needs none of its own."""
    searches = Searches(monkeypatch)
    watched = Watched(monkeypatch)

    async def story(cluster: EmbeddedCluster, noting: RecordingTransport) -> None:
        client = cluster.client
        await create_objects(client, "a", hard_node("a"))
        watched.may_end = lambda: bool(stored(cluster, "easy")["spec"].get("nodeName"))
        await want(client, "first", hard_claim())
        await watched.begun.wait()
        await want(client, "second", hard_claim())
        easy = "'nic' in device.attributes['gpu.example.com']"
        await want(client, "easy", claim(request("r", select=easy)))

        async def both_are_told() -> bool:
            both = [await find_message(client, name) for name in ("first", "second")]
            return all(each.startswith("0/1 nodes are available: 1 timed out") for each in both)

        await eventually(cluster, both_are_told)

    with_scheduler(story)
    assert searches.made == 1
