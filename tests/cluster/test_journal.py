"""Writes that last: what was told is there after any end of the process, and nothing else is."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from dryrack.client.endpoints import CONFIG_MAPS, NAMESPACES
from dryrack.client.transport import Request
from dryrack.cluster.control_plane import PlaneOptions
from dryrack.cluster.embedded import EmbeddedCluster, embedded
from dryrack.cluster.journal import DataDirectoryError, SqliteJournal
from dryrack.cluster.process.locks import HeldError
from dryrack.store import Key, Record

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

Raw = dict[str, Any]
KILLS = 6


def config_map(name: str, value: str = "x") -> Raw:
    return {"metadata": {"name": name, "namespace": "default"}, "data": {"value": value}}


@asynccontextmanager
async def durable(directory: Path) -> AsyncIterator[EmbeddedCluster]:
    journal = SqliteJournal(directory)
    try:
        async with embedded(PlaneOptions(journal=journal), engines=()) as cluster:
            yield cluster
    finally:
        await journal.close()


def test_a_restart_continues_where_it_ended(tmp_path: Path) -> None:
    """Objects, uids and revisions are the same; the next write gets the next revision."""

    async def scenario() -> None:
        async with durable(tmp_path) as cluster:
            kept = await cluster.client.create(CONFIG_MAPS, config_map("kept"))
            await cluster.client.create(CONFIG_MAPS, config_map("gone"))
            await cluster.client.delete(CONFIG_MAPS, "gone", namespace="default")
            revision = cluster.plane.store.revision
            namespace = await cluster.client.get(NAMESPACES, "default")
        async with durable(tmp_path) as cluster:
            assert await cluster.client.get(CONFIG_MAPS, "kept", "default") == kept
            assert await cluster.client.get(NAMESPACES, "default") == namespace
            listed = await cluster.client.list(CONFIG_MAPS)
            assert [each["metadata"]["name"] for each in listed.items] == ["kept"]
            assert cluster.plane.store.revision == revision
            made = await cluster.client.create(CONFIG_MAPS, config_map("new"))
            assert made["metadata"]["resourceVersion"] == str(revision + 1)

    asyncio.run(scenario())


def test_watches_from_before_a_restart_are_gone(tmp_path: Path) -> None:
    """History does not survive: a client that asks for it lists again, and misses nothing."""

    async def scenario() -> None:
        async with durable(tmp_path) as cluster:
            before = cluster.plane.store.revision
            await cluster.client.create(CONFIG_MAPS, config_map("a"))
        async with durable(tmp_path) as cluster:
            query = f"watch=true&resourceVersion={before}"
            answer = await cluster.transport.send(
                Request("GET", "/api/v1/configmaps", query, {"accept": "application/json"})
            )
            content = answer.body if isinstance(answer.body, bytes) else await anext(answer.body)
            assert isinstance(content, bytes)
            assert b'"code":410' in content
            if not isinstance(answer.body, bytes):
                await answer.body.aclose()

    asyncio.run(scenario())


def test_an_answer_waits_for_the_disk(tmp_path: Path) -> None:
    """When a write is answered, another process that opens the files finds it."""

    async def scenario() -> None:
        async with durable(tmp_path) as cluster:
            await cluster.client.create(CONFIG_MAPS, config_map("told"))
            assert "told" in _names(_copied(tmp_path))

    asyncio.run(scenario())


def _copied(directory: Path) -> Path:
    """The files as they are at this moment, which is what a crash would leave."""
    copy = directory / "copy"
    copy.mkdir()
    for path in directory.glob("objects.sqlite*"):
        (copy / path.name).write_bytes(path.read_bytes())
    return copy


def test_writers_at_once_share_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one group goes to the disk the next gathers: far fewer commits than writes."""
    commits: list[int] = []
    write = SqliteJournal._write

    def counted(journal: SqliteJournal, records: Any) -> None:
        commits.append(len(records))
        write(journal, records)

    monkeypatch.setattr(SqliteJournal, "_write", counted)

    async def scenario() -> None:
        async with durable(tmp_path) as cluster:
            creates = (
                cluster.client.create(CONFIG_MAPS, config_map(f"c{number}"))
                for number in range(100)
            )
            await asyncio.gather(*creates)

    asyncio.run(scenario())
    assert sum(commits) >= 100
    assert len(commits) < 20


