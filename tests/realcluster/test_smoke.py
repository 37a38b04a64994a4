"""
The bed itself: that it is a real Kubernetes, that it starts and ends cleanly, and that its
parts work together. What dryrack does on it is tested elsewhere.
"""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from tests.realcluster import accounts, image
from tests.realcluster.cluster import Parts
from tests.realcluster.controlplane import Options
from tests.realcluster.plugin import ThrowAwayPlugin
from tests.realcluster.releases import RELEASE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.realcluster.cluster import Cluster
    from tests.realcluster.controlplane import ControlPlane
    from tests.realcluster.fixtures import Namespace, StartCluster

pytestmark = pytest.mark.real

DRIVER = "bed.example.com"

CLASS = f"""
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {{name: {DRIVER}}}
spec:
  selectors: [{{cel: {{expression: "device.driver == '{DRIVER}'"}}}}]
"""


def slice_on(node: str) -> str:
    return f"""
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {{name: bed-{node}}}
spec:
  driver: {DRIVER}
  nodeName: {node}
  pool: {{name: {node}, generation: 1, resourceSliceCount: 1}}
  devices: [{{name: thing-0}}]
"""


CLAIM = f"""
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {{name: thing}}
spec:
  devices:
    requests: [{{name: thing, exactly: {{deviceClassName: {DRIVER}}}}}]
"""


def pod(name: str, command: str, *, claim: str = "") -> str:
    resources = "{claims: [{name: thing}]}" if claim else "{}"
    claims = f"[{{name: thing, resourceClaimName: {claim}}}]" if claim else "[]"
    return f"""
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  restartPolicy: Never
  resourceClaims: {claims}
  containers:
  - name: main
    image: {image.BUSYBOX}
    imagePullPolicy: Never
    command: [sh, -c, {json.dumps(command)}]
    resources: {resources}
"""


def fake_node(name: str) -> str:
    return f"""
apiVersion: v1
kind: Node
metadata:
  name: {name}
  annotations: {{kwok.x-k8s.io/node: fake}}
status:
  allocatable: {{cpu: "8", memory: 32Gi, pods: "110"}}
  capacity: {{cpu: "8", memory: 32Gi, pods: "110"}}
"""


def wait_phase(namespace: Namespace, name: str, phase: str) -> None:
    goal = f"--for=jsonpath={{.status.phase}}={phase}"
    done = namespace.kubectl("wait", f"pod/{name}", goal, "--timeout=60s")
    assert done.returncode == 0, namespace.kubectl("describe", "pod", name).stdout


def test_kubectl_and_server_are_the_pinned_release(real_plane: ControlPlane) -> None:
    """Both sides say the version they were built from, not v0.0.0."""
    version = json.loads(real_plane.kubectl("version", "-o", "json").stdout)
    expected = f"v{real_plane.options.release.version}"

    assert version["clientVersion"]["gitVersion"] == expected
    assert version["serverVersion"]["gitVersion"] == expected


def test_the_official_python_client_works(real_namespace: Namespace) -> None:
    """A client that knows nothing of the bed but its kubeconfig creates and lists a claim."""
    from kubernetes import client, config

    load: Any = config.load_kube_config
    load(str(real_namespace.plane.kubeconfig))
    with client.ApiClient() as api:
        resources = client.ResourceV1Api(api)
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}
        body: Any = {"metadata": {"name": "mine"}, "spec": {"devices": {"requests": [request]}}}
        resources.create_namespaced_resource_claim(real_namespace.name, body)
        claims = resources.list_namespaced_resource_claim(real_namespace.name).items

    assert [claim.metadata and claim.metadata.name for claim in claims] == ["mine"]


def test_the_real_scheduler_allocates_from_a_hand_written_slice(
    start_cluster: StartCluster,
) -> None:
    """KWOK runs the node, kube-scheduler picks the device, and the pod is Running."""
    plane = start_cluster(Options(), Parts(kwok=True)).plane
    for manifest in (fake_node("fake-1"), CLASS, slice_on("fake-1"), CLAIM):
        done = plane.kubectl("apply", "-f", "-", stdin=manifest)
        assert done.returncode == 0, done.stderr
    plane.kubectl("wait", "serviceaccount/default", "--for=create", "--timeout=30s")
    plane.kubectl("apply", "-f", "-", stdin=pod("user", "true", claim="thing"))
    done = plane.kubectl("wait", "pod/user", "--for=condition=Ready", "--timeout=60s")
    allocation = json.loads(plane.kubectl("get", "resourceclaim", "thing", "-o", "json").stdout)
    results = allocation["status"]["allocation"]["devices"]["results"]

    assert done.returncode == 0, plane.kubectl("describe", "pod", "user").stdout
    assert [(r["driver"], r["pool"], r["device"]) for r in results] == [
        (DRIVER, "fake-1", "thing-0")
    ]


