"""Numbers in text are those that Go reads."""

from __future__ import annotations

import pytest

from dryrack.base.durations import seconds_in
from dryrack.base.numbers import read_int64


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("-7", -7),
        ("+7", 7),
        ("007", 7),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", None),
        ("9" * 5_000, None),
        ("0" * 100_000 + "5", 5),
        ("", None),
        ("-", None),
        ("1_000", None),
        (" 1", None),
        ("²", None),
        ("٣", None),
    ],
    ids=lambda value: str(value)[:12],
)
def test_an_integer_is_one_of_64_bits_in_ascii(text: str, number: int | None) -> None:
    """Digits of other scripts, underscores and thousands of digits are no number."""
    assert read_int64(text) == number


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1h30m", 5400.0), ("1.5s", 1.5), ("500ms", 0.5), ("1", None), ("9" * 400 + "h", None)],
)
def test_a_duration_has_an_end(text: str, seconds: float | None) -> None:
    """Durations have parts with units; one that exceeds a float is invalid."""
    assert seconds_in(text) == seconds
