"""Past states of the fleet, and the changes since then."""

from __future__ import annotations

import pytest
from tests.dashboard.small_world import (
    allocate,
    allocation,
    bind,
    create,
    device,
    resource_slice,
    set_phase,
    small_world,
)
from tests.dashboard.visit import BEARER, Visit, visit

from dryrack.client.endpoints import NODES, SLICES
from dryrack.dashboard import history, replay


async def eventful(page: Visit) -> list[object]:
    """Four things happen, a second apart; the map before and after each of them."""
    maps = [await page.get("fleet")]

    async def happened() -> None:
        await page.clock.advance(1)
        maps.append(await page.get("fleet"))

    await allocate(page.client, "four", allocation("rack-2", "gpu-0", "gpu-1"), "waits")
    await happened()
    await bind(page.client, "waits", "rack-2")
    await set_phase(page.client, "waits", "Running")
    await happened()
    await create(page.client, SLICES, resource_slice("rack-3", [device("gpu-0")]))
    await happened()
    await page.client.delete(NODES, "rack-1")
    await page.client.delete(SLICES, "rack-1-gpus")
    await happened()
    return list(maps)


def test_the_map_of_every_moment_can_be_had_again() -> None:
    """By its revision it is, but for its time, the answer that was given then."""

    async def story(page: Visit) -> None:
        for then in await eventful(page):
            assert isinstance(then, dict)
            found = await page.get(f"fleet?at={then['revision']}")
            assert found.pop("time")
            assert found == then

    visit(story)


def test_a_time_is_as_good_as_a_revision() -> None:
    """It means the last change before it."""

    async def story(page: Visit) -> None:
        began, second, *_ = await eventful(page)
        found = await page.get("fleet?at=2027-01-15T08:00:00.500000Z")
        assert isinstance(second, dict)

        assert found["revision"] == second["revision"]
        assert found["devices"] == second["devices"]
        assert (await page.get("fleet?at=2027-01-15T08:00:00.010000Z"))["devices"] == (
            began["devices"] if isinstance(began, dict) else None
        )

    visit(story)


def test_the_timeline_tells_what_happened() -> None:
    """Pods and nodes by name, devices by number, and how many were in which state."""

    async def story(page: Visit) -> None:
        await eventful(page)
        moments = (await page.get("timeline"))["moments"]
        told = [
            [(each["kind"], each["name"], each["what"]) for each in moment["changes"]]
            for moment in moments
        ]

        assert told == [
            [],
            [("devices", "Example 80GB", "free → allocated")],
            [
                ("pod", "team/waits", "bound to rack-2"),
                ("devices", "Example 80GB", "allocated → prepared"),
            ],
            [("devices", "Example 80GB", "none → no node")],
            [
                ("node", "rack-1", "deleted"),
                ("devices", "Example 80GB", "allocated → withdrawn"),
                ("devices", "Example 80GB", "free → none"),
            ],
        ]
        assert moments[0]["states"] == {"free": 3, "allocated": 1}
        assert moments[-1]["states"] == {"prepared": 2, "no node": 1}
        later = await page.get("timeline?from=2027-01-15T08:00:02.000000Z")
        assert later["moments"] == moments[3:]

    visit(story)


@pytest.mark.parametrize(
    ("at", "words"),
    [
        ("1", "the history begins later, at 2027-01-15T08:00:00.000000Z"),
        ("2001-01-01T00:00:00Z", "the history begins later, at 2027-01-15T08:00:00.000000Z"),
    ],
)
def test_what_is_not_known_any_more_is_told(at: str, words: str) -> None:
    """The error has the begin of the history."""

    async def story(page: Visit) -> None:
        await page.get("fleet")
        async with page.http.get(f"/api/v1/fleet?at={at}", headers=BEARER) as response:
            assert response.status == 404
            error = (await response.json())["error"]
        assert error.endswith(words)

    visit(story)


