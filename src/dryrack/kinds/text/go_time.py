"""
Times as Go's `time.Parse` reads them, with its errors.

The API server parses a time while it decodes an object, so its answer is Go's own: an hour may
have one digit, a comma may stand before the fraction, the year 0 exists, and an offset goes up to
24:60.
"""

import re
from datetime import datetime, timedelta
from typing import NamedTuple

from dryrack.kinds.text.quoting import quoted

# The Gregorian calendar repeats after this many years; Python's begins with the year 1.
_CYCLE_YEARS = 400
_YEAR_MIDDLE = 5000
_OFFSET_HOURS_MAX = 24
_OFFSET_MINUTES_MAX = 60
_TO_THE_SECOND = "2006-01-02T15:04:05Z07:00"
_TO_THE_MICROSECOND = "2006-01-02T15:04:05.000000Z07:00"
# The parts of the layouts with what a text must have there. A group is a number, with its name in
# errors and the first value that is too large.
_DATE_AND_TIME = (
    ("2006", r"[0-9]{4}"),
    ("-", "-"),
    ("01", r"[0-9]{2}"),
    ("-", "-"),
    ("02", r"[0-9]{2}"),
    ("T", "T"),
    ("15", r"[0-9]{2}|[0-9]"),
    (":", ":"),
    ("04", r"[0-9]{2}"),
    (":", ":"),
    ("05", r"[0-9]{2}"),
)
_RANGES = {"01": ("month", 1, 12), "15": ("hour", 0, 23), "04": ("minute", 0, 59)}
_RANGES["05"] = ("second", 0, 59)
_FRACTION = re.compile(r"[.,]([0-9]+)")
_MICROSECONDS = re.compile(r"[.,]([0-9]{6})")
_ZONE = re.compile(r"Z|([+-])([0-9]{2}):([0-9]{2})")


class GoTimeError(ValueError):
    """A text that is not a time; the message is Go's."""


class Moment(NamedTuple):
    """A time in UTC; `shift` is added to the year of `moment`."""

    moment: datetime
    shift: int

    def text(self, *, micro: bool = False) -> str:
        """Return the time as Go writes it: to the second, or to the microsecond."""
        year = self.moment.year + self.shift
        shown = f"-{-year:04d}" if year < 0 else f"{year:04d}"
        fraction = f".{self.moment.microsecond:06d}" if micro else ""
        return f"{shown}-{self.moment.strftime('%m-%dT%H:%M:%S')}{fraction}Z"


def parse_time(text: str, *, micro: bool = False) -> Moment:
    """Return the time that a text of RFC 3339 names; raise `GoTimeError` if it names none."""
    reader = _Reader(text, _TO_THE_MICROSECOND if micro else _TO_THE_SECOND)
    numbers = [reader.take(part, pattern) for part, pattern in _DATE_AND_TIME]
    year, month, day, hour, minute, second = (each for each in numbers if each is not None)
    fraction = reader.take_fraction(micro=micro)
    offset = reader.take_zone()
    if reader.rest:
        raise reader.failure(f": extra text: {quoted(reader.rest)}")
    shift = -_CYCLE_YEARS if year < _YEAR_MIDDLE else _CYCLE_YEARS
    try:
        moment = datetime(year - shift, month, day, hour, minute, second, fraction)  # noqa: DTZ001
    except ValueError:
        raise reader.failure(": day out of range") from None
    return Moment(moment - offset, shift)


class _Reader:
    """Takes the parts of a time from the front of a text."""

    def __init__(self, text: str, layout: str) -> None:
        self.text = text
        self.rest = text
        self._layout = layout

    def take(self, part: str, pattern: str) -> int | None:
        """Take one part of the layout; return its number, if it has one."""
        found = re.match(pattern, self.rest)
        if found is None:
            raise self._unlike(part)
        self.rest = self.rest[found.end() :]
        if not found[0].isdigit():
            return None
        number = int(found[0])
        name, low, high = _RANGES.get(part, ("", number, number))
        if not low <= number <= high:
            raise self.failure(f": {name} out of range")
        return number

    def take_fraction(self, *, micro: bool) -> int:
        """Take the fraction of a second, which only a time to the microsecond must have."""
        found = (_MICROSECONDS if micro else _FRACTION).match(self.rest)
        if found is None:
            if micro:
                raise self._unlike(".000000")
            return 0
        self.rest = self.rest[found.end() :]
        return int(found[1][:6].ljust(6, "0"))

    def take_zone(self) -> timedelta:
        """Take the offset from UTC."""
        found = _ZONE.match(self.rest)
        if found is None:
            raise self._unlike("Z07:00")
        self.rest = self.rest[found.end() :]
        if found[0] == "Z":
            return timedelta()
        hours = int(found[2])
        minutes = int(found[3])
        # Go reports the last range that is exceeded.
        if minutes > _OFFSET_MINUTES_MAX:
            raise self.failure(": time zone offset minute out of range")
        if hours > _OFFSET_HOURS_MAX:
            raise self.failure(": time zone offset hour out of range")
        offset = timedelta(hours=hours, minutes=minutes)
        return -offset if found[1] == "-" else offset

    def failure(self, message: str) -> GoTimeError:
        return GoTimeError(f"parsing time {quoted(self.text)}{message}")

    def _unlike(self, part: str) -> GoTimeError:
        return self.failure(
            f" as {quoted(self._layout)}: cannot parse {quoted(self.rest)} as {quoted(part)}"
        )
