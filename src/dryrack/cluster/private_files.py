"""
Files and directories that only their owner may read or change.

Keys, kubeconfigs, locks, logs and the objects of a cluster are in such files. Another user of the
machine must not be able to read one, to place one that the cluster then uses, or to make the
cluster write through a link to a file of its owner.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

from dryrack.base.errors import DryrackError

if TYPE_CHECKING:
    from pathlib import Path

_PRIVATE_FILE = 0o600
_PRIVATE_DIRECTORY = 0o700
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class PrivateFileError(DryrackError):
    """A file or directory that another user can change."""


def write_private(path: Path, content: bytes, *, lasts: bool = True) -> None:
    """
    Replace the content of a file that only its owner can read.

    A reader sees the old content or the new content, never a part. If `lasts`, the content is on
    the disk when the function returns. A symbolic link stays a link, because people keep their
    kubeconfig elsewhere; a link of another user is refused. If the file cannot be written, it
    keeps its content and no temporary file stays beside it.
    """
    if path.is_symlink():
        _check_owner(path, path.lstat(), "symbolic link")
    target = path.resolve()
    # A name that others can predict lets them create the file first and keep it open.
    temporary = target.with_name(f".{target.name}.{os.urandom(8).hex()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(temporary, flags, _PRIVATE_FILE), "wb") as file:
            file.write(content)
            file.flush()
            if lasts:
                os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise


def open_private(path: Path, flags: int) -> int:
    """
    Open or create a file that only its owner can read, and return the descriptor.

    A symbolic link is not followed, and a file of another user is refused.
    """
    try:
        descriptor = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, _PRIVATE_FILE)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise PrivateFileError(f"{path}: is a symbolic link; remove it") from None
        raise
    try:
        _check_owner(path, os.fstat(descriptor), "file")
    except PrivateFileError:
        os.close(descriptor)
        raise
    return descriptor


def ensure_own_directory(directory: Path) -> None:
    """
    Create a directory with mode 0700, or check that an existing one is safe to use.

    As ssh does, refuse a directory that belongs to another user, or that other users can write
    to: they could have placed files in it. An empty directory has no such files, so it only
    loses the permission.
    """
    directory.mkdir(parents=True, mode=_PRIVATE_DIRECTORY, exist_ok=True)
    check_owner(directory)
    mode = stat.S_IMODE(directory.stat().st_mode)
    if not mode & _WRITABLE_BY_OTHERS:
        return
    if any(directory.iterdir()):
        raise PrivateFileError(
            f"{directory}: other users can write to this directory (mode {mode:04o}); name another "
            "one, or check its files and take away the permission with chmod go-w"
        )
    directory.chmod(mode & ~_WRITABLE_BY_OTHERS)


def check_owner(directory: Path) -> None:
    """Raise if a directory, or the symbolic link that leads to it, belongs to another user."""
    for status in (directory.lstat(), directory.stat()):
        _check_owner(directory, status, "directory")


def check_parent(directory: Path) -> None:
    """
    Raise if another user can put a directory in the place of this one.

    The parent directory must belong to this user or to root. If all users can write to it, it must
    have the sticky bit, as /tmp has. A group that can write to it is accepted: on many systems
    each user has a group without other members, and the default mode lets the group write.
    """
    parent = directory.parent
    check_owner(parent)
    mode = stat.S_IMODE(parent.stat().st_mode)
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        raise PrivateFileError(
            f"{parent}: all users can write to this directory (mode {mode:04o}); name another one, "
            "or take away the permission with chmod o-w"
        )


def _check_owner(path: Path, status: os.stat_result, kind: str) -> None:
    # The system's administrator can change every file anyway, and may provide some of them.
    if status.st_uid not in (0, os.geteuid()):
        raise PrivateFileError(
            f"{path}: this {kind} belongs to another user (uid {status.st_uid}, you are uid "
            f"{os.geteuid()}); name another one"
        )
