"""Cron schedules: which times they mean, also on the days on which clocks change."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dryrack.kinds.rules.cron_schedules import ScheduleError, parse_schedule, time_zone

if TYPE_CHECKING:
    from collections.abc import Iterator


def following(schedule: str, start: str, zone: str) -> Iterator[str]:
    """The times of a schedule after one, as clocks in a zone show them."""
    location = time_zone(zone)
    parsed = parse_schedule(schedule, location)
    when = parsed.next_after(datetime.fromisoformat(start).timestamp())
    while when is not None:
        yield datetime.fromtimestamp(when, location).strftime("%Y-%m-%d %H:%M:%S%z")
        when = parsed.next_after(when)


def times(schedule: str, start: str, count: int, zone: str = "UTC") -> list[str]:
    return list(islice(following(schedule, start, zone), count))


# 16 November 2026 is a Monday.
START = "2026-11-16T08:52:30Z"
UTC_TIMES = {
    "* * * * *": ("11-16 08:53", "11-16 08:54"),
    "*/20 * * * *": ("11-16 09:00", "11-16 09:20"),
    "5/25 * * * *": ("11-16 08:55", "11-16 09:05"),
    "50-59/5 8 * * *": ("11-16 08:55", "11-17 08:50"),
    "0,30 12 * * *": ("11-16 12:00", "11-16 12:30"),
    "0 9-17/4 * * MON-FRI": ("11-16 09:00", "11-16 13:00", "11-16 17:00", "11-17 09:00"),
    "0 0 * * sun,Sat": ("11-21 00:00", "11-22 00:00", "11-28 00:00"),
    "0 0 1 JAN,dec ?": ("12-01 00:00",),
    "0 0 13 * 5": ("11-20 00:00", "11-27 00:00", "12-04 00:00", "12-11 00:00", "12-13 00:00"),
    # A step is a restriction: either kind of day will do.
    "0 0 */2 * 5": ("11-17 00:00", "11-19 00:00", "11-20 00:00", "11-21 00:00"),
    "0 0 13 * */1": ("12-13 00:00",),
    "0 0 31 * *": ("12-31 00:00",),
    "@hourly": ("11-16 09:00", "11-16 10:00"),
    "@daily": ("11-17 00:00", "11-18 00:00"),
    "@midnight": ("11-17 00:00", "11-18 00:00"),
    "@weekly": ("11-22 00:00", "11-29 00:00"),
    "@monthly": ("12-01 00:00",),
}


@pytest.mark.parametrize("schedule", UTC_TIMES)
def test_a_schedule_means_these_times(schedule: str) -> None:
    """Names, ranges, steps, lists and descriptors mean what they do in Kubernetes."""
    expected = UTC_TIMES[schedule]

    found = times(schedule, START, len(expected))

    assert found == [f"2026-{each}:00+0000" for each in expected]


def test_years_are_waited_for() -> None:
    """A leap day comes every four years, and the first of January every year."""
    assert times("0 0 29 2 *", START, 2) == ["2028-02-29 00:00:00+0000", "2032-02-29 00:00:00+0000"]
    assert times("@yearly", START, 1) == times("@annually", START, 1)
    assert times("@yearly", START, 1) == ["2027-01-01 00:00:00+0000"]


def test_a_day_that_never_is_never_comes() -> None:
    """The last of February is not the 31st."""
    assert times("59 23 31 2 *", START, 1) == []


def test_an_interval_counts_from_the_last_time() -> None:
    """`@every` is no time of day, and is never less than a second."""
    assert times("@every 1h30m", START, 2) == [
        "2026-11-16 10:22:30+0000",
        "2026-11-16 11:52:30+0000",
    ]
    assert times("@every 10ms", START, 1) == ["2026-11-16 08:52:31+0000"]


CLOCK_CHANGES = [
    # An hour that is skipped: its times do not happen.
    (
        *("30 2 * * *", "America/New_York", "2026-03-07T00:00:00-05:00"),
        ["2026-03-07 02:30:00-0500", "2026-03-09 02:30:00-0400"],
    ),
    (
        *("0 * * * *", "Europe/Berlin", "2026-03-29T00:30:00+01:00"),
        ["2026-03-29 01:00:00+0100", "2026-03-29 03:00:00+0200"],
    ),
    # An hour that comes twice: its times happen twice.
    (
        *("30 1 * * *", "America/New_York", "2026-11-01T00:00:00-04:00"),
        ["2026-11-01 01:30:00-0400", "2026-11-01 01:30:00-0500", "2026-11-02 01:30:00-0500"],
    ),
    (
        *("*/30 2 * * *", "Europe/Berlin", "2026-10-25T01:00:00+02:00"),
        [
            "2026-10-25 02:00:00+0200",
            "2026-10-25 02:30:00+0200",
            "2026-10-25 02:00:00+0100",
            "2026-10-25 02:30:00+0100",
            "2026-10-26 02:00:00+0100",
        ],
    ),
    # A midnight that is skipped: the day begins at one.
    (
        *("0 0,9 * * 5", "Africa/Cairo", "2026-04-17T09:00:00+02:00"),
        ["2026-04-24 09:00:00+0300", "2026-05-01 00:00:00+0300"],
    ),
    # Half an hour that is skipped.
    (
        *("15,45 2 * * *", "Australia/Lord_Howe", "2026-10-04T00:00:00+10:30"),
        ["2026-10-04 02:45:00+1100", "2026-10-05 02:15:00+1100"],
    ),
    # A zone that is no whole hour away.
    (*("0 0 * * *", "Asia/Kathmandu", "2026-01-01T12:00:00Z"), ["2026-01-02 00:00:00+0545"]),
]


@pytest.mark.parametrize(("schedule", "zone", "start", "expected"), CLOCK_CHANGES)
def test_clocks_that_change(schedule: str, zone: str, start: str, expected: list[str]) -> None:
    """A time is met whenever a clock in the zone shows it."""
    assert times(schedule, start, len(expected), zone) == expected


ZONES = ("UTC", "America/New_York", "Europe/London", "Asia/Kolkata", "America/Havana")
SCHEDULES = ("7 1 * * *", "*/25 0-3 * * *", "0 0 1,15 * 0", "59 23 * 2-11/3 6", "30 1,2 8 * *")


@settings(max_examples=40)
@given(
    st.sampled_from(SCHEDULES),
    st.sampled_from(ZONES),
    st.integers(1_750_000_000, 1_950_000_000),
)
def test_no_time_is_left_out(schedule: str, zone: str, start: int) -> None:
    """Minute by minute on clocks of the zone, the next time is the first that fits."""
    found = parse_schedule(schedule, time_zone(zone)).next_after(start)
    assert found is not None
    by_utc = parse_schedule(schedule, UTC)

    def fits(seconds: int) -> bool:
        wall = wall_seconds(seconds, zone)
        return by_utc.next_after(wall - 60) == wall

    assert found > start
    assert fits(int(found))
    begin = max(start, int(found) - 4 * 3600) // 60 + 1
    assert not any(fits(minute * 60) for minute in range(begin, int(found) // 60))


def wall_seconds(seconds: float, zone: str) -> float:
    """Return the local time in a zone, as if it were UTC."""
    wall = datetime.fromtimestamp(seconds, time_zone(zone))
    return wall.replace(tzinfo=UTC).timestamp()


REFUSALS = {
    "": "expected exactly 5 fields, found 0: []",
    "* * * *": "expected exactly 5 fields, found 4: [* * * *]",
    "0 * * * * *": "expected exactly 5 fields, found 6: [0 * * * * *]",
    "60 * * * *": "end of range (60) above maximum (59): 60",
    "0 0 0 * *": "beginning of range (0) below minimum (1): 0",
    "0 0 * * 7": "end of range (7) above maximum (6): 7",
    "30-10 * * * *": "beginning of range (30) beyond end of range (10): 30-10",
    "*/0 * * * *": "step of range should be a positive number: */0",
    "*/-5 * * * *": "negative number (-5) not allowed: -5",
    "1-2-3 * * * *": "too many hyphens: 1-2-3",
    "1/2/3 * * * *": "too many slashes: 1/2/3",
    "often * * * *": (
        'failed to parse int from often: strconv.Atoi: parsing "often": invalid syntax'
    ),
    "@often": "unrecognized descriptor: @often",
    "@every day": 'failed to parse duration @every day: time: invalid duration "day"',
    "@every 1d": 'failed to parse duration @every 1d: time: unknown unit "d" in duration "1d"',
    "@every 5": 'failed to parse duration @every 5: time: missing unit in duration "5"',
    "TZ=Mars/Base * * * * *": "provided bad location Mars/Base: unknown time zone Mars/Base",
}


@pytest.mark.parametrize("schedule", REFUSALS)
def test_a_schedule_is_refused_in_the_words_of_kubernetes(schedule: str) -> None:
    """The error names the wrong part."""
    with pytest.raises(ScheduleError) as refusal:
        parse_schedule(schedule)

    assert str(refusal.value) == REFUSALS[schedule]


@pytest.mark.parametrize("name", ["Mars/Base", "America", "../etc/passwd", "/etc/localtime"])
def test_a_zone_that_is_none_is_refused(name: str) -> None:
    """Neither directories nor paths are zones."""
    with pytest.raises(ScheduleError, match="unknown time zone"):
        time_zone(name)
