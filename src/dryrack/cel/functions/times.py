"""Parts of timestamps and durations, in UTC or in the zone that is asked for."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from dryrack.base.numbers import read_int64
from dryrack.cel.evaluation.values import SECOND, Duration, Err, Timestamp, Value
from dryrack.cel.functions import go_numbers
from dryrack.kinds.text.quoting import quoted

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

_NUMBER = re.compile(r"[+-]?[0-9]+")
_DAYS_OF_400_YEARS = 146_097

_PARTS: dict[str, Callable[[datetime], int]] = {
    "year": lambda moment: moment.year,
    "month": lambda moment: moment.month - 1,
    "day_of_year": lambda moment: moment.timetuple().tm_yday - 1,
    "day_of_month": lambda moment: moment.day - 1,
    "day_of_month_1_based": lambda moment: moment.day,
    "day_of_week": lambda moment: (moment.weekday() + 1) % 7,
    "hours": lambda moment: moment.hour,
    "minutes": lambda moment: moment.minute,
    "seconds": lambda moment: moment.second,
}


def _part(name: str) -> Callable[..., Value]:
    read = _PARTS[name]

    def part(moment: Timestamp, zone: str = "UTC") -> Value:
        seconds = moment.nanos // SECOND
        offset = _offset(seconds, zone)
        return offset if isinstance(offset, Err) else _read(read, name, seconds + offset)

    return part


def _read(read: Callable[[datetime], int], name: str, seconds: int) -> int:
    try:
        return read(go_numbers.broken_down(seconds, 0))
    except OverflowError:
        # A zone can push a moment out of Python's calendar, which repeats every 400 years.
        years = 400 if seconds < 0 else -400
        shifted = seconds + (years // 400) * _DAYS_OF_400_YEARS * 86_400
        number = read(go_numbers.broken_down(shifted, 0))
        return number - years if name == "year" else number


def _milliseconds(moment: Timestamp, zone: str = "UTC") -> Value:
    offset = _offset(moment.nanos // SECOND, zone)
    return offset if isinstance(offset, Err) else moment.nanos % SECOND // 1_000_000


def _offset(seconds: int, zone: str) -> int | Err:
    hours, colon, minutes = zone.partition(":")
    if not colon:
        if zone in ("", "UTC", "Local"):
            return 0
        info = _zone(zone)
        if isinstance(info, Err):
            return info
        try:
            offset = go_numbers.broken_down(seconds, 0).astimezone(info).utcoffset()
        except OverflowError:
            # At the ends of the calendar a zone is as it was, or will be, a day away from there.
            inward = -86_400 if seconds > 0 else 86_400
            offset = go_numbers.broken_down(seconds + inward, 0).astimezone(info).utcoffset()
        return 0 if offset is None else int(offset.total_seconds())
    numbers: list[int] = []
    for text in (hours, minutes):
        number = read_int64(text)
        if number is None:
            why = "value out of range" if _NUMBER.fullmatch(text) else "invalid syntax"
            return Err(f"strconv.Atoi: parsing {quoted(text)}: {why}")
        numbers.append(number)
    sign = -1 if zone.startswith("-") else 1
    return (numbers[0] * 60 + sign * numbers[1]) * 60


# The longest of the directories where Go looks, and what file systems allow.
_ZONES = "/usr/share/lib/zoneinfo/"
_PATH_BYTES_MAX = 4095
_NAME_BYTES_MAX = 255
_TOO_LONG = "file name too long"


def _zone(name: str) -> ZoneInfo | Err:
    """Find a zone as Go does, to which it is a file, and its name the path of one."""
    if ".." in name or name[0] in "/\\":
        return Err("time: invalid location name")
    if "\0" in name:
        return Err("invalid argument")
    if len(_ZONES) + len(name.encode()) > _PATH_BYTES_MAX:
        return Err(_TOO_LONG)
    return _at_path(name)


@cache
def _directories() -> frozenset[str]:
    """Directories of time zones: `America`, and `America/Argentina`."""
    zones = (zone.split("/")[:-1] for zone in available_timezones())
    return frozenset("/".join(above[:end]) for above in zones for end in range(1, len(above) + 1))


def _at_path(name: str) -> ZoneInfo | Err:
    zone: ZoneInfo | None = None
    steps = [step for step in name.split("/") if step not in ("", ".")]
    for number, step in enumerate(steps, start=1):
        if zone is not None:
            return Err("not a directory")
        if len(step.encode()) > _NAME_BYTES_MAX:
            return Err(_TOO_LONG)
        path = "/".join(steps[:number])
        try:
            zone = ZoneInfo(path)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            # From Python 3.12 on a directory is said not to be found.
            if not isinstance(error, IsADirectoryError) and path not in _directories():
                return Err(f"unknown time zone {name}")
            zone = None
    if zone is None:
        return Err("is a directory")
    return Err("not a directory") if name.endswith(("/", "/.")) else zone


def _whole(unit: int) -> Callable[[Duration], int]:
    def whole(duration: Duration) -> int:
        count = abs(duration.nanos) // unit
        return -count if duration.nanos < 0 else count

    return whole


OVERLOADS: dict[str, Callable[..., Value]] = {
    **{f"timestamp_to_{name}": _part(name) for name in _PARTS},
    **{f"timestamp_to_{name}_with_tz": _part(name) for name in _PARTS},
    "timestamp_to_seconds_tz": _part("seconds"),
    "timestamp_to_milliseconds": _milliseconds,
    "timestamp_to_milliseconds_with_tz": _milliseconds,
    "duration_to_hours": _whole(3600 * SECOND),
    "duration_to_minutes": _whole(60 * SECOND),
    "duration_to_seconds": _whole(SECOND),
    "duration_to_milliseconds": _whole(1_000_000),
}
