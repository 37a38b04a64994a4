"""The stream has each change at once, in order, and without gaps."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest
import yaml
from tests.client.planes import refusal
from tests.dashboard.small_world import (
    allocate,
    allocation,
    bind,
    create,
    device,
    node,
    resource_slice,
)
from tests.dashboard.visit import Visit, visit

from dryrack.client.endpoints import (
    CLAIMS,
    CONFIG_MAPS,
    COSCHEDULING_POD_GROUPS,
    DEFINITIONS,
    NODES,
    PODS,
    SLICES,
)
from dryrack.cluster import COMPONENTS
from dryrack.cluster.rights import MANIFESTS
from dryrack.dashboard.live import (
    CHECK_AGAIN_SECONDS,
    LINGER_SECONDS,
    Subscription,
    Update,
)

if TYPE_CHECKING:
    from dryrack.client.transport import Request, Response


def test_a_write_is_told_within_a_fifth_of_a_second() -> None:
    """By the clock of the cluster: what is not computed waits for nothing else."""

    async def story(page: Visit) -> None:
        since = (await page.get("fleet"))["revision"]
        async with page.streaming(f"?since={since}") as events:
            await allocate(page.client, "four", allocation("rack-2", "gpu-1"), "waits")
            await page.clock.advance(0.2)
            update = await events.next()

        assert update.type == "update"
        assert update.id == update.data["revision"] == since + 1
        [pool] = update.data["fleet"]["pools"]
        assert pool["pool"] == "rack-2"
        assert [each["state"] for each in pool["devices"]] == ["free", "allocated"]
        [claim] = update.data["claims"]["changed"]
        assert (claim["name"], claim["state"]) == ("four", "reserved")
        assert update.data["fleet"]["summary"][0]["free"] == 2
        assert "gangs" not in update.data

    visit(story)


def test_what_comes_together_is_told_together() -> None:
    """Writes of one moment are one update."""

    async def story(page: Visit) -> None:
        since = (await page.get("pods"))["revision"]
        async with page.streaming(f"?since={since}") as events:
            await bind(page.client, "waits", "rack-2")
            await bind(page.client, "half", "rack-2")
            await page.clock.advance(0.2)
            await page.client.delete(PODS, "train", namespace="team")
            await page.clock.advance(0.2)
            first = await events.next()
            second = await events.next()

        changed = {each["name"]: each["node"] for each in first.data["pods"]["changed"]}
        assert changed == {"waits": "rack-2", "half": "rack-2"}
        assert [each["status"] for each in first.data["gangs"]["changed"]] == ["incomplete"]
        assert second.id == first.id + 1

    visit(story)


def test_what_goes_is_told() -> None:
    """Nodes, pools and claims by their names."""

    async def story(page: Visit) -> None:
        since = (await page.get("fleet"))["revision"]
        async with page.streaming(f"?since={since}") as events:
            await page.client.delete(SLICES, "rack-2-gpus")
            await page.client.delete(NODES, "rack-2")
            await page.client.delete(CLAIMS, "four", namespace="team")
            await page.clock.advance(0.2)
            update = await events.next()

        assert update.data["fleet"]["poolsGone"] == [
            {"driver": "gpu.example.com", "pool": "rack-2"}
        ]
        assert update.data["fleet"]["nodesGone"] == ["rack-2"]
        assert update.data["claims"]["gone"] == ["team/four"]

    visit(story)


def test_who_was_away_is_told_what_was_missed() -> None:
    """A browser that comes back says with Last-Event-ID what it heard last."""

    async def story(page: Visit) -> None:
        since = (await page.get("fleet"))["revision"]
        for name in ("rack-3", "rack-4"):
            await create(page.client, SLICES, resource_slice(name, [device("gpu-0")]))
            await page.clock.advance(0.2)
        async with page.streaming("?since=1", **{"Last-Event-ID": str(since)}) as events:
            pools = [(await events.next()).data["fleet"]["pools"][0]["pool"] for _ in range(2)]

        assert pools == ["rack-3", "rack-4"]

    visit(story)


def test_who_was_away_for_too_long_begins_anew() -> None:
    """A client with a revision of another server, or without one, also gets a reset."""

    async def story(page: Visit) -> None:
        revision = (await page.get("fleet"))["revision"]
        for known in ("", "?since=17", f"?since={revision + 1}", "?since=<script>"):
            async with page.streaming(known) as events:
                event = await events.next()
            assert (event.type, event.data) == ("reset", {"revision": revision})

    visit(story)


def test_a_change_that_shows_nothing_new_is_not_told() -> None:
    """A node's heartbeat is no news."""

    async def story(page: Visit) -> None:
        since = (await page.get("fleet"))["revision"]
        rack = await page.client.get(NODES, "rack-1")
        rack["metadata"] = rack["metadata"] | {"annotations": {"beat": "1"}}
        await page.client.update(NODES, rack)
        await page.clock.advance(0.2)

        assert (await page.get("fleet"))["revision"] == since

    visit(story)


