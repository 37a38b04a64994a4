"""The context objects of files (namespaces, owners, volumes) and their effects."""

from __future__ import annotations

import pytest
from tests.allocation.builders import Counting

from dryrack.kinds.documents import read
from dryrack.placement import Settings, WhatIf, World, explain_pod, what_if
from dryrack.placement.whatif.manifests import manifests

NODES = """
apiVersion: v1
kind: Node
metadata: {name: a, labels: {zone: a, kubernetes.io/hostname: a}}
status: {allocatable: {cpu: "64", memory: 64Gi, pods: "110"}}
---
apiVersion: v1
kind: Node
metadata: {name: b, labels: {zone: b, kubernetes.io/hostname: b}}
status: {allocatable: {cpu: "4", memory: 4Gi, pods: "110"}}
---
"""
DISK = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {volumeName: disk, accessModes: [ReadWriteOnce]}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec:
  capacity: {storage: 1Gi}
  hostPath: {path: /data}
  nodeAffinity:
    required:
      nodeSelectorTerms:
      - matchExpressions: [{key: zone, operator: In, values: [b]}]
---
apiVersion: v1
kind: Pod
metadata: {name: writer}
spec:
  containers: [{name: c, image: i}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]
"""
NEAR = """
apiVersion: v1
kind: Namespace
metadata: {name: prod, labels: {stage: prod}}
---
apiVersion: v1
kind: Pod
metadata: {name: db, namespace: prod, labels: {app: db, hash: one}}
spec: {nodeName: b, containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {hash: one}}
spec:
  containers: [{name: c, image: i}]
  affinity:
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: zone
        labelSelector: {matchLabels: {app: db}}
        matchLabelKeys: [hash]
        namespaceSelector: {matchLabels: {stage: prod}}
"""


def reckon(text: str) -> WhatIf:
    found = manifests(read((NODES + text).encode(), "test.yaml").documents)
    assert not found.problems
    assert not any("takes no part" in note for note in found.notes)
    return what_if(World.of(each.object for each in found.objects), Settings(chance=Counting()))


PENDING = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: CLASS}
provisioner: example.com
volumeBindingMode: MODE
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {storageClassName: CLASS, accessModes: [ReadWriteOnce]}
status: {phase: PHASE}
---
apiVersion: v1
kind: Pod
metadata: {name: writer}
spec:
  containers: [{name: c, image: i}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]
"""


@pytest.mark.parametrize(
    ("storage_class", "mode", "phase", "is_waiting"),
    [
        ("fast", "Immediate", "Pending", True),
        ("fast", "Immediate", '""', False),
        ("fast", "WaitForFirstConsumer", "Pending", False),
    ],
)
def test_a_claim_that_a_cluster_has_left_pending_is_waited_for(
    storage_class: str, mode: str, phase: str, is_waiting: bool
) -> None:
    """One that nobody has looked at yet is not, nor one that waits for the pod."""
    text = PENDING.replace("CLASS", storage_class).replace("MODE", mode).replace("PHASE", phase)
    found = manifests(read((NODES + text).encode(), "test.yaml").documents)
    world = World.of(each.object for each in found.objects)
    told = explain_pod(world, "default/writer", Settings(chance=Counting()))

    words = "pod has unbound immediate PersistentVolumeClaims"
    assert (told.message, bool(told.chosen)) == ((words, False) if is_waiting else ("", True))


def test_a_pod_goes_to_the_node_of_the_volume_in_the_files() -> None:
    """The larger node would be the better one."""
    assert reckon(DISK).nodes == {"default/writer": "b"}


def test_affinity_selects_namespaces_of_the_files_by_their_labels() -> None:
    """And labels that are to be the pod's own, as a server would store them."""
    assert reckon(NEAR).nodes == {"default/web": "b"}
    other = NEAR.replace("app: db, hash: one", "app: db, hash: two")
    assert "didn't match pod affinity rules" in reckon(other).waiting["default/web"]


def test_a_pod_is_tried_again_when_one_comes_that_it_has_to_be_near() -> None:
    """As in a cluster, the order in the files is no matter then."""
    database, web = NEAR.split("---\n")[1:]
    later = database.replace("nodeName: b, ", "nodeSelector: {zone: b}, ")
    namespace = NEAR.split("---\n")[0]

    outcome = reckon("---\n".join((namespace, web, later)))
    assert outcome.nodes == {"prod/db": "b", "default/web": "b"}
    assert outcome.waiting == {}


def workload(kind: str, version: str = "apps/v1", count: str = "replicas: 4") -> str:
    return f"""
apiVersion: {version}
kind: {kind}
metadata: {{name: web}}
spec:
  {count}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: c, image: i, resources: {{requests: {{cpu: 10m}}}}}}]}}
"""


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet"])
def test_pods_of_a_workload_are_spread_as_kube_scheduler_does_by_default(kind: str) -> None:
    """Over nodes, though one of them has more room for all of them."""
    assert sorted(reckon(workload(kind)).nodes.values()) == ["a", "a", "b", "b"]


def test_pods_of_a_job_are_not_spread() -> None:
    """Kube-scheduler does not look at Jobs: they go where there is the most room."""
    job = workload("Job", "batch/v1", "parallelism: 4")

    assert sorted(reckon(job).nodes.values()) == ["a", "a", "a", "a"]


def test_a_service_says_which_pods_are_to_be_spread() -> None:
    """Pods that nobody controls are spread by the Service that is theirs."""
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {selector: {app: web}}\n"
    pods = "".join(
        f"---\napiVersion: v1\nkind: Pod\nmetadata: {{name: p{n}, labels: {{app: web}}}}\n"
        "spec: {containers: [{name: c, image: i}]}\n"
        for n in range(4)
    )

    assert sorted(reckon(service + pods).nodes.values()) == ["a", "a", "b", "b"]
