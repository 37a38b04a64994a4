"""Claims of storage and volumes on an embedded cluster whose time stands still until moved."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from tests.controllers import scenes
from tests.controllers.volumes import VolumeStage, claim, stateful_set, user, volume

from dryrack.client.client import Selection
from dryrack.client.endpoints import (
    EVENTS,
    NODES,
    PODS,
    STATEFUL_SETS,
    VOLUME_CLAIMS,
    VOLUMES,
)
from dryrack.client.errors import ForbiddenError, InvalidError
from dryrack.cluster.assembly import assemble_engines
from dryrack.cluster.engines import running_engines
from dryrack.cluster.initial_objects import virtual_node
from dryrack.kinds.releases import Release

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw
    from dryrack.store import Event

pytestmark = pytest.mark.stage(kind=VolumeStage)


SELECTED = "volume.kubernetes.io/selected-node"
DEFAULT = "storageclass.kubernetes.io/is-default-class"


def storage_class(name: str, **more: Any) -> Raw:
    annotations = {DEFAULT: str(more.pop("is_default", False)).lower()}
    metadata = {"name": name, "annotations": annotations}
    return {"metadata": metadata, "provisioner": "ebs.csi.aws.com", **more}


@pytest.mark.stage(release=Release.V1_36)
async def test_a_claim_gets_a_volume_of_its_size(stage: VolumeStage) -> None:
    """The new volume has the class and the mode of the claim."""
    await stage.make(
        storage_class("gp3"), claim("data", storageClassName="gp3", volumeMode="Block")
    )
    client = stage.client
    found = await client.get(VOLUME_CLAIMS, "data", "default")
    name = f"pvc-{found['metadata']['uid']}"
    made = await client.get(VOLUMES, name)
    events = (await client.list(EVENTS, Selection(namespace="default"))).items

    assert found["spec"]["volumeName"] == name
    assert found["status"] == {
        "phase": "Bound",
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "3Gi"},
    }
    assert made["spec"]["claimRef"]["uid"] == found["metadata"]["uid"]
    assert {key: made["spec"][key] for key in ("capacity", "storageClassName", "volumeMode")} == {
        "capacity": {"storage": "3Gi"},
        "storageClassName": "gp3",
        "volumeMode": "Block",
    }
    assert [(each["reason"], each["message"]) for each in events] == [
        ("ProvisioningSucceeded", f"Successfully provisioned volume {name}")
    ]


async def test_a_claim_waits_for_its_class(stage: VolumeStage) -> None:
    """A claim of a missing class is Pending with one event, and is bound when the class exists."""
    client = stage.client
    await stage.make(claim("data", storageClassName="fast"), claim("classless"))
    events = (await client.list(EVENTS, Selection(namespace="default"))).items
    before = await stage.bindings()
    revision = stage.store.revision
    await stage.advance(1800)
    assert not stage.store.events("events", after=revision)
    assert not stage.store.events("persistentvolumeclaims", after=revision)
    await stage.make(storage_class("fast"))

    assert before["data"] == "Pending"
    assert before["classless"].startswith("pvc-")
    assert [
        (each["type"], each["message"]) for each in events if each["reason"] == "ProvisioningFailed"
    ] == [("Warning", 'storageclass.storage.k8s.io "fast" not found')]
    assert (await stage.bindings())["data"].startswith("pvc-")


@pytest.mark.parametrize(
    ("provisioner", "driver"),
    [
        ("ebs.csi.aws.com", "ebs.csi.aws.com"),
        ("rancher.io/local-path", "rancher.io.local-path"),
        ("under_score", "volumes.dryrack.dev"),
    ],
)
async def test_every_provisioner_is_played(
    stage: VolumeStage, provisioner: str, driver: str
) -> None:
    """Also one whose name no driver can have."""
    named = {"metadata": {"name": "fast"}, "provisioner": provisioner}
    await stage.make(named, claim("data", storageClassName="fast"))
    [name] = await stage.phases()
    made = await stage.client.get(VOLUMES, name)

    assert made["spec"]["csi"]["driver"] == driver


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, "small"),
        ({"resources": {"requests": {"storage": "7Gi"}}}, "big"),
        ({"selector": {"matchLabels": {"is": "big"}}}, "big"),
        ({"accessModes": ["ReadOnlyMany"]}, "shared"),
        ({"volumeName": "big"}, "big"),
        ({"selector": {"matchLabels": {"is": "other"}}}, "Pending"),
        ({"storageClassName": ""}, "Pending"),
    ],
)
async def test_the_smallest_volume_that_does_is_bound(
    stage: VolumeStage, spec: Raw, expected: str
) -> None:
    """By class, size, modes and labels; a claim with a selector gets no other."""
    await stage.make(
        volume("big", "10Gi"),
        volume("small", "5Gi"),
        volume("tiny", "1Gi"),
        volume("shared", "20Gi", accessModes=["ReadOnlyMany", "ReadWriteOnce"]),
        claim("data", **({"storageClassName": "manual"} | spec)),
    )

    assert await stage.bindings() == {"data": expected}
    phases = await stage.phases()
    assert phases.pop(expected, "Bound") == "Bound"
    assert set(phases.values()) == {"Available"}


async def test_a_volume_that_is_kept_for_a_claim_is_its(stage: VolumeStage) -> None:
    """Before the claim is there, and though a smaller one would do."""
    kept = {"namespace": "default", "name": "data"}
    await stage.make(volume("big", "10Gi", claimRef=kept), volume("small", "5Gi"))
    await stage.make(claim("other", storageClassName="manual"))
    await stage.make(claim("data", storageClassName="manual"))

    assert await stage.bindings() == {"data": "big", "other": "small"}


async def test_a_volume_that_is_kept_for_a_claim_may_be_of_another_class(
    stage: VolumeStage,
) -> None:
    """A volume that names the claim is used if it is large enough."""
    kept = [{"namespace": "default", "name": name} for name in ("data", "large")]
    await stage.make(volume("a", "5Gi", claimRef=kept[0]), volume("b", "5Gi", claimRef=kept[1]))
    await stage.make(
        claim("data", storageClassName=""),
        claim("large", "6Gi", storageClassName=""),
    )

    assert await stage.bindings() == {"data": "a", "large": "Pending"}


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({}, ""),
        ({"resources": {"requests": {"storage": "6Gi"}}}, "requested PV is too small"),
        ({"storageClassName": "other"}, "storageClassName does not match"),
        ({"volumeMode": "Block"}, "incompatible volumeMode"),
        ({"accessModes": ["ReadWriteMany"]}, "incompatible accessMode"),
    ],
)
async def test_a_claim_that_names_a_volume_waits_for_one_that_does(
    stage: VolumeStage, spec: Raw, problem: str
) -> None:
    """A claim gets the volume that it names also later; an event reports a mismatch."""
    client = stage.client
    named = {"storageClassName": "manual", "volumeName": "disk"}
    await stage.make(claim("data", **(named | spec)))
    await stage.make(volume("disk", "5Gi"))
    found = await client.get(VOLUME_CLAIMS, "data", "default")
    events = (await client.list(EVENTS, Selection(namespace="default"))).items

    assert found["status"]["phase"] == ("Pending" if problem else "Bound")
    assert [(each["reason"], each["message"]) for each in events] == (
        [("VolumeMismatch", f'Cannot bind to requested volume "disk": {problem}')]
        if problem
        else []
    )


async def test_a_volume_grows_with_its_claim(stage: VolumeStage) -> None:
    """If its class lets it; then nothing is written any more."""
    client = stage.client
    store = stage.control_plane.store
    await stage.make(storage_class("elastic", allowVolumeExpansion=True))
    await stage.make(claim("data", storageClassName="elastic"))
    [name] = await stage.phases()
    more = {"spec": {"resources": {"requests": {"storage": "8Gi"}}}}
    await client.patch(VOLUME_CLAIMS, "data", more, namespace="default")
    await stage.advance(1)
    made = await client.get(VOLUMES, name)
    found = await client.get(VOLUME_CLAIMS, "data", "default")
    events = (await client.list(EVENTS, Selection(namespace="default"))).items
    revision = store.revision
    await stage.advance(600)

    assert made["spec"]["capacity"] == found["status"]["capacity"] == {"storage": "8Gi"}
    assert (found["status"]["phase"], made["status"]["phase"]) == ("Bound", "Bound")
    assert "Resize volume succeeded" in [each["message"] for each in events]
    for resource in ("persistentvolumes", "persistentvolumeclaims", "events"):
        assert not store.events(resource, after=revision)


async def test_a_volume_of_another_kind_does_not_grow_by_itself(stage: VolumeStage) -> None:
    """The claim says for whom it waits, as on a cluster without a resizer for it."""
    client = stage.client
    await stage.make(storage_class("manual", allowVolumeExpansion=True))
    await stage.make(volume("disk", "5Gi"), claim("data", storageClassName="manual"))
    more = {"spec": {"resources": {"requests": {"storage": "8Gi"}}}}
    await client.patch(VOLUME_CLAIMS, "data", more, namespace="default")
    await stage.advance(1)
    found = await client.get(VOLUME_CLAIMS, "data", "default")
    events = (await client.list(EVENTS, Selection(namespace="default"))).items

    assert found["status"]["capacity"] == {"storage": "5Gi"}
    assert [each["reason"] for each in events] == ["ExternalExpanding"]


async def test_a_claim_of_a_class_that_does_not_grow_is_refused(stage: VolumeStage) -> None:
    """And so is one that waits for its volume; both in the words of the real server."""
    client = stage.client
    more = {"spec": {"resources": {"requests": {"storage": "8Gi"}}}}
    await stage.make(storage_class("fixed"), claim("data", storageClassName="fixed"))
    await stage.make(claim("waits", storageClassName=""))

    with pytest.raises(ForbiddenError, match="only dynamically provisioned pvc can be resized"):
        await client.patch(VOLUME_CLAIMS, "data", more, namespace="default")
    with pytest.raises(InvalidError, match="spec is immutable after creation"):
        await client.patch(VOLUME_CLAIMS, "waits", more, namespace="default")


async def test_a_claim_waits_for_a_volume_that_somebody_makes(stage: VolumeStage) -> None:
    """A class without a provisioner, as of local disks."""
    local = {"metadata": {"name": "manual"}, "provisioner": "kubernetes.io/no-provisioner"}
    await stage.make(local, claim("data", storageClassName="manual"))
    before = await stage.bindings()
    await stage.make(volume("disk", "5Gi"))

    assert (before, await stage.bindings()) == ({"data": "Pending"}, {"data": "disk"})


async def test_a_class_that_waits_waits_for_a_pod(stage: VolumeStage) -> None:
    """And the claim says so; it is of the default class, for it names none."""
    client = stage.client
    late = {"is_default": True, "volumeBindingMode": "WaitForFirstConsumer"}
    await stage.make(storage_class("standard", **late), claim("data"))
    before = await stage.bindings()
    events = (await client.list(EVENTS, Selection(namespace="default"))).items
    await client.create(PODS, user("reader", "data"))
    await stage.advance(5)
    found = await client.get(VOLUME_CLAIMS, "data", "default")

    assert before == {"data": "Pending"}
    assert [each["reason"] for each in events] == ["WaitForFirstConsumer"]
    assert (found["status"]["phase"], found["spec"]["storageClassName"]) == (
        "Bound",
        "standard",
    )


async def test_a_class_that_waits_is_told_the_node_of_the_pod(stage: VolumeStage) -> None:
    """By the scheduler, before the pod is bound; other schedulers may bind a pod without it."""
    client = stage.client
    await stage.make(storage_class("late", volumeBindingMode="WaitForFirstConsumer"))
    await stage.make(*(claim(name, storageClassName="late") for name in ("told", "not")))
    await client.create(PODS, user("a", "told"))
    placed = user("b", "not")
    placed["spec"] = {**placed["spec"], "nodeName": "node-1"}
    await client.create(PODS, placed)
    await stage.advance(5)
    claims = (await client.list(VOLUME_CLAIMS, Selection(namespace="default"))).items
    pods = (await client.list(PODS, Selection(namespace="default"))).items

    assert {
        each["metadata"]["name"]: each["metadata"]["annotations"].get(SELECTED) for each in claims
    } == {"told": "node-1", "not": None}
    assert {each["status"]["phase"] for each in (*claims, *pods)} == {"Bound", "Running"}


async def test_pods_of_a_stateful_set_go_to_the_volumes_of_nodes(stage: VolumeStage) -> None:
    """Claims of a class without a provisioner are bound to one volume each, once."""
    client = stage.client
    store = stage.control_plane.store
    await client.create(NODES, virtual_node("node-2"))
    none = {"provisioner": "kubernetes.io/no-provisioner"}
    late = {"volumeBindingMode": "WaitForFirstConsumer"}
    await stage.make({"metadata": {"name": "local"}, **none, **late})
    for node in ("node-1", "node-2"):
        expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        tied = {"storageClassName": "local", "nodeAffinity": {"required": terms}}
        await stage.make(volume(f"disk-{node}", "5Gi", **tied))
    made = stateful_set("db")
    [template] = made["spec"]["volumeClaimTemplates"]
    template["spec"] = template["spec"] | {"storageClassName": "local"}
    await client.create(STATEFUL_SETS, made)
    await stage.advance(30)
    revision = store.revision
    await stage.advance(1800)
    pods = (await client.list(PODS, Selection(namespace="default"))).items
    bound = await stage.bindings()

    assert [each["status"]["phase"] for each in pods] == ["Running", "Running"]
    assert {each["spec"]["nodeName"] for each in pods} == {"node-1", "node-2"}
    for pod in pods:
        claim = f"data-{pod['metadata']['name']}"
        assert bound[claim] == f"disk-{pod['spec']['nodeName']}"
    for resource in ("persistentvolumes", "persistentvolumeclaims", "events"):
        assert not store.events(resource, after=revision)


async def test_a_free_volume_of_a_class_that_waits_is_left_to_the_scheduler(
    stage: VolumeStage,
) -> None:
    """Whichever node the pod goes to; one that names the claim is bound at once."""
    await stage.make(storage_class("manual", volumeBindingMode="WaitForFirstConsumer"))
    kept = {"namespace": "default", "name": "kept"}
    await stage.make(volume("free", "5Gi"), volume("own", "5Gi", claimRef=kept))
    await stage.make(*(claim(name, storageClassName="manual") for name in ("data", "kept")))
    assert await stage.bindings() == {"data": "Pending", "kept": "own"}

    await stage.client.create(PODS, user("reader", "data"))
    await stage.advance(5)
    assert await stage.bindings() == {"data": "free", "kept": "own"}


async def test_a_pod_waits_until_its_claim_is_bound(stage: VolumeStage) -> None:
    """One event is written; then the pod runs, and there are no further writes."""
    client = stage.client
    store = stage.control_plane.store
    await stage.make(
        claim("data", storageClassName="manual", selector={"matchLabels": {"is": "disk"}})
    )
    await client.create(PODS, user("reader", "data"))
    await stage.advance(5)
    revision = store.revision
    await stage.advance(1800)
    assert not store.events("pods", after=revision)
    assert not store.events("events", after=revision)
    [told] = (await client.get(PODS, "reader", "default"))["status"]["conditions"]
    words = "pod has unbound immediate PersistentVolumeClaims"
    assert told["message"] == f"0/1 nodes are available: {words}."

    await stage.make(volume("disk", "5Gi"))
    await stage.advance(5)
    assert (await client.get(PODS, "reader", "default"))["status"]["phase"] == "Running"


@pytest.mark.parametrize("policy", ["Delete", "Retain"])
async def test_a_volume_goes_with_its_claim_if_its_class_says_so(
    stage: VolumeStage, policy: str
) -> None:
    """With another policy the volume stays, and no other claim gets it."""
    await stage.make(storage_class("fast", reclaimPolicy=policy))
    await stage.make(claim("data", storageClassName="fast"))
    [name] = await stage.phases()
    await stage.delete_claim("data")
    await stage.make(claim("data", storageClassName="fast"))
    phases = await stage.phases()

    assert phases.pop(name, "gone") == {"Delete": "gone", "Retain": "Released"}[policy]
    assert list(phases.values()) == ["Bound"]


async def test_a_volume_goes_with_a_claim_that_is_gone_before_it_had_it(stage: VolumeStage) -> None:
    """The claim was deleted when its volume had just been made, and never named it."""
    made: list[str] = []
    deletions: list[asyncio.Task[Raw]] = []

    def on_volume(event: Event) -> None:
        if event.previous is None:
            made.append(event.stored.key.name)
            deletion = stage.client.delete(VOLUME_CLAIMS, "data", namespace="default")
            deletions.append(asyncio.create_task(deletion))

    stage.control_plane.store.subscribe(VOLUMES.resource, on_volume)
    await stage.make(claim("data"))
    await stage.advance(60)
    await asyncio.gather(*deletions)

    assert await stage.bindings() == {}
    assert len(made) == 1
    assert await stage.phases() == {}


async def test_a_claim_whose_volume_is_gone_is_lost(stage: VolumeStage) -> None:
    """A pod waits for a new claim if the old one was deleted without protection."""
    await stage.make(claim("data"))
    [name] = await stage.phases()
    await stage.client.delete(VOLUMES, name)
    await stage.client.patch(VOLUMES, name, {"metadata": {"finalizers": None}})
    await stage.advance(1)
    found = await stage.client.get(VOLUME_CLAIMS, "data", "default")

    assert found["status"] == {"phase": "Lost"}


async def test_stateful_sets_get_a_volume_for_each_pod(stage: VolumeStage) -> None:
    """Which stay when the set goes; then nothing is written any more."""
    client = stage.client
    await client.create(STATEFUL_SETS, stateful_set("db"))
    await stage.advance(30)
    pods = (await client.list(PODS, Selection(namespace="default"))).items
    await client.delete(STATEFUL_SETS, "db", namespace="default")
    await stage.advance(60)
    store = stage.control_plane.store
    revision = store.revision
    await stage.advance(1800)

    assert [each["status"]["phase"] for each in pods] == ["Running", "Running"]
    assert set((await stage.phases()).values()) == {"Bound"}
    assert len(await stage.bindings()) == 2
    for resource in ("persistentvolumes", "persistentvolumeclaims", "events"):
        assert not store.events(resource, after=revision)


async def test_a_volume_of_a_pod_comes_and_goes_with_it(stage: VolumeStage) -> None:
    """An existing claim with the same name is not changed, and the pod waits."""
    client = stage.client
    for name in ("reader", "other"):
        template = {"metadata": {"labels": {"a": "b"}}, "spec": claim("x")["spec"]}
        volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]
        pod = {"metadata": {"name": name, "namespace": "default"}}
        if name == "other":
            await stage.make(claim("other-scratch"))
        await client.create(PODS, pod | {"spec": scenes.POD_SPEC | {"volumes": volumes}})
    await stage.advance(5)
    phases = [(await client.get(PODS, n, "default"))["status"] for n in ("reader", "other")]
    made = await client.get(VOLUME_CLAIMS, "reader-scratch", "default")
    await client.delete(PODS, "reader", namespace="default", grace_seconds=0)
    await stage.advance(60)
    events = (await client.list(EVENTS, Selection(namespace="default"))).items

    assert [each["phase"] for each in phases] == ["Running", "Pending"]
    assert (made["metadata"]["labels"], made["status"]["phase"]) == ({"a": "b"}, "Bound")
    assert list(await stage.bindings()) == ["other-scratch"]
    words = "PVC default/other-scratch was not created for pod default/other (pod is not owner)"
    assert phases[1]["conditions"][0]["message"] == f"0/1 nodes are available: {words}."
    assert words in [each["message"] for each in events]


@pytest.mark.stage(only=())
async def test_a_controller_that_starts_again_makes_no_second_volume(stage: VolumeStage) -> None:
    """Nor does it forget what was deleted while it did not run."""
    engines = assemble_engines()
    async with running_engines(engines, stage.control_plane.wiring):
        await stage.make(claim("kept"), claim("left"))
        before = await stage.bindings()
    await stage.delete_claim("left")
    async with running_engines(engines, stage.control_plane.wiring):
        await stage.advance(5)

    assert await stage.bindings() == {"kept": before["kept"]}
    assert await stage.phases() == {before["kept"]: "Bound"}


async def test_a_claim_that_makes_no_sense_is_refused(stage: VolumeStage) -> None:
    """In the words of the real server."""
    with pytest.raises(InvalidError, match="at least 1 access mode is required"):
        await stage.make(claim("data", accessModes=[]))