def test_a_pod_runs_on_the_real_node_and_logs_show_it(real_node_namespace: Namespace) -> None:
    """A process runs in a container, and its words come back through the kubelet."""
    real_node_namespace.apply(pod("hello", "echo hello from $HOSTNAME"))
    wait_phase(real_node_namespace, "hello", "Succeeded")

    assert real_node_namespace.kubectl("logs", "hello").stdout == "hello from hello\n"


def test_a_cdi_variable_arrives_in_a_container_through_a_claim(
    real_node_cluster: Cluster, real_node_namespace: Namespace
) -> None:
    """Slice, scheduler, kubelet, plugin, CDI spec, container: the whole way, and back again."""
    node = real_node_cluster.node
    assert node is not None, "the fixture starts one"
    device = {"name": "thing-0", "containerEdits": {"env": ["BED_THING=it works"]}}
    spec = {"cdiVersion": "0.6.0", "kind": f"{DRIVER}/thing", "devices": [device]}
    (node.cdi / "bed.json").write_text(json.dumps(spec))
    plugin = ThrowAwayPlugin(
        driver=DRIVER,
        kubelet=node.kubelet,
        pool=node.name,
        device="thing-0",
        cdi_id=f"{DRIVER}/thing=thing-0",
    )
    with plugin:
        for manifest in (CLASS, slice_on(node.name), CLAIM):
            real_node_namespace.apply(manifest)
        real_node_namespace.apply(pod("user", "echo $BED_THING", claim="thing"))
        wait_phase(real_node_namespace, "user", "Succeeded")
        logs = real_node_namespace.kubectl("logs", "user").stdout
        real_node_namespace.kubectl("delete", "pod", "user", "--wait=true")

    assert logs == "it works\n"
    assert plugin.prepared == plugin.unprepared != []


def test_a_limited_account_is_refused_what_it_was_not_given(real_namespace: Namespace) -> None:
    """RBAC is on: a service account may do what its rules say, and nothing else."""
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]
    plane = real_namespace.plane
    limited = accounts.limited(plane, "reader", namespace=real_namespace.name, rules=rules)
    allowed = plane.kubectl("-n", real_namespace.name, "get", "configmaps", kubeconfig=limited)
    refused = plane.kubectl("-n", real_namespace.name, "get", "pods", kubeconfig=limited)

    assert allowed.returncode == 0, allowed.stderr
    assert "Forbidden" in refused.stderr


def test_gates_and_apis_can_be_switched_on(start_cluster: StartCluster) -> None:
    """An API that is off by default is served when it is asked for."""
    options = Options(
        feature_gates={"DRADeviceTaintRules": True},
        runtime_config={"resource.k8s.io/v1beta2": True},
        with_scheduler=False,
    )
    plane = start_cluster(options).plane
    served = plane.kubectl("api-resources", "--api-group=resource.k8s.io", "-o", "name").stdout

    assert "devicetaintrules.resource.k8s.io" in served.split()


def test_a_release_comes_up_and_goes(start_cluster: StartCluster) -> None:
    """The release is chosen by one word; its processes and files end with it."""
    release = RELEASE
    cluster = start_cluster(Options(release=release))
    version = json.loads(cluster.plane.kubectl("version", "-o", "json").stdout)
    directory = cluster.plane.directory
    running = list(cluster.processes.running)
    cluster.stop()

    assert version["serverVersion"]["gitVersion"] == f"v{release.version}"
    assert [identity.name for identity in running if identity.alive()] == []
    assert not directory.exists()


def test_a_port_in_use_is_told_with_the_log(start_cluster: StartCluster, tmp_path: Path) -> None:
    """A program that ends at once is reported by name, with the end of its log."""
    from tests.realcluster.processes import ProcessError, Processes
    from tests.realcluster.readiness import wait

    processes = Processes(tmp_path)
    processes.start("broken", ["sh", "-c", "echo address already in use; exit 1"])
    with pytest.raises(ProcessError, match=r"broken ended; (?s:.*)address already in use"):
        wait("broken", lambda: False, processes)
    processes.stop_all()


def test_a_process_number_that_was_reused_is_not_signalled(tmp_path: Path) -> None:
    """Stopping by a stale record leaves a stranger with the same number alone."""
    from tests.realcluster.processes import Identity, Processes

    with subprocess.Popen(["sleep", "60"]) as stranger:
        Processes(tmp_path).stop(Identity("gone", stranger.pid, born=1))
        alive = stranger.poll() is None
        stranger.kill()

    assert alive
