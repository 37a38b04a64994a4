"""Watches: without a gap, in the words of the watcher's selector, and never without bound."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apiserver.asking import CONFIG_MAPS, TASKS, Asked, Watching, WatchIsOverError, run

from dryrack.apiserver.verbs import watch_backlog, watching
from dryrack.store import Store


async def watch(asked: Asked, query: str, path: str = CONFIG_MAPS) -> Watching:
    return Watching(await asked.ask(f"GET {path}?watch=1&{query}"))


def test_a_watch_begins_with_what_is_there_and_goes_on() -> None:
    """A watch without a revision sends all objects as ADDED and then every change."""

    async def scene() -> None:
        asked = Asked()
        await asked.make("a")
        reader = await watch(asked, "")
        await asked.make("b")
        await asked.ask(f"PUT {CONFIG_MAPS}/a", {"metadata": {"name": "a"}, "data": {"x": "y"}})
        await asked.ask(f"DELETE {CONFIG_MAPS}/b")

        assert await reader.names() == [
            ("ADDED", "a"),
            ("ADDED", "b"),
            ("MODIFIED", "a"),
            ("DELETED", "b"),
        ]
        assert await reader.names() == []

    run(scene())


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz-")), max_size=12))
def test_a_watcher_with_a_selector_knows_what_a_list_with_it_says(
    script: list[tuple[str, str]],
) -> None:
    """However labels change, replaying the events gives the selected list."""

    async def scene() -> None:
        asked = Asked()
        known = dict[str, str]()
        reader = await watch(asked, "labelSelector=tier+in+(x,y)")
        for name, tier in script:
            meta = {"name": name, "labels": {"tier": tier}} if tier != "-" else {"name": name}
            if (await asked.ask(f"PUT {CONFIG_MAPS}/{name}", {"metadata": meta})).status == 404:
                await asked.ask(f"POST {CONFIG_MAPS}", {"metadata": meta})
        for event in await reader.events():
            meta = event["object"]["metadata"]
            if event["type"] == "DELETED":
                assert known.pop(meta["name"]) != meta["resourceVersion"]
            else:
                assert (meta["name"] in known) is (event["type"] == "MODIFIED")
                known[meta["name"]] = meta["resourceVersion"]
        listed = await asked.told(f"GET {CONFIG_MAPS}?labelSelector=tier+in+(x,y)")

        assert known == {
            each["metadata"]["name"]: each["metadata"]["resourceVersion"]
            for each in listed["items"]
        }

    run(scene())


def test_an_object_that_leaves_the_selection_is_told_as_it_was() -> None:
    """The deletion that a watcher sees has the old labels and the new revision."""

    async def scene() -> None:
        asked = Asked()
        await asked.make("a", metadata={"labels": {"t": "1"}})
        reader = await watch(asked, "labelSelector=t%3D1")
        await reader.events()
        changed = await asked.told(f"PUT {CONFIG_MAPS}/a", {"metadata": {"name": "a"}})
        (event,) = await reader.events()

        assert event["type"] == "DELETED"
        assert event["object"]["metadata"]["labels"] == {"t": "1"}
        assert (
            event["object"]["metadata"]["resourceVersion"] == changed["metadata"]["resourceVersion"]
        )

    run(scene())


def test_fields_select_events_too() -> None:
    """A watch by a selectable field sends events of the objects that have the value."""

    async def scene() -> None:
        asked = Asked()
        reader = await watch(asked, "fieldSelector=spec.where%3Dhere", TASKS)
        await asked.make("a", TASKS, spec={"where": "here"})
        await asked.make("b", TASKS, spec={"where": "there"})

        assert await reader.names() == [("ADDED", "a")]

    run(scene())


def test_the_end_of_the_initial_events_is_marked_and_bookmarks_follow() -> None:
    """A watch that asks for them gets the state, a mark, and a bookmark every minute."""

    async def scene() -> None:
        asked = Asked()
        made = await asked.make("a")
        reader = await watch(
            asked,
            "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
        )
        first, mark = await reader.events()
        other = await asked.make("t", TASKS)
        await asked.clock.advance(watching.BOOKMARK_SECONDS)
        (bookmark,) = await reader.events()
        await asked.clock.advance(watching.BOOKMARK_SECONDS)
        again = await reader.events()

        assert first["object"]["metadata"]["name"] == "a"
        assert mark["object"]["metadata"] == {
            "resourceVersion": made["metadata"]["resourceVersion"],
            "annotations": {"k8s.io/initial-events-end": "true"},
        }
        assert (bookmark["type"], bookmark["object"]["kind"]) == ("BOOKMARK", "ConfigMap")
        assert bookmark["object"]["metadata"] == {
            "resourceVersion": other["metadata"]["resourceVersion"]
        }
        assert len(again) == 1

    run(scene())


def test_a_watch_ends_when_its_time_is_over() -> None:
    """`timeoutSeconds` ends the stream by the cluster's clock, with a last bookmark before."""

    async def scene() -> None:
        asked = Asked()
        reader = await watch(asked, "timeoutSeconds=10&allowWatchBookmarks=true")
        await asked.clock.advance(9)
        (bookmark,) = await reader.events()
        await asked.clock.advance(1)

        assert bookmark["type"] == "BOOKMARK"
        with pytest.raises(WatchIsOverError):
            await reader.events()

    run(scene())


