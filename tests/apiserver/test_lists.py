"""Lists in pages are what one list would have been."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.apiserver.asking import CONFIG_MAPS, Asked, run

from dryrack.store import Store

NAMES = "abcdefgh"


@given(
    st.lists(st.sampled_from(NAMES), unique=True),
    st.integers(1, 4),
    st.lists(st.tuples(st.booleans(), st.sampled_from(NAMES)), max_size=6),
    st.sampled_from(["", "labelSelector=odd", "fieldSelector=metadata.name!%3Dc"]),
)
def test_pages_are_the_list_at_the_revision_of_the_first(
    names: list[str], limit: int, changes: list[tuple[bool, str]], selector: str
) -> None:
    """All pages together are the list at its start, despite writes in between."""

    async def scene() -> None:
        asked = Asked()
        left = list(changes)
        for name in names:
            labels = {"odd": "1"} if NAMES.index(name) % 2 else {}
            await asked.make(name, metadata={"labels": labels})
        whole = await asked.told(f"GET {CONFIG_MAPS}?{selector}")
        found: list[Any] = []
        query = f"limit={limit}&{selector}"
        while True:
            page = await asked.told(f"GET {CONFIG_MAPS}?{query}")
            found += page["items"]
            assert page["metadata"]["resourceVersion"] == whole["metadata"]["resourceVersion"]
            if "continue" not in page["metadata"]:
                break
            assert len(page["items"]) == limit
            query = f"limit={limit}&{selector}&continue={page['metadata']['continue']}"
            if left:
                is_new, name = left.pop()
                if is_new:
                    await asked.ask(f"POST {CONFIG_MAPS}", {"metadata": {"name": f"{name}{name}"}})
                else:
                    await asked.ask(f"DELETE {CONFIG_MAPS}/{name}")

        assert found == whole["items"]

    run(scene())


def test_a_page_tells_how_much_is_left_if_nothing_is_selected() -> None:
    """`remainingItemCount` is exact without selectors, and absent with them."""

    async def scene() -> None:
        asked = Asked()
        for name in "abcde":
            await asked.make(name)
        plain = await asked.told(f"GET {CONFIG_MAPS}?limit=2")
        selected = await asked.told(f"GET {CONFIG_MAPS}?limit=2&labelSelector=!x")

        assert plain["metadata"]["remainingItemCount"] == 3
        assert "remainingItemCount" not in selected["metadata"]
        assert selected["metadata"]["continue"]

    run(scene())


def test_a_page_of_a_forgotten_list_comes_with_a_way_to_go_on() -> None:
    """When the log has forgotten the revision: 410, and a token that goes on from the present."""

    async def scene() -> None:
        asked = Asked(Store(events_max=2))
        for name in "abc":
            await asked.make(name)
        first = await asked.told(f"GET {CONFIG_MAPS}?limit=1")
        for name in "def":
            await asked.make(name)
        token = first["metadata"]["continue"]
        refused = await asked.told(f"GET {CONFIG_MAPS}?limit=2&continue={token}")
        again = refused["metadata"]["continue"]
        rest = await asked.told(f"GET {CONFIG_MAPS}?limit=9&continue={again}")

        assert (refused["code"], refused["reason"]) == (410, "Expired")
        assert [each["metadata"]["name"] for each in rest["items"]] == list("bcdef")

    run(scene())


def test_a_list_at_exactly_a_revision_is_what_was_there() -> None:
    """An exact match looks back; without one the list is the newest there is."""

    async def scene() -> None:
        asked = Asked()
        made = await asked.make("a")
        await asked.make("b")
        revision = made["metadata"]["resourceVersion"]
        exact = await asked.told(
            f"GET {CONFIG_MAPS}?resourceVersion={revision}&resourceVersionMatch=Exact"
        )
        newer = await asked.told(f"GET {CONFIG_MAPS}?resourceVersion={revision}")

        assert [each["metadata"]["name"] for each in exact["items"]] == ["a"]
        assert exact["metadata"]["resourceVersion"] == revision
        assert [each["metadata"]["name"] for each in newer["items"]] == ["a", "b"]

    run(scene())


def test_a_list_across_namespaces_goes_on_where_a_page_ended() -> None:
    """Pages across namespaces are in the order of `namespace/name`, with none left out."""

    async def scene() -> None:
        asked = Asked()
        for namespace in ("a", "a-b"):
            await asked.ask("POST /api/v1/namespaces", {"metadata": {"name": namespace}})
            for name in ("x", "y"):
                await asked.make(name, f"/api/v1/namespaces/{namespace}/configmaps")
        found = list[str]()
        query = "limit=1"
        while True:
            page = await asked.told(f"GET /api/v1/configmaps?{query}")
            found += [
                f"{each['metadata']['namespace']}/{each['metadata']['name']}"
                for each in page["items"]
            ]
            if "continue" not in page["metadata"]:
                break
            query = f"limit=1&continue={page['metadata']['continue']}"

        assert found == ["a-b/x", "a-b/y", "a/x", "a/y"]

    run(scene())
