"""Claims that the scheduler makes and waits for, on a real API server beside kube-scheduler."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.realcluster.cluster import Parts
from tests.realcluster.controlplane import Options
from tests.scheduler.real_scheduler import start_scheduler

if TYPE_CHECKING:
    from tests.realcluster.cluster import Cluster
    from tests.realcluster.fixtures import StartCluster

    from dryrack.kinds.raw import Raw


WORLD = """
apiVersion: v1
kind: Node
metadata: {name: node-a, annotations: {kwok.x-k8s.io/node: fake}, labels: {type: kwok}}
status:
  allocatable: {cpu: "8", memory: 8Gi, pods: "10"}
  capacity: {cpu: "8", memory: 8Gi, pods: "10"}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec:
  extendedResourceName: example.com/gpu
  selectors: [{cel: {expression: "device.driver == 'x.example.com'"}}]
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: fabric}
spec:
  selectors: [{cel: {expression: "device.driver == 'y.example.com'"}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: slice-x}
spec:
  driver: x.example.com
  nodeName: node-a
  pool: {name: node-a, generation: 1, resourceSliceCount: 1}
  devices: [{name: d0}, {name: d1}, {name: d2}, {name: d3}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: slice-y}
spec:
  driver: y.example.com
  allNodes: true
  pool: {name: far, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: far, bindsToNode: true, bindingConditions: [attached], bindingFailureConditions: [lost]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: fabric, namespace: default}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: fabric}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: waits, namespace: default}
spec:
  schedulerName: dryrack
  resourceClaims: [{name: r, resourceClaimName: fabric}]
  containers: [{name: c, image: i, resources: {claims: [{name: r}]}}]
"""
ASKING = """
apiVersion: v1
kind: Pod
metadata: {name: NAME, namespace: default}
spec:
  schedulerName: SCHEDULER
  initContainers: [{name: i, image: i, resources: {limits: {example.com/gpu: 1}}}]
  containers: [{name: c, image: i, resources: {limits: {cpu: 1, example.com/gpu: 2}}}]
"""
GROUP = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu, namespace: default}
spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}}
---
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: SCHEDULER, namespace: default}
spec:
  schedulingPolicy: {gang: {minCount: 2}}
  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
"""
MEMBER = """---
apiVersion: v1
kind: Pod
metadata: {name: SCHEDULER-NUMBER, namespace: default}
spec:
  schedulerName: SCHEDULER
  schedulingGroup: {podGroupName: SCHEDULER}
  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
  containers: [{name: c, image: i, resources: {claims: [{name: gpu}]}}]
"""
STORAGE = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: late}
provisioner: example.com/disks
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: NAME, namespace: default}
spec:
  storageClassName: late
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
---
apiVersion: v1
kind: Pod
metadata: {name: NAME, namespace: default}
spec:
  schedulerName: SCHEDULER
  volumes: [{name: v, persistentVolumeClaim: {claimName: NAME}}]
  containers: [{name: c, image: i}]
"""
VOLUME = """
apiVersion: v1
kind: PersistentVolume
metadata: {name: NAME}
spec:
  storageClassName: late
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Gi}
  claimRef: {namespace: default, name: NAME}
  csi: {driver: example.com, volumeHandle: NAME}
  nodeAffinity:
    required:
      nodeSelectorTerms: [{matchExpressions: [{key: type, operator: In, values: [kwok]}]}]
"""
LOCAL_VOLUMES = "---".join(
    f"""
apiVersion: v1
kind: PersistentVolume
metadata: {{name: NAME-{which}}}
spec:
  storageClassName: NAME
  accessModes: [ReadWriteOnce]
  capacity: {{storage: {size}}}
  local: {{path: /data}}
  nodeAffinity:
    required:
      nodeSelectorTerms: [{{matchExpressions: [{{key: type, operator: In, values: [kwok]}}]}}]
