"""
The memory that all watches take together for events that their clients have not read.

A watch keeps references to stored versions, not copies. A version costs nothing as long as it is
the current one, because the store has it anyway. Once a newer one has replaced it, the watches
that still have to send it are the reason why it is kept: it counts once, however many they are.
When all of this exceeds a bound, the watch whose client has read nothing for longest expires.
"""

from typing import Protocol

from dryrack.base.limits import WATCH_BACKLOGS_BYTES_MAX
from dryrack.store import Stored

# What one entry takes in the queue of one watch.
_ENTRY_BYTES = 128


class Waiting(Protocol):
    """A watch with events that its client has not read."""

    waits_since: int
    """When the client last read, as `Backlog.now` counts."""

    def expire(self) -> None:
        """Drop the events, and finish with an error that makes the client list again."""
        ...


class Backlog:
    """The unread events of all watches of a server."""

    def __init__(self) -> None:
        self._references: dict[Stored, int] = {}
        self._replaced: set[Stored] = set()
        self._waiting: dict[Waiting, None] = {}
        self._bytes = 0
        self.now = 0
        """A clock that counts events and reads, so that the same requests have the same end."""

    def wait(self, watch: Waiting) -> None:
        """Remember that a watch has unread events from now on."""
        self.now += 1
        watch.waits_since = self.now
        self._waiting[watch] = None

    def settle(self, watch: Waiting) -> None:
        """Forget a watch whose events are all read."""
        self._waiting.pop(watch, None)

    def add(self, stored: Stored, *, is_current: bool) -> None:
        """Account for a version that one more watch has to send."""
        self._bytes += _ENTRY_BYTES
        self._references[stored] = self._references.get(stored, 0) + 1
        # Sizes here and in the log of the store are those of the JSON.
        has_text = bool(stored.json)
        if has_text and not is_current:
            self.replace(stored)

    def remove(self, stored: Stored) -> None:
        """Account for a version that a watch has sent, or will not send."""
        self._bytes -= _ENTRY_BYTES
        count = self._references[stored] - 1
        if count:
            self._references[stored] = count
            return
        del self._references[stored]
        if stored in self._replaced:
            self._replaced.discard(stored)
            self._bytes -= stored.json_bytes

    def replace(self, stored: Stored) -> None:
        """Account for a version that the store has no longer; others may have said so already."""
        if stored in self._references and stored not in self._replaced:
            self._replaced.add(stored)
            self._bytes += stored.json_bytes

    def relieve(self) -> None:
        """Expire watches until the rest is within the bound."""
        while self._bytes > WATCH_BACKLOGS_BYTES_MAX and self._waiting:
            min(self._waiting, key=lambda watch: watch.waits_since).expire()
