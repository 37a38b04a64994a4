"""
Start a cluster as a process, in the foreground or in the background.

The background process is a fork of the calling one, so that it starts fast; it reports through a
pipe when it serves, or why it cannot. The parent prints that and exits; later commands find the
child by its record (see `state`). The code of the server is loaded while another process creates
the keys, because both take a while.
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
# Serves the dashboard for the length of a block, and yields its address.
Dashboard = Callable[["Client", ReadPast], "AbstractAsyncContextManager[str]"]


# How a stage begins that is not done: it goes on, or something is not as expected.
PROGRESS = "… "
WARNING = "! "


class LaunchError(DryrackError):
    """A cluster did not start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Options of a cluster to start."""

    state: ClusterState
    address: Address = field(default_factory=Address)
    nodes: int = 0
    node_name: str = "node-{}"
    """The names of the initial nodes, with {} for the number."""
    objects: Sequence[Document] = ()
    data_directory: Path | None = None
    without: Sequence[str] = ()
    catalogue: Catalogue | None = None
    """Nodes have the devices of their instance types; None: they have no such devices."""
    catalogue_files: tuple[str, ...] = ()
    """The files on top of the packaged catalog."""
    machine: InstanceType | None = None
    """The instance type of the initial nodes."""
    devices: Sequence[DeviceKind] = ()
    """The simulated devices of every virtual node."""
    omits_device_classes: bool = False
    """True if the DeviceClasses of the catalog and of `devices` are left to charts."""
    allocator: MakeAllocator | None = None
    """Allocates devices; None: the allocator of the reference release."""
    scheduling: SchedulerSettings | None = None
    """None: the defaults of kube-scheduler."""
    authorization: AuthorizationMode = AuthorizationMode.ALWAYS_ALLOW
    runtime_config: RuntimeConfig = field(default_factory=RuntimeConfig)
    """The API versions that are served beside the stable ones."""
    kubeconfig: Path | None = None
    """A file for the kubeconfig besides the state directory; None: no file."""
    dashboard: Dashboard | None = None
    """Serves the dashboard; None: no dashboard."""
    merges: bool = False
    """True if that file is the user's own, to which the cluster is added."""

    @property
    def keys_directory(self) -> Path:
        """
        The directory of the keys: with the data if that is kept, so that a kubeconfig stays valid.
        """
        return (self.data_directory or self.state.directory) / "keys"


def check(launch: Launch) -> None:
    """Raise if a cluster of this name runs."""
    running = launch.state.running()
    if running is not None:
        raise LaunchError(
            f"cluster {launch.state.name} is already running (process {running.process.pid}); "
            f"stop it with: {launch.state.down_command}"
        )


def run(launch: Launch, tell: Callable[[str], None]) -> None:
    """Serve until a signal arrives; `tell` gets a line for every step, then ""."""
    # Every client is a file; the usual 1,024 are fewer than the watches of a busy test.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
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
            import asyncio

            from dryrack.cluster.process.loops import loop_factory
            from dryrack.cluster.process.service import serve

            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                runner.run(serve(launch, made.keys, told))
        is_over = True
    finally:
        # Who started it hears what goes wrong until it serves; from then on the log does.
        if has_served and not is_over:
            launch.state.forget_all_but_log()
        else:
            launch.state.forget()
        os.close(held)


def detach(launch: Launch, tell: Callable[[str], None]) -> None:
    """Start the cluster as a background process, and return when it serves."""
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
        # The process, and the processes that it started: they are a session of their own by now.
        for send in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError):
                send(child, signal.SIGTERM)
        os.waitpid(child, 0)
        launch.state.forget()
        raise


def _relay(messages: Iterable[str], tell: Callable[[str], None]) -> None:
    """Pass on the lines of the child until it serves."""
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
    """Run as the background process: a session of its own, no terminal, and a log."""
    code = 1
    try:
        os.setsid()
        # Output goes to the log; there is no input.
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log_file, 1)
        os.dup2(log_file, 2)
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
    """Serve until a signal arrives; return the error, or ""."""
    try:
        run(launch, tell)
    except DryrackError as error:
        return str(error)
    except OSError as error:
        if error.filename is None:
            return traceback.format_exc()
        return f"{error.filename}: {(error.strerror or str(error)).lower()}"
    except Exception:  # noqa: BLE001 - the process ends, and only the log can report it
        return traceback.format_exc()
    return ""
