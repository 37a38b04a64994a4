"""
The plugin's checkpoint: one small file for each claim.

One file for all claims would be written whole for each of them, and the thousandth claim would
wait for the other 999. A file has a version and a checksum. A damaged file is renamed and reported,
and the plugin continues without it. An incomplete file of a claim without effects was left by a
process that ended while it wrote the file.
"""

from __future__ import annotations

import fcntl
import os
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from dryrack.base.errors import DryrackError
from dryrack.kubeletplugin.cdi import check_uid
from dryrack.kubeletplugin.files import create_file, is_temporary, remove_file, replace_file
from dryrack.kubeletplugin.record import ClaimRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator
    from pathlib import Path

    from dryrack.kubeletplugin.files import FileSystem

VERSION = 1
_SUFFIX = ".json"
_END = b"\n"
_SET_ASIDE = ".corrupt"


class _File(msgspec.Struct, frozen=True):
    version: int
    checksum: int
    record: msgspec.Raw


@dataclass(frozen=True, slots=True)
class Damage:
    """A checkpoint that could not be read."""

    uid: str
    why: str
    set_aside: Path


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The claims of one driver, on disk."""

    directory: Path
    files: FileSystem

    def uids(self) -> set[str]:
        """Return the UIDs of the claims on disk."""
        names = self.files.names(self.directory)
        return {name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)}

    def load(
        self, known: Container[str] = (), *, is_begun: Callable[[str], bool]
    ) -> tuple[tuple[ClaimRecord, ...], tuple[Damage, ...]]:
        """
        Return the claims on disk whose UIDs are not known; files that cannot be read are renamed.

        `is_begun` returns True if anything was done for the claim with a UID.
        """
        self.files.make_directory(self.directory, 0o700)
        records: list[ClaimRecord] = []
        damages: list[Damage] = []
        for name in self.files.names(self.directory):
            path = self.directory / name
            if is_temporary(name):
                self.files.remove(path)
            elif name.endswith(_SUFFIX):
                uid = name.removesuffix(_SUFFIX)
                if uid in known:
                    continue
                data = self.files.read(path) or b""
                try:
                    records.append(_decode(data, uid))
                except (ValueError, RecursionError) as error:
                    if not data.endswith(_END) and not is_begun(uid):
                        self.files.remove(path)
                        continue
                    aside = path.with_name(name + _SET_ASIDE)
                    self.files.rename(path, aside)
                    damages.append(Damage(uid, str(error), aside))
        return tuple(records), tuple(damages)

    def save(self, record: ClaimRecord) -> None:
        """Write a claim; if the process ends in between, the file is absent or as before."""
        path = self._path(record.uid)
        text = msgspec.json.encode(record)
        data = msgspec.json.encode(_File(VERSION, zlib.crc32(text), msgspec.Raw(text))) + _END
        if self.files.read(path) is None:
            # To rename the file afterwards would wait for the disk once more.
            create_file(self.files, path, data)
        else:
            replace_file(self.files, path, data)

    def remove(self, uid: str) -> None:
        remove_file(self.files, self._path(uid))

    def _path(self, uid: str) -> Path:
        return self.directory / f"{check_uid(uid)}{_SUFFIX}"


def read_checkpoints(directory: Path) -> tuple[ClaimRecord, ...]:
    """Return the claims in the checkpoints of a plugin, which may run; change no file."""
    records = []
    for path in sorted(directory.glob(f"*{_SUFFIX}")):
        if is_temporary(path.name):
            continue
        try:
            records.append(_decode(path.read_bytes(), path.stem))
        except FileNotFoundError:
            # The plugin has unprepared the claim.
            continue
        except (ValueError, RecursionError) as error:
            raise DryrackError(f"{path}: {error}; restart the plugin, which repairs it") from None
    return tuple(records)


def _decode(data: bytes, uid: str) -> ClaimRecord:
    file = msgspec.json.decode(data, type=_File)
    if file.version != VERSION:
        raise ValueError(f"version {file.version}; this dryrack reads {VERSION}")
    if file.checksum != zlib.crc32(file.record):
        raise ValueError("the checksum does not match")
    record = msgspec.json.decode(file.record, type=ClaimRecord)
    if record.uid != uid:
        raise ValueError(f"it describes claim {record.uid}")
    return record


class CheckpointLock:
    """
    The lock of a checkpoint that several processes share.

    It is a lock of the kernel, which ends with its process. Within a process, the caller ensures
    that one task at a time has it.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / "serialize.lock"
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Wait until no other process has the lock."""
        self._path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._descriptor = os.open(self._path, flags, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    @contextmanager
    def held(self) -> Iterator[None]:
        self.acquire()
        try:
            yield
        finally:
            self.release()
