"""A search that is given up costs the scheduler its time once, until something matters anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.allocation.builders import device_class
from tests.allocation.knapsacks import Searches, hard_claim, hard_node
from tests.scheduler.builders import eventually, find_message, node, user_of, with_scheduler

from dryrack.client.endpoints import CLAIMS, CLASSES, EVENTS, PODS, SLICES
from dryrack.kinds.decode import to_builtins

if TYPE_CHECKING:
    import pytest
    from tests.scheduler.builders import RecordingTransport

    from dryrack.client.client import Client
    from dryrack.cluster.embedded import EmbeddedCluster

NAMES = ("a", "b", "c")
ALL = "0/3 nodes are available: 3 timed out trying to allocate devices."


async def create_objects(client: Client) -> None:
    """Equal nodes for which the search reaches its limit."""
    await client.create(CLASSES, to_builtins(device_class()))
    for name in NAMES:
        await node(client, name)
        for each in hard_node(name):
            await client.create(SLICES, to_builtins(each))


async def want(client: Client, name: str) -> None:
    """A pod that wants what may not be there."""
    claim = to_builtins(hard_claim())
    claim["metadata"] = {"name": name, "namespace": "default"}
    await client.create(CLAIMS, claim)
    await client.create(PODS, user_of(name, name))


def test_undecided_pods_wait_for_what_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Alike nodes, a second pod and a node without devices cost no search; a change does."""
    searches = Searches(monkeypatch)

    async def story(cluster: EmbeddedCluster, noting: RecordingTransport) -> None:
        client = cluster.client

        async def says(name: str, start: str) -> bool:
            return (await find_message(client, name)).startswith(start)

        await create_objects(client)
        await want(client, "first")
        await eventually(cluster, lambda: says("first", ALL))
        assert "Node a, claim default/first: the search stopped at its limit" in await find_message(
            client, "first"
        )
        messages = [event["message"] for event in (await client.list(EVENTS)).items]
        assert await find_message(client, "first") in messages

        await want(client, "second")
        await eventually(cluster, lambda: says("second", ALL))
        await node(client, "d")
        more = "0/4 nodes are available: 1 cannot allocate all claims, 3 timed out"
        await eventually(cluster, lambda: says("first", more))
        await eventually(cluster, lambda: says("second", more))
        assert searches.made == 1

        # One more in each counter of one node.
        [counters] = [each for each in hard_node("b", spare=1) if each.spec.shared_counters]
        current = await client.get(SLICES, counters.metadata.name)
        await client.update(SLICES, {**current, "spec": to_builtins(counters.spec)})
        await want(client, "third")
        await eventually(cluster, lambda: says("third", more))
        assert searches.made == 2

    with_scheduler(story)
