"""
Versions are read and ordered as by the Go library that Kubernetes uses.

`versions.json` was written by that library (blang/semver v4.0.0).
"""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dryrack.kinds.semver import Semver, SemverError

TABLE: dict[str, list[Any]] = json.loads((Path(__file__).parent / "versions.json").read_text())

versions = st.builds(
    Semver,
    st.integers(0, 2**64 - 1),
    st.integers(0, 20),
    st.integers(0, 20),
    st.lists(st.one_of(st.integers(0, 30), st.sampled_from(["a", "rc", "A-b", "-"]))).map(tuple),
    st.lists(st.sampled_from(["001", "sha", "-"])).map(tuple),
)


@pytest.mark.parametrize("row", TABLE["versions"], ids=lambda row: repr(row["input"]))
def test_each_text_is_read_as_the_library_reads_it(row: dict[str, str]) -> None:
    """Strict and tolerant reading give the library's version or its error."""
    assert outcome(Semver.parse, row["input"]) == (row.get("string"), row.get("error"))
    assert outcome(Semver.parse_tolerant, row["input"]) == (
        row.get("tolerant"),
        row.get("tolerantError"),
    )


def outcome(parse: Any, text: str) -> tuple[str | None, str | None]:
    try:
        return str(parse(text)), None
    except SemverError as error:
        return None, str(error)


def test_pairs_are_ordered_as_the_library_orders_them() -> None:
    """Precedence follows semver, build metadata aside."""
    for left_text, right_text, compare in TABLE["pairs"]:
        left = Semver.parse(left_text)
        right = Semver.parse(right_text)

        assert (left > right) - (left < right) == compare, (left_text, right_text)
        assert (left == right) == (compare == 0)
        assert (left >= right, left <= right) == (compare >= 0, compare <= 0)


@given(versions, versions)
def test_versions_print_and_hash_consistently(left: Semver, right: Semver) -> None:
    """Printing reads back, and equal versions are one key."""
    assert Semver.parse(str(left)) == left
    assert str(Semver.parse(str(left))) == str(left)
    assert left != right or hash(left) == hash(right)
