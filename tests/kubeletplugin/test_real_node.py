"""
`dryrack plugin` on a real node: kubelet, containerd and runc.

It runs with the rights that it prints and no others; what containers got is read from inside them.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.publisher.real_publisher import until
from tests.realcluster import image, kubeconfig, readiness
from tests.realcluster.cluster import Parts
from tests.realcluster.controlplane import Options

from dryrack.kubeletplugin.kinds.fake import uuid_of, uuids_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.realcluster.cluster import Cluster
    from tests.realcluster.fixtures import StartModuleCluster
    from tests.realcluster.node import Node
    from tests.realcluster.processes import Identity

pytestmark = [pytest.mark.real, pytest.mark.timeout(400)]

FAKE = "fake.resource.3-shake.com"
FILE = "file.dra.example.com"
# Says what it has, and ends as soon as it is told to.
SHOW = "export; trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"
CLASSES = "---".join(
    f"""
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {{name: {driver}}}
spec:
  selectors: [{{cel: {{expression: "device.driver == '{driver}'"}}}}]
"""
    for driver in (FAKE, FILE)
)


def claim_spec(driver: str = FAKE, *, count: int = 1, split: int = 0) -> str:
    request = {"name": "req", "exactly": {"deviceClassName": driver, "count": count}}
    devices: dict[str, object] = {"requests": [request]}
    if split:
        parameters = {"apiVersion": f"{FAKE}/v1alpha1", "kind": "FakeClaimParameters"}
        opaque = {"driver": FAKE, "parameters": parameters | {"count": count, "split": split}}
        devices["config"] = [{"opaque": opaque}]
    return json.dumps({"devices": devices})


def template(namespace: str, spec: str) -> str:
    return f"""
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: template, namespace: {namespace}}}
spec: {{spec: {spec}}}
"""


def claim(namespace: str, name: str, spec: str) -> str:
    return f"""
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {{name: {name}, namespace: {namespace}}}
spec: {spec}
"""


def pod(
    namespace: str,
    name: str,
    claims: Sequence[str] = (),
    *,
    containers: Sequence[str] = ("ctr0",),
    command: str = SHOW,
) -> str:
    """A pod with these claims in all its containers; with a claim of its own if none is named."""
    sources = [{"resourceClaimName": each} for each in claims]
    sources = sources or [{"resourceClaimTemplateName": "template"}]
    named = [{"name": f"claim-{n}", **source} for n, source in enumerate(sources)]
    spec = {
        "terminationGracePeriodSeconds": 5,
        "resourceClaims": named,
        "containers": [
            {
                "name": container,
                "image": image.BUSYBOX,
                "imagePullPolicy": "Never",
                "command": ["sh", "-c", command],
                "resources": {"claims": [{"name": each["name"]} for each in named]},
            }
            for container in containers
        ],
    }
    metadata = {"name": name, "namespace": namespace}
    document = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    return f"---\n{json.dumps(document)}\n"


class RealNode:
    """A cluster with a node, and the plugin on it."""

    def __init__(self, cluster: Cluster) -> None:
        assert cluster.node is not None, "it was asked for"
        self.cluster = cluster
        self.node: Node = cluster.node
        self.files = self.node.directory / "etc-dra"
        self._account = self._granted()
        self._slices: set[str] = set()

    def start(self, *devices: str) -> Identity:
        """Starts it, and waits until kubelet and scheduler know of its devices."""
        options = [f"--devices={each}" for each in devices]
        command = (
            *(sys.executable, "-m", "dryrack", "plugin", "--kubeconfig", str(self._account)),
            *("--node", self.node.name, "--kubelet-dir", str(self.node.kubelet)),
            *("--cdi-dir", str(self.node.cdi), *options),
        )
        processes = self.cluster.processes
        wanted = self._registered() + len(devices)
        started = processes.start("plugin", command)
        drivers = {FAKE if each.startswith("fake") else FILE for each in devices}
        readiness.wait("plugin", lambda: self._registered() == wanted, processes)
        readiness.wait("plugin", lambda: drivers <= self.published(), processes)
        return started

    def stop(self, plugin: Identity) -> None:
        """As somebody does who wants it to end."""
        self.cluster.processes.stop(plugin)
        self.cluster.processes.running.remove(plugin)

    def _registered(self) -> int:
        log = self.cluster.processes.log("plugin")
        return log.read_text().count("registered with the kubelet") if log.exists() else 0

    def restart_kubelet(self) -> None:
        """The same command again, as a service manager would."""
        processes = self.node.processes
        kubelet = next(each for each in processes.running if each.name == "kubelet")
        command = Path(f"/proc/{kubelet.pid}/cmdline").read_text().split("\0")[:-1]
        self._slices = self.slices()
        processes.stop(kubelet)
        processes.running.remove(kubelet)
        processes.start("kubelet", command)

    def is_back(self, devices: Sequence[str]) -> bool:
        """Whether the slices that a kubelet deletes when it starts are there anew."""
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

    def wait_ready(self, namespace: str, *pods: str, seconds: int = 60) -> None:
        for each in pods:
            done = self.cluster.plane.kubectl(
                *("wait", "-n", namespace, f"pod/{each}", "--for=condition=Ready"),
                f"--timeout={seconds}s",
            )
            told = self.cluster.plane.kubectl("describe", "pod", "-n", namespace, each).stdout
            log = self.cluster.processes.tail("plugin")
            assert done.returncode == 0, f"{told}\n{log}"

    def fakes(self, namespace: str, name: str, container: str = "ctr0") -> dict[str, str]:
        """The devices as the container itself prints them."""
        log = self.kubectl("logs", "-n", namespace, name, "-c", container)
        return dict(re.findall(r"^export FAKE_DEVICE_(\d+)='(.*)'$", log, re.M))

    def specs(self) -> list[str]:
        return sorted(path.name for path in self.node.cdi.iterdir())

    def checkpoints(self, driver: str) -> list[Path]:
        return list((self.node.kubelet / "plugins" / driver / "checkpoints").iterdir())

    def _granted(self) -> Path:
        command = (sys.executable, "-m", "dryrack", "plugin", "--print-rbac")
        printed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        self.kubectl("apply", "-f", "-", stdin=printed.stdout)
        account = ("dryrack-plugin", "-n", "kube-system", "--duration=1h")
        return kubeconfig.write(
            self.node.directory / "plugin.kubeconfig",
            server=self.cluster.plane.server,
            authority=self.cluster.plane.authority.certificate,
            user=kubeconfig.by_token(self.kubectl("create", "token", *account).strip()),
        )


@pytest.fixture(scope="module")
def real(start_module_cluster: StartModuleCluster) -> RealNode:
    """One node for all tests of the module."""
    made = RealNode(start_module_cluster(Options(), Parts(node=True)))
    made.apply(CLASSES)
    return made


def test_fake_devices_arrive_in_containers_and_go(real: RealNode) -> None:
    """The five demonstrations of the fake driver, a kill of the plugin, and the way back."""
    plugin = real.start("fake:8", f"file:1,directory={real.files}")
    own = {uuid_of(real.node.name, f"fake-{n}") for n in range(8)}
    for n in range(1, 5):
        real.namespace(f"test{n}")
    real.apply(template("test1", claim_spec()) + pod("test1", "pod0") + pod("test1", "pod1"))
    real.apply(template("test2", claim_spec()) + pod("test2", "pod0", containers=("ctr0", "ctr1")))
    real.apply(claim("test3", "shared", claim_spec()))
    real.apply(pod("test3", "pod0", ["shared"]) + pod("test3", "pod1", ["shared"]))
    real.apply(template("test4", claim_spec(count=4)) + pod("test4", "pod0"))
    for namespace in ("test1", "test3"):
        real.wait_ready(namespace, "pod0", "pod1")
    for namespace in ("test2", "test4"):
        real.wait_ready(namespace, "pod0")
    singles = [real.fakes("test1", "pod0"), real.fakes("test1", "pod1")]
    both = [real.fakes("test2", "pod0", each) for each in ("ctr0", "ctr1")]
    shared = [real.fakes("test3", each) for each in ("pod0", "pod1")]
    four = real.fakes("test4", "pod0")
    used = [*singles, both[0], shared[0], four]

    assert [list(each) for each in used] == [["0"]] * 4 + [["0", "1", "2", "3"]]
    assert both[0] == both[1]
    assert shared[0] == shared[1]
    assert sorted(uuid for each in used for uuid in each.values()) == sorted(own)
    assert len(real.specs()) == len(real.checkpoints(FAKE)) == 5

    real.cluster.processes.kill(plugin)
    plugin = real.start("fake:8", f"file:1,directory={real.files}")
    for n in range(1, 5):
        real.kubectl("delete", "namespace", f"test{n}", "--timeout=90s")
    until(lambda: real.checkpoints(FAKE) == [] and real.specs() == [])

    real.namespace("test5")
    real.apply(template("test5", claim_spec(count=4, split=2)) + pod("test5", "pod0"))
    real.wait_ready("test5", "pod0")
    children = {child for n in range(8) for child in uuids_of(real.node.name, f"fake-{n}", 2)}

    assert list(real.fakes("test5", "pod0")) == [str(n) for n in range(8)]
    assert set(real.fakes("test5", "pod0").values()) < children
    real.kubectl("delete", "namespace", "test5", "--timeout=90s")
    real.stop(plugin)
    assert list((real.node.kubelet / "plugins_registry").glob("*.sock")) == []


def test_a_file_has_the_name_of_the_pod_that_uses_it(real: RealNode) -> None:
    """Read in the container, read-only there, and empty again when the pod has ended."""
    plugin = real.start("fake:8", f"file:1,directory={real.files}")
    namespace = real.namespace("file")
    look = "cat /etc/dra/file1; echo x >> /etc/dra/file1 || echo refused"
    real.apply(template(namespace, claim_spec(FILE)))
    real.apply(pod(namespace, "reader", command=f"{look}; {SHOW}"))
    real.wait_ready(namespace, "reader")
    log = real.kubectl("logs", "-n", namespace, "reader")
    written = (real.files / "file1").read_text()
    real.kubectl("delete", "namespace", namespace, "--timeout=90s")
    until(lambda: (real.files / "file1").read_text() == "")
    real.stop(plugin)

    assert written == "reader\n"
    # The refusal is on the other stream, and may come first.
    assert "reader" in log.splitlines()
    assert "\nrefused\n" in log


def test_a_pod_waits_for_a_driver_that_is_not_there(real: RealNode) -> None:
    """It starts by itself when the driver comes; slices are there in between."""
    plugin = real.start("fake:8")
    namespace = real.namespace("early")
    real.stop(plugin)
    real.apply(template(namespace, claim_spec()) + pod(namespace, "pod0"))
    fields = ("--field-selector", "reason=FailedPrepareDynamicResources")
    until(lambda: "not registered" in real.kubectl("get", "events", "-n", namespace, *fields))
    plugin = real.start("fake:8")
    # The kubelet looks at a pod that could not start again after a minute or two.
    real.wait_ready(namespace, "pod0", seconds=180)

    assert list(real.fakes(namespace, "pod0")) == ["0"]
    real.kubectl("delete", "namespace", namespace, "--timeout=90s")
    until(lambda: real.checkpoints(FAKE) == [])
    real.stop(plugin)


def test_kubelet_and_plugin_start_again_under_a_pod_that_runs(real: RealNode) -> None:
    """The kubelet, then both: the pod goes on, slices come back, and its end gives all back."""
    devices = ("fake:8", f"file:1,directory={real.files}")
    plugin = real.start(*devices)
    namespace = real.namespace("restarts")
    real.apply(template(namespace, claim_spec()) + pod(namespace, "pod0"))
    real.wait_ready(namespace, "pod0")
    before = real.specs()

    real.restart_kubelet()
    until(lambda: real.is_back(devices))
    real.cluster.processes.kill(plugin)
    real.restart_kubelet()
    plugin = real.start(*devices)
    path = "jsonpath={.status.phase} {.status.containerStatuses[0].restartCount}"
    shown = real.kubectl("get", "pod", "-n", namespace, "pod0", "-o", path)
    kept = real.specs()
    real.apply(pod(namespace, "pod1"))
    # A kubelet that has just started may register a plugin twice, and knows of none in between; a
    # pod that it looks at in that second is looked at again after a minute or two.
    real.wait_ready(namespace, "pod1", seconds=180)
    both = [real.fakes(namespace, each) for each in ("pod0", "pod1")]
    real.kubectl("delete", "namespace", namespace, "--timeout=90s")
    until(lambda: real.checkpoints(FAKE) == [] and real.specs() == [])
    real.stop(plugin)

    assert shown == "Running 0"
    assert kept == before
    assert len(before) == 1
    assert len({uuid for each in both for uuid in each.values()}) == 2
