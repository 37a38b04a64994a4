"""`dryrack plugin` as a process on a real node, with the rights of a pod that runs there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.publisher.real_publisher import until
from tests.realcluster import image, kubeconfig, readiness

from dryrack.cluster import load_catalogue
from dryrack.kubeletplugin import read_devices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.realcluster.cluster import Cluster
    from tests.realcluster.node import Node
    from tests.realcluster.processes import Identity

SYSTEM = "kube-system"
# The API server tells a node by the pod that a token is bound to.
HOLDER = f"""
apiVersion: v1
kind: Pod
metadata: {{{{name: holder, namespace: {SYSTEM}}}}}
spec:
  nodeName: {{node}}
  serviceAccountName: dryrack-plugin
  terminationGracePeriodSeconds: 0
  containers:
  - {{{{name: main, image: "{image.BUSYBOX}", imagePullPolicy: Never, command: [sleep, "9999"]}}}}
"""


class RealNode:
    """A cluster with a node, and the plugin on it."""

    def __init__(self, cluster: Cluster) -> None:
        assert cluster.node is not None, "it was asked for"
        self.cluster = cluster
        self.node: Node = cluster.node
        self.files = self.node.directory / "etc-dra"
        self._account = self._granted()
        self._slices: set[str] = set()

    def start(self, *devices: str, options: Sequence[str] = ()) -> Identity:
        """Starts it, and waits until kubelet and scheduler know of its devices."""
        named = [f"--devices={each}" for each in devices]
        self.apply(_printed(*named, "--print-classes"))
        command = (
            *(sys.executable, "-m", "dryrack", "plugin", "--kubeconfig", str(self._account)),
            *("--node", self.node.name, "--kubelet-dir", str(self.node.kubelet)),
            *("--cdi-dir", str(self.node.cdi), *named, *options),
        )
        processes = self.cluster.processes
        drivers = {kind.driver for kind in read_devices(devices, [], load_catalogue)}
        wanted = self._registered() + len(drivers)
        started = processes.start("plugin", command)
        readiness.wait("plugin", lambda: self._registered() == wanted, processes)
        readiness.wait("plugin", lambda: drivers <= self.published(), processes)
        return started

    def stop(self, plugin: Identity) -> None:
        """Stop the plugin and wait for its end."""
        self.cluster.processes.stop(plugin)
        self.cluster.processes.running.remove(plugin)

    def _registered(self) -> int:
        log = self.cluster.processes.log("plugin")
        return log.read_text().count("registered with the kubelet") if log.exists() else 0

    def restart_kubelet(self) -> None:
        """Restart the kubelet with the same command."""
        processes = self.node.processes
        kubelet = next(each for each in processes.running if each.name == "kubelet")
        command = Path(f"/proc/{kubelet.pid}/cmdline").read_text().split("\0")[:-1]
        self._slices = self.slices()
        processes.stop(kubelet)
        processes.running.remove(kubelet)
        processes.start("kubelet", command)

    def is_back(self, devices: Sequence[str]) -> bool:
        """Return True if the slices that a starting kubelet deletes exist again."""
        now = self.slices()
        return len(now) == len(devices) and not now & self._slices

    def slices(self) -> set[str]:
        path = "jsonpath={.items[*].metadata.uid}"
        return set(self.kubectl("get", "resourceslices", "-o", path).split())

    def published(self) -> set[str]:
        done = self.kubectl("get", "resourceslices", "-o", "jsonpath={.items[*].spec.driver}")
        return set(done.split())

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        done = self.cluster.plane.kubectl(*arguments, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def namespace(self, name: str) -> str:
        self.kubectl("create", "namespace", name)
        self.kubectl("wait", "-n", name, "serviceaccount/default", "--for=create", "--timeout=30s")
        return name

    def apply(self, manifest: str) -> None:
        self.kubectl("apply", "-f", "-", stdin=manifest)

    def exists(self, kind: str, namespace: str, name: str) -> bool:
        return bool(self.kubectl("get", kind, "-n", namespace, name, "--ignore-not-found"))

    def read(self, kind: str, namespace: str, name: str) -> dict[str, Any]:
        """An object as the API has it."""
        found: dict[str, Any] = json.loads(
            self.kubectl("get", kind, "-n", namespace, name, "-o", "json")
        )
        return found

    def wait_ready(self, namespace: str, *pods: str, seconds: int = 60) -> None:
        for each in pods:
            done = self.cluster.plane.kubectl(
                *("wait", "-n", namespace, f"pod/{each}", "--for=condition=Ready"),
                f"--timeout={seconds}s",
            )
            told = self.cluster.plane.kubectl("describe", "pod", "-n", namespace, each).stdout
            log = self.cluster.processes.tail("plugin")
            assert done.returncode == 0, f"{told}\n{log}"

    def variables(self, namespace: str, name: str, container: str = "ctr0") -> dict[str, str]:
        """The environment as the container itself prints it, a moment after it is ready."""
        found: dict[str, str] = {}

        def has_printed() -> bool:
            log = self.kubectl("logs", "-n", namespace, name, "-c", container)
            found.update(re.findall(r"^export (\w+)='(.*)'$", log, re.M))
            return bool(found)

        until(has_printed)
        return found

    def specs(self) -> list[str]:
        return sorted(path.name for path in self.node.cdi.iterdir())

    def checkpoints(self, driver: str) -> list[Path]:
        return list((self.node.kubelet / "plugins" / driver / "checkpoints").iterdir())

    def _granted(self) -> Path:
        """The rights that it prints, with the token of a pod of its node, as a chart gives it."""
        self.apply(_printed("--print-rbac"))
        self.apply(_printed("--print-crds"))
        self.apply(HOLDER.format(node=self.node.name))
        uid = self.kubectl("get", "pod", "-n", SYSTEM, "holder", "-o", "jsonpath={.metadata.uid}")
        token = self.kubectl(
            *("create", "token", "dryrack-plugin", "-n", SYSTEM, "--duration=1h"),
            *("--bound-object-kind=Pod", "--bound-object-name=holder", f"--bound-object-uid={uid}"),
        )
        return kubeconfig.write(
            self.node.directory / "plugin.kubeconfig",
            server=self.cluster.plane.server,
            authority=self.cluster.plane.authority.certificate,
            user=kubeconfig.by_token(token.strip()),
        )


def _printed(*options: str) -> str:
    command = (sys.executable, "-m", "dryrack", "plugin", *options)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout
