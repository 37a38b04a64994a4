"""`dryrack publish` as a process beside a real cluster."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from tests.realcluster import readiness

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.realcluster.cluster import Cluster
    from tests.realcluster.processes import Identity

SECONDS_MAX = 60.0
ALONE = "--no-leader-elect"
# Every node has a device.
CONFIG = """\
apiVersion: v1
kind: Namespace
metadata: {name: karpenter}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: dra-kwok-configmap, namespace: karpenter}
data:
  config.yaml: |
    driver: gpu.example.com
    mappings:
    - name: every-node
      nodeSelectorTerms:
      - matchExpressions: [{key: kubernetes.io/hostname, operator: Exists}]
      resourceSlice:
        devices: [{name: gpu-0}]
"""


def start_publisher(cluster: Cluster, *options: str, name: str = "publisher") -> Identity:
    """Starts it, and waits until it is ready; it ends with the cluster."""
    port = readiness.free_port()
    addresses = ("--metrics-address", "0", "--health-address", f"127.0.0.1:{port}")
    command = (sys.executable, "-m", "dryrack", "publish", *addresses)
    kubeconfig = ("--kubeconfig", str(cluster.plane.kubeconfig))
    started = cluster.processes.start(name, (*command, *kubeconfig, *options))
    readiness.wait(name, lambda: readiness.answers_http(port, "/readyz"), cluster.processes)
    return started


def until(holds: Callable[[], bool]) -> None:
    """Poll a real cluster until a condition is true."""
    deadline = time.monotonic() + SECONDS_MAX
    while not holds():
        assert time.monotonic() < deadline, f"not so after {SECONDS_MAX} s"
        time.sleep(0.1)
