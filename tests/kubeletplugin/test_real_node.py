"""
`dryrack plugin` on a real node: kubelet, containerd and runc.

It runs with the rights that it prints and no others; what containers got is read from inside them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.kubeletplugin.real_node import RealNode
from tests.publisher.real_publisher import until
from tests.realcluster import image
from tests.realcluster.cluster import Parts
from tests.realcluster.controlplane import Options

from dryrack.kubeletplugin.kinds.fake import uuid_of, uuids_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.realcluster.fixtures import StartModuleCluster

    from dryrack.kinds.raw import Raw

pytestmark = [pytest.mark.real, pytest.mark.timeout(400)]


EXAMPLES = Path(__file__).parents[2] / "examples" / "drivers"
FAKE = "fake.resource.3-shake.com"
# Says what it has, and ends as soon as it is told to.
SHOW = "export; trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"


def claim_spec(device_class: str = "fake.3-shake.com", *, count: int = 1, split: int = 0) -> str:
    request = {"name": "req", "exactly": {"deviceClassName": device_class, "count": count}}
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


def deployment(namespace: str, name: str, replicas: int, of: str) -> str:
    """So many pods like the one of a manifest."""
    labels = {"app": name}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": json.loads(of.removeprefix("---"))["spec"],
        },
    }
    metadata = {"name": name, "namespace": namespace}
    document = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
    return f"---\n{json.dumps(document)}\n"


@pytest.fixture(scope="module")
def real(start_module_cluster: StartModuleCluster) -> RealNode:
    """One node for all tests of the module."""
    return RealNode(start_module_cluster(Options(), Parts(node=True)))


def fakes(real: RealNode, namespace: str, name: str, container: str = "ctr0") -> dict[str, str]:
    """The devices of a container by their numbers."""
    variables = real.variables(namespace, name, container)
    numbered = {key.removeprefix("FAKE_DEVICE_"): value for key, value in variables.items()}
    return {number: uuid for number, uuid in numbered.items() if number.isdecimal()}


def devices_told(real: RealNode, namespace: str, name: str) -> list[Raw]:
    """Return the devices in the status of a claim."""
    status = real.read("resourceclaim", namespace, name).get("status") or {}
    return list(status.get("devices") or ())


def state_of(real: RealNode) -> Raw:
    """The NodeAllocationState of the node."""
    return real.read("nodeallocationstate", "fake-system", real.node.name)


def prepared(real: RealNode) -> list[list[Raw]]:
    """By claim, the devices that it says are prepared."""
    claims = state_of(real)["spec"].get("preparedDevices", {})
    return [each["fake"]["devices"] for each in claims.values()]


def test_fake_devices_arrive_in_containers_and_go(real: RealNode) -> None:
    """Four demonstrations of the fake driver, a kill of the plugin, and the way back."""
    plugin = real.start("fake:8", f"file:1,directory={real.files}")
    own = {uuid_of(real.node.name, f"fake-{n}") for n in range(8)}
    until(lambda: real.exists("nodeallocationstate", "fake-system", real.node.name))
    before = state_of(real)
    real.apply((EXAMPLES / "fake" / "fake.yaml").read_text())
    for namespace in ("test1", "test3"):
        real.wait_ready(namespace, "pod0", "pod1")
    for namespace in ("test2", "test4"):
        real.wait_ready(namespace, "pod0")
    singles = [fakes(real, "test1", "pod0"), fakes(real, "test1", "pod1")]
    both = [fakes(real, "test2", "pod0", each) for each in ("ctr0", "ctr1")]
    shared = [fakes(real, "test3", each) for each in ("pod0", "pod1")]
    four = fakes(real, "test4", "pod0")
    used = [*singles, both[0], shared[0], four]

    assert {each["fake"]["uuid"] for each in before["spec"]["allocatableDevice"]} == own
    assert (before["status"], "preparedDevices" in before["spec"]) == ("Ready", False)
    assert [list(each) for each in used] == [["0"]] * 4 + [["0", "1", "2", "3"]]
    assert both[0] == both[1]
    assert shared[0] == shared[1]
    assert sorted(uuid for each in used for uuid in each.values()) == sorted(own)
    assert len(real.specs()) == len(real.checkpoints(FAKE)) == 5
    until(lambda: len(prepared(real)) == 5)
    assert sorted(sorted(each["uuid"] for each in claim) for claim in prepared(real)) == sorted(
        sorted(each.values()) for each in used
    )

    real.cluster.processes.kill(plugin)
    plugin = real.start("fake:8", f"file:1,directory={real.files}")
    real.kubectl("delete", "namespace", "test1", "test2", "test3", "test4", "--timeout=90s")
    until(lambda: real.checkpoints(FAKE) == [] and real.specs() == [])
    until(lambda: prepared(real) == [])
    real.stop(plugin)
    assert list((real.node.kubelet / "plugins_registry").glob("*.sock")) == []
    assert state_of(real)["status"] == "NotReady"


def test_split_devices_have_parents(real: RealNode) -> None:
    """The fifth demonstration: children in the container, and in the state of the node."""
    plugin = real.start("fake:8")
    real.apply((EXAMPLES / "fake-split" / "fake-split.yaml").read_text())
    real.wait_ready("test5", "pod0")
    children = fakes(real, "test5", "pod0")
    possible = {
        child: uuid_of(real.node.name, f"fake-{n}")
        for n in range(8)
        for child in uuids_of(real.node.name, f"fake-{n}", 2)
    }
    until(lambda: prepared(real) != [])
    [split] = prepared(real)
    [given] = state_of(real)["spec"]["allocatedClaims"].values()
    real.kubectl("delete", "namespace", "test5", "--timeout=90s")
    until(lambda: prepared(real) == [])
    real.stop(plugin)

    assert list(children) == [str(n) for n in range(8)]
    assert {each["uuid"] for each in split} == set(children.values())
    assert all(possible[each["uuid"]] == each["parentUUID"] for each in split)
    assert [each["split"] for each in given["fake"]["devices"]] == [2, 2, 2, 2]


def test_a_plugin_with_the_token_of_a_pod_tells_of_devices_in_claims(real: RealNode) -> None:
    """The server lets it, because the pod is on the node of the devices; and it takes it back."""
    plugin = real.start("fake:8")
    namespace = real.namespace("told")
    real.apply(claim(namespace, "shared", claim_spec(count=2)) + pod(namespace, "pod0", ["shared"]))
    real.wait_ready(namespace, "pod0")
    until(lambda: len(devices_told(real, namespace, "shared")) == 2)
    told = devices_told(real, namespace, "shared")
    real.kubectl("delete", "pod", "-n", namespace, "pod0", "--timeout=90s")
    until(lambda: devices_told(real, namespace, "shared") == [])
    real.kubectl("delete", "namespace", namespace, "--timeout=90s")
    real.stop(plugin)

    assert {each["driver"] for each in told} == {FAKE}
    conditions = [(c["type"], c["status"]) for each in told for c in each["conditions"]]
    assert conditions == [("Ready", "True")] * 2
    assert all(name.startswith("k8s.") for e in told for name in e["data"]["cdiDeviceIDs"])
    assert "status.devices not written" not in real.cluster.processes.log("plugin").read_text()


def test_a_file_has_the_names_of_the_pods_that_use_it(real: RealNode) -> None:
    """Read in the containers of a Deployment, read-only there, and empty when its pods are gone."""
    plugin = real.start(f"file:1,shared=true,directory={real.files}")
    namespace = real.namespace("file")
    look = "cat /etc/dra/file1; echo x >> /etc/dra/file1 || echo refused"
    file = real.files / "file1"
    real.apply(template(namespace, claim_spec("file-resource")))
    real.apply(deployment(namespace, "reader", 2, pod(namespace, "", command=f"{look}; {SHOW}")))
    at = ("-n", namespace, "deployment/reader")
    real.kubectl("rollout", "status", *at, "--timeout=60s")
    pods = real.kubectl("get", "pods", *at[:2], "-o", "jsonpath={.items[*].metadata.name}").split()
    inside = real.kubectl("exec", *at, "--", "cat", "/etc/dra/file1").split()
    logs = {each: real.kubectl("logs", *at[:2], each) for each in pods}
    real.kubectl("scale", *at, "--replicas=1")
    until(lambda: len(file.read_text().split()) == 1)
    [left] = file.read_text().split()
    real.kubectl("delete", "namespace", namespace, "--timeout=90s")
    until(lambda: file.read_text() == "")
    real.stop(plugin)

    assert len(pods) == 2
    assert sorted(inside) == sorted(pods)
    assert left in pods
    # The refusal is on the other stream, and may come first.
    assert all(name in log.splitlines() for name, log in logs.items())
    assert all("\nrefused\n" in log for log in logs.values())


def test_a_claim_has_devices_of_every_kind(real: RealNode) -> None:
    """A GPU, parts of a NIC and of CPUs, a MIG partition and a NIC of a machine, in a container."""
    kinds = ("gpu:2", "net:2", "cpu:2,cpus=32", "catalogue:p5.48xlarge,mig=true")
    plugin = real.start(*kinds)
    namespace = real.namespace("kinds")
    asked: dict[str, Raw] = {
        "gpu.example.com": {},
        "net.example.com": {"ingressBandwidth": "10G"},
        "cpu.example.com": {"cpu.example.com/cpu": "3"},
        "mig.nvidia.com": {},
        "rdma": {},
    }
    requests = [
        {
            "name": name.replace(".", "-"),
            "exactly": {"deviceClassName": name}
            | ({"capacity": {"requests": parts}} if parts else {}),
        }
        for name, parts in asked.items()
    ]
    real.apply(template(namespace, json.dumps({"devices": {"requests": requests}})))
    real.apply(pod(namespace, "pod0"))
    real.wait_ready(namespace, "pod0")
    has = real.variables(namespace, "pod0")
    specs = real.specs()
    real.kubectl("delete", "namespace", namespace, "--timeout=90s")
    until(lambda: real.specs() == [])
    real.stop(plugin)

    assert (has["GPU_DEVICE_0"], has["GPU_DEVICE_0_SHARING_STRATEGY"]) == ("gpu-0", "TimeSlicing")
    assert (has["NET_DEVICE_0"], has["NET_DEVICE_0_INGRESS_RATE"]) == ("nic-0", "10000000000")
    assert (has["CPU_DEVICE_0"], has["CPU_DEVICE_0_CONSUMED_CPU"]) == ("numa-0", "3")
    assert has["GPU_NVIDIA_COM_DEVICE_0"].startswith("gpu-0-mig-")
    assert has["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert has["DRA_NET_DEVICE_0"].startswith("pci-0000-")
    assert len(specs) == len(asked)


def test_a_pod_waits_for_a_driver_that_is_not_there(real: RealNode) -> None:
    """It starts by itself when the driver comes; slices are there in between."""
    plugin = real.start("fake:8")
    namespace = real.namespace("early")
    real.stop(plugin)
    real.apply(template(namespace, claim_spec()) + pod(namespace, "pod0"))
    fields = ("--field-selector", "reason=FailedPrepareDynamicResources")
    # "Not registered", or that nobody answers: a kubelet notices within a second that it went.
    until(lambda: bool(real.kubectl("get", "events", "-n", namespace, *fields)))
    plugin = real.start("fake:8")
    # The kubelet looks at a pod that could not start again after a minute or two.
    real.wait_ready(namespace, "pod0", seconds=180)

    assert list(fakes(real, namespace, "pod0")) == ["0"]
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
    both = [fakes(real, namespace, each) for each in ("pod0", "pod1")]
    real.kubectl("delete", "namespace", namespace, "--timeout=90s")
    until(lambda: real.checkpoints(FAKE) == [] and real.specs() == [])
    real.stop(plugin)

    assert shown == "Running 0"
    assert kept == before
    assert len(before) == 1
    assert len({uuid for each in both for uuid in each.values()}) == 2


def test_an_update_has_two_plugins_on_the_node_and_containers_read_their_metadata(
    real: RealNode,
) -> None:
    """Pods start while both are there, and the newer one gives back what the older prepared."""
    inside = "/var/run/kubernetes.io/dra-device-attributes/resourceclaimtemplates/claim-0/req"
    command = f"cat {inside}/{FAKE}-metadata.json; {SHOW}"
    old = real.start("fake:8", options=("--device-metadata", "--rolling-update-uid", "old-pod"))
    namespace = real.namespace("update")
    real.apply(template(namespace, claim_spec()) + pod(namespace, "pod0", command=command))
    real.wait_ready(namespace, "pod0")
    new = real.start("fake:8", options=("--device-metadata", "--rolling-update-uid", "new-pod"))
    real.apply(pod(namespace, "pod1", command=command))
    real.wait_ready(namespace, "pod1")
    real.stop(old)
    log = real.kubectl("logs", "-n", namespace, "pod0")
    described, _ = json.JSONDecoder().raw_decode(log)
    both = [fakes(real, namespace, each)["0"] for each in ("pod0", "pod1")]
    sockets = {path.name for path in real.node.kubelet.rglob("*.sock")}
    claims = len(real.checkpoints(FAKE))
    real.kubectl("delete", "namespace", namespace, "--timeout=90s")
    until(lambda: real.checkpoints(FAKE) == [] and real.specs() == [])
    real.stop(new)
    [device] = described["requests"][0]["devices"]

    assert device["attributes"]["uuid"] == {"string": both[0]}
    assert len(set(both)) == claims == 2
    assert "dra-new-pod.sock" in sockets
    assert "dra-old-pod.sock" not in sockets
