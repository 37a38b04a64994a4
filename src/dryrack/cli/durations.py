"""How long, as people and Go write it: `30s`, `1m30s`, `500ms`."""

from __future__ import annotations

import re

from dryrack.cli.files import UsageError

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")


def seconds_of(option: str, text: str) -> float:
    """Seconds, more than none; the option is for the complaint."""
    parts = _PART.findall(text)
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    if "".join(number + unit for number, unit in parts) != text or seconds <= 0:
        raise UsageError(f"{option} {text!r}: how long, for example 30s or 1m30s")
    return seconds
