"""
The files of a container: a tree in memory, with volumes mounted into it.

Containers of a pod share their volumes, and each has a root of its own. A volume whose content
comes from elsewhere, such as a ConfigMap, is read through a function, so that it is always current.
"""

import posixpath
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field

Entries = Mapping[str, bytes | None]
"""File contents by path below the volume; None marks a directory."""


FILE_BYTES_MAX = 64 << 20


class FileError(Exception):
    """An operation that a file system refuses; the text is that of the C library."""


@dataclass(slots=True)
class Volume:
    """Files that containers can share. A volume with a `source` is read-only."""

    entries: MutableMapping[str, bytes | None] = field(default_factory=dict)
    source: Callable[[], Entries] | None = None
    changes: int = 0
    """How often files were written or removed."""

    def read(self) -> Entries:
        return self.entries if self.source is None else self.source()


@dataclass(frozen=True, slots=True)
class Mount:
    """A volume, or a directory or file of it, at a path of the container."""

    path: str
    volume: Volume
    below: str = ""
    """The path in the volume that is mounted; "" is the whole volume."""
    is_read_only: bool = False
    kind: str = "ext4"


class Files:
    """The file tree that one container sees."""

    def __init__(self, root: Volume, mounts: tuple[Mount, ...] = ()) -> None:
        self.mounts = (*sorted(mounts, key=lambda it: -len(it.path)), Mount("/", root, "", False))

    def read(self, path: str) -> bytes:
        mount, key = self._find(path)
        content = mount.volume.read().get(key)
        if content is not None:
            return content
        raise FileError("Is a directory" if self.is_directory(path) else _MISSING)

    def write(self, path: str, content: bytes, *, is_appended: bool = False) -> None:
        if path in ("/dev/null", "/dev/zero"):
            return
        if self.is_directory(path):
            raise FileError("Is a directory")
        if not self.is_directory(posixpath.dirname(path)):
            raise FileError(_MISSING)
        entries, key = self._writable(path)
        before = entries.get(key) or b"" if is_appended else b""
        if len(before) + len(content) > FILE_BYTES_MAX:
            raise FileError("No space left on device")
        entries[key] = before + content

    def make_directory(self, path: str, *, with_parents: bool = False) -> None:
        if self.exists(path):
            if with_parents and self.is_directory(path):
                return
            raise FileError("File exists")
        parent = posixpath.dirname(path)
        if not self.is_directory(parent):
            if not with_parents:
                raise FileError(_MISSING)
            self.make_directory(parent, with_parents=True)
        entries, key = self._writable(path)
        entries[key] = None

    def remove(self, path: str) -> None:
        """Remove a file, or a directory with all that is in it."""
        if not self.exists(path):
            raise FileError(_MISSING)
        entries, key = self._writable(path)
        for each in [each for each in entries if each == key or each.startswith(f"{key}/")]:
            del entries[each]

    def exists(self, path: str) -> bool:
        mount, key = self._find(path)
        return key in mount.volume.read() or self.is_directory(path)

    def is_file(self, path: str) -> bool:
        mount, key = self._find(path)
        return mount.volume.read().get(key) is not None

    def is_directory(self, path: str) -> bool:
        if path == "/":
            return True
        mount, key = self._find(path)
        entries = mount.volume.read()
        if key in entries:
            return entries[key] is None
        prefix = f"{key}/" if key else ""
        return (
            any(each.path.startswith(f"{path}/") for each in self.mounts)
            or any(each.startswith(prefix) for each in entries)
            or mount.path == path
        )

    def list(self, path: str) -> list[str]:
        """Return the sorted names in a directory."""
        if not self.is_directory(path):
            raise FileError("Not a directory" if self.exists(path) else _MISSING)
        mount, key = self._find(path)
        prefix = f"{key}/" if key else ""
        names = {
            each[len(prefix) :].partition("/")[0]
            for each in mount.volume.read()
            if each.startswith(prefix) and each != key
        }
        above = "/" if path == "/" else f"{path}/"
        names |= {
            each.path[len(above) :].partition("/")[0]
            for each in self.mounts
            if each.path.startswith(above)
        }
        return sorted(names - {""})

    def walk(self, path: str) -> Iterator[str]:
        """Yield a path and all that is below it."""
        yield path
        if self.is_directory(path):
            for name in self.list(path):
                yield from self.walk(posixpath.join(path, name))

    def _find(self, path: str) -> tuple[Mount, str]:
        for mount in self.mounts:
            if path == mount.path or mount.path == "/" or path.startswith(f"{mount.path}/"):
                rest = path[len(mount.path) :].strip("/")
                key = "/".join(filter(None, (mount.below.strip("/"), rest)))
                return mount, key
        raise AssertionError("the root is a mount of every path")

    def _writable(self, path: str) -> tuple[MutableMapping[str, bytes | None], str]:
        mount, key = self._find(path)
        if mount.is_read_only or mount.volume.source is not None:
            raise FileError("Read-only file system")
        mount.volume.changes += 1
        return mount.volume.entries, key


_MISSING = "No such file or directory"
