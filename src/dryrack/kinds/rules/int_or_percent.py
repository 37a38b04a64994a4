"""Values that are a number or a percentage: `3`, or `25%`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dryrack.base.numbers import read_int64
from dryrack.kinds.rules.checks import non_negative
from dryrack.kinds.validation.problems import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.validation import FieldProblem

Count = int | str

_PERCENTAGE = re.compile("[0-9]+%").fullmatch
_SYNTAX = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or "
    "'93%', regex used for validation is '[0-9]+%')"
)
_WHOLE = 100


def count_or_percentage(field: str, value: Count) -> Iterator[FieldProblem]:
    """Check a number or a percentage."""
    if isinstance(value, int):
        yield from non_negative(field, value)
    elif not _PERCENTAGE(value):
        yield invalid(field, value, _SYNTAX)


def at_most_all(field: str, value: Count) -> Iterator[FieldProblem]:
    """Check that a percentage is at most 100%."""
    share = percentage(value)
    if share is not None and share > _WHOLE:
        yield invalid(field, value, "must not be greater than 100%")


def percentage(value: Count) -> int | None:
    """Return the share in percent, or None if the value is not one."""
    return read_int64(value[:-1]) if isinstance(value, str) and _PERCENTAGE(value) else None


def is_zero(value: Count | None) -> bool:
    """Return whether the value is 0; an invalid text counts as 0."""
    if not isinstance(value, str):
        return not value
    share = percentage(value)
    return not share if share is not None else not read_int64(value)


def scaled_value(value: Count | None, total: int, *, default: Count, rounds_up: bool) -> int:
    """Return an absolute number, or a percentage of a total; 0 for one that no int64 holds."""
    value = default if value is None else value
    if isinstance(value, int):
        return value
    share = (read_int64(value.rstrip("%")) or 0) * total
    return -(-share // 100) if rounds_up else share // 100


def desired_healthy(unavailable: Count | None, available: Count | None, expected: int) -> int:
    """Return how many pods a disruption budget requires to be healthy."""
    if unavailable is not None:
        return max(0, expected - scaled_value(unavailable, expected, default=0, rounds_up=True))
    return scaled_value(available, expected, default=0, rounds_up=True)
