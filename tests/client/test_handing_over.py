"""A watch in the process of its server: objects by reference, with the same events."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from tests.client.planes import CountedChance, config_map

from dryrack.client.client import Client, Selection, WatchEvent, ends_initial_events
from dryrack.client.endpoints import CONFIG_MAPS, PODS
from dryrack.client.informer import Informer, Name
from dryrack.client.timekeeping import VirtualClock, run_virtual
from dryrack.cluster.control_plane import ControlPlane, ControlPlaneOptions, build_control_plane
from dryrack.store import Key, Stored

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dryrack.client.endpoints import Endpoint
    from dryrack.client.transport import Request, Response, Transport
    from dryrack.kinds.raw import Raw

DEFAULT = Selection(namespace="default")


@dataclass(frozen=True, slots=True)
class Wire:
    """A way on which everything is text."""

    to: Transport

    async def send(self, request: Request) -> Response:
        return await self.to.send(msgspec.structs.replace(request, takes_objects=False))


def plane() -> ControlPlane:
    return build_control_plane(ControlPlaneOptions(clock=VirtualClock(), chance=CountedChance()))


def pod(name: str) -> Raw:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1000m"}}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 5, "nodeSelector": {}}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


async def life(client: Client) -> None:
    """A pod comes, runs, is changed, and goes."""
    made = await client.create(PODS, pod("a"))
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await client.update(PODS, made | {"status": status}, subresource="status")
    labels = {"metadata": {"labels": {"x": "y"}}}
    await client.patch(PODS, "a", labels, namespace="default")
    await client.delete(PODS, "a", namespace="default", grace_seconds=0)


async def events(client: Client, endpoint: Endpoint, **options: Any) -> list[WatchEvent]:
    """Return the first events of a watch."""
    found = []
    async with client.watch(endpoint, DEFAULT, **options) as told:
        async for each in told:
            if ends_initial_events(each):
                break
            found.append(each)
            if each.type == "DELETED":
                break
    return found


def by_both_ways(story: Callable[[Client], Awaitable[Any]]) -> tuple[bytes, bytes]:
    """Return the results of a story in the process and through text, each on its own cluster."""

    async def told(wrap: Callable[[Transport], Transport]) -> bytes:
        return msgspec.json.encode(await story(plane().client().through(wrap)))

    return run_virtual(told(lambda way: way)), run_virtual(told(Wire))


def test_events_are_the_same_to_the_byte() -> None:
    """Numbers, empty values, and the order of fields are the same as in text."""

    async def story(client: Client) -> list[Any]:
        made = await client.create(PODS, pod("b"))
        before = await events(client, PODS, with_initial_events=True)
        await life(client)
        after = await events(client, PODS, revision=made["metadata"]["resourceVersion"])
        return [(each.type, each.object) for each in (*before, *after)]

    by_reference, by_text = by_both_ways(story)
    assert by_reference == by_text
    types = [each[0] for each in msgspec.json.decode(by_text)]
    assert types == ["ADDED", "ADDED", "MODIFIED", "MODIFIED", "MODIFIED", "DELETED"]


def stored(here: ControlPlane, name: str) -> Stored:
    found = here.store.get(Key("configmaps", "default", name))
    assert found is not None
    return found


@pytest.mark.virtual_time
async def test_caches_and_the_store_have_one_object() -> None:
    """A value is there once for all informers of a process, and for the store."""
    here = plane()
    clock = here.options.clock
    chance = here.options.chance
    client = here.client()
    caches = [Informer(client, CONFIG_MAPS, clock=clock, chance=chance) for _ in range(2)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(each.run()) for each in caches]
        made = await client.create(CONFIG_MAPS, config_map("c", k="v"))
        for each in caches:
            await each.synced.wait()
            await each.wait_for_revision(made["metadata"]["resourceVersion"])
        for task in tasks:
            task.cancel()
    kept = [each.objects[Name("default", "c")] for each in caches]
    assert all(each["data"] is stored(here, "c").object["data"] for each in kept)
    assert not any("managedFields" in each["metadata"] for each in kept)
    assert "managedFields" in stored(here, "c").object["metadata"]


def test_what_is_compact_or_large_is_told_as_text() -> None:
    """The server no longer has the one object; readers of the other share parts."""

    async def story() -> list[WatchEvent]:
        here = plane()
        client = here.client()
        for name, value in (("compact", "v"), ("large", "v" * 9000), ("small", "v")):
            await client.create(CONFIG_MAPS, config_map(name, k=value))
        stored(here, "compact").compact()
        return await events(client, CONFIG_MAPS, with_initial_events=True)

    told = {each.object["metadata"]["name"]: each for each in run_virtual(story())}
    handed_over = [name for name, each in told.items() if each.is_handed_over]
    assert handed_over == ["small"]
    assert told["large"].object["data"] == {"k": "v" * 9000}