def test_a_revision_that_is_forgotten_is_told_as_an_error_event() -> None:
    """A watch from before the log is a 200 with one ERROR of 410 Expired."""

    async def scene() -> None:
        asked = Asked(Store(events_max=2))
        first = await asked.make("a")
        for name in "bcd":
            await asked.make(name)
        revision = first["metadata"]["resourceVersion"]
        reader = await watch(asked, f"resourceVersion={revision}")
        (event,) = await reader.events()

        assert event["type"] == "ERROR"
        assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
        with pytest.raises(WatchIsOverError):
            await reader.events()

    run(scene())


def test_a_watch_from_a_revision_tells_only_what_came_later() -> None:
    """The change of that revision itself is not repeated, even if it lies in the future."""

    async def scene() -> None:
        asked = Asked()
        made = await asked.make("a")
        revision = int(made["metadata"]["resourceVersion"])
        now = await watch(asked, f"resourceVersion={revision}")
        later = await watch(asked, f"resourceVersion={revision + 1}")
        await asked.make("b")
        await asked.make("c")

        assert await now.names() == [("ADDED", "b"), ("ADDED", "c")]
        assert await later.names() == [("ADDED", "c")]

    run(scene())


def test_a_reader_that_does_not_read_has_to_list_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the bound nothing more is kept for a slow reader; its watch ends with 410."""
    monkeypatch.setattr(watching, "WATCH_BACKLOG_EVENTS_MAX", 3)

    async def scene() -> None:
        asked = Asked()
        slow = await watch(asked, "")
        quick = await watch(asked, "")
        for name in "abcdef":
            await asked.make(name)
            await quick.events()

        await expect_expired(slow)
        await asked.make("g")
        assert await quick.names() == [("ADDED", "g")]

    run(scene())


async def expect_expired(reader: Watching) -> None:
    (event,) = await reader.events()
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
    with pytest.raises(WatchIsOverError):
        await reader.events()


# JSON, metadata alone, and a form in which every watch has to render on its own.
FORMS = ["", "as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "as=Table;v=v1;g=meta.k8s.io"]


@pytest.mark.parametrize("form", FORMS)
def test_watches_that_are_not_read_share_one_bound(
    monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """However many they are, versions that only they keep take no more than the bound."""
    monkeypatch.setattr(watch_backlog, "WATCH_BACKLOGS_BYTES_MAX", 1_000_000)
    accept = f"application/json;{form}" if form else "application/json"

    async def scene() -> None:
        asked = Asked()
        await asked.make("a", data={"x": ""})
        query = f"GET {CONFIG_MAPS}?watch=true&includeObject=Object"
        slow = [Watching(await asked.ask(query, headers={"accept": accept})) for _ in range(20)]
        quick = Watching(await asked.ask(query, headers={"accept": accept}))
        tracemalloc.start()
        for number in range(100):
            change = {"metadata": {"name": "a"}, "data": {"x": "y" * 50_000, "n": str(number)}}
            assert (await asked.ask(f"PUT {CONFIG_MAPS}/a", change)).status == 200
            events = await quick.events()
            assert [event["type"] for event in events][-1] == "MODIFIED"
        kept, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        for each in slow:
            await expect_expired(each)
        # The log of the store keeps all hundred versions, as objects and as JSON.
        assert kept < 2 * 100 * 52_000 + 2_000_000

    run(scene())


def test_the_watch_that_was_read_last_expires_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """The watch whose client has read nothing for longest expires, and only if needed."""
    monkeypatch.setattr(watch_backlog, "WATCH_BACKLOGS_BYTES_MAX", 100_000)

    async def write(asked: Asked, number: int) -> None:
        change = {"metadata": {"name": "a"}, "data": {"x": "y" * 20_000, "n": str(number)}}
        assert (await asked.ask(f"PUT {CONFIG_MAPS}/a", change)).status == 200

    async def scene() -> None:
        asked = Asked()
        await asked.make("a")
        late = await watch(asked, "")
        later = await watch(asked, "")
        for reader in (late, later):
            await reader.events()
        for number in range(4):
            await write(asked, number)
        assert len(await later.events()) == 4
        for number in range(4, 7):
            await write(asked, number)
        await expect_expired(late)
        assert len(await later.events()) == 3

    run(scene())


def test_a_state_that_is_not_read_counts_when_it_is_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The initial events are no backlog as long as they are the current state."""
    monkeypatch.setattr(watch_backlog, "WATCH_BACKLOGS_BYTES_MAX", 100_000)

    async def scene() -> None:
        asked = Asked()
        names = [f"a{number}" for number in range(20)]
        for name in names:
            await asked.make(name, data={"x": "y" * 6000})
        idle = await watch(asked, "")
        other = await watch(asked, "")
        assert len(await other.events()) == 20
        for name in names:
            await asked.ask(f"PUT {CONFIG_MAPS}/{name}", {"metadata": {"name": name}})
            await other.events()
        await expect_expired(idle)
        await asked.make("b")
        assert await other.names() == [("ADDED", "b")]

    run(scene())


