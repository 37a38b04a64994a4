"""Changes in place of objects that a store handed out are detected."""

from __future__ import annotations

from typing import Any

import pytest
from tests.store.handed_out import HandedOut, watched_for_changes

from dryrack.store import Key, Store, Stored

KEY = Key("pods", "default", "web")


def noted(**parts: Any) -> tuple[HandedOut, Stored]:
    """Return an object that the check after each test does not see."""
    stored = Stored(KEY, 2, {"metadata": {"name": "web"}, **parts})
    handed_out = HandedOut()
    handed_out.note(stored)
    return handed_out, stored


def test_a_change_in_place_is_reported_with_the_object() -> None:
    """A change in place is reported with the name of the object."""
    handed_out, stored = noted()
    stored.object["metadata"]["labels"] = {"a": "b"}
    assert handed_out.changed() == [
        "Stored(pods/default/web at 2) was changed after it was written; copy what you change"
    ]


def test_a_change_is_reported_after_the_store_has_compacted_the_object() -> None:
    """A cache may keep the object for longer than the store."""
    handed_out, stored = noted(spec={"x": [1]})
    stored.object["spec"]["x"].append(2)
    stored.compact()
    assert len(handed_out.changed()) == 1


@pytest.mark.parametrize("value", [("a",), {1: "a"}])
def test_a_value_that_json_changes_is_reported(value: Any) -> None:
    """A stored object must be equal to the value that its JSON decodes to."""
    handed_out, _ = noted(spec={"x": value})
    assert len(handed_out.changed()) == 1


def test_writes_to_any_store_are_recorded_until_the_end_of_the_block() -> None:
    """After the block, the methods of stores are the original ones."""
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
