"""
A cluster as one thing: a control plane, and on request a node and KWOK.

A cluster that was started to stay is described in a file of its directory, so that another
process can stop exactly what was started.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

from tests.realcluster import controlplane, kwok, node, programs
from tests.realcluster.processes import Processes, recorded
from tests.realcluster.releases import RELEASES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.realcluster.controlplane import ControlPlane, Options

_DESCRIPTION = "cluster.json"


@dataclass(frozen=True, slots=True)
class Parts:
    """What a cluster has beside its control plane."""

    node: bool = False
    kwok: bool = False


@dataclass(slots=True)
class Cluster:
    """A cluster that runs."""

    plane: ControlPlane
    processes: Processes
    node: node.Node | None = field(default=None)

    def stop(self) -> None:
        """Stops all of it and removes its directory."""
        if self.node is not None:
            self.node.stop()
        self.processes.stop_all()
        shutil.rmtree(self.plane.directory, ignore_errors=True)


def start(
    directory: Path, options: Options, parts: Parts | None = None, *, detached: bool = False
) -> Cluster:
    """Starts a cluster, whole or not at all."""
    parts = parts or Parts()
    directory.mkdir(parents=True, mode=0o700, exist_ok=True)
    processes = Processes(directory, detached=detached)
    options = replace(options, nodes_live=parts.node or parts.kwok)
    cluster = Cluster(controlplane.start(directory, options, processes), processes)
    try:
        _add(cluster, parts, detached=detached)
    except BaseException:
        cluster.stop()
        raise
    if detached:
        _describe(cluster)
    return cluster


def _add(cluster: Cluster, parts: Parts, *, detached: bool) -> None:
    plane = cluster.plane
    if parts.kwok:
        kwok.start(plane, cluster.processes)
    if parts.node:
        cluster.node = node.start(
            plane,
            plane.directory / "n",
            detached=detached,
            feature_gates=plane.options.feature_gates,
        )


def _describe(cluster: Cluster) -> None:
    found = asdict(cluster.node.found) if cluster.node else None
    description = {
        "release": cluster.plane.options.release.minor,
        "kubeconfig": str(cluster.plane.kubeconfig),
        "found": found,
    }
    (cluster.plane.directory / _DESCRIPTION).write_text(json.dumps(description))
    cluster.processes.release()
    if cluster.node:
        cluster.node.processes.release()


@dataclass(frozen=True, slots=True)
class _Kubectl:
    """A control plane that another process started, as far as kubectl goes."""

    program: Path
    kubeconfig: str

    def kubectl(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.program), "--kubeconfig", self.kubeconfig, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def stop_recorded(directory: Path) -> bool:
    """Stops what an earlier process started in `directory`; False if there is nothing."""
    if not (directory / "processes.json").exists():
        return False
    description = directory / _DESCRIPTION
    if description.exists():
        _stop_node(directory, json.loads(description.read_text()))
    recorded(directory).stop_all()
    shutil.rmtree(directory, ignore_errors=True)
    return True


def _stop_node(directory: Path, description: dict[str, object]) -> None:
    found = description["found"]
    if not isinstance(found, dict):
        return
    release = RELEASES[str(description["release"])]
    kubectl = _Kubectl(programs.kubernetes("kubectl", release), str(description["kubeconfig"]))
    before = node.Found(tuple(found["cgroups"]), tuple(found["namespaces"]))
    node.Node("real-1", directory / "n", recorded(directory / "n"), kubectl, before).stop()