@pytest.mark.parametrize(
    ("at", "words"),
    [
        ("then", "must be a revision, or a time, for example 2027-01-15T08:00:00Z"),
        (
            "0001-01-01T00:00:00",
            "must be a revision, or a time, for example 2027-01-15T08:00:00Z",
        ),
        pytest.param("1" * 5000, "the revision has too many digits", id="thousands of digits"),
    ],
)
def test_what_is_neither_a_revision_nor_a_time_is_refused(at: str, words: str) -> None:
    """Also a number of more digits than Python converts."""

    async def story(page: Visit) -> None:
        await page.get("fleet")
        async with page.http.get(f"/api/v1/fleet?at={at}", headers=BEARER) as response:
            assert response.status == 400
            error = (await response.json())["error"]
        assert error.endswith(words)

    visit(story)


def test_what_does_not_fit_is_forgotten_from_the_far_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of the history is still right."""
    monkeypatch.setattr(history, "DASHBOARD_MOMENTS_MAX", 3)

    async def story(page: Visit) -> None:
        maps = await eventful(page)
        assert len((await page.get("timeline"))["moments"]) == 3
        assert isinstance(maps[2], dict)
        found = await page.get(f"fleet?at={maps[2]['revision']}")
        assert found["devices"] == maps[2]["devices"]

    visit(story)


def test_the_past_of_a_plane_is_known_from_its_log() -> None:
    """The history has the changes from before the first visit, with their times."""

    async def story(page: Visit) -> None:
        await small_world(page.client)
        await page.clock.advance(60)
        await allocate(page.client, "four", allocation("rack-2", "gpu-0"), "waits")
        await page.clock.advance(60)
        await page.client.delete(SLICES, "rack-2-gpus")
        await page.clock.advance(60)
        moments = (await page.get("timeline"))["moments"]
        told = {
            (each["name"], each["what"]): moment["time"]
            for moment in moments
            for each in moment["changes"]
        }

        assert told["rack-1", "created"] == "2027-01-15T08:00:00.000000Z"
        assert told["team/train", "bound to rack-1"] == "2027-01-15T08:00:00.000000Z"
        assert told["Example 80GB", "free → allocated"] == "2027-01-15T08:01:00.000000Z"
        assert moments[0]["states"] == {}
        then = await page.get("fleet?at=2027-01-15T08:01:30Z")
        [summary] = then["summary"]
        assert summary["states"] == {"free": 2, "allocated": 2}
        assert len(then["devices"]["pool"]) == 4
        now = await page.get("fleet")
        assert [now["states"][each] for each in now["devices"]["state"]] == [
            "allocated",
            "free",
            "withdrawn",
        ]

    visit(story, empty=True, with_past=True)


def test_a_plane_with_a_past_shows_what_one_without_shows() -> None:
    """The log is read for the timeline alone: every answer about now is the same."""
    answers: list[list[object]] = []

    async def story(page: Visit) -> None:
        paths = ("fleet", "claims", "gangs", "pods", "events", "slices", "claims/team/one")
        found = [await page.get(each) for each in paths]
        for each in found:
            assert each.pop("revision")
        answers.append(list(found))

    visit(story)
    visit(story, with_past=True)
    assert answers[0] == answers[1]


def test_large_pools_have_a_shorter_past_and_the_same_present(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Repeating a write costs as much as its pool has devices."""
    answers: list[object] = []
    counts: list[int] = []

    async def story(page: Visit) -> None:
        found = await page.get("fleet")
        found.pop("revision")
        answers.append(found)
        counts.append(len((await page.get("timeline"))["moments"]))

    visit(story, with_past=True)
    # Of two thousand writes with 20 devices, it leaves three writes with two.
    monkeypatch.setattr(replay, "DEVICES_PER_WRITE_MAX", 0.0031)
    visit(story, with_past=True)

    assert answers[0] == answers[1]
    assert counts[1] <= 4 < counts[0]
