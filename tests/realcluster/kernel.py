"""
The resources of a node in the kernel: cgroups, mounts, and the processes of its containers.

All of it can be told from what others have there: its cgroups are below one of its own, and its
mounts, network namespaces included, below its directory. So it can be taken away by whoever knows
the directory, also after the node has been killed, and next to another node.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.realcluster import ends

if TYPE_CHECKING:
    from collections.abc import Iterator

_CGROUPS = Path("/sys/fs/cgroup")
_END_SECONDS_MAX = 10.0


def cgroup_name(directory: Path) -> str:
    """The cgroup that has all of a node's pods in it."""
    return f"dryrack-{hashlib.sha256(str(directory).encode()).hexdigest()[:12]}"


def make_cgroups(directory: Path) -> None:
    """In every hierarchy; a kubelet only makes those below."""
    for root in _hierarchies():
        (root / cgroup_name(directory)).mkdir(exist_ok=True)


def cgroups(directory: Path) -> list[Path]:
    """Those that are there."""
    name = cgroup_name(directory)
    return [root / name for root in _hierarchies() if (root / name).exists()]


def mounts(directory: Path) -> list[str]:
    """Return all mounts below a directory, the innermost first."""
    points = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    return sorted((point for point in points if point.startswith(f"{directory}/")), reverse=True)


def processes_with(setting: str) -> dict[int, str]:
    """Processes that have this in their environment, with the beginning of their command."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if setting.encode() in (process / "environ").read_bytes().split(b"\0"):
                words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
                found[int(process.name)] = " ".join(words[:3])
        except OSError:
            continue
    return found


def sweep(directory: Path) -> None:
    """Ends and removes all that a node in `directory` has left."""
    _end_shims(directory)
    _end_containers(cgroups(directory))
    for mount in mounts(directory):
        subprocess.run(["umount", "-l", mount], check=False, capture_output=True)
    for cgroup in cgroups(directory):
        _remove(cgroup)


def remove(directory: Path) -> None:
    """Deletes a directory, unless something is mounted in it, which may be anybody's."""
    if there := mounts(directory):
        sys.stderr.write(f"{directory} stays: still mounted: {' '.join(there)}\n")
        return
    shutil.rmtree(directory, ignore_errors=True)


def _end_shims(directory: Path) -> None:
    """A shim outlives containerd on purpose; without its containerd it would do so for ever."""
    mark = str(directory / "containerd.sock").encode()
    shims = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if b"containerd-shim" in command and mark in command:
            shims.append(int(process.name))
    ends.kill(shims, _END_SECONDS_MAX)


def _end_containers(owned: list[Path]) -> None:
    # Again, because who is killed may have started others meanwhile.
    while members := {pid for cgroup in owned for pid in _members(cgroup)}:
        if not ends.kill(sorted(members), _END_SECONDS_MAX):
            sys.stderr.write(f"node: processes that do not end: {sorted(members)}\n")
            return


def _members(cgroup: Path) -> Iterator[int]:
    for listed in cgroup.rglob("cgroup.procs"):
        yield from (int(line) for line in listed.read_text().split())


def _hierarchies() -> list[Path]:
    """The second version of cgroups has only one."""
    is_unified = (_CGROUPS / "cgroup.controllers").exists()
    return (
        [_CGROUPS] if is_unified else sorted(path for path in _CGROUPS.iterdir() if path.is_dir())
    )


def _remove(cgroup: Path) -> None:
    inside = [path for path in cgroup.rglob("*") if path.is_dir()]
    for path in (*sorted(inside, reverse=True), cgroup):
        try:
            path.rmdir()
        except OSError as error:
            sys.stderr.write(f"node: {path}: {error.strerror}\n")
