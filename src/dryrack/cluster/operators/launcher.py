"""
Start a program with mounts that only it sees. Runs as a script, in a process of its own.

The argument is a JSON file: `program`, `words`, `environment`, `directory`, `host`, `root` (an
empty directory), `mounts` (pairs of a source and a path), `relay` (the path of the relay script,
and its pairs of addresses; empty: the program uses the network of the machine), and `checks`: true
only tries the namespaces and mounts.

Nothing is created on the machine. The program gets a root directory in memory, in which every
entry of `/` is mounted. Only the directories that lead to a mount are made anew, and their other
entries are mounted in the same way.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import signal
import socket
import stat
import struct
import sys
from pathlib import Path
from typing import Any

_NEW_MOUNTS = 0x00020000
_NEW_HOST_NAME = 0x04000000
_NEW_USER = 0x10000000
_NEW_NETWORK = 0x40000000
_SET_INTERFACE_FLAGS = 0x8914
_INTERFACE_UP = 0x1
_BIND = 0x1000
_RECURSIVE = 0x4000
_UNBINDABLE = 0x20000
_PRIVATE = 0x40000
_DEATH_SIGNAL = 1
_libc = ctypes.CDLL(None, use_errno=True)

Tree = dict[str, Any]
"""By name: the directory below, or the source of the mount."""


def main(path: str) -> None:
    plan = json.loads(Path(path).read_text())
    if plan["mounts"] or plan["relay"]:
        _enter_namespaces(plan["host"], _NEW_NETWORK if plan["relay"] else 0)
    if plan["relay"]:
        _start_loopback()
        if not plan["checks"]:
            _start_relay(*plan["relay"])
    if plan["mounts"]:
        _mount_all(plan["root"], plan["mounts"])
        os.chroot(plan["root"])
    if plan["checks"]:
        return
    # If dryrack is killed, the program must not go on with a token that nothing refreshes.
    _libc.prctl(_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)
    os.chdir(plan["directory"])
    os.execve(plan["program"], plan["words"], plan["environment"])


def _start_loopback() -> None:
    request = struct.pack("16sh", b"lo", _INTERFACE_UP)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SET_INTERFACE_FLAGS, request)


def _start_relay(script: str, pairs: list[tuple[str, str]]) -> None:
    """Start the relay in this network, and return when it listens."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        # A signal for the group of the program must not end its connections.
        os.setsid()
        _libc.prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        os.dup2(writing, 1)
        os.execv(sys.executable, [sys.executable, "-I", script, json.dumps(pairs)])
    os.close(writing)
    os.read(reading, 1)
    os.close(reading)


def _enter_namespaces(host: str, more: int) -> None:
    user, group = os.geteuid(), os.getegid()
    namespaces = _NEW_MOUNTS | _NEW_HOST_NAME | more
    if _libc.unshare(namespaces) != 0:
        # A user without rights has them in a user namespace.
        _check(_libc.unshare(namespaces | _NEW_USER), "unshare")
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    _mount("", "/", _RECURSIVE | _PRIVATE)
    name = host.encode()
    _check(_libc.sethostname(name, len(name)), "sethostname")


def _mount_all(root: str, mounts: list[tuple[str, str]]) -> None:
    _mount("tmpfs", root, 0, "tmpfs")
    Path(root).chmod(0o755)
    # The root is below a directory that is mounted in it; it must not contain itself.
    _mount("", root, _UNBINDABLE)
    tree: Tree = {}
    nested = []
    for source, path in sorted(mounts, key=lambda mount: mount[1]):
        *folders, name = Path(os.path.realpath(path)).parts[1:]
        node: Any = tree
        for folder in folders:
            node = node.setdefault(folder, {}) if isinstance(node, dict) else node
        if isinstance(node, dict):
            node[name] = source
        else:
            nested.append((source, Path(root, *folders, name)))
    _build(Path("/"), Path(root), tree)
    for source, target in nested:
        target.parent.mkdir(parents=True, exist_ok=True)
        _bind(source, target)


def _build(old: Path, new: Path, tree: Tree) -> None:
    """Fill a new directory with the entries of the old one, and with the mounts below it."""
    for entry in os.scandir(old) if old.is_dir() else ():
        if entry.name in tree:
            continue
        try:
            if entry.is_symlink():
                (new / entry.name).symlink_to(os.readlink(entry.path))
            else:
                _bind(entry.path, new / entry.name)
        except OSError:
            # An entry that vanished, or that this user cannot reach.
            continue
    for name, below in tree.items():
        if isinstance(below, str):
            _bind(below, new / name)
            continue
        (new / name).mkdir()
        if (old / name).exists():
            (new / name).chmod(stat.S_IMODE((old / name).stat().st_mode))
        _build(old / name, new / name, below)


def _bind(source: str, target: Path) -> None:
    if Path(source).is_dir():
        target.mkdir(exist_ok=True)
    else:
        target.touch()
    _mount(source, str(target), _BIND | _RECURSIVE)


def _mount(source: str, target: str, flags: int, kind: str = "") -> None:
    words = (source or "none", target, kind or "none")
    source_word, target_word, kind_word = (os.fsencode(each) for each in words)
    _check(_libc.mount(source_word, target_word, kind_word, flags, None), f"mount {target}")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number).lower()}")


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except OSError as error:
        sys.exit(f"dryrack: {(error.strerror or str(error)).lower()}")
