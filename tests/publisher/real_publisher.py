"""`dryrack publish` as a process beside a real cluster."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tests.realcluster import readiness

if TYPE_CHECKING:
    from tests.realcluster.cluster import Cluster


def start_publisher(cluster: Cluster, *options: str) -> None:
    """Starts it, and waits until it is ready; it ends with the cluster."""
    port = readiness.free_port()
    addresses = ("--metrics-address", "0", "--health-address", f"127.0.0.1:{port}")
    command = (sys.executable, "-m", "dryrack", "publish", *addresses, "--no-leader-elect")
    kubeconfig = ("--kubeconfig", str(cluster.plane.kubeconfig))
    cluster.processes.start("publisher", (*command, *kubeconfig, *options))
    readiness.wait("publisher", lambda: readiness.answers_http(port, "/readyz"), cluster.processes)
