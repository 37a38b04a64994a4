"""Durations in options."""

from __future__ import annotations

from dryrack.base.durations import seconds_in
from dryrack.cli.files import UsageError


def seconds_of(option: str, text: str) -> float:
    """Return the positive seconds of a duration; the option is for the error message."""
    seconds = seconds_in(text)
    if not seconds:
        raise UsageError(f"{option} {text!r}: must be a duration, for example 30s or 1m30s")
    return seconds
