"""
The journal of a run: every write to the store, every step and every fault, in order, and its hash.

A line has the time of the scenario, the action, the object, and a digest of the result. Only the
hash and a count are kept, so that a long run needs no memory; callers can listen to the lines.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.base.ports import Clock
    from dryrack.store import Key, Record

_DIGEST_BYTES = 8


class Journal:
    """Records what happens; it is the journal of a store in memory."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._start = clock.now()
        self._hash = hashlib.sha256()
        self._known: set[Key] = set()
        self._listeners: list[Callable[[str], None]] = []
        self._watchers: list[Callable[[Record], None]] = []
        self.writes = 0

    def append(self, record: Record) -> None:
        """Record a write to the store."""
        self.writes += 1
        if record.json is None:
            verb = "delete"
            digest = ""
            self._known.discard(record.key)
        else:
            verb = "update" if record.key in self._known else "create"
            self._known.add(record.key)
            digest = hashlib.blake2b(record.json, digest_size=_DIGEST_BYTES).hexdigest()
        key = record.key
        self.note(f"{verb} {key.resource} {key.namespace}/{key.name} {digest}".rstrip())
        for watcher in self._watchers:
            watcher(record)

    def note(self, what: str) -> None:
        """Record another event."""
        line = f"{self._clock.now() - self._start:.6f} {what}"
        self._hash.update(line.encode())
        self._hash.update(b"\n")
        for listener in self._listeners:
            listener(line)

    def listen(self, listener: Callable[[str], None]) -> None:
        """Call `listener` with every line from now on."""
        self._listeners.append(listener)

    def watch(self, watcher: Callable[[Record], None]) -> None:
        """Call `watcher` with every write from now on; it must not write itself."""
        self._watchers.append(watcher)

    @property
    def hash(self) -> str:
        return self._hash.hexdigest()
