"""After any end of a test run the machine is as it was before."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.realcluster import ends, kernel
from tests.realcluster.cluster import NODE
from tests.realcluster.fixtures import CLUSTERS

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.real, pytest.mark.timeout(300), pytest.mark.xdist_group(CLUSTERS)]

CLONE = Path(__file__).parents[2]
# A run with a pod on a real node and a process that stays, which tells when all of it is there.
RUN = """
import subprocess
from tests.realcluster.cluster import Parts
from tests.realcluster.controlplane import Options
from tests.realcluster.guard import ensure, throw_away
from tests.realcluster.test_smoke import pod

with throw_away(Options(), Parts(node=True)) as bed:
    plane = bed.plane
    plane.kubectl("wait", "serviceaccount/default", "--for=create", "--timeout=30s")
    plane.kubectl("apply", "-f", "-", stdin=pod("sleeper", "sleep 1000"))
    done = plane.kubectl("wait", "pod/sleeper", "--for=condition=Ready", "--timeout=60s")
    assert done.returncode == 0, done.stderr
    child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    print(plane.directory, ensure().pid, flush=True)
    child.wait()
"""
_GONE_SECONDS_MAX = 60.0
# The group of rtnetlink(7) that hears of interfaces, and more than it ever says at once.
_LINKS = 1
_MESSAGE_BYTES_MAX = 65536


def test_a_run_that_is_killed_leaves_nothing() -> None:
    """Neither processes nor mounts, cgroups, network interfaces or files."""
    interfaces = names_of_interfaces()
    # The guard of this run must not take the other guard for something that was left.
    unguarded = {key: value for key, value in os.environ.items() if key != "TMPDIR"}
    with subprocess.Popen(
        [sys.executable, "-c", RUN],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=CLONE,
        env={**unguarded, "PYTHONPATH": f"{CLONE}{os.pathsep}{CLONE / 'src'}"},
        text=True,
    ) as run:
        assert run.stdout is not None, "it was started with a pipe"
        said, guard = run.stdout.readline().split()
        directory = Path(said)
        assert left_of(directory) >= {"processes", "mounts", "cgroups", "files"}
        assert names_of_interfaces() > interfaces
        with ends.held([int(guard)]) as held, changes_of_interfaces() as changes:
            run.kill()
            assert ends.await_end(held, _GONE_SECONDS_MAX)

            assert left_of(directory) == set()
            # The kernel takes them away when it finds the time, after their namespaces.
            while names_of_interfaces() != interfaces:
                assert select.select([changes], (), (), _GONE_SECONDS_MAX)[0], "none goes away"
                changes.recv(_MESSAGE_BYTES_MAX)


def left_of(directory: Path) -> set[str]:
    """Return the remains of a run with a cluster in this directory."""
    there = {
        "processes": kernel.processes_with(f"TMPDIR={directory.parent}"),
        "mounts": kernel.mounts(directory),
        "cgroups": kernel.cgroups(directory / NODE),
        "files": directory.parent.exists(),
    }
    return {name for name, found in there.items() if found}


@contextmanager
def changes_of_interfaces() -> Iterator[socket.socket]:
    """A word from the kernel whenever one comes or goes, for the time of the block."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as changes:
        changes.bind((0, _LINKS))
        yield changes


def names_of_interfaces() -> set[str]:
    return {path.name for path in Path("/sys/class/net").iterdir()}