def test_a_first_visit_can_take_longer_than_the_watches_stay() -> None:
    """A visitor of a slow cluster gets the state when it is complete."""

    async def story(page: Visit) -> None:
        asked = asyncio.Event()

        def refuse(request: Request) -> Response | None:
            # Only the informer reads all pods.
            if not request.path.endswith("/pods") or "limit=1&" in f"{request.query}&":
                return None
            asked.set()
            return refusal(500, "InternalError")

        page.road.refuse = refuse
        async with asyncio.TaskGroup() as group:
            visitor = group.create_task(page.get("fleet"))
            await asked.wait()
            for _ in range(10):
                await page.clock.advance(LINGER_SECONDS)
            assert not visitor.done()
            page.road.refuse = lambda request: None
            await page.clock.advance(LINGER_SECONDS)
            assert (await visitor)["nodes"]["name"] == ["rack-1", "rack-2"]

    visit(story)


def test_a_cluster_that_cannot_be_followed_is_told() -> None:
    """Once, also to those who come meanwhile; and when it can be followed again."""

    async def story(page: Visit) -> None:
        since = (await page.get("fleet"))["revision"]
        async with page.streaming(f"?since={since}") as events:
            page.road.refuse = lambda request: refusal(500, "InternalError")
            page.road.cuts = 1
            await create(page.client, NODES, node("rack-3"))
            await page.clock.advance(0.2)
            lost = await events.next()
            async with page.streaming(f"?since={since}") as others:
                assert (await others.next()).data == lost.data
            page.road.refuse = lambda request: None
            await page.clock.advance(60)
            found = await events.next()
            update = await events.next()

        assert (lost.type, lost.id) == ("cluster", -1)
        assert lost.data["error"]
        assert (found.type, found.data) == ("cluster", {"error": "", "failures": []})
        assert [each["name"] for each in update.data["fleet"]["nodes"]] == ["rack-3"]

    visit(story)


def test_a_cordon_changes_the_free_devices_and_keeps_the_summary() -> None:
    """A cordoned node has no free devices; a change of a label alone sends no summary."""

    async def story(page: Visit) -> None:
        fleet = await page.get("fleet")
        async with page.streaming(f"?since={fleet['revision']}") as events:
            labeled = {"metadata": {"annotations": {"note": "x"}}}
            await page.client.patch(NODES, "rack-2", labeled)
            await page.client.patch(NODES, "rack-2", {"spec": {"unschedulable": True}})
            await page.clock.advance(0.2)
            cordoned = await events.next()
            zone = {"metadata": {"labels": {"topology.kubernetes.io/zone": "zone-c"}}}
            await page.client.patch(NODES, "rack-1", zone)
            await page.clock.advance(0.2)
            moved = await events.next()

        [before] = fleet["summary"]
        [after] = cordoned.data["fleet"]["summary"]
        assert (before["free"], after["free"]) == (3, 1)
        assert after["states"] == {"free": 1, "allocated": 1, "cordoned": 2}
        assert "summary" not in moved.data["fleet"]
        assert (await page.get("fleet"))["summary"] == [after]

    visit(story)


