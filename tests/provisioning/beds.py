"""Clusters for real provisioners: `dryrack up`, and the test bed with KWOK; and what runs there."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.golang import build, sources
from tests.publisher.real_publisher import until
from tests.realcluster import readiness

if TYPE_CHECKING:
    from collections.abc import Callable
    from subprocess import CompletedProcess

    from tests.realcluster.processes import Processes

    from dryrack.kinds.raw import Raw

MODULE = Path(__file__).parent / "karpenter"
DRYRACK = (sys.executable, "-m", "dryrack")
KARPENTER = ("--disable-leader-election", "--instance-types-file-path")
DEVICE_CLASS = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.nvidia.com}
spec:
  selectors: [{cel: {expression: "device.driver == 'gpu.nvidia.com'"}}]
"""
CLASS = """
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
"""
POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpus}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      expireAfter: Never
      requirements:
      - {key: node.kubernetes.io/instance-type, operator: In, values: [g5.xlarge, g5.12xlarge]}
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 0s}
"""
TRAIN = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: two-gpus}
spec:
  spec:
    devices:
      requests:
      - name: gpus
        exactly: {deviceClassName: gpu.nvidia.com, count: 2}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: train}
spec:
  replicas: 2
  selector: {matchLabels: {app: train}}
  template:
    metadata: {labels: {app: train}}
    spec:
      resourceClaims:
      - {name: gpus, resourceClaimTemplateName: two-gpus}
      containers:
      - name: main
        image: example.com/train
        resources: {claims: [{name: gpus}], requests: {cpu: "1"}}
"""


def print_provision(option: str) -> str:
    """Return what `dryrack provision` prints with an option."""
    command = (*DRYRACK, "provision", option)
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@dataclass(frozen=True, slots=True)
class Bed:
    """A cluster, and the processes beside it, which end with it."""

    kubeconfig: Path
    processes: Processes
    kubectl: Callable[..., CompletedProcess[str]]

    def must(self, *arguments: str, stdin: str = "") -> str:
        """Return the output of kubectl; it must succeed."""
        done = self.kubectl(*arguments, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}{done.stdout}"
        return done.stdout

    def items(self, kind: str, *arguments: str) -> list[Raw]:
        found: list[Raw] = json.loads(self.must("get", kind, "-o", "json", *arguments))["items"]
        return found

    def start_dryrack(self, verb: str, *options: str) -> None:
        """Start a command of dryrack, and wait until it is ready."""
        port = readiness.free_port()
        addresses = ("--metrics-address", "0", "--health-address", f"127.0.0.1:{port}")
        kubeconfig = ("--kubeconfig", str(self.kubeconfig))
        command = (*DRYRACK, verb, *addresses, *kubeconfig, *options)
        self.processes.start(verb, command)
        readiness.wait(verb, lambda: readiness.answers_http(port, "/readyz"), self.processes)

    def start_karpenter(self, *options: str) -> Path:
        """Start Karpenter with its KWOK provider; return the file of its instance types."""
        program = build(MODULE).path("karpenter")
        folder = sources(MODULE, "sigs.k8s.io/karpenter")
        for crds in ("pkg/apis/crds", "kwok/apis/crds"):
            self.must("apply", "-f", str(folder / crds))
        self.must("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        types = self.processes.directory / "instance-types.json"
        types.write_text(print_provision("--print-instance-types"))
        self.must("apply", "-f", "-", stdin=CLASS)
        environment = {"KUBECONFIG": str(self.kubeconfig)}
        command = (str(program), *KARPENTER, str(types), *options)
        self.processes.start("karpenter", command, environment=environment)
        return types

    def check_workflow(self) -> None:
        """Two Pods with claims run on one node that was created for them, which is then removed."""
        self.must("apply", "-f", "-", stdin=POOL)
        self.must("apply", "-f", "-", stdin=TRAIN)
        self.must("rollout", "status", "deployment", "train", "--timeout=60s")
        pods = self.items("pods")
        (node,) = self.items("nodes", "-l", "karpenter.sh/nodepool=gpus")
        assert [each["metadata"]["labels"].get("app") for each in pods] == ["train"] * 2
        assert {each["spec"]["nodeName"] for each in pods} == {node["metadata"]["name"]}
        assert node["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "g5.12xlarge"
        slices = self.items("resourceslices")
        assert node["metadata"]["name"] in {each["spec"].get("nodeName") for each in slices}
        self.must("delete", "deployment", "train")
        self.must("wait", "--for=delete", "nodeclaims", "--all", "--timeout=90s")
        kinds = "nodes,resourceslices,resourceclaims,nodeclaims,pods"
        until(lambda: not self.items(kinds))
