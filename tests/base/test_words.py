"""Names for people."""

from __future__ import annotations

import pytest

from dryrack.base.words import listed


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, ""),
        (2, "n00, n01"),
        (10, ", ".join(f"n{n:02}" for n in range(10))),
        (12, ", ".join(f"n{n:02}" for n in range(10)) + " and 2 more"),
    ],
)
def test_many_names_are_cut_short(count: int, text: str) -> None:
    """Ten thousand nodes in one line would hide what is said about them."""
    assert listed(f"n{n:02}" for n in reversed(range(count))) == text