def test_a_watch_that_ends_gives_back_what_it_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Watches that come and go leave nothing that counts against the others."""
    monkeypatch.setattr(watch_backlog, "WATCH_BACKLOGS_BYTES_MAX", 50_000)

    async def scene() -> None:
        asked = Asked()
        await asked.make("a")
        for number in range(20):
            reader = await watch(asked, "labelSelector=a%3Db" if number % 2 else "")
            for value in ("b", "c"):
                change = {
                    "metadata": {"name": "a", "labels": {"a": value}},
                    "data": {"x": "y" * 10_000},
                }
                await asked.ask(f"PUT {CONFIG_MAPS}/a", change)
            if number % 3:
                types = [event["type"] for event in await reader.events()]
                assert "ERROR" not in types
            await reader.close()

    run(scene())


def test_bookmarks_have_the_kind_that_the_client_asked_for() -> None:
    """As a real server has it: metadata alone, or a table with one row."""

    async def scene() -> None:
        asked = Asked()
        query = "watch=true&allowWatchBookmarks=true"
        state = f"{query}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"

        async def open_watch(form: str, query: str) -> Watching:
            headers = {"accept": f"application/json;as={form};v=v1;g=meta.k8s.io"}
            return Watching(await asked.ask(f"GET {CONFIG_MAPS}?{query}", headers=headers))

        mark = {"k8s.io/initial-events-end": "true"}
        made = await asked.make("a")
        revision = made["metadata"]["resourceVersion"]
        partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}

        metadata = await open_watch("PartialObjectMetadata", state)
        _, bookmark = await metadata.events()
        assert bookmark == {
            "type": "BOOKMARK",
            "object": {
                **partial,
                "metadata": {"resourceVersion": revision, "annotations": mark},
            },
        }
        await asked.clock.advance(watching.BOOKMARK_SECONDS)
        (bookmark,) = await metadata.events()
        assert bookmark["object"] == {**partial, "metadata": {"resourceVersion": revision}}

        for include in ("", "&includeObject=None"):
            table = await open_watch("Table", state + include)
            _, bookmark = await table.events()
            (row,) = bookmark["object"]["rows"]
            assert (bookmark["object"]["kind"], bookmark["object"]["metadata"]) == (
                "Table",
                {"resourceVersion": revision},
            )
            assert bookmark["object"]["columnDefinitions"] is None
            assert row["cells"][0] == ""
            assert row["object"] == {
                **partial,
                "metadata": {"resourceVersion": revision, "annotations": mark},
            }

        # The columns are in the first event, whatever it is.
        empty = await open_watch("Table", f"{state}&labelSelector=none")
        (bookmark,) = await empty.events()
        assert bookmark["object"]["columnDefinitions"]

    run(scene())


@pytest.mark.parametrize(
    "accept",
    ["application/yaml", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"],
)
def test_a_watch_has_no_form_that_is_no_stream_of_json(accept: str) -> None:
    """A client that accepts nothing else is refused before the watch begins."""

    async def scene() -> None:
        asked = Asked()
        request = f"GET {CONFIG_MAPS}?watch=true"
        refused = await asked.ask(request, headers={"accept": accept})
        assert refused.status == 406
        either = await asked.ask(request, headers={"accept": f"{accept}, application/json"})
        assert either.status == (200 if "yaml" in accept else 406)

    run(scene())


def test_what_is_asked_for_at_once_is_no_backlog(monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch sends a large state whole, however small the bound on its backlog."""
    monkeypatch.setattr(watching, "WATCH_BACKLOG_EVENTS_MAX", 3)

    async def scene() -> None:
        asked = Asked()
        for name in "abcdef":
            await asked.make(name)
        reader = await watch(asked, "")

        assert len(await reader.events()) == 6

    run(scene())


def test_much_is_told_in_pieces_and_a_piece_that_is_read_is_no_backlog(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All of it in order, a few events at a time; what is left still counts."""
    monkeypatch.setattr(watching, "WATCH_CHUNK_BYTES_MAX", 100)
    monkeypatch.setattr(watching, "WATCH_BACKLOG_EVENTS_MAX", 4)

    async def scene() -> None:
        asked = Asked()
        reader = await watch(asked, "")
        for name in "abcd":
            await asked.make(name)
        assert await reader.names() == [("ADDED", "a")]
        await asked.make("e")
        told = [event for _ in range(4) for event in await reader.names()]
        assert told == [("ADDED", name) for name in "bcde"]
        for name in "fghij":
            await asked.make(name)
        await expect_expired(reader)

    run(scene())


def test_a_closed_watch_leaves_nothing_behind() -> None:
    """After the reader has gone no event is kept for it."""

    async def scene() -> None:
        asked = Asked()
        reader = await watch(asked, "")
        await reader.close()
        await asked.make("a")

        with pytest.raises(WatchIsOverError):
            await reader.events()

    run(scene())
