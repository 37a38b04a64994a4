"""Decisions that depend on the release: kube-scheduler's own answers are in `kube_scheduler`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dryrack.allocation import OPTIONAL_OPERATIONS, LiveAllocator
from dryrack.cluster import SeededChance
from dryrack.kinds.core import Node, PersistentVolume, PersistentVolumeClaim, Pod
from dryrack.kinds.decode import decode
from dryrack.kinds.quota_usage.admission_kinds import PriorityClass
from dryrack.kinds.releases import Release
from dryrack.kinds.resource import ResourceClaim
from dryrack.kinds.scheduling import PodGroupV1Beta1
from dryrack.placement import (
    Cluster,
    Fleet,
    Occupant,
    Placed,
    Settings,
    Unplaced,
    WaitingClass,
    World,
    place,
    what_if,
)
from dryrack.placement.plugins import profile_named

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw


def cluster_of(release: Release, *nodes: str, **status: Any) -> Cluster:
    fleet = Fleet(release)
    amounts = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}, **status}
    for name in nodes:
        labels = {"kubernetes.io/hostname": name}
        fleet.put(decode({"metadata": {"name": name, "labels": labels}, "status": amounts}, Node))
    return Cluster(fleet, LiveAllocator(release=release, chance=SeededChance()))


def pod(name: str, namespace: str = "default", **spec: Any) -> Pod:
    metadata = {"name": name, "namespace": namespace, "uid": name, "labels": {"app": "a"}}
    return decode({"metadata": metadata, "spec": {"containers": [], **spec}}, Pod)


@pytest.mark.parametrize(
    ("release", "fits"), [(Release.V1_36, False), (Release.V1_37, True)], ids=["1.36", "1.37"]
)
def test_a_namespace_selector_with_only_negative_conditions(release: Release, fits: bool) -> None:
    """It selects the pods of one namespace; up to 1.36 kube-scheduler took those of all."""
    cluster = cluster_of(release, "node")
    cluster.fleet.namespaces.update({"default": {"team": "x"}, "other": {}})
    cluster.fleet.add_pod("there", "node", Occupant.of(pod("there")))
    unlike = {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "a"}},
        "namespaceSelector": unlike,
    }
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}

    outcome = place(pod("new", affinity={"podAntiAffinity": required}), (), (), cluster)

    assert isinstance(outcome, Placed) == fits


@pytest.mark.parametrize(
    ("release", "node"), [(Release.V1_36, "a"), (Release.V1_37, "b")], ids=["1.36", "1.37"]
)
def test_a_pod_goes_to_the_node_whose_volume_is_the_largest(release: Release, node: str) -> None:
    """From 1.37 on, as StorageCapacityScoring is on; before, all volumes are equally good."""
    cluster = cluster_of(release, "a", "b")
    volumes = cluster.fleet.volumes
    volumes.are_stored = True
    volumes.waiting_classes["local"] = WaitingClass(is_provisioned=False)
    spec = {"storageClassName": "local", "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"metadata": {"name": "data", "namespace": "default"}, "spec": spec}
    volumes.claims["default", "data"] = decode(claim, PersistentVolumeClaim)
    for name, size in (("a", "1Gi"), ("b", "4Gi")):
        term = {"key": "kubernetes.io/hostname", "operator": "In", "values": [name]}
        affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}}
        raw = {
            "metadata": {"name": name},
            "spec": {
                "storageClassName": "local",
                "capacity": {"storage": size},
                "nodeAffinity": affinity,
            },
            "status": {"phase": "Available"},
        }
        volumes.volumes[name] = decode(raw, PersistentVolume)
    source = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    profile = profile_named("default-scheduler", release)

    outcome = place(pod("new", volumes=[source]), (), (), cluster, profile=profile)

    assert isinstance(outcome, Placed)
    assert outcome.node == node


def test_an_allocated_claim_that_skips_operations_needs_a_node_that_declares_it() -> None:
    """Other nodes would call the driver."""
    result = {
        "driver": "gpu.example.com",
        "pool": "p",
        "device": "d",
        "request": "r",
        "skipNodeOperations": ["*"],
    }
    raw = {
        "metadata": {"name": "claim", "namespace": "default"},
        "spec": {"devices": {"requests": []}},
        "status": {"allocation": {"devices": {"results": [result]}}},
    }
    claim = decode(raw, ResourceClaim)
    old = cluster_of(Release.V1_37, "node")
    new = cluster_of(Release.V1_37, "node", declaredFeatures=[OPTIONAL_OPERATIONS])

    refused = place(pod("new"), (), (claim,), old)

    assert isinstance(place(pod("new"), (), (claim,), new), Placed)
    assert isinstance(refused, Unplaced)
    assert refused.message == "0/1 nodes are available: 1 resourceclaim not available on the node."


def group_of(name: str, priority_class: str = "", **spec: Any) -> Raw:
    policy = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    named = {"priorityClassName": priority_class} if priority_class else {}
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {**policy, **named, **spec},
    }


def gang_message(release: Release, group: Raw, priority_class: str) -> str:
    """Return what files with a group of two pods of this class are told."""
    node = {"metadata": {"name": "node"}, "status": {"allocatable": {"cpu": "4", "pods": "9"}}}
    high = {"metadata": {"name": "high"}, "value": 1000}
    spec: Raw = {
        "schedulingGroup": {"podGroupName": "group"},
        "priorityClassName": priority_class,
    }
    world = World.of(
        [
            decode(node, Node),
            decode(high, PriorityClass),
            decode(group, PodGroupV1Beta1),
            *(pod(name, **spec) for name in ("a", "b")),
        ]
    )
    (gang,) = what_if(world, Settings(chance=SeededChance(), release=release)).gangs
    return gang.message


def test_a_group_in_files_has_the_priority_of_its_class() -> None:
    """Admission gives it to the group, as to its pods."""
    assert gang_message(Release.V1_37, group_of("group", "high"), "high") == ""


def test_a_group_in_files_whose_pods_have_another_priority_is_refused() -> None:
    """By kube-scheduler 1.37, so also before it is applied; 1.36 decides about each pod."""
    message = gang_message(Release.V1_37, group_of("group"), "high")

    assert message == (
        "PodGroup default/group: all pods in a single pod group should have the same priority as "
        "the pod group's priority, got 1000 and 0"
    )
    assert gang_message(Release.V1_36, group_of("group"), "high") == ""


def test_a_part_of_a_composite_group_is_not_scheduled_by_itself() -> None:
    """The whole could stay partially placed."""
    group = group_of("group", parentCompositePodGroupName="whole")

    assert gang_message(Release.V1_37, group, "") == (
        "PodGroup default/group is a part of CompositePodGroup whole, which dryrack does not "
        "schedule as a whole; remove spec.parentCompositePodGroupName"
    )
