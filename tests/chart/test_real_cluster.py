"""
The chart on a real cluster: a real kubelet runs the image of dryrack, real KWOK runs the nodes.

The cluster has no Service network. One address of it is given to the loopback interface, where a
relay leads to the API server, so that Pods reach the server as on every cluster.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.chart.helm import CHART, VALUES, Helm
from tests.chart.test_helm import SEEDS
from tests.chart.test_installed import GANG, POD
from tests.cli.command import dryrack, example_path
from tests.realcluster.cluster import Parts
from tests.realcluster.controlplane import Options

from dryrack.base.version import __version__
from dryrack.cluster.operators import relay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.realcluster.cluster import Cluster
    from tests.realcluster.fixtures import StartModuleCluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]
NAMESPACE = "dryrack-system"
DRIVERS = CHART.parents[1] / "examples" / "drivers"
SERVER = "10.200.0.1"
INSTANCE_TYPE = "c-4x-amd64-linux"
_SECONDS_MAX = 120
_PARTS = ("publisher", "scheduler")
KINDS = (
    "jobs,deployments,daemonsets,services,serviceaccounts,configmaps,roles,rolebindings,"
    "poddisruptionbudgets,clusterroles,clusterrolebindings,deviceclasses,crd,resourceslices,"
    "validatingadmissionpolicies,validatingadmissionpolicybindings"
)
CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: local}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: local}
spec:
  restartPolicy: Never
  containers:
  - name: c
    image: docker.io/local/busybox:1
    command: [sh, -c, env]
    resources: {claims: [{name: gpu}]}
  resourceClaims: [{name: gpu, resourceClaimTemplateName: local}]
"""


@dataclass(frozen=True)
class World:
    """A real cluster with the installed chart."""

    cluster: Cluster
    helm: Helm
    values: Path
    before: frozenset[str]

    def must(self, *words: str, stdin: str | None = None) -> str:
        done = self.cluster.plane.kubectl(*words, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(words)}: {done.stderr}{done.stdout}"
        return done.stdout

    def get(self, *words: str) -> Any:
        return json.loads(self.must("get", *words, "-o", "json"))

    def names(self, kinds: str) -> set[str]:
        return set(self.must("get", kinds, "-A", "-o", "name").split())

    def install(self, *words: str) -> None:
        self.helm(
            *("upgrade", "-i", "dryrack", CHART, "-n", NAMESPACE, "--create-namespace"),
            *("-f", self.values, "--wait", "--timeout", f"{_SECONDS_MAX}s"),
            *words,
        )

    def logs(self, part: str) -> str:
        selector = f"app.kubernetes.io/component={part}"
        return self.must("logs", "-n", NAMESPACE, "-l", selector, "--tail=-1", "--prefix")

    def until(self, what: str, holds: Callable[[], bool]) -> None:
        ends = time.monotonic() + _SECONDS_MAX
        while not holds():
            assert time.monotonic() < ends, f"not {what}\n{self.logs('publisher')[-3000:]}"

    def holders(self) -> dict[str, str]:
        """The Pods that lead, by the name of the Lease."""
        names = [f"lease/dryrack-{part}" for part in _PARTS]
        leases = self.get(*names, "-n", NAMESPACE)["items"]
        return {each["metadata"]["name"]: each["spec"]["holderIdentity"] for each in leases}

    def nodes_with_slices(self) -> set[str]:
        return {each["spec"].get("nodeName", "") for each in self.get("resourceslices")["items"]}


@contextmanager
def server_address(port: int) -> Iterator[None]:
    """Let Pods reach the API server at the address of its Service."""
    subprocess.run(["ip", "address", "add", f"{SERVER}/32", "dev", "lo"], check=True)
    pairs = json.dumps([[f"tcp:{SERVER}:443", f"tcp:127.0.0.1:{port}"]])
    try:
        with subprocess.Popen(
            [sys.executable, "-I", relay.__file__, pairs], stdout=subprocess.DEVNULL
        ) as process:
            yield
            process.terminate()
    finally:
        subprocess.run(["ip", "address", "del", f"{SERVER}/32", "dev", "lo"], check=True)


