"""Claims of storage that are deleted while they are used, and volumes while they are bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.controllers.volumes import VolumeStage, claim, stateful_set, user, volume

from dryrack.client.client import Selection
from dryrack.client.endpoints import (
    NAMESPACES,
    NODES,
    PODS,
    STATEFUL_SETS,
    VOLUME_CLAIMS,
    VOLUMES,
)
from dryrack.client.errors import NotFoundError
from dryrack.controllers.protection import uses

if TYPE_CHECKING:
    from dryrack.client.endpoints import Endpoint
    from dryrack.kinds.raw import Raw

pytestmark = pytest.mark.stage(kind=VolumeStage)


async def names(stage: VolumeStage, endpoint: Endpoint) -> list[str]:
    return [each["metadata"]["name"] for each in (await stage.client.list(endpoint)).items]


async def end(stage: VolumeStage, name: str) -> None:
    """The end of a pod."""
    await stage.client.delete(PODS, name, namespace="default", grace_seconds=0)
    await stage.advance(1)


async def test_a_claim_in_use_stays_until_its_last_pod_is_gone(stage: VolumeStage) -> None:
    """A pod that comes meanwhile waits for another claim, and keeps nothing."""
    client = stage.client
    await stage.make(claim("data"))
    for name in ("a", "b"):
        await client.create(PODS, user(name, "data"))
    await stage.advance(1)
    await stage.delete_claim("data")
    await client.create(PODS, user("late", "data"))
    await end(stage, "a")
    going = await client.get(VOLUME_CLAIMS, "data", "default")
    waiting = await client.get(PODS, "late", "default")
    await end(stage, "b")

    assert going["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    assert "deletionTimestamp" in going["metadata"]
    assert waiting["status"]["conditions"][0]["message"] == (
        '0/1 nodes are available: persistentvolumeclaim "data" is being deleted.'
    )
    assert await names(stage, VOLUME_CLAIMS) == await names(stage, VOLUMES) == []


@pytest.mark.parametrize("is_set_first", [True, False])
async def test_a_stateful_set_and_its_claims_go_in_either_order(
    stage: VolumeStage, is_set_first: bool
) -> None:
    """And so do their volumes; then nothing is written any more."""
    client = stage.client
    store = stage.control_plane.store
    await client.create(STATEFUL_SETS, stateful_set("db"))
    await stage.advance(30)
    if is_set_first:
        await client.delete(STATEFUL_SETS, "db", namespace="default")
    await client.delete_collection(VOLUME_CLAIMS, Selection(namespace="default"))
    if not is_set_first:
        await client.delete(STATEFUL_SETS, "db", namespace="default")
    await stage.advance(60)
    revision = store.revision
    await stage.advance(600)

    assert await names(stage, PODS) == await names(stage, VOLUME_CLAIMS) == []
    assert await names(stage, VOLUMES) == []
    assert not store.events("events", after=revision)


@pytest.mark.parametrize("is_claim_first", [True, False])
async def test_a_pod_of_a_stateful_set_starts_with_another_volume(
    stage: VolumeStage, is_claim_first: bool
) -> None:
    """A claim and a pod that are deleted in either order are created again."""
    client = stage.client
    await client.create(STATEFUL_SETS, stateful_set("db"))
    await stage.advance(30)
    before = await client.get(VOLUME_CLAIMS, "data-db-0", "default")
    orders = [(VOLUME_CLAIMS, "data-db-0"), (PODS, "db-0")]
    for endpoint, name in orders if is_claim_first else reversed(orders):
        await client.delete(endpoint, name, namespace="default")
    await stage.advance(60)
    after = await client.get(VOLUME_CLAIMS, "data-db-0", "default")
    pod = await client.get(PODS, "db-0", "default")

    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert (after["status"]["phase"], pod["status"]["phase"]) == ("Bound", "Running")
    assert len(await names(stage, VOLUMES)) == 2


async def test_a_claim_is_made_anew_for_a_pod_that_waits_for_it(stage: VolumeStage) -> None:
    """A pod of a stateful set that never came to a node keeps no claim."""
    client = stage.client
    await client.patch(NODES, "node-1", {"spec": {"unschedulable": True}})
    await client.create(STATEFUL_SETS, stateful_set("db"))
    await stage.advance(5)
    before = await client.get(VOLUME_CLAIMS, "data-db-0", "default")
    await stage.delete_claim("data-db-0")
    await stage.advance(5)
    after = await client.get(VOLUME_CLAIMS, "data-db-0", "default")

    assert after["metadata"]["uid"] != before["metadata"]["uid"]


async def test_a_namespace_ends_with_all_that_is_stored_in_it(stage: VolumeStage) -> None:
    """Its pods first, then claims, then their volumes."""
    client = stage.client
    await client.create(NAMESPACES, {"metadata": {"name": "shop"}})
    await stage.advance(1)
    await client.create(STATEFUL_SETS, stateful_set("db", "shop"))
    await stage.advance(30)
    bound = await stage.phases()
    await client.delete(NAMESPACES, "shop")
    await stage.advance(120)

    assert list(bound.values()) == ["Bound", "Bound"]
    with pytest.raises(NotFoundError):
        await client.get(NAMESPACES, "shop")
    assert await names(stage, VOLUMES) == []


@pytest.mark.parametrize("policy", ["Delete", "Retain"])
async def test_a_bound_volume_stays_until_its_claim_is_gone(
    stage: VolumeStage, policy: str
) -> None:
    """A bound volume keeps its finalizer until its claim is deleted."""
    client = stage.client
    await stage.make(
        volume("disk", "5Gi", persistentVolumeReclaimPolicy=policy),
        volume("free", "1Gi"),
        claim("data", storageClassName="manual"),
    )
    for name in ("disk", "free"):
        await client.delete(VOLUMES, name)
    await stage.advance(1)
    left = await stage.phases()
    found = await client.get(VOLUME_CLAIMS, "data", "default")
    await stage.delete_claim("data")

    assert (left, found["status"]["phase"]) == ({"disk": "Bound"}, "Bound")
    assert await stage.phases() == {}


async def test_what_is_not_protected_becomes_so(stage: VolumeStage) -> None:
    """As what was stored when the server gave no finalizers."""
    client = stage.client
    await stage.make(claim("data"))
    [name] = await stage.phases()
    bare = {"metadata": {"finalizers": None}}
    await client.patch(VOLUME_CLAIMS, "data", bare, namespace="default")
    await client.patch(VOLUMES, name, bare)
    await stage.advance(1)
    found = await client.get(VOLUME_CLAIMS, "data", "default")
    made = await client.get(VOLUMES, name)

    assert found["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    assert made["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        ({"volumes": [{"persistentVolumeClaim": {"claimName": "p-v"}}]}, True),
        ({"volumes": [{"persistentVolumeClaim": {"claimName": "other"}}]}, False),
        ({"volumes": [{"name": "v", "ephemeral": {}}]}, False),
        ({"volumes": [{"name": "v", "ephemeral": {}}], "uid": "1"}, True),
        ({"volumes": [{"name": "v", "ephemeral": {}}], "uid": "1", "grace": 30}, True),
        ({"volumes": [{"name": "v", "ephemeral": {}}], "uid": "1", "grace": 0}, False),
        ({"volumes": [{"persistentVolumeClaim": {"claimName": "p-v"}}], "grace": 0}, True),
    ],
)
def test_which_pods_keep_a_claim(pod: Raw, expected: bool) -> None:
    """Those that name it, and the one that it came with until that has shut down."""
    owner = {"kind": "Pod", "name": "p", "uid": "1", "controller": True}
    owned = {"metadata": {"namespace": "n", "name": "p-v", "ownerReferences": [owner]}}
    metadata: Raw = {"namespace": "n", "name": "p", "uid": pod.get("uid", "2")}
    if "grace" in pod:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        metadata["deletionGracePeriodSeconds"] = pod["grace"]
    user = {"metadata": metadata, "spec": {"volumes": pod["volumes"]}}

    assert uses(user, owned) is expected


@pytest.mark.stage(without=("volumes",))
async def test_claims_and_volumes_can_be_deleted_without_the_engine_of_volumes(
    stage: VolumeStage,
) -> None:
    """Clusters with volume controllers of their own do not need ours to remove the finalizers."""
    await stage.make(volume("disk", "5Gi"), claim("data"))
    await stage.delete_claim("data")
    await stage.client.delete(VOLUMES, "disk")
    await stage.advance(1)

    assert await names(stage, VOLUME_CLAIMS) == await names(stage, VOLUMES) == []
