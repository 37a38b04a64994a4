"""Names for people."""

from __future__ import annotations

import pytest

from dryrack.base.text import hint, listed


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


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("default/train", "did you mean 'a/train' or 'b/train'?"),
        ("a/trian", "did you mean 'a/train'?"),
        ("default/infre", "did you mean 'b/infer'?"),
        ("default/x", "use one of: a/train, b/infer, b/train"),
    ],
)
def test_what_was_meant_is_told_with_its_namespace(name: str, told: str) -> None:
    """A name in the wrong namespace, a slip in either part, or what there is."""
    assert hint(name, ["b/train", "b/infer", "a/train"]) == told
    assert hint(name, []) == "none exist"