"""
    for which, size in (("large", "9Gi"), ("small", "2Gi"))
)
PROVISIONER = "example.com/disks"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
NODE_AND_PROVISIONER = (
    "volume.kubernetes.io/selected-node",
    "volume.kubernetes.io/storage-provisioner",
)
GATES = ("GenericWorkload", "DRAWorkloadResourceClaims")


@pytest.mark.real
@pytest.mark.timeout(300)
def test_a_claim_of_a_group_is_reserved_as_by_kube_scheduler(start_cluster: StartCluster) -> None:
    """Once, for the group, by both of them; the claim is made by kube-controller-manager."""
    options = Options(
        feature_gates=dict.fromkeys(GATES, True),
        runtime_config={"scheduling.k8s.io/v1beta1": True},
    )
    cluster = start_cluster(options, Parts(kwok=True))
    start_scheduler(cluster, "--name", "dryrack")
    _apply(cluster, WORLD)
    users = []
    for scheduler in ("dryrack", "default-scheduler"):
        members = [MEMBER.replace("NUMBER", str(number)) for number in range(3)]
        _apply(cluster, "".join((GROUP, *members)).replace("SCHEDULER", scheduler))
        for number in range(3):
            _wait(cluster, f"pod/{scheduler}-{number}", "jsonpath={.status.phase}=Running")
        group = _get(cluster, "podgroup", scheduler)
        [told] = group["status"]["resourceClaimStatuses"]
        claim = _get(cluster, "resourceclaim", told["resourceClaimName"])
        [user] = claim["status"]["reservedFor"]
        assert (user.pop("uid"), user.pop("name")) == (group["metadata"]["uid"], scheduler)
        users.append(user)

    assert users == [{"apiGroup": "scheduling.k8s.io", "resource": "podgroups"}] * 2


@pytest.mark.real
@pytest.mark.timeout(300)
def test_extended_resources_and_binding_conditions_on_a_real_server(
    start_cluster: StartCluster,
) -> None:
    """The claim is like kube-scheduler's; a pod is bound when its device is ready, not before."""
    cluster = start_cluster(Options(), Parts(kwok=True))
    start_scheduler(cluster, "--name", "dryrack")
    _apply(cluster, WORLD)
    for name, scheduler in (("ours", "dryrack"), ("theirs", "default-scheduler")):
        _apply(cluster, ASKING.replace("NAME", name).replace("SCHEDULER", scheduler))
        _wait(cluster, f"pod/{name}", "jsonpath={.status.phase}=Running")

    assert _claim_for(cluster, "ours") == _claim_for(cluster, "theirs")

    _wait(cluster, "resourceclaim/fabric", "jsonpath={.status.reservedFor[0].name}=waits")
    device = {"driver": "y.example.com", "pool": "far", "device": "far"}
    assert "nodeName" not in _get(cluster, "pod", "waits")["spec"]
    condition = {"type": "attached", "status": "True", "reason": "Seen", "message": ""}
    condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    patch = json.dumps({"status": {"devices": [{**device, "conditions": [condition]}]}})
    set_ = ("--subresource=status", "--type=merge", "-p", patch)
    done = cluster.plane.kubectl("patch", "resourceclaim", "fabric", *set_)
    assert done.returncode == 0, done.stderr
    _wait(cluster, "pod/waits", "jsonpath={.status.phase}=Running")
    log = cluster.processes.log("schedule").read_text()
    assert "forbidden" not in log
    assert "BindingConditionsPending" in cluster.plane.kubectl("get", "events").stdout


