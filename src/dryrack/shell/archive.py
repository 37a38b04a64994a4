"""Tar archives of files in a container, for `tar` and so for `kubectl cp`."""

import io
import posixpath
import tarfile
from collections.abc import Sequence

from dryrack.shell.files import FileError, Files


def pack(files: Files, directory: str, names: Sequence[str], now: float) -> bytes:
    """Return an archive of files and directories below a directory."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name in names:
            start = posixpath.normpath(posixpath.join(directory, name))
            if not files.exists(start):
                raise FileError(f"{name}: No such file or directory")
            for path in files.walk(start):
                member = tarfile.TarInfo((name.strip("/") or ".") + path[len(start) :])
                member.mtime = int(now)
                if files.is_directory(path):
                    member.type = tarfile.DIRTYPE
                    member.mode = 0o755
                    archive.addfile(member)
                else:
                    content = files.read(path)
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def unpack(files: Files, directory: str, content: bytes, *, writes: bool) -> list[str]:
    """Write the members of an archive below a directory, and return their names."""
    try:
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            members = archive.getmembers()
            if writes:
                for member in members:
                    path = posixpath.normpath(posixpath.join(directory, member.name))
                    if member.isdir():
                        files.make_directory(path, with_parents=True)
                    elif member.isfile():
                        source = archive.extractfile(member)
                        assert source is not None, "a regular file has content"
                        files.make_directory(posixpath.dirname(path), with_parents=True)
                        files.write(path, source.read())
    except tarfile.TarError as error:
        raise FileError(f"invalid archive: {error}") from None
    return [each.name for each in members]
