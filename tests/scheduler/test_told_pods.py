"""Reports to pods that cannot be scheduled yet, and the changes that help them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.scheduler.builders import (
    CONTAINER,
    RecordingTransport,
    all_bound,
    create_objects,
    events_of,
    eventually,
    is_bound,
    pod,
    user_of,
    wait_for_events,
    with_scheduler,
)
from tests.scheduler.messages import no_victims_text

from dryrack.client.client import Client, Selection
from dryrack.client.endpoints import (
    CLAIMS,
    CLASSES,
    EVENTS,
    PODS,
    SLICES,
    VOLUME_CLAIMS,
    VOLUMES,
)
from dryrack.kinds.releases import ALLOCATION, DEFAULT_RELEASE

if TYPE_CHECKING:
    from dryrack.cluster.embedded import EmbeddedCluster


def test_a_pod_waits_for_a_port_of_the_host() -> None:
    """Its condition says that no port is free; it is bound once the other pod is deleted."""
    container = CONTAINER | {"ports": [{"containerPort": 80, "hostPort": 80}]}

    async def story(cluster: EmbeddedCluster, noting: RecordingTransport) -> None:
        client = cluster.client
        await create_objects(client, 0)
        await client.create(PODS, pod("first", containers=[container]))
        await eventually(cluster, lambda: is_bound(client, "first"))
        await client.create(PODS, pod("second", containers=[container]))
        words = "1 node(s) didn't have free ports for the requested pod ports"
        told = [f"0/1 nodes are available: {words}. {no_victims_text(victims=1)}"]
        await wait_for_events(cluster, "second", "FailedScheduling", told)
        await client.delete(PODS, "first", namespace="default", grace_seconds=0)
        await eventually(cluster, lambda: is_bound(client, "second"))

    with_scheduler(story)


def test_the_event_of_a_pod_with_a_long_name_has_a_name_that_may_be() -> None:
    """The name begins with that of its pod, cut to the longest allowed name."""
    name = "p" * 253
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}

    async def story(cluster: EmbeddedCluster, noting: RecordingTransport) -> None:
        client = cluster.client
        await create_objects(client, 0)
        await client.create(PODS, pod(name, volumes=[volume]))
        told = ['0/1 nodes are available: persistentvolumeclaim "data" not found.']
        await wait_for_events(cluster, name, "FailedScheduling", told)
        events = (await client.list(EVENTS, Selection(namespace="default"))).items
        assert [len(each["metadata"]["name"]) for each in events] == [253]

    with_scheduler(story)


def test_a_pod_waits_for_its_volume_claim() -> None:
    """Its condition says that the claim is missing, or has no volume yet."""
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}

    async def story(cluster: EmbeddedCluster, noting: RecordingTransport) -> None:
        client = cluster.client
        await create_objects(client, 0)
        await client.create(PODS, pod("writer", volumes=[volume]))
        told = ['0/1 nodes are available: persistentvolumeclaim "data" not found.']
        await wait_for_events(cluster, "writer", "FailedScheduling", told)
        metadata = {"name": "data", "namespace": "default"}
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        await client.create(VOLUME_CLAIMS, {"metadata": metadata, "spec": spec})
        unbound = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."
        await wait_for_events(cluster, "writer", "FailedScheduling", [*told, unbound])
        offer = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
        disk = {"metadata": {"name": "disk"}, "spec": {**offer, "hostPath": {"path": "/data"}}}
        await client.create(VOLUMES, disk)
        bound = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
        patch = {"metadata": bound, "spec": {"volumeName": "disk"}}
        await client.patch(VOLUME_CLAIMS, "data", patch, namespace="default")
        await eventually(cluster, lambda: all_bound(client))

    with_scheduler(story)


def test_a_claim_that_all_its_places_are_taken_of_is_waited_for() -> None:
    """The 257th pod gets the reason once, and is bound when another pod is deleted."""

    async def story(cluster: EmbeddedCluster, noting: RecordingTransport) -> None:
        client = cluster.client
        await create_objects(client, 1)
        await eventually(cluster, lambda: all_bound(client))
        claim = await client.get(CLAIMS, "p0", "default")
        others = [{"resource": "pods", "name": f"o{it}", "uid": f"o{it}"} for it in range(255)]
        users = claim["status"]["reservedFor"] + others
        full = claim | {"status": claim["status"] | {"reservedFor": users}}
        claim = await client.update(CLAIMS, full, subresource="status")
        await client.create(PODS, user_of("p0", "late"))
        shared = '256 pods share "p0", as many as the API allows; delete one of them'
        nobody = no_victims_text(helpful=1, claims=True)
        told = f"0/1 nodes are available: resourceclaim in use. {shared}. {nobody}"
        await wait_for_events(cluster, "late", "FailedScheduling", [told])
        left = claim | {"status": claim["status"] | {"reservedFor": users[:-1]}}
        await client.update(CLAIMS, left, subresource="status")
        await eventually(cluster, lambda: is_bound(client, "late"))
        assert await events_of(client, "late", "FailedScheduling") == [told]

    with_scheduler(story)


async def make_claim(client: Client, name: str, **exactly: Any) -> None:
    requests = [{"name": "r", "exactly": exactly}]
    metadata = {"name": name, "namespace": "default"}
    await client.create(CLAIMS, {"metadata": metadata, "spec": {"devices": {"requests": requests}}})


def test_a_pod_is_told_of_a_class_that_is_not_there() -> None:
    """In kube-scheduler's words and what to do; others are bound, and so is it once it is there."""

    async def story(cluster: EmbeddedCluster, noting: RecordingTransport) -> None:
        client = cluster.client
        await create_objects(client, 1)
        await make_claim(client, "wrong", deviceClassName="nope")
        await client.create(PODS, user_of("wrong", "user"))
        words = "request r: device class nope does not exist"
        remedy = "Create it, or correct the deviceClassName in claim default/wrong"
        more = no_victims_text(helpful=1, claims=True)
        told = [f"0/1 nodes are available: {words}. {remedy}. {more}"]
        await wait_for_events(cluster, "user", "FailedScheduling", told)
        await eventually(cluster, lambda: is_bound(client, "p0"))
        await client.create(CLASSES, {"metadata": {"name": "nope"}})
        await eventually(cluster, lambda: is_bound(client, "user"))

    with_scheduler(story)


