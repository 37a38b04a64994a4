"""The installed chart on `dryrack up`: releases, and each part as a process with its own rights."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.chart.helm import CHART, VALUES, Helm
from tests.chart.test_helm import SEEDS
from tests.cli.command import dryrack, example_path
from tests.clients.served import ServedPlane
from tests.kubeletplugin.test_serving import short_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["short_path"]
pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
NAMESPACE = "dryrack-system"
_SECONDS_MAX = 60
STATES = "nas.fake.resource.3-shake.com"
# Virtual nodes are nodes of KWOK; here, the Pods of the chart are processes of this machine.
ON_VIRTUAL_NODES = ("--set", "avoidVirtualNodes=false")
GANG = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec:
  selectors: [{cel: {expression: device.driver == 'karpenter.sh.dra-kwok-driver'}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu, namespace: default}
spec:
  spec:
    devices:
      requests: [{name: gpu, exactly: {deviceClassName: gpu}}]
"""
POD = """
---
apiVersion: v1
kind: Pod
metadata:
  name: NAME
  namespace: default
  labels:
    pod-group.scheduling.sigs.k8s.io/name: gang
    pod-group.scheduling.sigs.k8s.io/min-available: "2"
spec:
  schedulerName: dryrack
  containers:
  - {name: c, image: i, resources: {claims: [{name: gpu}]}}
  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
"""


KINDS = (
    "jobs,deployments,daemonsets,services,serviceaccounts,configmaps,roles,rolebindings,secrets,"
    "poddisruptionbudgets,clusterroles,clusterrolebindings,deviceclasses,crd,"
    "validatingadmissionpolicies,validatingadmissionpolicybindings"
)


@dataclass(frozen=True)
class Cluster:
    """A virtual cluster that enforces roles, with Helm and `dryrack run`."""

    plane: ServedPlane
    helm: Helm

    def get(self, *words: str) -> Any:
        """Objects, as JSON."""
        return json.loads(self.plane.must("get", *words, "-o", "json"))

    def names(self, kinds: str) -> set[str]:
        """The names of the objects of some kinds, in all namespaces."""
        return set(self.plane.must("get", kinds, "-A", "-o", "name").split())

    @contextmanager
    def running(self, workload: str, namespace: str = NAMESPACE) -> Iterator[Path]:
        """The program of a part in place of its Pod; yields the file with what it prints."""
        log = self.plane.directory / f"{workload.rpartition('/')[2]}.log"
        [container] = self.get(workload, "-n", namespace)["spec"]["template"]["spec"]["containers"]
        # The arguments of the chart, but on free ports of loopback.
        ports = {str(each["containerPort"]): str(free_port()) for each in container["ports"]}
        addresses = {f":{port}": f"127.0.0.1:{local}" for port, local in ports.items()}
        changes = {"0.0.0.0": "127.0.0.1", **ports, **addresses}
        words = [changes.get(word, word) for word in container["args"]]
        command = [sys.executable, "-m", "dryrack", "run", "-n", namespace, "--without-args"]
        command += [word for port in ports.items() for word in ("--port", "=".join(port))]
        command += [workload, "--", sys.executable, "-m", "dryrack", *words]
        environment = {**os.environ, "KUBECONFIG": str(self.plane.kubeconfig)}
        with (
            log.open("w") as file,
            subprocess.Popen(command, env=environment, stdout=file, stderr=file) as process,
        ):
            try:
                yield log
            finally:
                process.terminate()


