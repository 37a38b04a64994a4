"""
Writes that survive the process: what is stored, in SQLite.

The database holds the last state of every object and the highest revision ever given; a start
reads it and goes on from there. Writes are committed in groups: while one group goes to the disk,
the next gathers, so that a hundred clients wait for one flush and not for a hundred. `Durable`
stands before the API server and lets nothing out, no answer and no event, before every write that
it may tell of is on the disk. So what anybody was told is there after any crash, and what is lost
in one is a tail that nobody has heard of. A lock keeps a second process out.

If the disk refuses a write, the journal is broken for good: the memory is ahead of the disk, and
the only way back is to start again.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING

from dryrack.base.errors import DryrackError
from dryrack.client.transport import Chunk, Request, Response, Stream, Transport
from dryrack.cluster.process.locks import hold
from dryrack.store import Key, Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

_SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (
    resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    revision INTEGER NOT NULL, json BLOB NOT NULL,
    PRIMARY KEY (resource, namespace, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
"""
_FORMAT = 1
# Every statement hands Python's lock over and waits for it again, while requests are worked on;
# so many rows go into one. SQLite takes some thousand parameters.
_ROWS_MAX = 100
_DELETE = "DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?"
_SET = "INSERT OR REPLACE INTO facts VALUES (?, ?)"
# The log is folded into the table when it has grown to 64 MiB: rarely enough not to be felt.
_LOG_PAGES_MAX = 16_384


@cache
def _put(rows: int) -> str:
    return f"INSERT OR REPLACE INTO objects VALUES {', '.join(['(?, ?, ?, ?, ?)'] * rows)}"


class DataDirectoryError(DryrackError):
    """A data directory that cannot be used."""


class SqliteJournal:
    """The journal of one cluster, in a directory of its own."""

    def __init__(self, directory: Path, *, on_failure: Callable[[], None] = lambda: None) -> None:
        """`on_failure` is called when the journal breaks, so that somebody ends the process."""
        directory.mkdir(parents=True, mode=0o700, exist_ok=True)
        self._lock = hold(directory / "lock")
        try:
            self._database = _opened(directory / "objects.sqlite")
        except BaseException:
            os.close(self._lock)
            raise
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journal")
        self._on_failure = on_failure
        self._gathered: list[Record] = []
        self._appended = 0
        self._written = 0
        self._commit: asyncio.Task[None] | None = None
        self._broken: Exception | None = None

    def append(self, record: Record) -> None:
        """Takes the record; it is on the disk when a `safe` that is asked for later returns."""
        if self._broken is not None:
            raise self._broken
        self._gathered.append(record)
        self._appended += 1

    async def safe(self) -> None:
        """Returns when everything that was appended before is on the disk."""
        wanted = self._appended
        while self._written < wanted:
            if self._broken is not None:
                raise self._broken
            if self._commit is None:
                self._commit = asyncio.create_task(self._run(), name="journal commit")
            # Who goes away takes nobody else's commit along.
            await asyncio.shield(self._commit)

    async def _run(self) -> None:
        records, self._gathered = self._gathered, []
        try:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._thread, self._write, records)
        except sqlite3.Error as error:
            self._broken = DataDirectoryError(f"the journal cannot be written: {error}")
            self._on_failure()
        else:
            self._written += len(records)
        finally:
            self._commit = None

    def _write(self, records: Sequence[Record]) -> None:
        """In the thread of the journal; nothing else touches the database while it serves."""
        database = self._database
        # Of several states of an object only the last is ever read.
        last = {record.key: record for record in records}
        puts = [
            (*key, each.revision, each.json) for key, each in last.items() if each.json is not None
        ]
        database.execute("BEGIN IMMEDIATE")
        for key, record in last.items():
            if record.json is None:
                database.execute(_DELETE, key)
        for start in range(0, len(puts), _ROWS_MAX):
            rows = puts[start : start + _ROWS_MAX]
            database.execute(_put(len(rows)), [*chain.from_iterable(rows)])
        database.execute(_SET, ("revision", records[-1].revision))
        database.execute("COMMIT")

    def revision(self) -> int:
        """The highest revision ever given; 1 in the beginning."""
        query = "SELECT value FROM facts WHERE name = 'revision'"
        found = self._database.execute(query).fetchone()
        return found[0] if found else 1

    def records(self) -> Iterator[Record]:
        """The last state of everything, in the order in which it was written."""
        query = "SELECT resource, namespace, name, revision, json FROM objects ORDER BY revision"
        for resource, namespace, name, revision, json in self._database.execute(query):
            yield Record(Key(resource, namespace, name), revision, json)

    async def close(self) -> None:
        try:
            await self.safe()
        finally:
            self._thread.shutdown()
            self._database.close()
            os.close(self._lock)


class Durable:
    """A transport that answers when what it answers is safe."""

    def __init__(self, inner: Transport, journal: SqliteJournal) -> None:
        self._inner = inner
        self._journal = journal

    async def send(self, request: Request) -> Response:
        response = await self._inner.send(request)
        await self._journal.safe()
        if isinstance(response.body, bytes):
            return response
        stream = _SafeStream(response.body, self._journal)
        return Response(response.status, response.headers, stream)


class _SafeStream:
    """A stream whose chunks wait for the disk."""

    def __init__(self, inner: Stream, journal: SqliteJournal) -> None:
        self._inner = inner
        self._journal = journal

    def __aiter__(self) -> _SafeStream:
        return self

    async def __anext__(self) -> Chunk:
        chunk = await anext(self._inner)
        await self._journal.safe()
        return chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


def _opened(path: Path) -> sqlite3.Connection:
    path.touch(mode=0o600)
    # The thread of the journal writes, the one that opens and closes it reads; never both at once.
    database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        _prepare(database, path)
    except sqlite3.DatabaseError as error:
        database.close()
        raise DataDirectoryError(f"{path}: {error}; move it away to begin anew") from None
    except DataDirectoryError:
        database.close()
        raise
    return database


def _prepare(database: sqlite3.Connection, path: Path) -> None:
    database.execute("PRAGMA locking_mode = EXCLUSIVE")
    database.execute("PRAGMA journal_mode = WAL")
    # FULL flushes the log at every commit; with less, a power cut could undo what was told.
    database.execute("PRAGMA synchronous = FULL")
    database.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES_MAX}")
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version not in (0, _FORMAT):
        raise DataDirectoryError(
            f"{path}: written by another version of dryrack (format {version}, this one reads "
            f"{_FORMAT}); use that one, or another directory"
        )
    database.executescript(_SCHEMA)
    database.execute(f"PRAGMA user_version = {_FORMAT}")
