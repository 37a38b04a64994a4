"""
Start a cluster as a process, in the foreground or in the background.

Later commands find a background process by its record (see `state`). The code of the server is
loaded while another process creates the keys, because both take a while.
"""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from dryrack.apiserver.runtime_config import RuntimeConfig
from dryrack.base.errors import DryrackError
from dryrack.cluster.certificates import Meanwhile
from dryrack.cluster.ports import SystemClock
from dryrack.cluster.process.background import BackgroundError, in_background
from dryrack.cluster.process.locks import hold
from dryrack.cluster.process.modes import AuthorizationMode
from dryrack.cluster.process.serving import LOOPBACK, Address
from dryrack.kinds.releases import DEFAULT_RELEASE, Release

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from dryrack.client.client import Client
    from dryrack.cluster.assembly import MakeAllocator
    from dryrack.cluster.process.state import ClusterState
    from dryrack.cluster.snapshots.past import Past
    from dryrack.controllers.provisioning import ProvisionerSettings
    from dryrack.hardware.catalogue import Catalogue, InstanceType
    from dryrack.kinds.documents import Document
    from dryrack.kubeletplugin import DeviceKind
    from dryrack.scheduler import SchedulerSettings

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
    kubelet_directory: Path | None = None
    """Where driver programs register with the kubelets of the nodes; None: there are none."""
    program: Sequence[str] = ()
    """The words of the driver program to run for each node; empty: people start the drivers."""
    omits_device_classes: bool = False
    """True if the DeviceClasses of the catalog and of `devices` are left to charts."""
    release: Release = DEFAULT_RELEASE
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    """The feature gates that are not at the default of the release."""
    allocator: MakeAllocator | None = None
    """Allocates devices; None: the allocator of the reference release."""
    scheduling: SchedulerSettings | None = None
    """None: the defaults of kube-scheduler."""
    provisioner: ProvisionerSettings | None = None
    """Creates nodes for pods that fit on no node; None: there is no provisioner."""
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
    try:
        in_background(partial(run, launch), launch.state.log, tell)
    except BackgroundError as error:
        raise LaunchError(str(error)) from None
    except KeyboardInterrupt:
        launch.state.forget()
        raise
