"""Writes that last: what was told is there after any end of the process, and nothing else is."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sqlite3
import subprocess
import sys
from contextlib import asynccontextmanager, closing
from typing import TYPE_CHECKING, Any

import pytest

from dryrack.apiserver.runtime_config import parse
from dryrack.client.endpoints import CONFIG_MAPS, NAMESPACES, POD_GROUPS
from dryrack.client.transport import Request
from dryrack.cluster.control_plane import ControlPlaneOptions, build_control_plane
from dryrack.cluster.embedded import EmbeddedCluster, embedded
from dryrack.cluster.journal import DataDirectoryError, SqliteJournal
from dryrack.cluster.process.locks import HeldError
from dryrack.kinds.releases import Release
from dryrack.store import Key, Record

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from dryrack.kinds.raw import Raw

KILLS = 6


def config_map(name: str, value: str = "x") -> Raw:
    return {"metadata": {"name": name, "namespace": "default"}, "data": {"value": value}}


@asynccontextmanager
async def durable(directory: Path) -> AsyncIterator[EmbeddedCluster]:
    journal = SqliteJournal(directory)
    try:
        async with embedded(ControlPlaneOptions(journal=journal), engines=()) as cluster:
            yield cluster
    finally:
        await journal.close()


async def test_objects_that_a_release_does_not_have_are_reported(tmp_path: Path) -> None:
    """A PodGroup of 1.36 has another shape in 1.37: 1.37 does not start, and names the remedy."""
    group = {
        "apiVersion": POD_GROUPS.api_version,
        "kind": "PodGroup",
        "metadata": {"name": "gang", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    }
    journal = SqliteJournal(tmp_path)
    old = ControlPlaneOptions(
        journal=journal, release=Release.V1_36, runtime_config=parse("api/all=true")
    )
    async with embedded(old, engines=()) as cluster:
        await cluster.client.create(POD_GROUPS, group)
    await journal.close()
    journal = SqliteJournal(tmp_path)
    with pytest.raises(DataDirectoryError) as raised:
        build_control_plane(ControlPlaneOptions(journal=journal, release=Release.V1_37))
    await journal.close()

    version = POD_GROUPS.api_version
    message = str(raised.value)
    assert f"objects of podgroups.scheduling.k8s.io in {version} (1)" in message
    assert f"start with --release 1.36 --runtime-config {version}=true, delete" in message


async def test_a_restart_continues_where_it_ended(tmp_path: Path) -> None:
    """Objects, uids and revisions are the same; the next write gets the next revision."""
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


async def test_watches_from_before_a_restart_are_gone(tmp_path: Path) -> None:
    """History does not survive: a client that asks for it lists again, and misses nothing."""
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


async def test_an_answer_waits_for_the_disk(tmp_path: Path) -> None:
    """When a write is answered, another process that opens the files finds it."""
    async with durable(tmp_path) as cluster:
        await cluster.client.create(CONFIG_MAPS, config_map("told"))
        assert "told" in _names(_copied(tmp_path))


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


async def test_one_process_at_a_time(tmp_path: Path) -> None:
    """A second one is refused, and told who is there; when the first ends, the next may come."""
    journal = SqliteJournal(tmp_path)
    with pytest.raises(HeldError, match=r"in use by process \d+"):
        SqliteJournal(tmp_path)
    await journal.close()
    await SqliteJournal(tmp_path).close()


def test_a_file_that_is_no_journal_is_left_alone(tmp_path: Path) -> None:
    """What is not ours, or of a later version, is refused and not touched."""
    path = tmp_path / "objects.sqlite"
    path.write_bytes(b"something else entirely, long enough to be looked at" * 100)
    with pytest.raises(
        DataDirectoryError,
        match=r"not an SQLite database; nothing was changed; .* move objects.sqlite\* away",
    ):
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
from dryrack.cluster.control_plane import ControlPlaneOptions, build_control_plane

async def main(directory, run):
    options = ControlPlaneOptions(journal=SqliteJournal(Path(directory)))
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


async def test_many_writes_at_once_end_as_one_after_the_other_would(tmp_path: Path) -> None:
    """What was written, deleted and written again is there as it was last, however many."""
    journal = SqliteJournal(tmp_path)
    keys = [Key("configmaps", "n", f"{number:03}") for number in range(250)]
    revision = 1
    for content in (b"{}", None, b'{"a":1}'):
        for key in keys if content != b'{"a":1}' else keys[:200]:
            revision += 1
            journal.append(Record(key, revision, content))
    await journal.close()
    journal = SqliteJournal(tmp_path)
    found = [(each.key, each.json) for each in journal.records()]
    assert found == [(key, b'{"a":1}') for key in keys[:200]]
    assert journal.revision() == revision
    await journal.close()


OBJECTS = 120


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, list[Record]]:
    """A database as a clean end leaves it, and what is in it."""
    directory = tmp_path_factory.mktemp("written")
    records = [
        Record(
            Key("configmaps", "default", f"m{number:03}"),
            number + 2,
            json.dumps(
                {"metadata": {"name": f"m{number:03}"}, "data": {"x": "y" * number}}
            ).encode(),
        )
        for number in range(OBJECTS)
    ]

    async def write() -> None:
        journal = SqliteJournal(directory)
        for record in records:
            journal.append(record)
        await journal.close()

    asyncio.run(write())
    return (directory / "objects.sqlite").read_bytes(), records


def _opened(directory: Path, content: bytes) -> list[Record] | str:
    """What is read from a file with this content, or why it is refused; it is not changed then."""
    directory.mkdir()
    path = directory / "objects.sqlite"
    path.write_bytes(content)

    async def read() -> list[Record] | str:
        try:
            journal = SqliteJournal(directory)
        except DataDirectoryError as error:
            return str(error)
        found = list(journal.records())
        assert journal.revision() >= OBJECTS + 1
        await journal.close()
        return found

    found = asyncio.run(read())
    if isinstance(found, str):
        assert found.startswith(f"{path}: ")
        assert path.read_bytes() == content, "a damaged file is left as it is"
    return found


def test_a_cut_file_is_refused(tmp_path: Path, written: tuple[bytes, list[Record]]) -> None:
    """Wherever it ends, a file with a missing end is no journal, and no empty one."""
    content, records = written
    assert _opened(tmp_path / "whole", content) == records
    sizes = [0, 1, 15, 16, 17, 50, 99, 100, 101, 511, 512, *range(1024, len(content), 1024)]
    for size in [*sizes, len(content) - 1]:
        found = _opened(tmp_path / str(size), content[:size])
        assert isinstance(found, str), f"{size} bytes are taken for a whole file"
        assert "nothing was changed" in found


def test_a_changed_byte_is_noticed(tmp_path: Path, written: tuple[bytes, list[Record]]) -> None:
    """A file with a damaged byte is refused, or the byte does not matter: all objects are there."""
    content, records = written
    chance = random.Random(22)
    refused = 0
    for trial in range(200):
        changed = bytearray(content)
        changed[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        found = _opened(tmp_path / str(trial), bytes(changed))
        refused += isinstance(found, str)
        assert isinstance(found, str) or found == records
    assert refused > 100


def test_an_object_that_is_damaged_is_named(
    tmp_path: Path, written: tuple[bytes, list[Record]]
) -> None:
    """The message says which one, before anybody reads it."""
    path = tmp_path / "objects.sqlite"
    path.write_bytes(written[0])
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE objects SET json = ? WHERE name = 'm007'", (b"{",))
    found = _opened(tmp_path / "again", path.read_bytes())
    assert "the object configmaps default/m007 has changed since it was written" in found


@pytest.mark.parametrize("damaged", [b"{", b"[]", b'{"a": "\xff"}', b""])
def test_a_journal_without_checksums_is_read_and_gets_them(
    tmp_path: Path, written: tuple[bytes, list[Record]], damaged: bytes
) -> None:
    """What an earlier version wrote is taken over; what is no object in it is refused."""
    path = tmp_path / "objects.sqlite"
    path.write_bytes(written[0])
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("ALTER TABLE objects DROP COLUMN checksum")
        database.execute("PRAGMA user_version = 1")
    older = path.read_bytes()
    assert _opened(tmp_path / "older", older) == written[1]
    upgraded = (tmp_path / "older" / "objects.sqlite").read_bytes()
    assert _opened(tmp_path / "upgraded", upgraded) == written[1]
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("UPDATE objects SET json = ? WHERE name = 'm007'", (damaged,))
    assert "default/m007 has changed" in _opened(tmp_path / "damaged", path.read_bytes())


def test_a_log_without_its_database_is_refused(tmp_path: Path) -> None:
    """An empty cluster must not take the place of one whose file is missing."""
    log = tmp_path / "objects.sqlite-wal"
    log.write_bytes(b"log")
    with pytest.raises(DataDirectoryError, match="missing, but its log"):
        SqliteJournal(tmp_path)
    assert log.read_bytes() == b"log"


def test_a_database_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """The message has the reason of the operating system."""
    (tmp_path / "objects.sqlite").mkdir()
    with pytest.raises(DataDirectoryError, match=r"objects\.sqlite: is a directory"):
        SqliteJournal(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_database_without_permission_is_named(tmp_path: Path) -> None:
    """The message has the reason of the operating system."""
    (tmp_path / "objects.sqlite").touch(mode=0o000)
    with pytest.raises(DataDirectoryError, match=r"objects\.sqlite: permission denied"):
        SqliteJournal(tmp_path)


def test_a_start_that_is_killed_leaves_no_half_journal(tmp_path: Path) -> None:
    """What a start left that did not come to an end is replaced."""
    (tmp_path / ".objects.sqlite.new").write_bytes(b"half")
    asyncio.run(SqliteJournal(tmp_path).close())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", "objects.sqlite"]
