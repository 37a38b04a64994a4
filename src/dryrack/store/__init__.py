"""
Revisioned objects and their watch log, in memory.

    store = Store()
    made = store.put(Key("pods", "default", "web"), {"metadata": {"name": "web"}}, expected=0)
    pods, revision = store.list("pods", None)
    missed = store.events("pods", after=revision)
"""

from dryrack.store.objects import (
    Conflict,
    Event,
    EventType,
    Gone,
    Journal,
    Key,
    Record,
    Stored,
)
from dryrack.store.store import Listed, Store

__all__ = [
    "Conflict",
    "Event",
    "EventType",
    "Gone",
    "Journal",
    "Key",
    "Listed",
    "Record",
    "Store",
    "Stored",
]