def test_a_disk_that_refuses_breaks_the_journal_for_good(tmp_path: Path) -> None:
    """After a failed commit nothing is answered any more: memory and disk have parted."""

    failures: list[str] = []

    async def scenario() -> None:
        journal = SqliteJournal(tmp_path, on_failure=lambda: failures.append("told"))
        journal._database.execute("PRAGMA query_only = 1")
        record = Record(Key("configmaps", "default", "a"), 2, b"{}")
        journal.append(record)
        with pytest.raises(DataDirectoryError, match="cannot be written"):
            await journal.safe()
        with pytest.raises(DataDirectoryError, match="cannot be written"):
            journal.append(record)
        with pytest.raises(DataDirectoryError, match="cannot be written"):
            await journal.close()

    asyncio.run(scenario())
    assert failures == ["told"]


def test_one_process_at_a_time(tmp_path: Path) -> None:
    """A second one is refused, and told who is there; when the first ends, the next may come."""

    async def scenario() -> None:
        journal = SqliteJournal(tmp_path)
        with pytest.raises(HeldError, match=r"in use by process \d+"):
            SqliteJournal(tmp_path)
        await journal.close()
        await SqliteJournal(tmp_path).close()

    asyncio.run(scenario())


def test_a_file_that_is_no_journal_is_left_alone(tmp_path: Path) -> None:
    """What is not ours, or of a later version, is refused and not touched."""
    path = tmp_path / "objects.sqlite"
    path.write_bytes(b"something else entirely, long enough to be looked at" * 100)
    with pytest.raises(DataDirectoryError, match="move it away"):
        SqliteJournal(tmp_path)
    path.unlink()
    later = sqlite3.connect(path)
    later.execute("PRAGMA user_version = 99")
    later.close()
    with pytest.raises(DataDirectoryError, match="another version"):
        SqliteJournal(tmp_path)


# Writes as fast as it can, and says each name after the answer. It ends when it is killed.
WRITER = """
import asyncio, sys
from pathlib import Path
from dryrack.client.endpoints import CONFIG_MAPS
from dryrack.cluster.embedded import embedded
from dryrack.cluster.journal import SqliteJournal
from dryrack.cluster.control_plane import PlaneOptions

async def main(directory, run):
    options = PlaneOptions(journal=SqliteJournal(Path(directory)))
    async with embedded(options, engines=()) as cluster:
        async def writer(number):
            for count in range(1_000_000):
                name = f"r{run}-w{number}-{count}"
                meta = {"name": name, "namespace": "default"}
                made = await cluster.client.create(CONFIG_MAPS, {"metadata": meta})
                print(name, made["metadata"]["resourceVersion"], flush=True)
        await asyncio.gather(*(writer(number) for number in range(4)))

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""


def test_what_was_told_survives_kill_after_kill(tmp_path: Path) -> None:
    """A process that is killed while it writes has kept every write that it had answered."""
    told: dict[str, str] = {}
    for run in range(KILLS):
        told |= _killed_writer(tmp_path, run, lines=20 + 7 * run)
        assert len(set(told.values())) == len(told), "a revision was given twice"
        stored = _names(tmp_path)
        missing = {name for name, revision in told.items() if stored.get(name) != revision}
        assert missing == set()


def _killed_writer(directory: Path, run: int, *, lines: int) -> dict[str, str]:
    """What a writer said until it was killed, which may be in the middle of a line."""
    command = [sys.executable, "-c", WRITER, str(directory), str(run)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        said = [writer.stdout.readline() for _ in range(lines)]
        writer.kill()
        said += writer.stdout.readlines()
    whole = [line.split() for line in said if line.endswith("\n")]
    assert len(whole) >= lines, "the writer ended by itself"
    return {words[0]: words[1] for words in whole}


def _names(directory: Path) -> dict[str, str]:
    """The config maps in a journal, with their revisions, as SQLite alone reads them."""
    database = sqlite3.connect(directory / "objects.sqlite")
    try:
        query = "SELECT name, revision FROM objects WHERE resource = 'configmaps'"
        return {name: str(revision) for name, revision in database.execute(query)}
    finally:
        database.close()


def test_many_writes_at_once_end_as_one_after_the_other_would(tmp_path: Path) -> None:
    """What was written, deleted and written again is there as it was last, however many."""

    async def scenario() -> None:
        journal = SqliteJournal(tmp_path)
        keys = [Key("configmaps", "n", f"{number:03}") for number in range(250)]
        revision = 1
        for json in (b"{}", None, b'{"a":1}'):
            for key in keys if json != b'{"a":1}' else keys[:200]:
                revision += 1
                journal.append(Record(key, revision, json))
        await journal.close()
        journal = SqliteJournal(tmp_path)
        found = [(each.key, each.json) for each in journal.records()]
        assert found == [(key, b'{"a":1}') for key in keys[:200]]
        assert journal.revision() == revision
        await journal.close()

    asyncio.run(scenario())
