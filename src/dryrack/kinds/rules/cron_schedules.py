"""
Cron schedules: five fields, `@daily` and its kin, `@every`; and when a schedule comes next.

The grammar is that of robfig/cron, by which Kubernetes reads `spec.schedule`, and so are the words
of a refusal. A time is met whenever a clock on the wall of the schedule's zone shows it: what falls
into the hour that is skipped in spring does not happen, and what falls into the one that comes
twice in autumn happens twice. (Where it is midnight that is skipped, as in Cairo, robfig/cron
misses that day; here it counts.)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from dryrack.base.durations import seconds_in
from dryrack.base.numbers import read_int64
from dryrack.kinds.text.quoting import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import tzinfo

# A schedule that is not met in so many years never is: 29 February comes every four.
_YEARS_MAX = 5
_ANY = ("*", "?")
_FIELDS = 5
_MINUTE = 60
_HOUR = 3600


class ScheduleError(ValueError):
    """A schedule or a time zone that makes no sense, in the API server's words."""


@dataclass(frozen=True, slots=True)
class Interval:
    """So long after the last time: `@every`."""

    seconds: int

    def next_after(self, when: float) -> float:
        return float(int(when) + self.seconds)


@dataclass(frozen=True, slots=True)
class FieldSchedule:
    """All times that five fields allow; seconds since 1970."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    """0 is Sunday."""
    is_any_day: bool
    """True if the days of the month or those of the week are not restricted."""
    zone: tzinfo

    def next_after(self, when: float) -> float | None:
        """Return the first time after `when`; None if there is no such time in years."""
        seconds = (int(when) // _MINUTE + 1) * _MINUTE
        year_max = datetime.fromtimestamp(seconds, self.zone).year + _YEARS_MAX
        while True:
            wall = datetime.fromtimestamp(seconds, self.zone)
            if wall.year > year_max:
                return None
            if wall.month not in self.months:
                seconds = _midnight(wall.replace(day=1) + timedelta(days=31), day=1)
            elif not self._has_day(wall):
                seconds = _midnight(wall + timedelta(days=1))
            elif wall.hour not in self.hours:
                seconds += _HOUR - wall.minute * _MINUTE
            elif wall.minute not in self.minutes:
                later = (each for each in self.minutes if each > wall.minute)
                seconds += (min(later, default=60) - wall.minute) * _MINUTE
            else:
                return float(seconds)

    def _has_day(self, wall: datetime) -> bool:
        """Return whether the day matches; if both kinds of days are restricted, one is enough."""
        is_day = wall.day in self.days
        is_weekday = wall.isoweekday() % 7 in self.weekdays
        return (is_day and is_weekday) if self.is_any_day else (is_day or is_weekday)


Schedule = FieldSchedule | Interval


def _midnight(wall: datetime, day: int | None = None) -> int:
    """Return the begin of a day: one o'clock if a time change skips midnight."""
    began = wall.replace(day=day or wall.day, hour=0, minute=0, second=0, fold=0)
    return int(began.timestamp())


@dataclass(frozen=True, slots=True)
class _Bounds:
    """The numbers and names that a field can have."""

    low: int
    high: int
    names: Mapping[str, int]


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_BOUNDS = (
    _Bounds(0, 59, {}),
    _Bounds(0, 23, {}),
    _Bounds(1, 31, {}),
    _Bounds(1, 12, {name: number for number, name in enumerate(_MONTHS, start=1)}),
    _Bounds(0, 6, {name: number for number, name in enumerate(_WEEKDAYS)}),
)
_NAMED = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY = "@every "


