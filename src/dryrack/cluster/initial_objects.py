"""
Create the objects of a new cluster: virtual nodes, and the objects of files.

Both are written through the API, and kept as they are if they exist, as after a restart.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, TypeVar

from dryrack.base.errors import DryrackError
from dryrack.client.endpoints import CLASSES, DEFINITIONS, NAMESPACES, NODES, Endpoint
from dryrack.client.errors import AlreadyExistsError, ApiError
from dryrack.kinds.expansion.virtual_nodes import CAPACITY
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from dryrack.apiserver import Resource
    from dryrack.client.client import Client
    from dryrack.cluster.control_plane import ControlPlane
    from dryrack.hardware.catalogue import InstanceType
    from dryrack.kinds.documents import Document, Problem
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.resource import DeviceClass
    from dryrack.store import Stored

_Written = TypeVar("_Written")
# What KWOK and everything made for it look for on a node that has no kubelet.
KWOK_NODE = "kwok.x-k8s.io/node"
# The names of nodes, with {} for the number.
NODE_NAME = "node-{}"


class InhabitantError(DryrackError):
    """An object that the cluster rejects."""


def virtual_node(name: str, machine: InstanceType | None = None) -> Raw:
    """Return a node that exists only in the API."""
    own = machine.node_labels if machine else {}
    # A machine of a type that says how large it is has its size.
    capacity = {**CAPACITY, **(machine.size if machine else {})}
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "annotations": {KWOK_NODE: "fake"},
            # All that its kubelet would add: so it need not.
            "labels": {
                "beta.kubernetes.io/arch": "amd64",
                "beta.kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "node-role.kubernetes.io/agent": "",
                **own,
                "type": "kwok",
            },
        },
        "status": {"capacity": capacity, "allocatable": dict(capacity)},
    }


def is_ready(node: Stored | None) -> bool:
    """Return whether the node has the condition Ready."""
    conditions = node.object["status"].get("conditions", ()) if node else ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


async def add_device_classes(client: Client, classes: Iterable[DeviceClass]) -> None:
    """Create the classes that the chart of a driver installs; keep existing ones."""
    from dryrack.kinds.decode import to_builtins

    for each in classes:
        await _create(client, CLASSES, to_builtins(each))


# Reading it takes as long as all the rest that a cluster of a test needs.
@cache
def allocation_state_objects() -> tuple[Raw, ...]:
    """Return the namespace and the CRD of NodeAllocationStates; do not change them."""
    import yaml

    from dryrack.cluster.rights import ALLOCATION_STATES
    from dryrack.kubeletplugin import STATE_NAMESPACE

    namespace = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": STATE_NAMESPACE}}
    return (namespace, *(yaml.safe_load(path.read_text()) for path in ALLOCATION_STATES))


async def add_allocation_states(client: Client) -> None:
    """Create the kind NodeAllocationState and the namespace of its objects."""
    namespace, *definitions = allocation_state_objects()
    await _create(client, NAMESPACES, namespace)
    for each in definitions:
        await _create(client, DEFINITIONS, each)


@cache
def compute_domain_objects() -> tuple[Raw, ...]:
    """Return the definition of the kind ComputeDomain; do not change it."""
    import yaml

    from dryrack.cluster.rights import COMPUTE_DOMAINS

    return tuple(yaml.safe_load(path.read_text()) for path in COMPUTE_DOMAINS)


async def add_compute_domains(client: Client) -> None:
    """Create the kind ComputeDomain."""
    for each in compute_domain_objects():
        await _create(client, DEFINITIONS, each)


@cache
def node_pool_objects() -> tuple[Raw, ...]:
    """Return the definitions of NodePool and NodeClaim; do not change them."""
    import yaml

    from dryrack.cluster.rights import NODE_POOLS

    return tuple(each for path in NODE_POOLS for each in yaml.safe_load_all(path.read_text()))


async def add_node_pools(client: Client) -> None:
    """Create the kinds NodePool and NodeClaim; keep those of Karpenter if they exist."""
    for each in node_pool_objects():
        await _create(client, DEFINITIONS, each)


async def add_nodes(
    client: Client, count: int, machine: InstanceType | None = None, *, pattern: str = NODE_NAME
) -> None:
    """Create the nodes 1 to `count` of the pattern; keep existing ones."""
    for number in range(1, count + 1):
        await add_node(client, virtual_node(pattern.replace("{}", str(number)), machine))


async def add_node(client: Client, node: Raw) -> bool:
    """Create a node with its status, and return whether it is new."""
    made = await _create(client, NODES, node)
    if made is not None and not get(made, "status.capacity"):
        status = {**made, "status": node["status"]}
        await client.update(NODES, status, subresource="status")
    return made is not None


async def add_objects(plane: ControlPlane, documents: Iterable[Document]) -> int:
    """
    Create objects of any served kind, in order, and return how many are new.

    Unknown fields are errors, as with kubectl. All errors are reported together.
    """
    client = plane.client()
    written = await _write_all(plane, documents, partial(_create, client))
    return sum(each is not None for each in written)


async def apply_objects(
    plane: ControlPlane, documents: Iterable[Document], manager: str
) -> list[Raw]:
    """
    Create objects, or change existing ones, as `kubectl apply` does.

    An object with `generateName` is created each time.
    """
    client = plane.client()

    async def apply(endpoint: Endpoint, obj: Raw) -> Raw:
        meta = obj.get("metadata")
        meta = meta if isinstance(meta, dict) else {}
        is_named = isinstance(meta.get("name"), str) and meta["name"]
        if not is_named or not isinstance(meta.get("namespace", ""), str):
            # The API server generates the name, or says what is wrong with it.
            return await client.create(endpoint, obj, field_validation="Strict")
        return await client.apply(
            endpoint, obj, manager=manager, force=True, field_validation="Strict"
        )

    return await _write_all(plane, documents, apply)


async def _write_all(
    plane: ControlPlane,
    documents: Iterable[Document],
    write: Callable[[Endpoint, Raw], Awaitable[_Written]],
) -> list[_Written]:
    """Write each object in order; report all errors together, by file and line."""
    # Only who brings objects waits for the schemas of kinds.
    from dryrack.cluster.refusals import kind_problem, problems

    written: list[_Written] = []
    wrong: list[Problem] = []
    for document in documents:
        registry = plane.server.registry
        resource = registry.by_kind(document.api_version, document.kind)
        if resource is None or not (
            registry.find(resource.group, resource.version, resource.plural) is not None
        ):
            wrong.append(kind_problem(document, registry))
            continue
        try:
            written.append(
                await write(
                    (
                        Endpoint(
                            resource.group,
                            resource.version,
                            resource.plural,
                            resource.kind,
                            resource.namespaced,
                        )
                    ),
                    _placed(resource, document),
                )
            )
        except ApiError as error:
            wrong += problems(document, resource, error)
    if wrong:
        raise InhabitantError("\n".join(map(str, wrong)))
    return written


def _placed(resource: Resource, document: Document) -> Raw:
    """Return the object, in the namespace `default` if it is namespaced and names none."""
    meta = document.raw.get("metadata")
    meta = {} if meta is None else meta
    if not resource.namespaced or not isinstance(meta, dict) or meta.get("namespace"):
        return document.raw
    return {**document.raw, "metadata": {**meta, "namespace": "default"}}


async def _create(client: Client, endpoint: Endpoint, obj: Raw) -> Raw | None:
    """Create an object; return None if it exists."""
    try:
        return await client.create(endpoint, obj, field_validation="Strict")
    except AlreadyExistsError:
        return None