def free_port() -> int:
    """A port of loopback that no program listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def until(what: str, holds: Callable[[], bool], *logs: Path) -> None:
    """Wait for a condition."""
    ends = time.monotonic() + _SECONDS_MAX
    while not holds():
        assert time.monotonic() < ends, f"not {what}\n" + "\n".join(map(_read, logs))


def _read(path: Path) -> str:
    return path.read_text()


@contextmanager
def cluster(directory: Path, name: str, *options: str) -> Iterator[Cluster]:
    """A virtual cluster for the length of a block."""
    options = ("--authorization", "rbac", "--no-device-classes", *options)
    with ServedPlane(directory, options, name) as plane:
        yield Cluster(plane, Helm(directory, plane.kubeconfig))


@pytest.mark.parametrize("name", SEEDS)
def test_a_release_is_installed_upgraded_and_uninstalled(tmp_path: Path, name: str) -> None:
    """The command at the top of the values file; only the kept definitions stay."""
    namespace, release = SEEDS[name]
    values = VALUES / f"{name}.yaml"
    [command] = re.findall(r"^#   (helm .*)$", values.read_text(), flags=re.M)
    words = command.replace("deploy/chart", str(CHART)).replace("deploy/values", str(VALUES))
    with cluster(tmp_path, name, "--nodes", "2") as world:
        world.plane.must("create", "namespace", namespace)
        before = world.names(KINDS)
        world.helm(*words.split()[1:], *ON_VIRTUAL_NODES, "--wait", "--timeout", "60s")
        installed = world.names(KINDS)
        world.helm(*words.split()[1:], *ON_VIRTUAL_NODES, "--set", "logFormat=json", "--wait")
        assert world.names(KINDS) - installed == {f"secret/sh.helm.release.v1.{release}.v2"}
        world.helm("rollback", release, "1", "-n", namespace, "--wait")
        world.helm("uninstall", release, "-n", namespace, "--wait", "--timeout", "60s")
        left = world.names(KINDS) - before
    kept = {
        "fake": {
            "deviceclassparameters.fake.resource.3-shake.com",
            "fakeclaimparameters.fake.resource.3-shake.com",
            "nodeallocationstates.nas.fake.resource.3-shake.com",
        },
        "dra-kwok": {"draconfigs.test.karpenter.sh"},
    }
    assert {each.rpartition("/")[2] for each in left} == kept.get(name, set())


def test_without_keep_nothing_stays(tmp_path: Path) -> None:
    """A part that is disabled goes with the upgrade; crds.keep=false removes the definitions."""
    with cluster(tmp_path, "nothing", "--nodes", "1") as world:
        words = ("upgrade", "-i", "dryrack", CHART, "-n", NAMESPACE, "--create-namespace")
        world.helm(*words, "--set", "crds.keep=false", *ON_VIRTUAL_NODES, "--wait")
        assert world.names("crd")
        assert "deployment.apps/dryrack-dashboard" in world.names("deployments")
        world.helm(*words, "--set", "crds.keep=false,dashboard.enabled=false", *ON_VIRTUAL_NODES)
        assert not [each for each in world.names(KINDS) if "dashboard" in each]
        world.helm("uninstall", "dryrack", "-n", NAMESPACE, "--wait")
        assert world.names("crd") == set()


def test_kubectl_applies_the_manifests(tmp_path: Path) -> None:
    """Without Helm; a second time, nothing is left to change."""
    with cluster(tmp_path, "manifests", "--nodes", "1") as world:
        printed = dryrack("manifests", "--set", "namespace.create=true", *ON_VIRTUAL_NODES).stdout
        world.plane.must("apply", "-f", "-", stdin=printed)
        world.plane.must("diff", "-f", "-", stdin=printed)
        for part in ("publisher", "scheduler", "dashboard"):
            words = (f"deployment/dryrack-{part}", "--timeout=60s", "-n", NAMESPACE)
            world.plane.must("rollout", "status", *words)
        world.plane.must("delete", "--timeout=60s", "-f", "-", stdin=printed)
        assert not [each for each in world.names(KINDS) if "dryrack" in each]


def test_each_part_does_its_work_with_its_own_rights(tmp_path: Path) -> None:
    """The publisher publishes for KWOK nodes, the scheduler binds a gang."""
    configuration = yaml.safe_load(example_path("karpenter-gpu/config.yaml").read_text())
    file = tmp_path / "values.yaml"
    content = next(iter(configuration["data"].values()))
    file.write_text(yaml.safe_dump({"publisher": {"configMap": {"content": content}}}))
    options = ("--nodes", "2", "--instance-type", "p5.48xlarge", "--without", "slices,scheduler")
    with cluster(tmp_path, "parts", *options) as world, ExitStack() as stack:
        world.plane.must(
            *("label", "nodes", "--all", "--overwrite"),
            "node.kubernetes.io/instance-type=c-4x-amd64-linux",
        )
        words = ("upgrade", "-i", "dryrack", CHART, "-n", NAMESPACE, "--create-namespace")
        world.helm(*words, "-f", file, *ON_VIRTUAL_NODES)
        parts = ("publisher", "scheduler", "dashboard")
        until("created", lambda: len(world.get("pods", "-n", NAMESPACE)["items"]) == 3)
        for each in world.get("pods", "-n", NAMESPACE)["items"]:
            bind(world, each["metadata"]["name"])
        logs = [stack.enter_context(world.running(f"deployment/dryrack-{part}")) for part in parts]

        def is_ready() -> bool:
            found = world.get("deployments", "-n", NAMESPACE)["items"]
            return all(each["status"].get("readyReplicas") for each in found)

        until("ready", is_ready, *logs)

        def are_published() -> bool:
            found = world.get("resourceslices")["items"]
            return {each["spec"]["nodeName"] for each in found} == {"node-1", "node-2"}

        until("published", are_published, *logs)

        pods = "".join(POD.replace("NAME", name) for name in ("first", "second"))
        world.plane.must("apply", "-f", "-", stdin=GANG + pods)

        def are_bound() -> bool:
            found = world.get("pods", "-n", "default")["items"]
            return all(each["spec"].get("nodeName") for each in found)

        until("bound", are_bound, *logs)
        until(
            "reported",
            lambda: 'gang scheduled gang="pod group default/gang" pods=2' in _read(logs[1]),
        )
        said = "".join(map(_read, logs))
    assert "forbidden" not in said.lower()
    assert "Traceback" not in said


def test_the_plugin_does_its_work_with_the_token_of_its_pod(
    tmp_path: Path, short_path: Path
) -> None:
    """The policy admits the slices of its node; the commands for the state of the node work."""
    namespace, release = SEEDS["fake"]
    with cluster(tmp_path, "plugin", "--nodes", "2") as world:
        world.helm(
            *("upgrade", "-i", release, CHART, "-n", namespace, "--create-namespace"),
            *("-f", VALUES / "fake.yaml", *ON_VIRTUAL_NODES, "--wait"),
            *("--set", f"plugin.kubeletDir={short_path},plugin.cdiDir={short_path}/cdi"),
        )
        with world.running(f"daemonset/{release}-kubeletplugin", namespace) as log:
            until("published", lambda: bool(world.get("resourceslices")["items"]), log)
            [found] = world.get("resourceslices")["items"]
            node = found["spec"]["nodeName"]
            until("reported", lambda: f"nodeallocationstate.{STATES}/{node}" in world.names("nas"))
            described = world.plane.must("describe", "-n", namespace, f"nas/{node}")
            assert described.count("Uuid:  FAKE-") == 8
            assert len(found["spec"]["devices"]) == 8
        assert "forbidden" not in _read(log).lower()


def test_the_scheduler_reads_its_configuration(tmp_path: Path) -> None:
    """With the values for kubenexus, it schedules a gang under the name in the ConfigMap."""
    namespace, release = SEEDS["kubenexus"]
    options = ("--nodes", "1", "--devices", "gpu:2", "--without", "scheduler")
    with cluster(tmp_path, "kubenexus", *options) as world:
        world.helm(
            *("upgrade", "-i", release, CHART, "-n", namespace, "--create-namespace"),
            *("-f", VALUES / "kubenexus.yaml", *ON_VIRTUAL_NODES, "--set", "plugin.enabled=false"),
        )
        until("created", lambda: bool(world.get("pods", "-n", namespace)["items"]))
        bind(world, world.get("pods", "-n", namespace)["items"][0]["metadata"]["name"], namespace)
        with world.running(f"deployment/{release}", namespace) as log:
            pods = "".join(POD.replace("NAME", name) for name in ("first", "second"))
            objects = (GANG + pods).replace("karpenter.sh.dra-kwok-driver", "gpu.example.com")
            objects = objects.replace("schedulerName: dryrack", f"schedulerName: {release}")
            world.plane.must("apply", "-f", "-", stdin=objects)
            until("reported", lambda: 'gang="pod group default/gang" pods=2' in _read(log), log)
        assert world.get("lease", release, "-n", namespace)["spec"]["renewTime"]


def bind(world: Cluster, pod: str, namespace: str = NAMESPACE) -> None:
    """Bind a Pod as the scheduler of the cluster does."""
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "node-1"},
    }
    path = f"/api/v1/namespaces/{namespace}/pods/{pod}/binding"
    world.plane.must("create", "--raw", path, "-f", "-", stdin=json.dumps(binding))