def test_a_pod_that_wants_all_devices_waits_for_the_rest_of_a_pool() -> None:
    """Its condition contains this remedy, and it is bound once the whole pool is published."""

    async def story(cluster: EmbeddedCluster, noting: RecordingTransport) -> None:
        client = cluster.client
        await create_objects(client, 0)
        found = await client.get(SLICES, "s")
        pool = found["spec"]["pool"]
        half = {**found["spec"], "pool": {**pool, "generation": 2, "resourceSliceCount": 2}}
        await client.update(SLICES, {**found, "spec": half})
        await make_claim(client, "all", deviceClassName="c", allocationMode="All")
        await client.create(PODS, user_of("all", "user"))
        where = "claim default/all, request r: asks for all devices"
        error = f"{where}, but resource pool x.example.com/n is currently being updated"
        told = [f"{error}; wait until its driver has published the whole pool"]
        await wait_for_events(cluster, "user", "FailedScheduling", told)
        rest = {**half, "devices": [{"name": "late"}]}
        await client.create(SLICES, {"metadata": {"name": "rest"}, "spec": rest})
        await eventually(cluster, lambda: is_bound(client, "user"))

    with_scheduler(story)


def test_a_pod_is_told_about_which_device_its_selector_fails() -> None:
    """And that no other node helps; others are bound."""

    async def story(cluster: EmbeddedCluster, noting: RecordingTransport) -> None:
        client = cluster.client
        await create_objects(client, 0)
        expression = "device.attributes['x.example.com'].foo == 1"
        selectors = [{"cel": {"expression": expression}}]
        await make_claim(client, "wrong", deviceClassName="c", selectors=selectors)
        await client.create(PODS, user_of("wrong", "user"))
        device = "x.example.com/n/d0"
        texts = ALLOCATION[DEFAULT_RELEASE]
        selector = texts.failing_selector_text.format(index=0, device=device)
        error = f"claim default/wrong: {selector}: CEL runtime error: no such key: foo"
        error += texts.missing_key_hint
        error += f", about device {device}" if device not in error else ""
        remedy = "correct the object (dryrack lint shows the line); no node fits until then"
        told = [f"{error}; {remedy}"]
        await wait_for_events(cluster, "user", "FailedScheduling", told)
        [condition] = (await client.get(PODS, "user", "default"))["status"]["conditions"]
        assert condition["reason"] == "SchedulerError"
        await make_claim(client, "right", deviceClassName="c")
        await client.create(PODS, user_of("right", "other"))
        await eventually(cluster, lambda: is_bound(client, "other"))

    with_scheduler(story)
