"""Two nodes with four GPUs, a claim that has one of them, a pod that waits, and half a gang."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.client.endpoints import CLAIMS, CLASSES, EVENTS, NAMESPACES, NODES, PODS, SLICES

if TYPE_CHECKING:
    from dryrack.client.client import Client
    from dryrack.client.endpoints import Endpoint
    from dryrack.kinds.raw import Raw

DRIVER = "gpu.example.com"
GANG = "pod-group.scheduling.kubenexus.io"


def node(name: str, zone: str = "zone-a", **spec: Any) -> Raw:
    labels = {"topology.kubernetes.io/zone": zone, "kubernetes.io/hostname": name}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"},
        },
    }


def device(name: str, **more: Any) -> Raw:
    model = {f"{DRIVER}/model": {"string": "Example 80GB"}}
    return {"name": name, "attributes": model, "capacity": {"memory": {"value": "80Gi"}}, **more}


def resource_slice(node_name: str, devices: list[Raw], **spec: Any) -> Raw:
    pool = {"name": node_name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": pool, "nodeName": node_name, "devices": devices} | spec
    return {"metadata": {"name": f"{node_name}-gpus"}, "spec": spec}


def claim(name: str, count: int = 1) -> Raw:
    exactly = {"deviceClassName": "gpu", "count": count}
    return {
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"devices": {"requests": [{"name": "gpus", "exactly": exactly}]}},
    }


def allocation(node_name: str, *devices: str) -> Raw:
    results = [
        {"request": "gpus", "driver": DRIVER, "pool": node_name, "device": each} for each in devices
    ]
    field = {"key": "metadata.name", "operator": "In", "values": [node_name]}
    terms = [{"matchFields": [field]}]
    return {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": terms}}


def pod(name: str, claim_name: str = "", gang: str = "") -> Raw:
    labels = {f"{GANG}/name": gang, f"{GANG}/min-available": "2"} if gang else {}
    claims = [{"name": "c", "resourceClaimName": claim_name}] if claim_name else []
    return {
        "metadata": {"name": name, "namespace": "team", "labels": labels},
        "spec": {"containers": [{"name": "c", "image": "i"}], "resourceClaims": claims},
    }


EVENT = {
    "metadata": {"name": "waits.1", "namespace": "team"},
    "involvedObject": {"kind": "Pod", "namespace": "team", "name": "waits"},
    "type": "Warning",
    "reason": "FailedScheduling",
    "message": "0/2 nodes are available: 2 cannot allocate all claims.",
    "reportingComponent": "default-scheduler",
    "reportingInstance": "default-scheduler-0",
    "action": "Scheduling",
    "eventTime": "2027-01-15T08:00:00.000000Z",
}


async def create(client: Client, kind: Endpoint, *objects: Raw) -> None:
    for each in objects:
        made = await client.create(kind, each)
        if each.get("status"):
            await client.update(kind, made | {"status": each["status"]}, subresource="status")


async def allocate(client: Client, name: str, given: Raw, *pods: str) -> None:
    """As a scheduler does it: the claim has devices, and the pods may use them."""
    found = await client.get(CLAIMS, name, "team")
    users = [
        {
            "resource": "pods",
            "name": each,
            "uid": (await client.get(PODS, each, "team"))["metadata"]["uid"],
        }
        for each in pods
    ]
    status = {"allocation": given, "reservedFor": users}
    await client.update(CLAIMS, found | {"status": status}, subresource="status")


async def bind(client: Client, name: str, node_name: str) -> None:
    target = {"apiVersion": "v1", "kind": "Node", "name": node_name}
    metadata = {"name": name, "namespace": "team"}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
    await client.create(PODS, binding, subresource="binding")


async def set_phase(client: Client, name: str, phase: str, **status: Any) -> None:
    found = await client.get(PODS, name, "team")
    status = found.get("status", {}) | {"phase": phase} | status
    await client.update(PODS, found | {"status": status}, subresource="status")


async def small_world(client: Client) -> None:
    await create(client, NAMESPACES, {"metadata": {"name": "team"}})
    await create(client, NODES, node("rack-1"), node("rack-2", "zone-b"))
    expression = f'device.driver == "{DRIVER}"'
    selectors = [{"cel": {"expression": expression}}]
    await create(client, CLASSES, {"metadata": {"name": "gpu"}, "spec": {"selectors": selectors}})
    for name in ("rack-1", "rack-2"):
        slices = resource_slice(name, [device("gpu-0"), device("gpu-1")])
        await create(client, SLICES, slices)
    await create(client, CLAIMS, claim("one"), claim("four", 4))
    await create(client, PODS, pod("train", "one"), pod("waits", "four"), pod("half", gang="pair"))
    await bind(client, "train", "rack-1")
    await allocate(client, "one", allocation("rack-1", "gpu-0"), "train")
    await create(client, EVENTS, EVENT)
