"""Deletions: at once, after a grace, or when the last finalizer is gone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apiserver.asking import CONFIG_MAPS, TASKS, Asked, run

FINALIZERS = ("example.com/a", "example.com/b")


def test_a_grace_is_given_once_and_only_shortened() -> None:
    """The first delete sets the time; a later one may bring it forward, not put it off."""

    async def scene() -> None:
        asked = Asked()
        await asked.make("t", TASKS)
        first = (await asked.told(f"DELETE {TASKS}/t"))["metadata"]
        longer = (await asked.told(f"DELETE {TASKS}/t", {"gracePeriodSeconds": 60}))["metadata"]
        shorter = (await asked.told(f"DELETE {TASKS}/t", {"gracePeriodSeconds": 10}))["metadata"]
        await asked.clock.advance(20)
        late = (await asked.told(f"DELETE {TASKS}/t", {"gracePeriodSeconds": 5}))["metadata"]
        gone = await asked.told(f"DELETE {TASKS}/t", {"gracePeriodSeconds": 0})

        assert first["deletionGracePeriodSeconds"] == 30
        assert first["generation"] == 2
        assert longer == first
        assert shorter["deletionGracePeriodSeconds"] == 10
        assert shorter["deletionTimestamp"] < first["deletionTimestamp"]
        assert late["deletionGracePeriodSeconds"] == 1
        assert gone["status"] == "Success"
        assert (await asked.ask(f"GET {TASKS}/t")).status == 404

    run(scene())


@pytest.mark.parametrize(
    ("policy", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")]
)
def test_a_policy_becomes_a_finalizer(policy: str, finalizer: str) -> None:
    """The garbage collector carries out foreground and orphan; a finalizer requests it."""

    async def scene() -> None:
        asked = Asked()
        await asked.make("a")
        left = await asked.told(f"DELETE {CONFIG_MAPS}/a", {"propagationPolicy": policy})
        background = await asked.told(
            f"DELETE {CONFIG_MAPS}/a", {"propagationPolicy": "Background"}
        )

        assert left["metadata"]["finalizers"] == [finalizer]
        assert background["status"] == "Success"

    run(scene())


@given(st.lists(st.sampled_from(["delete", "a", "b"]), max_size=8))
def test_an_object_goes_when_it_is_deleted_and_nobody_holds_it(script: list[str]) -> None:
    """In any order of deletes and releases: it is there until both are done, then gone."""

    async def scene() -> None:
        asked = Asked()
        held = list(FINALIZERS)
        deleted = False
        await asked.make("a", metadata={"finalizers": held})
        for step in script:
            if step == "delete":
                await asked.ask(f"DELETE {CONFIG_MAPS}/a")
                deleted = True
            else:
                held = [each for each in held if not each.endswith(step)]
                meta: dict[str, Any] = {"name": "a", "finalizers": held}
                await asked.ask(f"PUT {CONFIG_MAPS}/a", {"metadata": meta})
            is_there = (await asked.ask(f"GET {CONFIG_MAPS}/a")).status == 200

            assert is_there is (not deleted or bool(held))
            if not is_there:
                return

    run(scene())


def test_a_collection_is_deleted_by_its_selector() -> None:
    """Matching objects are removed, others stay; the answer lists those that matched."""

    async def scene() -> None:
        asked = Asked()
        for name in "abc":
            await asked.make(name, metadata={"labels": {"n": name}})
        answer = await asked.told(f"DELETE {CONFIG_MAPS}?labelSelector=n+in+(a,c)")
        left = await asked.told(f"GET {CONFIG_MAPS}")

        assert [each["metadata"]["name"] for each in answer["items"]] == ["a", "c"]
        assert [each["metadata"]["name"] for each in left["items"]] == ["b"]

    run(scene())


def test_a_deleted_object_is_not_brought_back() -> None:
    """An update cannot take the deletion away, nor its time."""

    async def scene() -> None:
        asked = Asked()
        await asked.make("a", metadata={"finalizers": [FINALIZERS[0]]})
        marked = await asked.told(f"DELETE {CONFIG_MAPS}/a")
        meta = {"name": "a", "finalizers": [FINALIZERS[0]]}
        updated = await asked.told(
            f"PUT {CONFIG_MAPS}/a", {"metadata": meta, "data": {"still": "here"}}
        )

        assert updated["data"] == {"still": "here"}
        for name in ("deletionTimestamp", "deletionGracePeriodSeconds"):
            assert updated["metadata"][name] == marked["metadata"][name]

    run(scene())
