"""
An object as it is kept.

What is stored is never changed again: everybody who reads it is given the same one. Its JSON is
written once, when somebody first asks for it, and shared by every answer and every watch. An
object that nobody has written for a while is kept as JSON alone, a tenth of the memory, and read
again for whoever asks for more.
"""

from dataclasses import dataclass
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

    `marks` is for whoever selects objects: what it wants to know of this one without reading it.
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
            found: Raw = _decode(self.json)
            return found
        return self._object

    @property
    def is_compact(self) -> bool:
        """Whether it is kept as JSON alone."""
        return self._object is None

    @property
    def json(self) -> bytes:
        if self._json is None:
            # What the encoder returns has up to half its length unused behind it.
            self._json = bytes(memoryview(_encode(self.object)))
        return self._json

    @property
    def json_bytes(self) -> int:
        """How long its JSON is; 0 as long as nobody has asked for that."""
        return len(self._json) if self._json is not None else 0

    @property
    def is_large(self) -> bool:
        return self.json_bytes > LARGE_OBJECT_BYTES

    def compact(self) -> None:
        """Keeps the JSON alone."""
        assert self.json, "an object is dropped only when its JSON exists"
        self._object = None

    def __repr__(self) -> str:
        return f"Stored({'/'.join(self.key)} at {self.revision})"


@dataclass(frozen=True, slots=True)
class Conflict:
    """A write that expected something else than what is there; None: nothing is there."""

    current: Stored | None


@dataclass(frozen=True, slots=True)
class Record:
    """A write as a journal keeps it; `json` is None for a deletion."""

    key: Key
    revision: int
    json: bytes | None


class Journal(Protocol):
    """
    Makes writes last.

    `append` takes a record in order; if it raises, the write has not happened. A journal may make
    records safe in groups, later: then whoever answers for the store holds answers and events
    back until their revision is safe.
    """

    def append(self, record: Record) -> None: ...