@pytest.mark.real
@pytest.mark.timeout(300)
def test_a_volume_is_made_where_the_pod_goes(start_cluster: StartCluster) -> None:
    """As in kube-scheduler, the claim gets the node, and the pod waits until the claim is bound."""
    cluster = start_cluster(Options(), Parts(kwok=True))
    start_scheduler(cluster, "--name", "dryrack")
    _apply(cluster, WORLD)
    told = []
    for name, scheduler in (("ours", "dryrack"), ("theirs", "default-scheduler")):
        _apply(cluster, STORAGE.replace("NAME", name).replace("SCHEDULER", scheduler))
        selected = "jsonpath={.metadata.annotations.volume\\.kubernetes\\.io/selected-node}"
        _wait(cluster, f"pvc/{name}", f"{selected}=node-a")
        assert "nodeName" not in _get(cluster, "pod", name)["spec"]
        _apply(cluster, VOLUME.replace("NAME", name))
        _wait(cluster, f"pod/{name}", "jsonpath={.status.phase}=Running")
        claim = _get(cluster, "pvc", name)
        told.append({key: claim["metadata"]["annotations"][key] for key in NODE_AND_PROVISIONER})

    assert told[0] == told[1]
    assert _kept(cluster, "ours", "dryrack") == _kept(cluster, "theirs", "default-scheduler")
    assert "forbidden" not in cluster.processes.log("schedule").read_text()


def _kept(cluster: Cluster, whose: str, scheduler: str) -> Raw:
    """Return the fields that a scheduler writes to the one of two free volumes that it chose."""
    name = f"local-{whose}"
    local = STORAGE.replace("late", name).replace(PROVISIONER, "kubernetes.io/no-provisioner")
    for manifest in (LOCAL_VOLUMES, local):
        _apply(cluster, manifest.replace("NAME", name).replace("SCHEDULER", scheduler))
    _wait(cluster, f"pod/{name}", "jsonpath={.status.phase}=Running")
    volume = _get(cluster, "pv", f"{name}-small")
    claim = _get(cluster, "pvc", name)
    reference = volume["spec"]["claimRef"]
    assert reference["uid"] == claim["metadata"]["uid"]
    assert claim["spec"]["volumeName"] == f"{name}-small"
    return {
        "reference": sorted(reference),
        "volume": {**volume["metadata"]["annotations"], LAST_APPLIED: ""},
        "claim": {**claim["metadata"]["annotations"], LAST_APPLIED: ""},
        "phases": [volume["status"]["phase"], claim["status"]["phase"]],
        "finalizers": [volume["metadata"]["finalizers"], claim["metadata"]["finalizers"]],
    }


def _claim_for(cluster: Cluster, pod: str) -> Raw:
    """Return the claim that was created for a pod, without names, uids, and devices."""
    extended_resource_pod = _get(cluster, "pod", pod)
    told = extended_resource_pod["status"]["extendedResourceClaimStatus"]
    claim = _get(cluster, "resourceclaim", told["resourceClaimName"])
    metadata = claim["metadata"]
    status = claim["status"]
    [owner] = metadata["ownerReferences"]
    [user] = status["reservedFor"]
    assert owner["uid"] == user["uid"] == extended_resource_pod["metadata"]["uid"]
    return {
        "annotations": metadata["annotations"],
        "finalizers": metadata["finalizers"],
        "generateName": metadata["generateName"].removeprefix(pod),
        "owner": sorted(owner),
        "spec": claim["spec"],
        "user": sorted(user),
        "requests": [each["request"] for each in status["allocation"]["devices"]["results"]],
        "nodeSelector": status["allocation"]["nodeSelector"],
        "allocation": sorted(status["allocation"]),
        "mappings": told["requestMappings"],
    }


def _apply(cluster: Cluster, manifest: str) -> None:
    done = cluster.plane.kubectl("apply", "-f", "-", stdin=manifest)
    assert done.returncode == 0, done.stderr


def _get(cluster: Cluster, kind: str, name: str) -> Raw:
    found: Raw = json.loads(cluster.plane.kubectl("get", kind, name, "-o", "json").stdout)
    return found


def _wait(cluster: Cluster, what: str, goal: str) -> None:
    done = cluster.plane.kubectl("wait", what, f"--for={goal}", "--timeout=60s")
    said = cluster.plane.kubectl("describe", "pods").stdout
    assert done.returncode == 0, said + cluster.processes.log("schedule").read_text()