def parse_schedule(text: str, zone: tzinfo = UTC) -> Schedule:
    """Return the schedule, or raise `ScheduleError`; `TZ=` or `CRON_TZ=` replaces the zone."""
    if text.startswith(("TZ=", "CRON_TZ=")):
        name, _, text = text.partition("=")[2].partition(" ")
        try:
            zone = time_zone(name)
        except ScheduleError as error:
            raise ScheduleError(f"provided bad location {name}: {error}") from None
        text = text.strip()
    if text.startswith(_EVERY):
        duration = text.removeprefix(_EVERY)
        seconds = seconds_in(duration)
        if seconds is None:
            raise ScheduleError(f"failed to parse duration {text}: time: {_no_duration(duration)}")
        return Interval(max(1, int(seconds)))
    if text.startswith("@") and text not in _NAMED:
        raise ScheduleError(f"unrecognized descriptor: {text}")
    fields = _NAMED.get(text, text).split()
    if len(fields) != _FIELDS:
        shown = f"[{' '.join(fields)}]"
        raise ScheduleError(f"expected exactly {_FIELDS} fields, found {len(fields)}: {shown}")
    parsed = [_field(field, bounds) for field, bounds in zip(fields, _BOUNDS, strict=True)]
    minutes, hours, days, months, weekdays = (values for values, _ in parsed)
    is_any_day = parsed[2][1] or parsed[4][1]
    return FieldSchedule(minutes, hours, days, months, weekdays, is_any_day=is_any_day, zone=zone)


def time_zone(name: str) -> tzinfo:
    """Return a zone by its name in the IANA database, or raise `ScheduleError`."""
    if name in ("", "UTC"):
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ScheduleError(f"unknown time zone {name}") from None


def _no_duration(text: str) -> str:
    unit = re.fullmatch(r"(?:\d++(?:ms|s|m|h)(?=\d))*+\d++([^\d.]*+).*", text, re.DOTALL)
    if unit is None:
        return f"invalid duration {quoted(text)}"
    if not unit[1]:
        return f"missing unit in duration {quoted(text)}"
    return f"unknown unit {quoted(unit[1])} in duration {quoted(text)}"


def _field(text: str, bounds: _Bounds) -> tuple[frozenset[int], bool]:
    """Return the values of a list of ranges, and whether it is unrestricted."""
    ranges = [_range(each, bounds) for each in text.split(",") if each]
    return frozenset().union(*(values for values, _ in ranges)), any(star for _, star in ranges)


def _range(text: str, bounds: _Bounds) -> tuple[range, bool]:
    extent, *steps = text.split("/")
    low, *highs = extent.split("-")
    is_any = low in _ANY
    if is_any:
        start = bounds.low
        end = bounds.high
    else:
        start = _number(low, bounds)
        if len(highs) > 1:
            raise ScheduleError(f"too many hyphens: {text}")
        end = _number(highs[0], bounds) if highs else start
    if len(steps) > 1:
        raise ScheduleError(f"too many slashes: {text}")
    step = _integer(steps[0]) if steps else 1
    if steps and not highs:
        # "5/15" is every fifteenth from the fifth on.
        end = bounds.high
    _check(text, range(start, end + 1), bounds)
    if step == 0:
        raise ScheduleError(f"step of range should be a positive number: {text}")
    return range(start, end + 1, step), is_any and step == 1


def _check(text: str, values: range, bounds: _Bounds) -> None:
    start = values.start
    end = values.stop - 1
    if start < bounds.low:
        raise ScheduleError(f"beginning of range ({start}) below minimum ({bounds.low}): {text}")
    if end > bounds.high:
        raise ScheduleError(f"end of range ({end}) above maximum ({bounds.high}): {text}")
    if start > end:
        raise ScheduleError(f"beginning of range ({start}) beyond end of range ({end}): {text}")


def _number(text: str, bounds: _Bounds) -> int:
    named = bounds.names.get(text.lower())
    return _integer(text) if named is None else named


def _integer(text: str) -> int:
    number = read_int64(text)
    if number is None:
        is_number = re.fullmatch(r"[+-]?[0-9]+", text)
        why = "value out of range" if is_number else "invalid syntax"
        problem = f"strconv.Atoi: parsing {quoted(text)}: {why}"
        raise ScheduleError(f"failed to parse int from {text}: {problem}")
    if number < 0:
        raise ScheduleError(f"negative number ({number}) not allowed: {text}")
    return number
