"""Pods that wait for other pods, for labels of namespaces or for volumes, and what helps them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.scheduler.builders import (
    RecordingTransport,
    eventually,
    is_bound,
    pod,
    wait_for_events,
    with_scheduler,
)
from tests.scheduler.messages import no_victims_text

from dryrack.client.endpoints import NAMESPACES, NODES, PODS, VOLUME_CLAIMS, VOLUMES

if TYPE_CHECKING:
    from dryrack.client.client import Client
    from dryrack.cluster.embedded import EmbeddedCluster
    from dryrack.kinds.raw import Raw

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


async def two_nodes(client: Client) -> None:
    """In a zone each."""
    for name in ("a", "b"):
        labels = {"kubernetes.io/hostname": name, "zone": f"zone-{name}"}
        node = await client.create(NODES, {"metadata": {"name": name, "labels": labels}})
        status = {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "10"}}
        await client.update(NODES, {**node, "status": status}, subresource="status")


def term(app: str, **more: Any) -> Raw:
    return {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}, **more}


def near(app: str, **more: Any) -> Raw:
    return {"podAffinity": {REQUIRED: [term(app, **more)]}}


def labelled(name: str, app: str, **spec: Any) -> Raw:
    made = pod(name, **spec)
    return {**made, "metadata": {**made["metadata"], "labels": {"app": app}}}


async def node_of(client: Client, name: str) -> str:
    return str((await client.get(PODS, name, "default"))["spec"].get("nodeName", ""))


def test_a_pod_goes_on_when_one_comes_that_it_has_to_be_near() -> None:
    """It gets that reason, and is decided again when such a pod gets its node."""

    async def story(cluster: EmbeddedCluster, noting: RecordingTransport) -> None:
        client = cluster.client
        await two_nodes(client)
        await client.create(PODS, labelled("web", "web", affinity=near("db")))
        words = "0/2 nodes are available: 2 node(s) didn't match pod affinity rules."
        await wait_for_events(
            cluster, "web", "FailedScheduling", [f"{words} {no_victims_text(helpful=2)}"]
        )
        await client.create(PODS, labelled("db", "db", nodeSelector={"zone": "zone-b"}))
        await eventually(cluster, lambda: is_bound(client, "web"))
        assert await node_of(client, "web") == "b"

    with_scheduler(story)


def test_a_pod_goes_on_when_another_zone_has_got_more() -> None:
    """It would have been the second of its kind in one zone, with none in the other."""
    spread = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **term("web")}
    picky = {"nodeSelector": {"zone": "zone-a"}}

    async def story(cluster: EmbeddedCluster, noting: RecordingTransport) -> None:
        client = cluster.client
        await two_nodes(client)
        await client.create(PODS, labelled("first", "web", **picky))
        await eventually(cluster, lambda: is_bound(client, "first"))
        constraint = {**spread, "nodeAffinityPolicy": "Ignore"}
        second = labelled("second", "web", topologySpreadConstraints=[constraint], **picky)
        await client.create(PODS, second)
        words = (
            "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, "
            "1 node(s) didn't match pod topology spread constraints."
        )
        told = f"{words} {no_victims_text(victims=1, helpful=1)}"
        await wait_for_events(cluster, "second", "FailedScheduling", [told])
        await client.create(PODS, labelled("third", "web", nodeSelector={"zone": "zone-b"}))
        await eventually(cluster, lambda: is_bound(client, "second"))

    with_scheduler(story)


def test_a_pod_goes_on_when_a_namespace_gets_the_label_that_it_means() -> None:
    """Affinity may select pods of other namespaces by the labels of these."""
    selector = {"namespaceSelector": {"matchLabels": {"stage": "prod"}}}

    async def story(cluster: EmbeddedCluster, noting: RecordingTransport) -> None:
        client = cluster.client
        await two_nodes(client)
        await client.create(PODS, labelled("db", "db"))
        await eventually(cluster, lambda: is_bound(client, "db"))
        await client.create(PODS, labelled("web", "web", affinity=near("db", **selector)))
        words = "0/2 nodes are available: 2 node(s) didn't match pod affinity rules."
        await wait_for_events(
            cluster, "web", "FailedScheduling", [f"{words} {no_victims_text(helpful=2)}"]
        )
        namespace = await client.get(NAMESPACES, "default")
        labels = {**namespace["metadata"].get("labels", {}), "stage": "prod"}
        metadata = {**namespace["metadata"], "labels": labels}
        await client.update(NAMESPACES, {**namespace, "metadata": metadata})
        await eventually(cluster, lambda: is_bound(client, "web"))
        assert await node_of(client, "web") == await node_of(client, "db")

    with_scheduler(story)


def test_a_pod_goes_to_the_node_of_its_volume() -> None:
    """Which the claim names; that nothing is stored there is no matter."""
    expression = {"key": "zone", "operator": "In", "values": ["zone-b"]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    size = {"storage": "1Gi"}
    volume = {"capacity": size, "accessModes": ["ReadWriteOnce"], "nodeAffinity": affinity}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": size}}
    source = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}

    async def story(cluster: EmbeddedCluster, noting: RecordingTransport) -> None:
        client = cluster.client
        await two_nodes(client)
        spec = {**volume, "hostPath": {"path": "/data"}}
        await client.create(VOLUMES, {"metadata": {"name": "disk"}, "spec": spec})
        completed = {"pv.kubernetes.io/bind-completed": "yes"}
        metadata = {"name": "data", "namespace": "default", "annotations": completed}
        bound = {**claim, "volumeName": "disk"}
        await client.create(VOLUME_CLAIMS, {"metadata": metadata, "spec": bound})
        await client.create(PODS, pod("writer", volumes=[source]))
        await eventually(cluster, lambda: is_bound(client, "writer"))
        assert await node_of(client, "writer") == "b"

    with_scheduler(story)
