"""
A cluster as a process: in the foreground, or left behind.

The one that is left behind is a fork of the one that was called, so that it starts in no time; it
tells its parent through a pipe when it serves, or why it does not. The parent says what happened
and goes; the child is found again by its record (see `state`). What serves is loaded while another
process makes the keys, because either takes a while.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dryrack.apiserver.runtime_config import RuntimeConfig
from dryrack.base.errors import DryrackError
from dryrack.cluster.certificates import Meanwhile
from dryrack.cluster.ports import SystemClock
from dryrack.cluster.private_files import open_private
from dryrack.cluster.process.locks import hold
from dryrack.cluster.process.modes import AuthorizationMode
from dryrack.cluster.process.serving import LOOPBACK, Address

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from dryrack.client.client import Client
    from dryrack.cluster.assembly import MakeAllocator
    from dryrack.cluster.process.state import ClusterState
    from dryrack.cluster.snapshots.past import Past
    from dryrack.hardware.catalogue import Catalogue, InstanceType
    from dryrack.kinds.documents import Document
    from dryrack.kubeletplugin import DeviceKind
    from dryrack.scheduler import SchedulerSettings

log = logging.getLogger(__name__)

# What was written to some resources of a plane, at most so many writes.
ReadPast = Callable[["Sequence[str]", int], "Past"]
# Serves a page about a plane for the length of a block, and tells its address.
Dashboard = Callable[["Client", ReadPast], "AbstractAsyncContextManager[str]"]


# How a stage begins that is not done: it goes on, or something is not as expected.
PROGRESS = "… "
WARNING = "! "


class LaunchError(DryrackError):
    """A cluster did not come up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What to start."""

    state: ClusterState
    address: Address = field(default_factory=Address)
    nodes: int = 0
    objects: Sequence[Document] = ()
    data_directory: Path | None = None
    without: Sequence[str] = ()
    catalogue: Catalogue | None = None
    """By which nodes have the devices of their instance types; None: they have none."""
    machine: InstanceType | None = None
    """What the nodes are that it starts with."""
    devices: Sequence[DeviceKind] = ()
    """What every virtual node has beside that."""
    allocator: MakeAllocator | None = None
    """How the scheduler hands devices out; None: as the reference release."""
    scheduling: SchedulerSettings | None = None
    """How pods are scheduled; None: as kube-scheduler does."""
    authorization: AuthorizationMode = AuthorizationMode.ALWAYS_ALLOW
    runtime_config: RuntimeConfig = field(default_factory=RuntimeConfig)
    """Which API versions are served besides the stable ones."""
    kubeconfig: Path | None = None
    """Where to write it besides the state directory; None: nowhere."""
    dashboard: Dashboard | None = None
    """What serves the page; None: nobody does."""
    merges: bool = False
    """Whether that file is somebody's own, to which the cluster is added."""

    @property
    def keys_directory(self) -> Path:
        """With the data, if that is kept: who comes back finds the cluster that he trusts."""
        return (self.data_directory or self.state.directory) / "keys"


def check(launch: Launch) -> None:
    """Raises if the name is taken."""
    running = launch.state.running()
    if running is not None:
        raise LaunchError(
            f"cluster {launch.state.name} is already running (process {running.process.pid}); "
            f"stop it with: {launch.state.down_command}"
        )


def run(launch: Launch, tell: Callable[[str], None]) -> None:
    """Serves until it is told to stop; `tell` gets a line for every stage, then ""."""
    _raise_file_limit()
    launch.state.make()
    held = hold(launch.state.directory / "lock")
    has_served = is_over = False

    def told(stage: str) -> None:
        nonlocal has_served
        has_served = not stage
        tell(stage)

    try:
        addresses = sorted({LOOPBACK, "::1", launch.address.host})
        made = Meanwhile(
            launch.keys_directory,
            addresses,
            SystemClock().now(),
            lasts=launch.data_directory is not None,
        )
        with contextlib.closing(made):
            _serve(launch, made, told)
        is_over = True
    finally:
        # Who started it hears what goes wrong until it serves; from then on the log does.
        if has_served and not is_over:
            launch.state.forget_all_but_log()
        else:
            launch.state.forget()
        os.close(held)


def _serve(launch: Launch, made: Meanwhile, tell: Callable[[str], None]) -> None:
    import asyncio

    from dryrack.cluster.process.loops import loop_factory
    from dryrack.cluster.process.service import serve

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(serve(launch, made.keys, tell))


def _raise_file_limit() -> None:
    """Every client is a file; the usual 1,024 are fewer than a busy test has watches."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def detach(launch: Launch, tell: Callable[[str], None]) -> None:
    """Start the cluster as a process that stays; return when it serves."""
    launch.state.make()
    log_file = open_private(launch.state.log, os.O_WRONLY | os.O_APPEND)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _child(launch, log_file, writing)
    os.close(writing)
    os.close(log_file)
    try:
        with os.fdopen(reading) as messages:
            _relay(messages, tell)
    except KeyboardInterrupt:
        # Who takes back the order does not want the cluster either.
        _stop(child)
        launch.state.forget()
        raise


def _stop(child: int) -> None:
    """The process and those that it started, which are a session of their own by now."""
    for send in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError):
            send(child, signal.SIGTERM)
    os.waitpid(child, 0)


def _relay(messages: Iterable[str], tell: Callable[[str], None]) -> None:
    """What the child says, until it serves."""
    for line in messages:
        message = json.loads(line)
        if message["error"]:
            raise LaunchError(message["error"])
        if not message["stage"]:
            return
        tell(message["stage"])
    raise LaunchError(
        "the process of the cluster ended before the API server was ready, without an error"
    )


def _child(launch: Launch, log_file: int, writing: int) -> None:
    """The process that stays: its own session, no terminal, and a log instead."""
    code = 1
    try:
        os.setsid()
        _redirect(log_file)
        with os.fdopen(writing, "w", buffering=1) as messages:

            def tell(stage: str, error: str = "") -> None:
                # The parent goes when it has heard that the cluster serves.
                with contextlib.suppress(OSError, ValueError):
                    messages.write(json.dumps({"stage": stage, "error": error}) + "\n")
                    if not stage:
                        messages.close()

            error = _attempt(launch, tell)
            if error:
                log.error("%s", error)
                tell("", error)
            code = 1 if error else 0
    finally:
        logging.shutdown()
        # Nothing of the parent may run a second time here.
        os._exit(code)


def _attempt(launch: Launch, tell: Callable[[str], None]) -> str:
    """Serves until told to stop; why it could not, or ""."""
    try:
        run(launch, tell)
    except DryrackError as error:
        return str(error)
    except OSError as error:
        if error.filename is None:
            return traceback.format_exc()
        return f"{error.filename}: {(error.strerror or str(error)).lower()}"
    except Exception:  # noqa: BLE001 - the process ends, and the log is the only one to tell
        return traceback.format_exc()
    return ""


def _redirect(log_file: int) -> None:
    """Send what the process prints to its log, and give it no input."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log_file, 1)
    os.dup2(log_file, 2)
