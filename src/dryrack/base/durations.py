"""Durations in the syntax of Go: `30s`, `1m30s`, `500ms`."""

from __future__ import annotations

import math
import re

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
# Possessive, so that a long number is not divided in every possible way.
_NUMBER = r"[0-9]++(?:\.[0-9]++)?+"
_DURATION = re.compile(rf"(?:{_NUMBER}(?:ms|s|m|h))++")
_PART = re.compile(rf"({_NUMBER})(ms|s|m|h)")


def seconds_in(text: str) -> float | None:
    """Return the seconds, or None if the text is not a duration or has no end."""
    if not _DURATION.fullmatch(text):
        return None
    seconds = 0.0
    position = 0
    while part := _PART.match(text, position):
        seconds += float(part[1]) * _SECONDS[part[2]]
        position = part.end()
    return seconds if math.isfinite(seconds) else None