def test_components_that_have_failed_are_reported() -> None:
    """The page of an embedded control plane shows what the supervisor wrote, until it is gone."""
    failure = {"component": "scheduler", "error": "KeyError: 'x'", "count": 2}
    stopped = failure | {"restartsAt": "2027-01-15T08:00:00Z"}

    async def story(page: Visit) -> None:
        since = (await page.get("fleet"))["revision"]
        async with page.streaming(f"?since={since}") as events:
            namespace, name = COMPONENTS
            metadata = {"namespace": namespace, "name": name}
            data = {"failures": json.dumps([stopped])}
            await page.client.create(CONFIG_MAPS, {"metadata": metadata, "data": data})
            await page.clock.advance(0.2)
            failed = await events.next()
            await page.client.delete(CONFIG_MAPS, name, namespace=namespace)
            await page.clock.advance(0.2)
            mended = await events.next()

        text = "scheduler failed 2 times: KeyError: 'x'; it is stopped and restarts"
        assert (failed.type, failed.data) == ("cluster", {"error": "", "failures": [text]})
        assert mended.data == {"error": "", "failures": []}

    visit(story, with_past=True)


def test_a_kind_that_is_defined_later_is_picked_up() -> None:
    """PodGroups of scheduler-plugins come with a definition that anybody may install any time."""

    async def story(page: Visit) -> None:
        since = (await page.get("gangs"))["revision"]
        async with page.streaming(f"?since={since}") as events:
            definition = yaml.safe_load((MANIFESTS / "podgroups.yaml").read_text())
            await page.client.create(DEFINITIONS, definition)
            group = {"metadata": {"name": "later", "namespace": "team"}, "spec": {"minMember": 3}}
            await page.client.create(COSCHEDULING_POD_GROUPS, group)
            # A server that answers with an error once does not end the search.
            page.road.refuse = lambda request: refusal(500, "InternalError")
            await page.clock.advance(CHECK_AGAIN_SECONDS)
            page.road.refuse = lambda request: None
            await page.clock.advance(CHECK_AGAIN_SECONDS)
            await page.clock.advance(0.2)
            update = await events.next()

        [gang] = update.data["gangs"]["changed"]
        assert (gang["name"], gang["minCount"]) == ("later", 3)
        assert gang in (await page.get("gangs"))["gangs"]

    visit(story)


def test_a_kind_that_is_not_served_any_more_is_no_trouble() -> None:
    """Its gangs disappear without an error, and the kind may be served again."""

    async def story(page: Visit) -> None:
        definition = yaml.safe_load((MANIFESTS / "podgroups.yaml").read_text())
        group = {"metadata": {"name": "group", "namespace": "team"}, "spec": {"minMember": 3}}
        for _ in range(2):
            await page.client.create(DEFINITIONS, definition)
            await page.client.create(COSCHEDULING_POD_GROUPS, group)
            await page.get("gangs")
            await page.clock.advance(2 * CHECK_AGAIN_SECONDS)
            names = [each["name"] for each in (await page.get("gangs"))["gangs"]]
            assert names == ["group", "pair"]
            await page.client.delete(DEFINITIONS, definition["metadata"]["name"])
            await page.clock.advance(2 * CHECK_AGAIN_SECONDS)
            names = [each["name"] for each in (await page.get("gangs"))["gangs"]]
            assert names == ["pair"]
            assert page.live.trouble.text == ""

    visit(story)


@pytest.mark.parametrize(("count", "size"), [(300, 1), (20, 1_000_000)])
def test_a_reader_that_does_not_read_has_to_begin_anew(count: int, size: int) -> None:
    """Nothing is kept for it beyond what is kept for all, in number and in bytes."""
    slow = Subscription()
    for number in range(count):
        slow.send(Update(number, "", b"x" * size))

    assert asyncio.run(slow.next()) is None


async def test_a_reader_that_reads_is_told_everything() -> None:
    """Updates that the client has read do not count for the limit."""
    quick = Subscription()
    for number in range(300):
        update = Update(number, "", b"x" * 1_000_000)
        quick.send(update)
        assert await quick.next() is update
