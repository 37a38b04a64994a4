"""`dryrack schedule` as a process beside a real cluster, with the rights that it prints alone."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from tests.realcluster import kubeconfig, readiness

if TYPE_CHECKING:
    from pathlib import Path

    from tests.realcluster.cluster import Cluster
    from tests.realcluster.processes import Identity

NAMESPACE = "kube-system"


def grant(cluster: Cluster, *options: str) -> Path:
    """Applies the rights for these options; the kubeconfig of the account that has them."""
    plane = cluster.plane
    command = (sys.executable, "-m", "dryrack", "schedule", "--print-rbac", *options)
    printed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    applied = plane.kubectl("apply", "-f", "-", stdin=printed)
    assert applied.returncode == 0, applied.stderr
    account = printed.partition("kind: ServiceAccount\nmetadata:\n  name: ")[2].split("\n")[0]
    made = plane.kubectl("create", "token", account, "-n", NAMESPACE, "--duration=1h")
    assert made.returncode == 0, made.stderr
    return kubeconfig.write(
        plane.directory / f"{account}.kubeconfig",
        server=plane.server,
        authority=plane.authority.certificate,
        user=kubeconfig.by_token(made.stdout.strip()),
    )


def start_scheduler(cluster: Cluster, *options: str, name: str = "schedule") -> Identity:
    """Starts it with its own rights, and waits until it is ready; it ends with the cluster."""
    granted = grant(cluster, *(each for each in options if each not in SWITCHES))
    port = readiness.free_port()
    address = f"127.0.0.1:{port}"
    command = (sys.executable, "-m", "dryrack", "schedule", "--kubeconfig", str(granted))
    pages = ("--metrics-address", address, "--health-address", address)
    started = cluster.processes.start(name, (*command, *pages, *options))
    readiness.wait(name, lambda: readiness.answers_http(port, "/readyz"), cluster.processes)
    return started


# What changes nothing about the rights.
SWITCHES = ("--no-leader-elect",)
