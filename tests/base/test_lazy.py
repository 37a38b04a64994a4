"""Parts that are loaded when they are first used."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from dryrack.base.lazy import exports, late


class Part:
    """Counts how often it is made."""

    made = 0
    word = "here"

    def __init__(self) -> None:
        Part.made += 1

    def say(self, name: str) -> str:
        return f"{self.word}, {name}"


def test_a_part_is_made_once_and_not_before_it_is_used() -> None:
    """Standing in costs nothing; the first attribute makes the part, the others find it."""
    Part.made = 0
    part = late(Part)
    assert Part.made == 0
    assert (part.say("you"), part.word, part.say("me")) == ("here, you", "here", "here, me")
    assert Part.made == 1


def test_a_part_that_cannot_be_made_is_tried_again() -> None:
    """The caller gets the error, and the next access tries again."""
    failures = [ImportError("not yet")]

    def load() -> Part:
        if failures:
            raise failures.pop()
        return Part()

    part = late(load)
    with pytest.raises(ImportError, match="not yet"):
        part.say("you")
    assert part.say("you") == "here, you"


def test_what_a_part_does_not_have_it_does_not_get() -> None:
    """A stand-in answers as the part would."""
    with pytest.raises(AttributeError, match="nothing"):
        getattr(late(Part), "nothing")  # noqa: B009 - the name is not one that a checker knows


def test_a_name_of_a_package_is_loaded_once_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module behind a name is looked at when the name is first used; then it is there."""
    package = ModuleType("shop")
    module = ModuleType("shop.shelf")
    vars(module).update(Apple="red", Pear="green")
    monkeypatch.setitem(sys.modules, "shop", package)
    monkeypatch.setitem(sys.modules, "shop.shelf", module)
    get = exports("shop", {"shelf": "Apple Pear"})

    assert "Pear" not in vars(package)
    assert get("Pear") == "green"
    assert vars(package)["Pear"] == "green"


def test_a_package_has_no_other_names() -> None:
    """A misspelt name is answered as by any module."""
    with pytest.raises(AttributeError, match="module 'shop' has no attribute 'Plum'"):
        exports("shop", {"shelf": "Apple"})("Plum")
