"""
Persist the store in SQLite, so that writes survive the process.

The database holds the last state of every object and the highest revision; a start reads it and
goes on from there. Writes are committed in groups: while one group is flushed to the disk, the next
gathers, so that a hundred clients wait for one flush and not for a hundred. `Durable` stands before
the API server and holds back every response and every event until the writes that they show are on
the disk. So a client never sees a write that a crash can undo. A lock keeps a second process out.

If the disk refuses a write, the journal is broken for good: the memory is ahead of the disk, and
the only way back is to start again.

A start reads all of the database before it writes to it, and refuses one that is damaged. Every row
has a checksum, because SQLite does not notice a changed byte in a value.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING

import msgspec

from dryrack.base.errors import DryrackError
from dryrack.client.transport import Chunk, Request, Response, Stream, Transport
from dryrack.cluster.private_files import ensure_own_directory, open_private
from dryrack.cluster.process.locks import hold
from dryrack.store import Key, Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

_SCHEMA = """
CREATE TABLE objects (
    resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    revision INTEGER NOT NULL, json BLOB NOT NULL, checksum INTEGER,
    PRIMARY KEY (resource, namespace, name)
) WITHOUT ROWID;
CREATE TABLE facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
"""
_FORMAT = 2
# The format before rows had checksums; it has no other difference.
_FORMAT_WITHOUT_CHECKSUMS = 1
_ADD_CHECKSUMS = "ALTER TABLE objects ADD COLUMN checksum INTEGER"
_MAGIC = b"SQLite format 3\0"
_REMEDY = (
    "nothing was changed; restore a copy of the directory, or move objects.sqlite* away to start "
    "with an empty cluster"
)
# Every statement hands Python's lock over and waits for it again, while requests are worked on;
# so many rows go into one. SQLite takes some thousand parameters.
_ROWS_MAX = 100
_DELETE = "DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?"
_REVISION = "SELECT value FROM facts WHERE name = 'revision'"
_SET = "INSERT OR REPLACE INTO facts VALUES (?, ?)"
# The log is folded into the table when it has grown to 64 MiB: rarely enough not to be felt.
_LOG_PAGES_MAX = 16_384


@cache
def _put(rows: int) -> str:
    return f"INSERT OR REPLACE INTO objects VALUES {', '.join(['(?, ?, ?, ?, ?, ?)'] * rows)}"


class DataDirectoryError(DryrackError):
    """A data directory that cannot be used."""


class SqliteJournal:
    """The journal of one cluster, in a directory of its own."""

    def __init__(self, directory: Path, *, on_failure: Callable[[], None] = lambda: None) -> None:
        """Open the journal. `on_failure` is called when it breaks: the process has to end."""
        ensure_own_directory(directory)
        self._lock = hold(directory / "lock")
        try:
            path = directory / "objects.sqlite"
            if path.exists() or path.is_symlink():
                _check(path)
            else:
                _create(path)
            # The thread of the journal writes, the thread that opens and closes it reads;
            # never both at once.
            database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            try:
                database.execute("PRAGMA locking_mode = EXCLUSIVE")
                database.execute("PRAGMA journal_mode = WAL")
                # FULL flushes the log at every commit; with less, a power cut could undo a
                # write that clients have seen.
                database.execute("PRAGMA synchronous = FULL")
                database.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES_MAX}")
                if _format(database) == _FORMAT_WITHOUT_CHECKSUMS:
                    database.executescript(
                        f"BEGIN; {_ADD_CHECKSUMS}; PRAGMA user_version = {_FORMAT}; COMMIT"
                    )
            except sqlite3.DatabaseError as error:
                database.close()
                raise DataDirectoryError(f"{path}: {error}; {_REMEDY}") from None
            self._database = database
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
        """Take a record; it is on the disk when a later call of `safe` returns."""
        if self._broken is not None:
            raise self._broken
        self._gathered.append(record)
        self._appended += 1

    async def safe(self) -> None:
        """Return when everything that was appended before is on the disk."""
        wanted = self._appended
        while self._written < wanted:
            if self._broken is not None:
                raise self._broken
            if self._commit is None:
                self._commit = asyncio.create_task(self._run(), name="journal commit")
            # A client that disconnects must not cancel the commit of others.
            await asyncio.shield(self._commit)

    async def _run(self) -> None:
        records = self._gathered
        self._gathered = []
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
        """
        Write records, in the thread of the journal, which alone uses the database while it serves.
        """
        database = self._database
        # Of several states of an object only the last is ever read.
        last = {record.key: record for record in records}
        puts = [
            (*key, each.revision, each.json, _checksum(key, each.revision, each.json))
            for key, each in last.items()
            if each.json is not None
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
        """Return the highest revision so far; 1 in the beginning."""
        found = self._database.execute(_REVISION).fetchone()
        return found[0] if found else 1

    def records(self) -> Iterator[Record]:
        """Return the last state of every object, in the order of the writes."""
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
    """A transport that holds back responses until what they show is on the disk."""

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
    """A stream that holds back its chunks until what they show is on the disk."""

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


def _checksum(key: Key, revision: int, json: bytes) -> int:
    """Return the checksum of a row."""
    return zlib.crc32(json, zlib.crc32("\0".join((*key, str(revision))).encode()))


def _create(path: Path) -> None:
    """Create an empty database as a whole: a start that is killed leaves no file."""
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        raise DataDirectoryError(f"{path}: missing, but its log {log.name} exists; {_REMEDY}")
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    os.close(open_private(temporary, os.O_RDWR | os.O_EXCL))
    database = sqlite3.connect(temporary, isolation_level=None)
    with closing(database):
        database.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {_FORMAT}; COMMIT")
    temporary.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _check(path: Path) -> None:
    """Raise if the database is damaged; read it without changing it or its log."""
    try:
        with path.open("rb") as file:
            beginning = file.read(len(_MAGIC))
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise DataDirectoryError(f"{path}: {why}; check its permissions") from None
    if not beginning:
        raise DataDirectoryError(f"{path}: the file is empty; {_REMEDY}")
    if beginning != _MAGIC:
        raise DataDirectoryError(f"{path}: not an SQLite database; {_REMEDY}")
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            version = _format(database)
            if not version:
                raise DataDirectoryError(f"{path}: not written by dryrack, or damaged; {_REMEDY}")
            if version not in (_FORMAT, _FORMAT_WITHOUT_CHECKSUMS):
                raise DataDirectoryError(
                    f"{path}: written by another version of dryrack (format {version}, this one "
                    f"reads {_FORMAT}); use that one, or another directory"
                )
            damage = _damage(database, has_checksums=version == _FORMAT)
    except sqlite3.DatabaseError as error:
        damage = str(error)
    if damage:
        raise DataDirectoryError(f"{path}: damaged: {damage}; {_REMEDY}")


def _format(database: sqlite3.Connection) -> int:
    (version,) = database.execute("PRAGMA user_version").fetchone()
    return int(version)


def _damage(database: sqlite3.Connection, *, has_checksums: bool) -> str:
    """Return what is wrong with the content, or ""."""
    (found,) = database.execute("PRAGMA integrity_check(1)").fetchone()
    if found != "ok":
        return str(found).splitlines()[-1]
    latest = 0
    checksum = "checksum" if has_checksums else "NULL"
    query = f"SELECT resource, namespace, name, revision, json, {checksum} FROM objects"
    for resource, namespace, name, revision, json, expected in database.execute(query):
        if not isinstance(revision, int) or not isinstance(json, bytes):
            return f"the row of {resource} {namespace}/{name} has values of the wrong type"
        latest = max(latest, revision)
        key = Key(resource, namespace, name)
        is_whole = (
            _is_object(json) if expected is None else expected == _checksum(key, revision, json)
        )
        if not is_whole:
            return f"the object {resource} {namespace}/{name} has changed since it was written"
    (highest,) = database.execute(_REVISION).fetchone() or (1,)
    if not isinstance(highest, int) or highest < latest:
        return f"the last revision is {highest}, but an object has {latest}"
    return ""


def _is_object(json: bytes) -> bool:
    try:
        return isinstance(msgspec.json.decode(json), dict)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
