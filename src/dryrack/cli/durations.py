"""How long, as an option says it."""

from __future__ import annotations

from dryrack.base.durations import seconds_in
from dryrack.cli.files import UsageError


def seconds_of(option: str, text: str) -> float:
    """Seconds, more than none; the option is for the complaint."""
    seconds = seconds_in(text)
    if not seconds:
        raise UsageError(f"{option} {text!r}: how long, for example 30s or 1m30s")
    return seconds
