"""Pods whose volumes tie them to nodes, and what keeps them waiting."""

from __future__ import annotations

from typing import Any

import pytest
from tests.placement.builders import message, node_of, three_nodes

from dryrack.kinds.core import PersistentVolume, PersistentVolumeClaim, Pod
from dryrack.kinds.decode import decode
from dryrack.kinds.meta import ObjectMeta
from dryrack.placement.index.volume_matching import Unbindable, VolumeOffers
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
    """The volume's node affinity, or the label of its zone, restricts the nodes."""
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
    """On a cluster pods wait until claims are bound, in files only until they exist."""
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
    volumes.are_stored = True
    volumes.waiting_classes = {"late": waits}
    volumes.claims["default", "data"] = waiting(chosen=chosen)

    assert volumes.problem(pod()) is None
    if node:
        assert node_of(pod(), made) == node
    else:
        words = "3 node(s) didn't find available persistent volumes to bind"
        assert message(pod(), made) == f"0/3 nodes are available: {words}."


LOCAL = {"late": WaitingClass(is_provisioned=False)}


def asking(name: str = "data", size: str = "2Gi", **spec: Any) -> PersistentVolumeClaim:
    """A claim of a class whose volumes somebody has made."""
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    metadata = {"name": name, "namespace": "default", "uid": name}
    whole = {"metadata": metadata, "spec": {"storageClassName": "late", **asked, **spec}}
    return decode(whole, PersistentVolumeClaim)


def local(name: str, size: str, host: str = "", **spec: Any) -> PersistentVolume:
    """A volume that can be used on one node, or on all."""
    phase = spec.pop("phase", "Available")
    offer: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}}
    if host:
        expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": [host]}
        terms = [{"matchExpressions": [expression]}]
        offer["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    return decode(
        {
            "metadata": {"name": name, "labels": {"is": name}},
            "spec": {"storageClassName": "late", **offer, **spec},
            "status": {"phase": phase},
        },
        PersistentVolume,
    )


def offered(volumes: list[PersistentVolume], *claims: PersistentVolumeClaim) -> VolumeOffers:
    known = Volumes(are_stored=True, waiting_classes=LOCAL)
    known.volumes = {each.metadata.name: each for each in volumes}
    return VolumeOffers(known, [(each, LOCAL["late"]) for each in claims])


def on_host(name: str) -> ObjectMeta:
    return ObjectMeta(name=name, labels={"kubernetes.io/hostname": name})


KEPT: dict[str, Any] = {"claimRef": {"namespace": "default", "name": "data"}}


@pytest.mark.parametrize(
    ("volumes", "spec", "expected"),
    [
        ([local("big", "9Gi", "a"), local("fits", "3Gi", "a"), local("tiny", "1Gi")], {}, "fits"),
        ([local("elsewhere", "2Gi", "b"), local("here", "3Gi", "a")], {}, "here"),
        ([local("here", "3Gi", "a"), local("anywhere", "2Gi")], {}, "anywhere"),
        ([local("other", "2Gi", storageClassName="other"), local("v", "3Gi")], {}, "v"),
        ([local("raw", "2Gi", volumeMode="Block"), local("v", "3Gi")], {}, "v"),
        ([local("shared", "2Gi", accessModes=["ReadOnlyMany"]), local("v", "3Gi")], {}, "v"),
        ([local("a", "2Gi"), local("b", "3Gi")], {"selector": {"matchLabels": {"is": "b"}}}, "b"),
        ([local("new", "2Gi", phase="Pending"), local("v", "3Gi")], {}, "v"),
        ([local("small", "2Gi"), local("kept", "3Gi", **KEPT)], {}, "kept"),
        ([local("small", "2Gi"), local("kept", "3Gi", "b", **KEPT)], {}, None),
        ([local("taken", "2Gi", claimRef={"namespace": "x", "name": "data"})], {}, None),
        ([local("old", "2Gi", claimRef={**KEPT["claimRef"], "uid": "before"})], {}, None),
        ([local("v", "2Gi", "b")], {}, None),
    ],
)
def test_the_smallest_volume_that_does_on_the_node_is_chosen(
    volumes: list[PersistentVolume], spec: dict[str, Any], expected: str | None
) -> None:
    """By class, size, modes, labels and node affinity; one that is kept for the claim is its."""
    found = offered(volumes, asking(**spec)).on(on_host("a"))

    assert (None if isinstance(found, Unbindable) else found["default", "data"]) == expected


def test_claims_of_one_pod_get_volumes_of_their_own() -> None:
    """The smaller claim chooses first, so that the larger one finds what it needs."""
    claims = asking("large", "3Gi"), asking("small", "1Gi")
    volumes = [local("v3", "3Gi", "a"), local("v2", "2Gi", "a"), local("v4", "4Gi", "b")]

    assert offered(volumes, *claims).on(on_host("a")) == {
        ("default", "small"): "v2",
        ("default", "large"): "v3",
    }
    assert isinstance(offered(volumes, *claims).on(on_host("b")), Unbindable)


def test_a_volume_that_is_promised_is_kept_from_other_claims() -> None:
    """As long as the decision about it is being written."""
    known = Volumes(are_stored=True, waiting_classes=LOCAL, assumed={"v": ("default", "other")})
    known.volumes["v"] = local("v", "2Gi")
    found = [
        VolumeOffers(known, [(asking(name), LOCAL["late"])]).on(on_host("a"))
        for name in ("data", "other")
    ]

    assert isinstance(found[0], Unbindable)
    assert found[1] == {("default", "other"): "v"}


def test_a_pod_goes_to_a_node_with_a_free_volume() -> None:
    """In the words of kube-scheduler if there is none; one is made if the class makes some."""
    made = three_nodes()
    volumes = made.fleet.volumes
    volumes.are_stored, volumes.waiting_classes = True, dict(LOCAL)
    volumes.claims["default", "data"] = asking()
    words = "4 node(s) didn't find available persistent volumes to bind"
    assert message(pod(), made) == f"0/4 nodes are available: {words}."

    zone = {"key": ZONE, "operator": "In", "values": ["b"]}
    required = {"required": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}}
    volumes.volumes["v"] = local("v", "2Gi", nodeAffinity=required)
    assert node_of(pod(), made) == "b1"

    volumes.waiting_classes["late"] = WaitingClass()
    volumes.volumes.clear()
    assert node_of(pod(), made)


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
