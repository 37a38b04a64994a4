"""Times are read and written as Go does it."""

from __future__ import annotations

import pytest

from dryrack.kinds.schemas.go_scalars import MismatchError, time_text

_LAYOUT = '"2006-01-02T15:04:05Z07:00"'


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T3:04:05Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05,5Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05-00:00", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05+24:60", "2026-01-01T02:04:05Z"),
        ("0000-02-29T03:04:05Z", "0000-02-29T03:04:05Z"),
        ("0000-01-01T00:00:00+01:00", "-0001-12-31T23:00:00Z"),
        ("9999-12-31T23:59:59-01:00", "10000-01-01T00:59:59Z"),
    ],
)
def test_a_time_is_written_in_one_form(text: str, written: str) -> None:
    """The expected values are what Go's time.Parse and Format return."""
    assert time_text(text) == written


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", f'parsing time "" as {_LAYOUT}: cannot parse "" as "2006"'),
        (
            "2026-01-02t03:04:05z",
            f'parsing time "2026-01-02t03:04:05z" as {_LAYOUT}: cannot parse "t03:04:05z" as "T"',
        ),
        (
            "2026-01-02T03:04:05.Z",
            f'parsing time "2026-01-02T03:04:05.Z" as {_LAYOUT}: cannot parse ".Z" as "Z07:00"',
        ),
        ("2026-13-02T03:04:05Z", 'parsing time "2026-13-02T03:04:05Z": month out of range'),
        ("2026-02-30T03:04:05Z", 'parsing time "2026-02-30T03:04:05Z": day out of range'),
        ("2026-01-02T24:00:00Z", 'parsing time "2026-01-02T24:00:00Z": hour out of range'),
        (
            "2026-01-02T03:04:05+99:00",
            'parsing time "2026-01-02T03:04:05+99:00": time zone offset hour out of range',
        ),
        ("2026-01-02T03:04:05Z ", 'parsing time "2026-01-02T03:04:05Z ": extra text: " "'),
    ],
)
def test_a_text_that_is_not_a_time_gets_the_error_of_go(text: str, message: str) -> None:
    """The expected messages are those of Go's time.Parse."""
    with pytest.raises(MismatchError) as caught:
        time_text(text)
    assert str(caught.value) == message


def test_a_time_to_the_microsecond_has_six_digits() -> None:
    """Leases use such times, and Go refuses one without a fraction."""
    assert time_text("2026-01-02T03:04:05.000000Z", micro=True) == "2026-01-02T03:04:05.000000Z"
    assert (
        time_text("2026-01-02T03:04:05.250000+01:00", micro=True) == "2026-01-02T02:04:05.250000Z"
    )
    with pytest.raises(MismatchError, match=r'cannot parse "Z" as "\.000000"'):
        time_text("2026-01-02T03:04:05Z", micro=True)
