"""Writes: one revision each, or none; nothing that the server decides is the client's."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.apiserver.asking import CONFIG_MAPS, TASKS, Asked, run

from dryrack.apiserver.metadata import generate_name
from dryrack.base.limits import OBJECT_BYTES_MAX, REQUEST_BODY_BYTES_MAX


def test_an_update_that_changes_nothing_is_no_write() -> None:
    """The revision stays, and no watcher hears of it."""

    async def scene() -> None:
        asked = Asked()
        made = await asked.make("a", data={"x": "1"})
        before = asked.store.revision
        again = await asked.told(
            f"PUT {CONFIG_MAPS}/a", {"metadata": {"name": "a"}, "data": {"x": "1"}}
        )

        assert again == made
        assert asked.store.revision == before

    run(scene())


def test_two_writers_of_one_revision_cannot_both_win() -> None:
    """An update at a revision that has passed is a conflict and changes nothing."""

    async def scene() -> None:
        asked = Asked()
        made = await asked.make("a", data={"x": "1"})
        first = await asked.ask(f"PUT {CONFIG_MAPS}/a", {**made, "data": {"x": "2"}})
        second = await asked.ask(f"PUT {CONFIG_MAPS}/a", {**made, "data": {"x": "3"}})
        kept = await asked.told(f"GET {CONFIG_MAPS}/a")

        assert (first.status, second.status) == (200, 409)
        assert kept["data"] == {"x": "2"}

    run(scene())


def test_a_dry_run_writes_nothing() -> None:
    """Create, update and delete as dry runs answer as if, and leave the store alone."""

    async def scene() -> None:
        asked = Asked()
        await asked.make("a")
        before = asked.store.revision
        made = await asked.told(f"POST {CONFIG_MAPS}?dryRun=All", {"metadata": {"name": "b"}})
        await asked.ask(
            f"PUT {CONFIG_MAPS}/a?dryRun=All", {"metadata": {"name": "a"}, "data": {"x": "1"}}
        )
        await asked.ask(f"DELETE {CONFIG_MAPS}/a?dryRun=All")
        taken = await asked.ask(f"POST {CONFIG_MAPS}?dryRun=All", {"metadata": {"name": "a"}})

        assert "resourceVersion" not in made["metadata"]
        assert taken.status == 409
        assert asked.store.revision == before

    run(scene())


def test_a_status_is_written_by_its_own_path_alone() -> None:
    """The main path leaves the status, the status path leaves the spec."""

    async def scene() -> None:
        asked = Asked()
        made = await asked.make("t", TASKS, spec={"where": "here"}, status={"done": True})
        told = await asked.told(
            f"PUT {TASKS}/t/status",
            {"metadata": {"name": "t", "labels": {"a": "b"}}, "spec": {}, "status": {"n": 1}},
        )
        moved = await asked.told(
            f"PUT {TASKS}/t", {"metadata": {"name": "t"}, "spec": {"where": "there"}, "status": {}}
        )

        assert "status" not in made
        assert (told["spec"], told["status"]) == ({"where": "here"}, {"n": 1})
        assert told["metadata"]["labels"] == {"a": "b"}
        assert (moved["spec"], moved["status"]) == ({"where": "there"}, {"n": 1})

    run(scene())


def test_a_generated_name_that_is_taken_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server tries other suffixes, and says so when all were taken."""
    suffixes = iter(["bbbbb", "bbbbb", "ccccc"])
    monkeypatch.setattr(
        "dryrack.apiserver.verbs.writing.generate_name",
        lambda prefix, _: prefix + next(suffixes, "ccccc"),
    )

    async def scene() -> None:
        asked = Asked()
        body = {"metadata": {"generateName": "a-"}}
        made = [(await asked.told(f"POST {CONFIG_MAPS}", body))["metadata"] for _ in range(2)]
        refused = await asked.ask(f"POST {CONFIG_MAPS}", body)

        assert [each["name"] for each in made] == ["a-bbbbb", "a-ccccc"]
        assert refused.status == 409
        assert refused.header("retry-after") == "1"

    run(scene())


@pytest.mark.parametrize("prefix", ["a-", "x" * 58, "y" * 70])
def test_a_generated_name_is_the_prefix_and_five_characters(prefix: str) -> None:
    """A long prefix is cut, so that the name is never longer than a label."""

    class Chance:
        def uuid(self) -> str:
            return "01234567-89ab-4def-8000-000000000000"

    name = generate_name(prefix, Chance())

    assert name.startswith(prefix[:58])
    assert len(name) == min(63, len(prefix) + 5)
    assert not set(name[-5:]) & set("aeiou013")


def test_too_large_a_body_or_object_is_refused() -> None:
    """A body may have 3 MiB; a stored object may have less."""

    async def scene() -> None:
        asked = Asked()
        huge = b'{"metadata":{"name":"a"},"data":{"x":"' + b"y" * REQUEST_BODY_BYTES_MAX + b'"}}'
        large = {"metadata": {"name": "a"}, "data": {"x": "y" * OBJECT_BYTES_MAX}}
        body = await asked.told(f"POST {CONFIG_MAPS}", huge)
        obj = None
        obj = await asked.told(f"POST {CONFIG_MAPS}", large)

        assert (body["code"], body["reason"]) == (413, "RequestEntityTooLarge")
        assert (obj["code"], obj["message"]) == (500, "etcdserver: request is too large")
        assert asked.store.count("configmaps") == 0

    run(scene())


def test_bytes_that_are_no_text_become_the_replacement_character() -> None:
    """A body that is not UTF-8 is read as Go reads it: the bad bytes are replaced."""

    async def scene() -> None:
        asked = Asked()
        body = b'{"metadata":{"name":"a"},"data":{"x":"\xff","y":"\\ud800"}}'
        made = await asked.told(f"POST {CONFIG_MAPS}", body)

        assert made["data"] == {"x": "\ufffd", "y": "\ufffd"}

    run(scene())


def test_a_bottomless_body_is_refused() -> None:
    """Depth is answered with a bad request, not with the end of the stack."""

    async def scene() -> None:
        asked = Asked()
        answer = await asked.told(f"POST {CONFIG_MAPS}", b'{"a":' + b"[" * 100_000)

        assert answer["code"] == 400
        assert "exceeded max depth" in answer["message"]

    run(scene())


def test_stored_objects_are_not_the_clients_to_change() -> None:
    """An answer that was read before an update does not change."""

    async def scene() -> None:
        asked = Asked()
        body: dict[str, Any] = {"metadata": {"name": "a"}, "data": {"x": "1"}}
        await asked.ask(f"POST {CONFIG_MAPS}", body)
        first = await asked.ask(f"GET {CONFIG_MAPS}/a")
        await asked.ask(f"PUT {CONFIG_MAPS}/a", {"metadata": {"name": "a"}, "data": {"x": "2"}})
        assert isinstance(first.body, bytes)

        assert json.loads(first.body)["data"] == {"x": "1"}

    run(scene())
