"""Claims of storage that are bound when a node is chosen: the node is written, and waited for."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest
from tests.scheduler.builders import create_objects, second_node, user_of
from tests.scheduler.gang_scenes import PREFIX

from dryrack.client.endpoints import (
    CLAIMS,
    NODES,
    PODS,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    VOLUMES,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.stage import Stage

    from dryrack.kinds.raw import Raw

pytestmark = pytest.mark.stage(only=())


UNBINDABLE = "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind."
HOST = "kubernetes.io/hostname"
SELECTED = "volume.kubernetes.io/selected-node"


def storing(name: str, claim: str = "data") -> Raw:
    """A pod with a device of the claim `d`, and a volume."""
    pod = user_of("d", name)
    pod["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]
    return pod


async def storage(stage: Stage) -> None:
    """A node with devices, a claim for one that may be shared, and a claim of storage."""
    client = stage.client
    await create_objects(client, 0)
    late = {"provisioner": "p", "volumeBindingMode": "WaitForFirstConsumer"}
    await client.create(STORAGE_CLASSES, {"metadata": {"name": "late"}, **late})
    metadata = {"namespace": "default"}
    requests = [{"name": "r", "exactly": {"deviceClassName": "c"}}]
    spec = {"devices": {"requests": requests}}
    await client.create(CLAIMS, {"metadata": {"name": "d", **metadata}, "spec": spec})
    asked = {
        "storageClassName": "late",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    await client.create(VOLUME_CLAIMS, {"metadata": {"name": "data", **metadata}, "spec": asked})


async def chosen(stage: Stage) -> str:
    """Return the node in the claim's annotation for the provisioner."""
    claim = await stage.client.get(VOLUME_CLAIMS, "data", "default")
    return str(claim["metadata"].get("annotations", {}).get(SELECTED, ""))


async def users(stage: Stage) -> list[str]:
    """For whom the device is reserved."""
    claim = await stage.client.get(CLAIMS, "d", "default")
    return [each["name"] for each in claim.get("status", {}).get("reservedFor", ())]


async def provision(stage: Stage, zone: str = "") -> None:
    """Provision and bind the volume, as the provisioner and the controller of volumes do."""
    spec: Raw = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "csi": {"driver": "p", "volumeHandle": "v"},
    }
    if zone:
        expression = {"key": "zone", "operator": "In", "values": [zone]}
        terms = [{"matchExpressions": [expression]}]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    await stage.client.create(VOLUMES, {"metadata": {"name": "v"}, "spec": spec})
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    patch = {"metadata": {"annotations": bound}, "spec": {"volumeName": "v"}}
    await stage.client.patch(VOLUME_CLAIMS, "data", patch, namespace="default")


async def give_up(stage: Stage) -> None:
    """Remove the node from the claim, as a provisioner does that cannot create the volume there."""
    patch = {"metadata": {"annotations": {SELECTED: None}}}
    await stage.client.patch(VOLUME_CLAIMS, "data", patch, namespace="default")


async def test_a_pod_is_bound_when_its_volume_is_made(stage: Stage) -> None:
    """It has its device meanwhile, and others are bound."""
    await storage(stage)
    await stage.client.create(PODS, storing("p"))
    async with stage.scheduler():
        await stage.advance(300)
        assert (await chosen(stage), await users(stage)) == ("n", ["p"])
        assert await stage.node_of("p") == ""

        await stage.client.create(PODS, user_of("d", "other"))
        await stage.advance(1)
        assert await stage.node_of("other") == "n"

        await provision(stage)
        await stage.advance(1)
        assert await stage.node_of("p") == "n"


async def test_a_class_may_come_after_its_pod(stage: Stage) -> None:
    """As from a folder of files, which are applied by their names."""
    await storage(stage)
    late = await stage.client.get(STORAGE_CLASSES, "late")
    await stage.client.delete(STORAGE_CLASSES, "late")
    await stage.client.create(PODS, storing("p"))
    async with stage.scheduler():
        await stage.advance(10)
        assert "pod has unbound immediate PersistentVolumeClaims" in await stage.refusal("p")
        del late["metadata"]["uid"], late["metadata"]["resourceVersion"]
        await stage.client.create(STORAGE_CLASSES, late)
        await stage.advance(1)
        assert await chosen(stage) == "n"


async def sharing_pods(stage: Stage, labels: Mapping[str, str]) -> None:
    """Create pods for two nodes that use one claim of storage."""
    await storage(stage)
    await second_node(stage.client)
    for name, node in (("a", "n"), ("b", "m")):
        pod = storing(name)
        del pod["spec"]["resourceClaims"], pod["spec"]["containers"][0]["resources"]
        pod["metadata"]["labels"] = dict(labels)
        pod["spec"]["affinity"] = on_node(node)
        await stage.client.create(PODS, pod)


async def test_pods_on_several_nodes_may_share_a_volume(stage: Stage) -> None:
    """It is made on one of them; who is on the other waits for it, and is bound too."""
    await sharing_pods(stage, {})
    async with stage.scheduler():
        await stage.advance(10)
        assert await chosen(stage) == "n"
        await provision(stage)
        await stage.advance(30)
        assert [await stage.node_of(name) for name in "ab"] == ["n", "m"]


