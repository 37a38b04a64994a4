"""Rooms meet by names that were chosen: each is in `public_names.txt`, for review by diff."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from tests.tidy.rooms import listing, public_modules, public_names, rooms

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).parent / "public_names.txt"
DOORS = [module for room in rooms(ROOT) for module in public_modules(room, ROOT)]


def test_the_public_names_of_every_room_are_those_that_were_reviewed() -> None:
    """Nothing becomes public, or stops to be, without a line in the list."""
    written = LIST.read_text().splitlines()
    found = listing(ROOT)
    changed = [f"- {line}" for line in written if line not in found]
    changed += [f"+ {line}" for line in found if line not in written]

    assert (changed, written == found) == ([], True), (
        f"The public names of a room changed. If that is meant, change {LIST.relative_to(ROOT)} "
        "accordingly (one line each, sorted); if not, use a public name that is there.\n"
        + "\n".join(changed)
    )


def test_every_room_has_a_contract() -> None:
    """A new room is imported by its public names from its first day; nothing is above commands."""
    folders = (ROOT / "src" / "dryrack").glob("*/__init__.py")
    found = {f"dryrack.{each.parent.name}" for each in folders} - {"dryrack.cli"}
    without = sorted(found - {room.module for room in rooms(ROOT)})

    assert without == [], "Give it a contract of the type `protected` in pyproject.toml."


@pytest.mark.parametrize("door", [door for door in DOORS if public_names(door, ROOT)])
def test_every_public_name_can_be_had(door: str) -> None:
    """A name that is loaded when first used exists, and is no module that took its place."""
    module = import_module(door)
    had = {name: getattr(module, name) for name in public_names(door, ROOT)}

    assert [name for name, value in had.items() if isinstance(value, ModuleType)] == []
