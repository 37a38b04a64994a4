"""Claims of storage and volumes on an embedded cluster whose time stands still until moved."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from tests.controllers import scenes

from dryrack.client.client import Selection
from dryrack.client.endpoints import (
    EVENTS,
    NODES,
    PODS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    VOLUMES,
)
from dryrack.client.errors import ForbiddenError, InvalidError
from dryrack.client.timekeeping import VirtualClock, run_virtual
from dryrack.cluster.assembly import assemble_engines
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import EmbeddedCluster, embedded
from dryrack.cluster.engines import running_engines
from dryrack.cluster.initial_objects import virtual_node

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dryrack.store import Event

Raw = dict[str, Any]

SELECTED = "volume.kubernetes.io/selected-node"
DEFAULT = "storageclass.kubernetes.io/is-default-class"


def claim(name: str, storage: str = "3Gi", **spec: Any) -> Raw:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": asked | spec}


def volume(name: str, storage: str, **spec: Any) -> Raw:
    """One that somebody has made, of the class `manual`."""
    own = {"capacity": {"storage": storage}, "accessModes": ["ReadWriteOnce"]}
    source = {"storageClassName": "manual", "hostPath": {"path": "/data"}}
    return {"metadata": {"name": name, "labels": {"is": name}}, "spec": own | source | spec}


def user(name: str, claim: str) -> Raw:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    spec = scenes.POD_SPEC | {"volumes": volumes}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def stateful_set(name: str, namespace: str = "default") -> Raw:
    """Two pods, each with a claim `data`."""
    labels = {"app": name}
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "serviceName": name,
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": scenes.POD_SPEC},
            "volumeClaimTemplates": [claim("data") | {"metadata": {"name": "data"}}],
        },
    }


@dataclass(frozen=True)
class Scene:
    """A cluster with a node."""

    cluster: EmbeddedCluster
    clock: VirtualClock

    async def make(self, *objects: Raw) -> None:
        """Volumes have a size of their own, claims ask for one, classes have neither."""
        for each in objects:
            spec = each.get("spec", {})
            endpoint = VOLUMES if "capacity" in spec else VOLUME_CLAIMS if spec else STORAGE_CLASSES
            await self.cluster.client.create(endpoint, each)
        await self.clock.advance(1)

    async def bound(self) -> dict[str, str]:
        """What each claim is bound to, or its phase if it is to none."""
        found = (await self.cluster.client.list(VOLUME_CLAIMS, Selection())).items
        return {
            each["metadata"]["name"]: each["spec"].get("volumeName") or each["status"]["phase"]
            for each in found
        }

    async def phases(self) -> dict[str, str]:
        found = (await self.cluster.client.list(VOLUMES, Selection())).items
        return {each["metadata"]["name"]: each["status"]["phase"] for each in found}

    async def delete(self, name: str) -> None:
        await self.cluster.client.delete(VOLUME_CLAIMS, name, namespace="default")
        await self.clock.advance(1)


def play(story: Callable[[Scene], Awaitable[None]]) -> None:
    async def run() -> None:
        clock = VirtualClock()
        async with embedded(ControlPlaneOptions(clock=clock)) as cluster:
            await cluster.client.create(NODES, virtual_node("node-1"))
            await clock.advance(1)
            await story(Scene(cluster, clock))

    run_virtual(run())


def storage_class(name: str, **more: Any) -> Raw:
    annotations = {DEFAULT: str(more.pop("is_default", False)).lower()}
    metadata = {"name": name, "annotations": annotations}
    return {"metadata": metadata, "provisioner": "ebs.csi.aws.com", **more}


def test_a_claim_gets_a_volume_of_its_size() -> None:
    """Whatever its class is, and though there is no such class."""

    async def story(scene: Scene) -> None:
        await scene.make(claim("data", storageClassName="gp3", volumeMode="Block"))
        client = scene.cluster.client
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
        assert {
            key: made["spec"][key] for key in ("capacity", "storageClassName", "volumeMode")
        } == {
            "capacity": {"storage": "3Gi"},
            "storageClassName": "gp3",
            "volumeMode": "Block",
        }
        assert [(each["reason"], each["message"]) for each in events] == [
            ("ProvisioningSucceeded", f"Successfully provisioned volume {name}")
        ]

    play(story)


@pytest.mark.parametrize(
    ("provisioner", "driver"),
    [
        ("ebs.csi.aws.com", "ebs.csi.aws.com"),
        ("rancher.io/local-path", "rancher.io.local-path"),
        ("under_score", "volumes.dryrack.dev"),
    ],
)
def test_every_provisioner_is_played(provisioner: str, driver: str) -> None:
    """Also one whose name no driver can have."""

    async def story(scene: Scene) -> None:
        named = {"metadata": {"name": "fast"}, "provisioner": provisioner}
        await scene.make(named, claim("data", storageClassName="fast"))
        [name] = await scene.phases()
        made = await scene.cluster.client.get(VOLUMES, name)

        assert made["spec"]["csi"]["driver"] == driver

    play(story)


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
def test_the_smallest_volume_that_does_is_bound(spec: Raw, expected: str) -> None:
    """By class, size, modes and labels; a claim with a selector gets no other."""

    async def story(scene: Scene) -> None:
        await scene.make(
            volume("big", "10Gi"),
            volume("small", "5Gi"),
            volume("tiny", "1Gi"),
            volume("shared", "20Gi", accessModes=["ReadOnlyMany", "ReadWriteOnce"]),
            claim("data", **({"storageClassName": "manual"} | spec)),
        )

        assert await scene.bound() == {"data": expected}
        phases = await scene.phases()
        assert phases.pop(expected, "Bound") == "Bound"
        assert set(phases.values()) == {"Available"}

    play(story)


def test_a_volume_that_is_kept_for_a_claim_is_its() -> None:
    """Before the claim is there, and though a smaller one would do."""

    async def story(scene: Scene) -> None:
        kept = {"namespace": "default", "name": "data"}
        await scene.make(volume("big", "10Gi", claimRef=kept), volume("small", "5Gi"))
        await scene.make(claim("other", storageClassName="manual"))
        await scene.make(claim("data", storageClassName="manual"))

        assert await scene.bound() == {"data": "big", "other": "small"}

    play(story)


def test_a_volume_that_is_kept_for_a_claim_may_be_of_another_class() -> None:
    """Who names the claim has chosen; it has to be large enough all the same."""

    async def story(scene: Scene) -> None:
        kept = [{"namespace": "default", "name": name} for name in ("data", "large")]
        await scene.make(volume("a", "5Gi", claimRef=kept[0]), volume("b", "5Gi", claimRef=kept[1]))
        await scene.make(
            claim("data", storageClassName=""),
            claim("large", "6Gi", storageClassName=""),
        )

        assert await scene.bound() == {"data": "a", "large": "Pending"}

    play(story)


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
def test_a_claim_that_names_a_volume_waits_for_one_that_does(spec: Raw, problem: str) -> None:
    """Though it comes later than the claim; if it does not do, that is told."""

    async def story(scene: Scene) -> None:
        client = scene.cluster.client
        named = {"storageClassName": "manual", "volumeName": "disk"}
        await scene.make(claim("data", **(named | spec)))
        await scene.make(volume("disk", "5Gi"))
        found = await client.get(VOLUME_CLAIMS, "data", "default")
        events = (await client.list(EVENTS, Selection(namespace="default"))).items

        assert found["status"]["phase"] == ("Pending" if problem else "Bound")
        assert [(each["reason"], each["message"]) for each in events] == (
            [("VolumeMismatch", f'Cannot bind to requested volume "disk": {problem}')]
            if problem
            else []
        )

    play(story)


def test_a_volume_grows_with_its_claim() -> None:
    """If its class lets it; then nothing is written any more."""

    async def story(scene: Scene) -> None:
        client = scene.cluster.client
        store = scene.cluster.plane.store
        await scene.make(storage_class("elastic", allowVolumeExpansion=True))
        await scene.make(claim("data", storageClassName="elastic"))
        [name] = await scene.phases()
        more = {"spec": {"resources": {"requests": {"storage": "8Gi"}}}}
        await client.patch(VOLUME_CLAIMS, "data", more, namespace="default")
        await scene.clock.advance(1)
        made = await client.get(VOLUMES, name)
        found = await client.get(VOLUME_CLAIMS, "data", "default")
        events = (await client.list(EVENTS, Selection(namespace="default"))).items
        revision = store.revision
        await scene.clock.advance(600)

        assert made["spec"]["capacity"] == found["status"]["capacity"] == {"storage": "8Gi"}
        assert (found["status"]["phase"], made["status"]["phase"]) == ("Bound", "Bound")
        assert "Resize volume succeeded" in [each["message"] for each in events]
        for resource in ("persistentvolumes", "persistentvolumeclaims", "events"):
            assert not store.events(resource, after=revision)

    play(story)


def test_a_volume_of_another_kind_does_not_grow_by_itself() -> None:
    """The claim says for whom it waits, as on a cluster without a resizer for it."""

    async def story(scene: Scene) -> None:
        client = scene.cluster.client
        await scene.make(storage_class("manual", allowVolumeExpansion=True))
        await scene.make(volume("disk", "5Gi"), claim("data", storageClassName="manual"))
        more = {"spec": {"resources": {"requests": {"storage": "8Gi"}}}}
        await client.patch(VOLUME_CLAIMS, "data", more, namespace="default")
        await scene.clock.advance(1)
        found = await client.get(VOLUME_CLAIMS, "data", "default")
        events = (await client.list(EVENTS, Selection(namespace="default"))).items

        assert found["status"]["capacity"] == {"storage": "5Gi"}
        assert [each["reason"] for each in events] == ["ExternalExpanding"]

    play(story)


def test_a_claim_of_a_class_that_does_not_grow_is_refused() -> None:
    """And so is one that waits for its volume; both in the words of the real server."""

    async def story(scene: Scene) -> None:
        client = scene.cluster.client
        more = {"spec": {"resources": {"requests": {"storage": "8Gi"}}}}
        await scene.make(storage_class("fixed"), claim("data", storageClassName="fixed"))
        await scene.make(claim("waits", storageClassName=""))

        with pytest.raises(ForbiddenError, match="only dynamically provisioned pvc can be resized"):
            await client.patch(VOLUME_CLAIMS, "data", more, namespace="default")
        with pytest.raises(InvalidError, match="spec is immutable after creation"):
            await client.patch(VOLUME_CLAIMS, "waits", more, namespace="default")

    play(story)


def test_a_claim_waits_for_a_volume_that_somebody_makes() -> None:
    """A class without a provisioner, as of local disks."""

    async def story(scene: Scene) -> None:
        local = {"metadata": {"name": "manual"}, "provisioner": "kubernetes.io/no-provisioner"}
        await scene.make(local, claim("data", storageClassName="manual"))
        before = await scene.bound()
        await scene.make(volume("disk", "5Gi"))

        assert (before, await scene.bound()) == ({"data": "Pending"}, {"data": "disk"})

    play(story)


def test_a_class_that_waits_waits_for_a_pod() -> None:
    """And the claim says so; it is of the default class, for it names none."""

    async def story(scene: Scene) -> None:
        client = scene.cluster.client
        late = {"is_default": True, "volumeBindingMode": "WaitForFirstConsumer"}
        await scene.make(storage_class("standard", **late), claim("data"))
        before = await scene.bound()
        events = (await client.list(EVENTS, Selection(namespace="default"))).items
        await client.create(PODS, user("reader", "data"))
        await scene.clock.advance(5)
        found = await client.get(VOLUME_CLAIMS, "data", "default")

        assert before == {"data": "Pending"}
        assert [each["reason"] for each in events] == ["WaitForFirstConsumer"]
        assert (found["status"]["phase"], found["spec"]["storageClassName"]) == (
            "Bound",
            "standard",
        )

    play(story)


def test_a_class_that_waits_is_told_the_node_of_the_pod() -> None:
    """By the scheduler, before the pod is bound; other schedulers may bind a pod without it."""

    async def story(scene: Scene) -> None:
        client = scene.cluster.client
        await scene.make(storage_class("late", volumeBindingMode="WaitForFirstConsumer"))
        await scene.make(*(claim(name, storageClassName="late") for name in ("told", "not")))
        await client.create(PODS, user("a", "told"))
        placed = user("b", "not")
        placed["spec"] = {**placed["spec"], "nodeName": "node-1"}
        await client.create(PODS, placed)
        await scene.clock.advance(5)
        claims = (await client.list(VOLUME_CLAIMS, Selection(namespace="default"))).items
        pods = (await client.list(PODS, Selection(namespace="default"))).items

        assert {
            each["metadata"]["name"]: each["metadata"]["annotations"].get(SELECTED)
            for each in claims
        } == {"told": "node-1", "not": None}
        assert {each["status"]["phase"] for each in (*claims, *pods)} == {"Bound", "Running"}

    play(story)


def test_pods_of_a_stateful_set_go_to_the_volumes_of_nodes() -> None:
    """Of a class without a provisioner, each to one of its own; then nothing is written."""

    async def story(scene: Scene) -> None:
        client = scene.cluster.client
        store = scene.cluster.plane.store
        await client.create(NODES, virtual_node("node-2"))
        none = {"provisioner": "kubernetes.io/no-provisioner"}
        late = {"volumeBindingMode": "WaitForFirstConsumer"}
        await scene.make({"metadata": {"name": "local"}, **none, **late})
        for node in ("node-1", "node-2"):
            expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
            terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
            tied = {"storageClassName": "local", "nodeAffinity": {"required": terms}}
            await scene.make(volume(f"disk-{node}", "5Gi", **tied))
        made = stateful_set("db")
        [template] = made["spec"]["volumeClaimTemplates"]
        template["spec"] = template["spec"] | {"storageClassName": "local"}
        await client.create(STATEFUL_SETS, made)
        await scene.clock.advance(30)
        revision = store.revision
        await scene.clock.advance(1800)
        pods = (await client.list(PODS, Selection(namespace="default"))).items
        bound = await scene.bound()

        assert [each["status"]["phase"] for each in pods] == ["Running", "Running"]
        assert {each["spec"]["nodeName"] for each in pods} == {"node-1", "node-2"}
        for pod in pods:
            claim = f"data-{pod['metadata']['name']}"
            assert bound[claim] == f"disk-{pod['spec']['nodeName']}"
        for resource in ("persistentvolumes", "persistentvolumeclaims", "events"):
            assert not store.events(resource, after=revision)

    play(story)


def test_a_free_volume_of_a_class_that_waits_is_left_to_the_scheduler() -> None:
    """Whichever node the pod goes to; one that names the claim is bound at once."""

    async def story(scene: Scene) -> None:
        await scene.make(storage_class("manual", volumeBindingMode="WaitForFirstConsumer"))
        kept = {"namespace": "default", "name": "kept"}
        await scene.make(volume("free", "5Gi"), volume("own", "5Gi", claimRef=kept))
        await scene.make(*(claim(name, storageClassName="manual") for name in ("data", "kept")))
        assert await scene.bound() == {"data": "Pending", "kept": "own"}

        await scene.cluster.client.create(PODS, user("reader", "data"))
        await scene.clock.advance(5)
        assert await scene.bound() == {"data": "free", "kept": "own"}

    play(story)


def test_a_pod_waits_until_its_claim_is_bound() -> None:
    """It is told so, once; then it runs, and nothing is written any more."""

    async def story(scene: Scene) -> None:
        client = scene.cluster.client
        store = scene.cluster.plane.store
        await scene.make(
            claim("data", storageClassName="manual", selector={"matchLabels": {"is": "disk"}})
        )
        await client.create(PODS, user("reader", "data"))
        await scene.clock.advance(5)
        revision = store.revision
        await scene.clock.advance(1800)
        assert not store.events("pods", after=revision)
        assert not store.events("events", after=revision)
        [told] = (await client.get(PODS, "reader", "default"))["status"]["conditions"]
        words = "pod has unbound immediate PersistentVolumeClaims"
        assert told["message"] == f"0/1 nodes are available: {words}."

        await scene.make(volume("disk", "5Gi"))
        await scene.clock.advance(5)
        assert (await client.get(PODS, "reader", "default"))["status"]["phase"] == "Running"

    play(story)


@pytest.mark.parametrize("policy", ["Delete", "Retain"])
def test_a_volume_goes_with_its_claim_if_its_class_says_so(policy: str) -> None:
    """Else it stays, and nobody else gets it."""

    async def story(scene: Scene) -> None:
        await scene.make(storage_class("fast", reclaimPolicy=policy))
        await scene.make(claim("data", storageClassName="fast"))
        [name] = await scene.phases()
        await scene.delete("data")
        await scene.make(claim("data", storageClassName="fast"))
        phases = await scene.phases()

        assert phases.pop(name, "gone") == {"Delete": "gone", "Retain": "Released"}[policy]
        assert list(phases.values()) == ["Bound"]

    play(story)


def test_a_volume_goes_with_a_claim_that_is_gone_before_it_had_it() -> None:
    """The claim was deleted when its volume had just been made, and never named it."""

    async def story(scene: Scene) -> None:
        made: list[str] = []
        deletions: list[asyncio.Task[Raw]] = []

        def on_volume(event: Event) -> None:
            if event.previous is None:
                made.append(event.stored.key.name)
                deletion = scene.cluster.client.delete(VOLUME_CLAIMS, "data", namespace="default")
                deletions.append(asyncio.create_task(deletion))

        scene.cluster.plane.store.subscribe(VOLUMES.resource, on_volume)
        await scene.make(claim("data"))
        await scene.clock.advance(60)
        await asyncio.gather(*deletions)

        assert await scene.bound() == {}
        assert len(made) == 1
        assert await scene.phases() == {}

    play(story)


def test_a_claim_whose_volume_is_gone_is_lost() -> None:
    """If somebody takes its protection away; a pod that is to come waits for another claim."""

    async def story(scene: Scene) -> None:
        await scene.make(claim("data"))
        [name] = await scene.phases()
        await scene.cluster.client.delete(VOLUMES, name)
        await scene.cluster.client.patch(VOLUMES, name, {"metadata": {"finalizers": None}})
        await scene.clock.advance(1)
        found = await scene.cluster.client.get(VOLUME_CLAIMS, "data", "default")

        assert found["status"] == {"phase": "Lost"}

    play(story)


def test_stateful_sets_get_a_volume_for_each_pod() -> None:
    """Which stay when the set goes; then nothing is written any more."""

    async def story(scene: Scene) -> None:
        client = scene.cluster.client
        await client.create(STATEFUL_SETS, stateful_set("db"))
        await scene.clock.advance(30)
        pods = (await client.list(PODS, Selection(namespace="default"))).items
        await client.delete(STATEFUL_SETS, "db", namespace="default")
        await scene.clock.advance(60)
        store = scene.cluster.plane.store
        revision = store.revision
        await scene.clock.advance(1800)

        assert [each["status"]["phase"] for each in pods] == ["Running", "Running"]
        assert set((await scene.phases()).values()) == {"Bound"}
        assert len(await scene.bound()) == 2
        for resource in ("persistentvolumes", "persistentvolumeclaims", "events"):
            assert not store.events(resource, after=revision)

    play(story)


def test_a_volume_of_a_pod_comes_and_goes_with_it() -> None:
    """A claim that somebody else has made under that name is left alone, and the pod waits."""

    async def story(scene: Scene) -> None:
        client = scene.cluster.client
        for name in ("reader", "other"):
            template = {"metadata": {"labels": {"a": "b"}}, "spec": claim("x")["spec"]}
            volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]
            pod = {"metadata": {"name": name, "namespace": "default"}}
            if name == "other":
                await scene.make(claim("other-scratch"))
            await client.create(PODS, pod | {"spec": scenes.POD_SPEC | {"volumes": volumes}})
        await scene.clock.advance(5)
        phases = [(await client.get(PODS, n, "default"))["status"] for n in ("reader", "other")]
        made = await client.get(VOLUME_CLAIMS, "reader-scratch", "default")
        await client.delete(PODS, "reader", namespace="default", grace_seconds=0)
        await scene.clock.advance(60)
        events = (await client.list(EVENTS, Selection(namespace="default"))).items

        assert [each["phase"] for each in phases] == ["Running", "Pending"]
        assert (made["metadata"]["labels"], made["status"]["phase"]) == ({"a": "b"}, "Bound")
        assert list(await scene.bound()) == ["other-scratch"]
        words = "PVC default/other-scratch was not created for pod default/other (pod is not owner)"
        assert phases[1]["conditions"][0]["message"] == f"0/1 nodes are available: {words}."
        assert words in [each["message"] for each in events]

    play(story)


@pytest.mark.virtual_time
async def test_a_controller_that_starts_again_makes_no_second_volume() -> None:
    """Nor does it forget what went while it was away."""
    clock = VirtualClock()
    async with embedded(ControlPlaneOptions(clock=clock), engines=()) as cluster:
        scene = Scene(cluster, clock)
        async with running_engines(assemble_engines(), cluster.plane.wiring):
            await scene.make(claim("kept"), claim("left"))
            before = await scene.bound()
        await scene.delete("left")
        async with running_engines(assemble_engines(), cluster.plane.wiring):
            await clock.advance(5)

        assert await scene.bound() == {"kept": before["kept"]}
        assert await scene.phases() == {before["kept"]: "Bound"}


def test_a_claim_that_makes_no_sense_is_refused() -> None:
    """In the words of the real server."""

    async def story(scene: Scene) -> None:
        with pytest.raises(InvalidError, match="at least 1 access mode is required"):
            await scene.make(claim("data", accessModes=[]))

    play(story)
