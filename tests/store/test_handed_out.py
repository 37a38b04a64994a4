"""Who changes what a store handed out is found."""

from __future__ import annotations

from typing import Any

import pytest
from tests.store.handed_out import HandedOut, watched_for_changes

from dryrack.store import Key, Store, Stored

KEY = Key("pods", "default", "web")


def noted(**parts: Any) -> tuple[HandedOut, Stored]:
    """An object that the look after each test does not know of."""
    stored = Stored(KEY, 2, {"metadata": {"name": "web"}, **parts})
    handed_out = HandedOut()
    handed_out.note(stored)
    return handed_out, stored


def test_a_change_in_place_is_told_with_the_object() -> None:
    """Every test ends with this look at what its engines were given."""
    handed_out, stored = noted()
    stored.object["metadata"]["labels"] = {"a": "b"}
    assert handed_out.changed() == [
        "Stored(pods/default/web at 2) was changed after it was written; copy what you change"
    ]


def test_a_change_is_told_also_when_the_store_has_let_go_of_the_object() -> None:
    """A cache may have it for longer than the store."""
    handed_out, stored = noted(spec={"x": [1]})
    stored.object["spec"]["x"].append(2)
    stored.compact()
    assert len(handed_out.changed()) == 1


@pytest.mark.parametrize("value", [("a",), {1: "a"}])
def test_what_json_would_change_is_told(value: Any) -> None:
    """Who is handed an object must find in it what others read from its JSON."""
    handed_out, _ = noted(spec={"x": value})
    assert len(handed_out.changed()) == 1


def test_writes_to_any_store_are_noted_and_then_no_more() -> None:
    """Stores are as they were when the block is over."""
    put = Store.put
    changes = []
    with watched_for_changes() as handed_out:
        stored = Store().put(KEY, {"metadata": {}, "x": [1, 2.5, None, True, "a"]}, expected=0)
        assert isinstance(stored, Stored)
        assert handed_out.changed() == []
        stored.object["x"][0] = 2
        changes = handed_out.changed()
        stored.object["x"][0] = 1
    assert len(changes) == 1
    assert Store.put is put
