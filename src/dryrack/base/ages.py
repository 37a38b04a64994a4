"""Durations as kubectl shows them, with two or three significant figures."""

from __future__ import annotations

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_YEAR = 365 * _DAY
INVALID = "<invalid>"


def human(duration: float) -> str:
    # A clock may be up to two seconds behind.
    whole = int(duration)
    if whole < -1:
        return INVALID
    if whole < 2 * _MINUTE:
        return f"{max(whole, 0)}s"
    return _minutes_and_hours(whole) if whole < 8 * _HOUR else _days_and_years(whole)


def _minutes_and_hours(whole: int) -> str:
    if whole < 10 * _MINUTE:
        return _two(whole // _MINUTE, "m", whole % _MINUTE, "s")
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    return _two(whole // _HOUR, "h", whole // _MINUTE % 60, "m")


def _days_and_years(whole: int) -> str:
    if whole < 2 * _DAY:
        return f"{whole // _HOUR}h"
    if whole < 8 * _DAY:
        return _two(whole // _DAY, "d", whole // _HOUR % 24, "h")
    if whole < 2 * _YEAR:
        return f"{whole // _DAY}d"
    if whole < 8 * _YEAR:
        return _two(whole // _YEAR, "y", whole // _DAY % 365, "d")
    return f"{whole // _YEAR}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
