"""
A cluster as a process: in the foreground, or left behind.

The one that is left behind is a fork of the one that was called, so that it starts in no time; it
tells its parent through a pipe when it serves, or why it does not. The parent says what happened
and goes; the child is found again by its record (see `state`).
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import os
import resource
import signal
import sys
import traceback
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dryrack.base.errors import DryrackError
from dryrack.cluster import certificates, kubeconfig
from dryrack.cluster.certificates import write_private
from dryrack.cluster.engines import families, running, wanted
from dryrack.cluster.inhabitants import add_nodes, add_objects
from dryrack.cluster.locks import hold
from dryrack.cluster.plane import AuthorizationMode, PlaneOptions, build
from dryrack.cluster.ports import SystemClock
from dryrack.cluster.serving import LOOPBACK, Address, AddressError, listen, served
from dryrack.cluster.signing import EllipticKey
from dryrack.cluster.state import ClusterState, Process, Running

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from dryrack.cluster.journal import SqliteJournal
    from dryrack.cluster.plane import Plane

Raw = dict[str, Any]

log = logging.getLogger(__name__)

# Objects of a large cluster are many and stay: looking through all of them for garbage after
# every 700 new ones costs more than the requests that make them.
_GARBAGE_THRESHOLDS = (50_000, 20, 50)


class LaunchError(DryrackError):
    """A cluster did not come up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What to start."""

    state: ClusterState
    address: Address = field(default_factory=Address)
    nodes: int = 0
    objects: Sequence[Raw] = ()
    data_directory: Path | None = None
    without: Sequence[str] = ()
    authorization: AuthorizationMode = AuthorizationMode.ALWAYS_ALLOW
    kubeconfig: Path | None = None
    """Where to write it besides the state directory; None: nowhere."""
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
            f"cluster {launch.state.name} is up already (process {running.process.pid}); take it "
            f"down with: dryrack down --name {launch.state.name}"
        )


def run(launch: Launch, tell: Callable[[str], None]) -> None:
    """Serves until it is told to stop; `tell` gets a line for every stage, then ""."""
    _raise_file_limit()
    factory = _loop_factory()
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(_serve(launch, tell))


def _raise_file_limit() -> None:
    """Every client is a file; the usual 1,024 are fewer than a busy test has watches."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def _serve(launch: Launch, tell: Callable[[str], None]) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    launch.state.make()
    held = hold(launch.state.directory / "lock")
    try:
        await _serve_alone(launch, stopping, tell)
    finally:
        _take_back(launch)
        os.close(held)


async def _serve_alone(
    launch: Launch, stopping: asyncio.Event, tell: Callable[[str], None]
) -> None:
    clock = SystemClock()
    addresses = sorted({LOOPBACK, "::1", launch.address.host})
    keys = certificates.ensure(launch.keys_directory, addresses, clock.now())
    tell("keys and certificates")
    async with AsyncExitStack() as stack:
        listening = stack.enter_context(contextlib.closing(_listen(launch)))
        journal = None
        if launch.data_directory is not None:
            from dryrack.cluster.journal import SqliteJournal

            journal = SqliteJournal(launch.data_directory, on_failure=stopping.set)
            stack.push_async_callback(journal.close)
        plane = build(_plane_options(launch, keys, journal))
        url = await stack.enter_async_context(served(plane, listening, keys))
        tell(f"API server at {url}")
        await _inhabit(launch, plane, tell)
        _hand_out(launch, url, keys)
        tell("")
        # After the word that it serves: engines take a moment to load, and nobody waits for that.
        await stack.enter_async_context(running(wanted(launch.without, families()), plane.around))
        gc.freeze()
        gc.set_threshold(*_GARBAGE_THRESHOLDS)
        await stopping.wait()


def _listen(launch: Launch) -> socket.socket:
    """At the port of the last time, if the data is of a last time and nobody minds."""
    address, data = launch.address, launch.data_directory
    if data is None or address.port:
        return listen(address)
    last = data / "port"
    try:
        listening = listen(replace(address, port=int(last.read_text())))
    except (OSError, ValueError, AddressError):
        listening = listen(address)
    data.mkdir(parents=True, mode=0o700, exist_ok=True)
    last.write_text(str(listening.getsockname()[1]))
    return listening


def _plane_options(
    launch: Launch, keys: certificates.Keys, journal: SqliteJournal | None
) -> PlaneOptions:
    signing = EllipticKey(lambda: certificates.load_key(keys.accounts))
    return PlaneOptions(
        authorization=launch.authorization,
        signing_key=signing,
        journal=journal,
        authority=keys.authority.certificate.read_text(),
    )


async def _inhabit(launch: Launch, plane: Plane, tell: Callable[[str], None]) -> None:
    if launch.nodes:
        await add_nodes(plane.client(), launch.nodes)
        tell(f"{launch.nodes} virtual node{'s' if launch.nodes > 1 else ''}")
    if launch.objects:
        created = await add_objects(plane, launch.objects)
        tell(f"{created} object{'' if created == 1 else 's'} of the configuration")


def _hand_out(launch: Launch, url: str, keys: certificates.Keys) -> None:
    """The kubeconfig, and then the record: who finds the record finds a cluster that serves."""
    state = launch.state
    config = kubeconfig.kubeconfig(state.name, url, keys)
    write_private(state.kubeconfig, kubeconfig.text(config).encode())
    if launch.kubeconfig is not None:
        theirs = kubeconfig.read(launch.kubeconfig) if launch.merges else {}
        written = kubeconfig.merged(theirs, config) if launch.merges else config
        launch.kubeconfig.parent.mkdir(parents=True, exist_ok=True)
        write_private(launch.kubeconfig, kubeconfig.text(written).encode())
    merged_into = str(launch.kubeconfig) if launch.merges and launch.kubeconfig else ""
    data = str(launch.data_directory) if launch.data_directory else ""
    state.write(Running(Process.of(os.getpid()), url, data, merged_into))


def _take_back(launch: Launch) -> None:
    """A cluster that has ended leaves nothing behind but its data."""
    if launch.kubeconfig is not None and launch.kubeconfig.exists():
        if launch.merges:
            rest = kubeconfig.without(kubeconfig.read(launch.kubeconfig), launch.state.name)
            write_private(launch.kubeconfig, kubeconfig.text(rest).encode())
        else:
            launch.kubeconfig.unlink()
    launch.state.forget()


def detach(launch: Launch, tell: Callable[[str], None]) -> None:
    """Starts the cluster as a process that stays; returns when it serves."""
    launch.state.make()
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.close(reading)
        _child(launch, writing)
    os.close(writing)
    with os.fdopen(reading) as messages:
        for line in messages:
            message = json.loads(line)
            if message["error"]:
                raise LaunchError(message["error"])
            if not message["stage"]:
                return
            tell(message["stage"])
    raise LaunchError("the process ended before it served, without a word")


def _child(launch: Launch, writing: int) -> None:
    """The process that stays: its own session, no terminal, and a log instead."""
    code = 1
    try:
        os.setsid()
        _redirect(launch.state.log)
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
    except Exception:  # noqa: BLE001 - the process ends, and the log is the only one to tell
        return traceback.format_exc()
    return ""


def _redirect(log_file: Path) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
