"""Pods whose volumes tie them to nodes, and what keeps them waiting."""

from __future__ import annotations

from typing import Any

import pytest
from tests.placement.test_other_pods import message, node_of, three_nodes

from dryrack.kinds.core import PersistentVolume, PersistentVolumeClaim, Pod
from dryrack.kinds.decode import decode
from dryrack.placement.index.volumes import VolumeProblem, Volumes, WaitingClass

ZONE = "topology.kubernetes.io/zone"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


def pod() -> Pod:
    source = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    metadata = {"name": "p", "namespace": "default"}
    return decode({"metadata": metadata, "spec": {"volumes": [source]}}, Pod)


def claim(volume: str = "disk", **more: Any) -> PersistentVolumeClaim:
    metadata = {"name": "data", "namespace": "default", **more}
    return decode({"metadata": metadata, "spec": {"volumeName": volume}}, PersistentVolumeClaim)


def disk(*, labels: dict[str, str] | None = None, zone: str = "") -> PersistentVolume:
    expression = {"key": ZONE, "operator": "In", "values": [zone]}
    required = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    spec = {"nodeAffinity": required} if zone else {}
    return decode(
        {"metadata": {"name": "disk", "labels": labels or {}}, "spec": spec}, PersistentVolume
    )


def test_a_pod_goes_where_its_volume_can_be_used() -> None:
    """That is what the volume's node affinity says, or the label of its zone."""
    for volume in (disk(zone="b"), disk(labels={ZONE: "b"})):
        made = three_nodes()
        made.fleet.drop("nowhere")
        made.fleet.volumes.claims["default", "data"] = claim()
        made.fleet.volumes.volumes["disk"] = volume

        assert node_of(pod(), made) == "b1"


def test_a_pod_waits_for_a_node_that_has_its_volume() -> None:
    """In the words of kube-scheduler."""
    made = three_nodes()
    made.fleet.volumes.claims["default", "data"] = claim()
    made.fleet.volumes.volumes["disk"] = disk(zone="c")
    words = "4 node(s) didn't match PersistentVolume's node affinity"

    assert message(pod(), made) == f"0/4 nodes are available: {words}."


def test_a_claim_without_a_volume_ties_nobody_where_nothing_is_stored() -> None:
    """On virtual nodes pods run with claims that are not bound yet."""
    volumes = Volumes(claims={("default", "data"): claim(volume="")})

    assert volumes.problem(pod()) is None


@pytest.mark.parametrize(
    ("claims", "stored", "words"),
    [
        ([], False, 'persistentvolumeclaim "data" not found'),
        (
            [claim(deletionTimestamp="2026-01-01T00:00:00Z")],
            False,
            'persistentvolumeclaim "data" is being deleted',
        ),
        ([claim(volume="")], True, "pod has unbound immediate PersistentVolumeClaims"),
        ([claim()], True, "pod has unbound immediate PersistentVolumeClaims"),
        ([claim(annotations=BOUND)], True, 'persistentvolume "disk" not found'),
    ],
)
def test_a_pod_waits_for_its_claims(
    claims: list[PersistentVolumeClaim], stored: bool, words: str
) -> None:
    """Where things are stored until they are bound, and elsewhere until they are there."""
    known = {("default", each.metadata.name): each for each in claims}

    problem = Volumes(are_stored=stored, claims=known).problem(pod())
    assert problem == VolumeProblem(("default", "data"), words)


def waiting(*, chosen: str = "") -> PersistentVolumeClaim:
    """A claim that is bound when its pod has a node."""
    annotations = {"volume.beta.kubernetes.io/storage-class": "late"}
    selected = {"volume.kubernetes.io/selected-node": chosen} if chosen else {}
    return claim(volume="", annotations=annotations | selected)


@pytest.mark.parametrize(
    ("waits", "chosen", "node"),
    [
        (WaitingClass(topologies=(((ZONE, frozenset("b")),),)), "", "b1"),
        (WaitingClass(), "b1", "b1"),
        (WaitingClass(topologies=(((ZONE, frozenset("z")),),)), "", ""),
        (WaitingClass(), "gone", ""),
    ],
)
def test_a_volume_is_made_where_its_class_allows_it(
    waits: WaitingClass, chosen: str, node: str
) -> None:
    """And where it was begun to be made, in the words of kube-scheduler."""
    made = three_nodes()
    made.fleet.drop("nowhere")
    volumes = made.fleet.volumes
    volumes.are_stored, volumes.waiting_classes = True, {"late": waits}
    volumes.claims["default", "data"] = waiting(chosen=chosen)

    assert volumes.problem(pod()) is None
    if node:
        assert node_of(pod(), made) == node
    else:
        words = "3 node(s) didn't find available persistent volumes to bind"
        assert message(pod(), made) == f"0/3 nodes are available: {words}."


def test_a_class_without_a_provisioner_is_told_that_nobody_chooses() -> None:
    """Kube-scheduler would choose one of the volumes that somebody has made."""
    local = {"late": WaitingClass(is_provisioned=False)}
    claims = {("default", "data"): waiting()}
    problem = Volumes(are_stored=True, claims=claims, waiting_classes=local).problem(pod())

    assert problem is not None
    assert "is of a class without a provisioner" in problem.message


@pytest.mark.parametrize(
    ("owner", "stored", "words"),
    [
        ("", False, ""),
        ("", True, 'ephemeral volume controller to create the persistentvolumeclaim "p-v"'),
        ("q", False, "default/p-v was not created for pod default/p (pod is not owner)"),
        ("p", False, ""),
        ("p", True, "pod has unbound immediate PersistentVolumeClaims"),
    ],
)
def test_a_claim_may_come_with_its_pod(owner: str, stored: bool, words: str) -> None:
    """In the words of kube-scheduler; where nothing is stored it need not be there."""
    metadata = {"name": "p", "namespace": "default", "uid": "p"}
    volumes = [{"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}]
    user = decode({"metadata": metadata, "spec": {"volumes": volumes}}, Pod)
    made = claim("", ownerReferences=[{"uid": owner, "controller": True}])
    known = {("default", "p-v"): made} if owner else {}
    problem = Volumes(are_stored=stored, claims=known).problem(user)

    assert (problem.message if problem else "").endswith(words)
    assert (problem is None) is (not words)
