"""
A cluster as one thing: a control plane, and on request a node and KWOK.

What was started is written down in its directory, so that another process can stop exactly that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests.realcluster import controlplane, kernel, kwok, node, requirements
from tests.realcluster.processes import Processes, recorded

if TYPE_CHECKING:
    from pathlib import Path

    from tests.realcluster.controlplane import ControlPlane, Options

# Below a cluster's directory; sockets are below it, and their paths must stay short.
NODE = "n"


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a cluster beside its control plane."""

    node: bool = False
    kwok: bool = False


@dataclass(slots=True)
class Cluster:
    """A cluster that runs."""

    plane: ControlPlane
    processes: Processes
    node: node.Node | None = None

    def stop(self) -> None:
        """Stop the cluster and delete its directory with all data."""
        if self.node is not None:
            self.node.stop()
        self.processes.kill_all()
        kernel.remove(self.plane.directory)

    def release(self) -> None:
        """Lets the cluster outlive this process."""
        self.processes.release()
        if self.node is not None:
            self.node.processes.release()


def start(
    directory: Path, options: Options, parts: Parts | None = None, *, detached: bool = False
) -> Cluster:
    """Starts a cluster, whole or not at all."""
    parts = parts or Parts()
    if parts.node:
        requirements.ensure()
    directory.mkdir(parents=True, mode=0o700, exist_ok=True)
    options = replace(options, nodes_live=parts.node or parts.kwok)
    try:
        cluster = _started(directory, options, parts, detached=detached)
    except BaseException:
        kernel.remove(directory)
        raise
    if detached:
        cluster.release()
    return cluster


def _started(directory: Path, options: Options, parts: Parts, *, detached: bool) -> Cluster:
    processes = Processes(directory, detached=detached)
    cluster = Cluster(controlplane.start(directory, options, processes), processes)
    try:
        _add(cluster, parts)
    except BaseException:
        cluster.stop()
        raise
    return cluster


def _add(cluster: Cluster, parts: Parts) -> None:
    plane = cluster.plane
    processes = cluster.processes
    if parts.kwok:
        kwok.start(plane, processes)
    if parts.node:
        cluster.node = node.start(
            plane,
            plane.directory / NODE,
            detached=processes.detached,
            feature_gates=plane.options.feature_gates,
        )


def stop_recorded(directory: Path) -> bool:
    """Stops whatever was started in `directory`, by whom ever; False if there is nothing."""
    if not directory.exists():
        return False
    recorded(directory / NODE).kill_all()
    kernel.sweep(directory / NODE)
    recorded(directory).kill_all()
    kernel.remove(directory)
    return True