async def test_a_gang_does_not_use_a_volume_on_a_node_before_it_is_made(stage: Stage) -> None:
    """Kube-scheduler refuses the second pod until the volume exists, and a gang cannot wait."""
    await sharing_pods(stage, {f"{PREFIX}/name": "g", f"{PREFIX}/min-available": "2"})
    async with stage.scheduler():
        await stage.advance(10)
        assert await chosen(stage) == ""
        assert "1 of 2 pods fit; pod default/b does not fit with them" in await stage.refusal("b")


def on_node(name: str) -> Raw:
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]}]
    required = {"nodeSelectorTerms": [{"matchFields": fields}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


async def test_a_gang_is_bound_when_the_volumes_of_all_are_made(stage: Stage) -> None:
    """All of it, or nothing."""
    await storage(stage)
    for pod in (storing("a"), user_of("d", "b")):
        pod["metadata"]["labels"] = {f"{PREFIX}/name": "g", f"{PREFIX}/min-available": "2"}
        await stage.client.create(PODS, pod)
    async with stage.scheduler():
        await stage.advance(60)
        before = [await stage.node_of(name) for name in "ab"]
        await provision(stage)
        await stage.advance(1)

        assert before == ["", ""]
        assert [await stage.node_of(name) for name in "ab"] == ["n", "n"]


@pytest.mark.parametrize(
    ("seconds", "happens", "words"),
    [
        (601, None, "has no volume after 600 s"),
        (1, give_up, "cannot have its volume on node n; see its events"),
    ],
)
async def test_a_volume_that_is_not_made_gives_the_device_back(
    seconds: float, happens: Any, words: str, stage: Stage
) -> None:
    """The pod gets the reason, and is decided again."""
    await storage(stage)
    await stage.client.create(PODS, storing("p"))
    async with stage.scheduler():
        if happens is not None:
            await happens(stage)
        seen = []
        for _ in range(round(seconds) + 3):
            await stage.advance(1)
            seen.append(await stage.refusal("p"))
        plugin = 'running PreBind plugin "VolumeBinding": '
        assert f'{plugin}persistentvolumeclaim "data" {words}' in seen
        await stage.advance(30)
        assert (await chosen(stage), await users(stage)) == ("n", ["p"])
        await provision(stage)
        await stage.advance(1)
        assert await stage.node_of("p") == "n"


async def test_a_scheduler_that_dies_leaves_the_node_chosen(stage: Stage) -> None:
    """The next one chooses no other, and binds the pod when the volume is there."""
    await storage(stage)
    await stage.client.create(PODS, storing("p"))
    async with stage.scheduler():
        await stage.advance(10)
    await provision(stage)
    async with stage.scheduler():
        assert await stage.node_of("p") == "n"


async def test_a_claim_that_goes_meanwhile_lets_the_device_go(stage: Stage) -> None:
    """The pod waits for another one of that name."""
    await storage(stage)
    await stage.client.create(PODS, storing("p"))
    async with stage.scheduler():
        await stage.advance(10)
        await stage.client.delete(VOLUME_CLAIMS, "data", namespace="default")
        await stage.advance(30)
        assert 'persistentvolumeclaim "data" is being deleted' in await stage.refusal("p")
        assert await users(stage) == []

        unprotected = {"metadata": {"finalizers": None}}
        await stage.client.patch(VOLUME_CLAIMS, "data", unprotected, namespace="default")
        await stage.advance(1)
        assert 'persistentvolumeclaim "data" not found' in await stage.refusal("p")


async def test_a_volume_that_was_made_elsewhere_takes_its_pod_there(stage: Stage) -> None:
    """Not to the node that was chosen."""
    await storage(stage)
    await stage.client.create(PODS, storing("p"))
    async with stage.scheduler():
        await stage.advance(10)
        await provision(stage, "elsewhere")
        await stage.advance(30)

        assert await stage.node_of("p") == ""
        assert "didn't match PersistentVolume's node affinity" in await stage.refusal("p")
        assert await users(stage) == []


def disk(name: str, node: str, size: str = "1Gi") -> Raw:
    """Return an existing volume of the class `local` on a node."""
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    terms = [{"matchExpressions": [expression]}]
    spec = {
        "storageClassName": "local",
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": size},
        "local": {"path": "/data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
    }
    return {"metadata": {"name": name}, "spec": spec}


async def disks(stage: Stage, *made: Raw) -> None:
    """Free volumes, as a controller finds them."""
    for each in made:
        stored = await stage.client.create(VOLUMES, each)
        free = stored | {"status": {"phase": "Available"}}
        await stage.client.update(VOLUMES, free, subresource="status")


async def local_storage(
    stage: Stage, *pods: str, labels: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Create two nodes, a class without a provisioner, and pods with a claim each."""
    client = stage.client
    await create_objects(client, 0)
    await second_node(client)
    for name in "nm":
        await client.patch(NODES, name, {"metadata": {"labels": {HOST: name}}})
    late = {"volumeBindingMode": "WaitForFirstConsumer"}
    none = {"provisioner": "kubernetes.io/no-provisioner"}
    await client.create(STORAGE_CLASSES, {"metadata": {"name": "local"}, **late, **none})
    for name in pods:
        asked = {
            "storageClassName": "local",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        }
        metadata = {"name": name, "namespace": "default"}
        await client.create(VOLUME_CLAIMS, {"metadata": metadata, "spec": asked})
        pod = storing(name, name)
        pod["metadata"]["labels"] = dict(labels)
        del pod["spec"]["resourceClaims"], pod["spec"]["containers"][0]["resources"]
        await client.create(PODS, pod)


async def kept_for(stage: Stage, volume: str) -> str:
    """The claim that a volume is for, and whether its reference is to that very claim."""
    found = (await stage.client.get(VOLUMES, volume))["spec"].get("claimRef")
    if found is None:
        return ""
    claim = await stage.client.get(VOLUME_CLAIMS, found["name"], "default")
    assert found["uid"] == claim["metadata"]["uid"]
    return str(found["name"])


async def bind(stage: Stage, claim: str, volume: str) -> None:
    """Bind the claim to its volume, as the controller of volumes does."""
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    patch = {"metadata": {"annotations": bound}, "spec": {"volumeName": volume}}
    await stage.client.patch(VOLUME_CLAIMS, claim, patch, namespace="default")
    await stage.advance(1)


async def test_a_free_volume_is_kept_for_the_claim_of_a_pod(stage: Stage) -> None:
    """The smallest that does decides on the node; the pod is bound when the claim is."""
    await local_storage(stage, "p")
    await disks(stage, disk("small", "m", "500Mi"), disk("right", "m"))
    async with stage.scheduler():
        assert (await kept_for(stage, "right"), await kept_for(stage, "small")) == ("p", "")
        assert await stage.node_of("p") == ""
        made = await stage.client.get(VOLUMES, "right")
        claim = await stage.client.get(VOLUME_CLAIMS, "p", "default")
        assert made["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}
        assert SELECTED not in claim["metadata"].get("annotations", {})

        await bind(stage, "p", "right")
        assert await stage.node_of("p") == "m"


async def test_pods_do_not_choose_the_same_volume(stage: Stage) -> None:
    """A pod without a volume waits and gets the reason; a new volume retries it."""
    await local_storage(stage, "a", "b", "c")
    await disks(stage, disk("one", "n"), disk("two", "m"))
    async with stage.scheduler():
        kept = {await kept_for(stage, name): name for name in ("one", "two")}
        [late] = {"a", "b", "c"} - set(kept)
        assert UNBINDABLE in await stage.refusal(late)

        await disks(stage, disk("three", "n"))
        await stage.advance(15)
        assert await kept_for(stage, "three") == late
        for claim, volume in {**kept, late: "three"}.items():
            await bind(stage, claim, volume)
        nodes = {volume: await stage.node_of(pod) for pod, volume in kept.items()}
        assert nodes == {"one": "n", "two": "m"}
        assert await stage.node_of(late) == "n"


async def test_members_of_a_gang_choose_different_volumes(stage: Stage) -> None:
    """Both volumes are kept at once, each for another member, on its own node."""
    labels = {f"{PREFIX}/name": "g", f"{PREFIX}/min-available": "2"}

    await local_storage(stage, "a", "b", labels=labels)
    await disks(stage, disk("one", "n"))
    async with stage.scheduler():
        await stage.advance(5)
        assert "1 of 2 pods fit" in await stage.refusal("a")
        assert await kept_for(stage, "one") == ""
        await disks(stage, disk("two", "m"))
        await stage.advance(30)
        assert {await kept_for(stage, name) for name in ("one", "two")} == {"a", "b"}


async def test_a_scheduler_that_dies_leaves_the_volume_kept(stage: Stage) -> None:
    """The next one chooses no other, though a smaller one has come."""
    await local_storage(stage, "p")
    await disks(stage, disk("first", "n", "2Gi"))
    async with stage.scheduler():
        assert await kept_for(stage, "first") == "p"
    await disks(stage, disk("second", "m"))
    async with stage.scheduler():
        await stage.advance(1)
        await bind(stage, "p", "first")
        assert (await stage.node_of("p"), await kept_for(stage, "second")) == ("n", "")


async def test_a_volume_that_is_lost_meanwhile_has_another_chosen(stage: Stage) -> None:
    """The claim is deleted, or the volume loses its reference."""
    await local_storage(stage, "p")
    await disks(stage, disk("first", "n"))
    async with stage.scheduler():
        gone = {"spec": {"claimRef": None, "storageClassName": "other"}}
        await stage.client.patch(VOLUMES, "first", gone)
        await stage.advance(1)
        assert UNBINDABLE in await stage.refusal("p")
        await disks(stage, disk("second", "m"))
        await stage.advance(15)
        assert await kept_for(stage, "second") == "p"
