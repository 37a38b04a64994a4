"""
Stored objects, events and the journal's records.

A stored object never changes: all readers share it. Its JSON is written once, on the first read of
it, and shared by every answer and every watch. An object that was not written for a while is kept
as JSON alone, which takes a tenth of the memory, and decoded again for each reader.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, Protocol

import msgspec

from dryrack.base.limits import LARGE_OBJECT_BYTES
from dryrack.kinds.raw import Raw

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Key(NamedTuple):
    """`resource` is "plural.group", or the plural alone in the core group."""

    resource: str
    namespace: str
    name: str


class Stored:
    """
    One version of one object; its metadata.resourceVersion is the revision.

    `marks` is for selectors: values that they need of this object without decoding it.
    """

    __slots__ = ("_json", "_object", "key", "marks", "revision")

    def __init__(self, key: Key, revision: int, obj: Raw | None, json: bytes | None = None) -> None:
        assert obj is not None or json is not None, "an object has one form at least"
        self.key = key
        self.revision = revision
        self.marks: dict[str, Any] = {}
        self._object = obj
        self._json = json

    @property
    def object(self) -> Raw:
        if self._object is None:
            obj: Raw = _decode(self.json)
            return obj
        return self._object

    @property
    def is_compact(self) -> bool:
        """Return whether the object is kept as JSON alone."""
        return self._object is None

    @property
    def json(self) -> bytes:
        if self._json is None:
            # A copy, because the encoder's result has up to half its length unused behind it.
            self._json = bytes(memoryview(_encode(self.object)))
        return self._json

    @property
    def json_bytes(self) -> int:
        """Return the length of the JSON; 0 before its first read."""
        return len(self._json) if self._json is not None else 0

    @property
    def is_large(self) -> bool:
        return self.json_bytes > LARGE_OBJECT_BYTES

    def compact(self) -> None:
        """Keep the JSON alone."""
        assert self.json, "an object is dropped only when its JSON exists"
        self._object = None

    def __repr__(self) -> str:
        return f"Stored({'/'.join(self.key)} at {self.revision})"


@dataclass(frozen=True, slots=True)
class Conflict:
    """A write that expected another revision; `current` is None if the object does not exist."""

    current: Stored | None


class EventType(Enum):
    """The type of a watch event."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Event:
    """
    One write.

    `stored` is the object after it; of a deletion, the last state at the revision of the
    deletion. `previous` is the object before it, None if there was none. `old_bytes` is the size
    of its JSON, which the log alone keeps in memory.
    """

    __slots__ = ("old_bytes", "previous", "stored", "type")

    def __init__(self, type: EventType, stored: Stored, previous: Stored | None) -> None:
        self.type = type
        self.stored = stored
        self.previous = previous
        self.old_bytes = previous.json_bytes if previous is not None else 0

    @property
    def revision(self) -> int:
        return self.stored.revision

    def __repr__(self) -> str:
        return f"Event({self.type.value} {self.stored!r})"


@dataclass(frozen=True, slots=True)
class Gone:
    """The log does not reach back so far; `oldest` is the first revision that it can serve."""

    oldest: int


@dataclass(frozen=True, slots=True)
class Record:
    """A write as a journal keeps it; `json` is None for a deletion."""

    key: Key
    revision: int
    json: bytes | None


class Journal(Protocol):
    """
    Makes writes durable.

    `append` takes a record in order; if it raises, the write has not happened. A journal may make
    records durable in groups, later: then the server of the store holds answers and events back
    until their revision is durable.
    """

    def append(self, record: Record) -> None: ...
