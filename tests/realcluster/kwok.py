"""Real KWOK: nodes with its annotation turn Ready, and pods bound to them run, with no kubelet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.realcluster import programs, readiness

if TYPE_CHECKING:
    from tests.realcluster.controlplane import ControlPlane
    from tests.realcluster.processes import Processes

SELECTOR = "kwok.x-k8s.io/node=fake"


def start(plane: ControlPlane, processes: Processes) -> None:
    port = readiness.free_port()
    flags = {
        "kubeconfig": str(plane.kubeconfig),
        "manage-nodes-with-annotation-selector": SELECTOR,
        "server-address": f"127.0.0.1:{port}",
        "node-lease-duration-seconds": "40",
    }
    arguments = [f"--{name}={value}" for name, value in flags.items()]
    arguments += [f"--config={file}" for file in programs.kwok_stages()]
    processes.start("kwok", [str(programs.kwok()), *arguments])
    readiness.wait("kwok", lambda: readiness.answers_http(port, "/healthz"), processes)
