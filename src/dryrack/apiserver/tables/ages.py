"""Times as a person reads them: two or three significant figures of how long ago."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from dryrack.apiserver.tables.columns import JsonObject, dig
from dryrack.base.ages import INVALID, human

__all__ = ["INVALID", "UNKNOWN", "age", "human", "seconds", "since"]

UNKNOWN = "<unknown>"


def age(obj: JsonObject, now: float) -> str:
    return since(dig(obj, "metadata", "creationTimestamp"), now)


def since(timestamp: Any, now: float) -> str:
    """Return how long ago a time of the API was; `<unknown>` if it is unset."""
    moment = seconds(timestamp)
    return UNKNOWN if moment is None else human(now - moment)


def seconds(timestamp: Any) -> float | None:
    """Return a time of the API in seconds since 1970, or None if it is invalid."""
    if not isinstance(timestamp, str) or not timestamp:
        return None
    try:
        return datetime.fromisoformat(timestamp).timestamp()
    except ValueError:
        return None