def virtual_node(name: str) -> str:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {
                "kwok.x-k8s.io/node": "fake",
                "node.kubernetes.io/instance-type": INSTANCE_TYPE,
            },
        },
    }
    return json.dumps(node)


@pytest.fixture(scope="module")
def world(
    start_module_cluster: StartModuleCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """The chart with two replicas of each part, in Pods of a real kubelet."""
    directory = tmp_path_factory.mktemp("chart")
    archive = directory / "dryrack.tar"
    saved = dryrack("image", "save", archive)
    assert saved.returncode == 0, saved.stderr
    cluster = start_module_cluster(Options(), Parts(node=True, kwok=True))
    node = cluster.node
    assert node is not None, "it was asked for"
    node.ctr("images", "import", str(archive))
    configuration = yaml.safe_load(example_path("karpenter-gpu/config.yaml").read_text())
    values = {
        "image": {"registry": "localhost", "tag": __version__},
        "publisher": {
            "replicas": 2,
            "configMap": {"content": next(iter(configuration["data"].values()))},
        },
        "scheduler": {"replicas": 2},
        "plugin": {
            "enabled": True,
            "devices": ["gpu:4"],
            "kubeletDir": str(node.kubelet),
            "cdiDir": str(node.cdi),
        },
    }
    file = directory / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    helm = Helm(directory, cluster.plane.kubeconfig)
    with server_address(cluster.plane.port):
        bare = World(cluster, helm, file, frozenset())
        world = World(cluster, helm, file, frozenset(bare.names(KINDS)))
        for name in ("virtual-1", "virtual-2"):
            world.must("apply", "-f", "-", stdin=virtual_node(name))
        world.install()
        yield world


def test_the_parts_work_with_their_own_rights(world: World) -> None:
    """A gang runs on virtual nodes, and a container of the real node has its device."""
    world.until("published", lambda: {"virtual-1", "virtual-2"} <= world.nodes_with_slices())
    pods = "".join(POD.replace("NAME", name) for name in ("first", "second"))
    world.must("apply", "-f", "-", stdin=GANG + pods)
    names = ("pod/first", "pod/second")
    world.must("wait", *names, "--for=jsonpath={.status.phase}=Running", "--timeout=60s")
    placed = {each["spec"]["nodeName"] for each in world.get(*names)["items"]}
    world.must("apply", "-f", "-", stdin=CLAIM)
    world.must("wait", "pod/local", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s")

    assert placed <= {"virtual-1", "virtual-2"}
    assert 'gang scheduled gang="pod group default/gang" pods=2' in world.logs("scheduler")
    assert "gpu-" in world.must("logs", "local")
    for part in (*_PARTS, "plugin", "dashboard"):
        assert "forbidden" not in world.logs(part).lower()
        assert "Traceback" not in world.logs(part)
    world.must("delete", "pod", "first", "second", "local", "--timeout=60s")
    world.until("free", lambda: not world.names("resourceclaims"))


def test_another_replica_goes_on_when_the_leader_is_killed(world: World) -> None:
    """Nodes that come and go meanwhile are not lost, and one replica writes."""
    holders = world.holders()
    pods = [each["metadata"]["name"] for each in world.get("pods", "-n", NAMESPACE)["items"]]
    leaders = [pod for pod in pods if any(pod in holder for holder in holders.values())]
    assert {part for part in _PARTS if any(f"-{part}-" in pod for pod in leaders)} == set(_PARTS)
    world.must("delete", "pod", "-n", NAMESPACE, "--grace-period=0", "--force", *leaders)
    world.must("apply", "-f", "-", stdin=virtual_node("virtual-3"))
    world.must("delete", "node", "virtual-2", "--timeout=60s")
    pods_of_gang = "".join(POD.replace("NAME", name) for name in ("first", "second"))
    world.must("apply", "-f", "-", stdin=GANG + pods_of_gang)
    names = ("pod/first", "pod/second")
    world.must("wait", *names, "--for=jsonpath={.status.phase}=Running", "--timeout=120s")
    world.until("published", lambda: "virtual-3" in world.nodes_with_slices())
    world.until("removed", lambda: "virtual-2" not in world.nodes_with_slices())
    doubtful = {"virtual-1", "virtual-3"}
    generations = {
        (each["spec"]["nodeName"], each["spec"]["pool"]["generation"])
        for each in world.get("resourceslices")["items"]
        if each["spec"].get("nodeName") in doubtful
    }
    after = world.holders()

    assert len(generations) == len(doubtful)
    assert all(after[name] != holder for name, holder in holders.items())
    world.must("delete", "pod", "first", "second", "--timeout=60s")


def test_nothing_stays_after_an_upgrade_and_an_uninstallation(world: World) -> None:
    """Only the definitions that are kept on purpose, the leases, and the namespace stay."""
    installed = world.names(KINDS)
    world.install("--set", "logFormat=json")
    assert world.names(KINDS) - installed == set()
    world.helm("uninstall", "dryrack", "-n", NAMESPACE, "--wait", "--timeout", "120s")
    world.until(
        "gone",
        lambda: not [each for each in world.names("pods") if "dryrack" in each],
    )
    # The kubelet removes those of a plugin 30 s after its end.
    world.until("removed", lambda: not world.names("resourceslices"))
    left = world.names(KINDS) - world.before
    definitions = {each for each in left if each.startswith("customresourcedefinition.")}

    assert definitions
    # The test itself created the class.
    assert left - definitions == {"deviceclass.resource.k8s.io/gpu"}


def install_seed(world: World, name: str) -> tuple[str, str]:
    """Install with the command at the top of a values file; return the namespace and release."""
    namespace, release = SEEDS[name]
    values = VALUES / f"{name}.yaml"
    [command] = re.findall(r"^#   (helm .*)$", values.read_text(), flags=re.M)
    words = command.replace("deploy/chart", str(CHART)).replace("deploy/values", str(VALUES))
    node = world.cluster.node
    assert node is not None, "the fixture asks for it"
    world.helm(
        *words.split()[1:],
        *("--set", f"image.registry=localhost,image.tag={__version__}"),
        *("--set", f"plugin.kubeletDir={node.kubelet},plugin.cdiDir={node.cdi}"),
        # The definitions of the release before are kept.
        *("--take-ownership", "--wait", "--timeout", f"{_SECONDS_MAX}s"),
    )
    return namespace, release


def test_fake_devices_are_installed_with_one_line(world: World) -> None:
    """The containers have their devices, and the state of the node can be described."""
    namespace, release = install_seed(world, "fake")
    world.must("apply", "-f", str(DRIVERS / "fake" / "fake.yaml"))
    pods = [("test1", "pod0"), ("test1", "pod1"), ("test2", "pod0"), ("test4", "pod0")]
    for where, name in pods:
        world.must("wait", f"pod/{name}", "-n", where, "--for=condition=Ready", "--timeout=60s")
    logs = [world.must("logs", "-n", where, name, "-c", "ctr0") for where, name in pods]
    node = world.get("pod", "pod0", "-n", "test1")["spec"]["nodeName"]
    described = world.must("describe", "-n", namespace, f"nas/{node}")

    assert [text.count("FAKE_DEVICE_") for text in logs] == [1, 1, 1, 4]
    # Eight devices, and the eight that the claims of the Pods have.
    assert described.count("Uuid:  FAKE-") == 16
    world.must("delete", "ns", "test1", "test2", "test3", "test4", "--timeout=90s")
    world.helm("uninstall", release, "-n", namespace, "--wait", "--timeout", "60s")


def test_a_file_device_is_installed_with_one_line(world: World) -> None:
    """A container reads its file, and the log of the driver can be read by its label."""
    namespace, release = install_seed(world, "dra-file")
    world.must("apply", "-f", str(DRIVERS / "file" / "file.yaml"))
    world.must("wait", "pod/reader", "-n", "file", "--for=condition=Ready", "--timeout=60s")
    content = world.must("exec", "-n", "file", "reader", "--", "cat", "/etc/dra/file1")

    assert "reader" in content
    assert world.must("logs", "-n", namespace, "-l", "app=dra-file-driver")
    world.must("delete", "ns", "file", "--timeout=90s")
    world.helm("uninstall", release, "-n", namespace, "--wait", "--timeout", "60s")
