"""
What a cluster is given to start with: virtual nodes, and the objects of a file.

Both are written through the API like everybody's objects, and left alone if they are there
already, as after a restart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.base.errors import DryrackError
from dryrack.client.endpoints import NODES, Endpoint
from dryrack.client.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dryrack.client.client import Client
    from dryrack.cluster.plane import Plane

Raw = dict[str, Any]

# What KWOK and everything made for it look for on a node that has no kubelet.
KWOK_NODE = "kwok.x-k8s.io/node"

# A machine of ordinary size, so that no pod that people try fails for lack of it.
_CAPACITY = {"cpu": "32", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "110"}


class InhabitantError(DryrackError):
    """An object that the cluster would not take."""


def virtual_node(name: str) -> Raw:
    """A node that exists in the API alone."""
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "annotations": {KWOK_NODE: "fake"},
            "labels": {
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "node-role.kubernetes.io/agent": "",
                "type": "kwok",
            },
        },
        "status": {"capacity": dict(_CAPACITY), "allocatable": dict(_CAPACITY)},
    }


async def add_nodes(client: Client, count: int) -> None:
    """Nodes node-1 to node-`count`, those that are there left as they are."""
    for number in range(1, count + 1):
        node = virtual_node(f"node-{number}")
        made = await _create(client, NODES, node)
        if made is not None and not (made.get("status") or {}).get("capacity"):
            status = {**made, "status": node["status"]}
            await client.update(NODES, status, subresource="status")


async def add_objects(plane: Plane, objects: Iterable[Raw]) -> int:
    """Creates objects of any kind that is served; answers how many are new."""
    client, created = plane.client(), 0
    for obj in objects:
        made = await _create(client, _endpoint(plane, obj), _placed(plane, obj))
        created += made is not None
    return created


def _endpoint(plane: Plane, obj: Raw) -> Endpoint:
    api_version, kind = obj.get("apiVersion", ""), obj.get("kind", "")
    found = plane.server.registry.by_kind(api_version, kind)
    if found is None:
        raise InhabitantError(f"{_shown(obj)}: the cluster has no kind {kind} of {api_version}")
    return Endpoint(found.group, found.version, found.plural, found.kind, found.namespaced)


def _placed(plane: Plane, obj: Raw) -> Raw:
    """Into the namespace default, where a namespaced object names none."""
    meta = obj.get("metadata") or {}
    if not _endpoint(plane, obj).is_namespaced or meta.get("namespace"):
        return obj
    return {**obj, "metadata": {**meta, "namespace": "default"}}


async def _create(client: Client, endpoint: Endpoint, obj: Raw) -> Raw | None:
    """None if it is there."""
    try:
        return await client.create(endpoint, obj)
    except ApiError as error:
        if error.reason == "AlreadyExists":
            return None
        raise InhabitantError(f"{_shown(obj)}: {error}") from None


def _shown(obj: Raw) -> str:
    return f"{obj.get('kind', 'object')} {(obj.get('metadata') or {}).get('name', '')}".strip()
