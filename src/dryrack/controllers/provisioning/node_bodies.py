"""
NodeClaims and Nodes as they are created.

A Node has the name of its NodeClaim, so a provisioner that restarts between the two finds the Node
of the NodeClaim, and never creates a second one.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from dryrack.client.endpoints import NODE_CLAIMS, NODE_POOLS
from dryrack.controllers.objects import controller_reference, labels_of, spec_of, uid_of
from dryrack.controllers.pods.virtual import KWOK_NODE
from dryrack.hardware import INSTANCE_TYPE
from dryrack.kinds.decode import to_builtins
from dryrack.kinds.paths import get
from dryrack.kinds.provisioning import (
    DRIVERS,
    FINALIZER,
    NODE_POOL,
    POOL_HASH,
    UNREGISTERED_TAINT,
    NodePool,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dryrack.controllers.provisioning.machines import Machine
    from dryrack.kinds.raw import Raw

PROVIDER = "dryrack://"
REPLACES = "dryrack.dev/replaces"
"""On a NodeClaim: the NodeClaim that is deleted when this one is initialized."""
_SUFFIX = 10
_NAME_MAX = 63


def claim_name(pool: str, batch: Iterable[str], index: int) -> str:
    """
    Return the name of a new NodeClaim.

    It depends only on the batch, so the same decision never creates two nodes for one need, even if
    two provisioners make it.
    """
    text = "\n".join((*sorted(batch), str(index)))
    suffix = hashlib.sha256(text.encode()).hexdigest()[:_SUFFIX]
    return f"{pool[: _NAME_MAX - _SUFFIX - 1].rstrip('-.')}-{suffix}"


def template_hash(pool: NodePool) -> str:
    """Return a hash of everything in a pool that its nodes depend on."""
    template = to_builtins(pool.spec.template)
    for name in ("requirements", "terminationGracePeriod"):
        template.get("spec", {}).pop(name, None)
    return hashlib.sha256(repr(sorted(_flat("", template))).encode()).hexdigest()[:16]


def _flat(path: str, value: Any) -> Iterable[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(f"{path}.{key}", inner)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _flat(f"{path}[{number}]", inner)
    else:
        yield path, str(value)


def new_claim(
    pool: NodePool,
    name: str,
    labels: Mapping[str, str],
    *,
    machines: Sequence[str],
    requests: Mapping[str, str],
    drivers: Iterable[str] = (),
    replaces: str = "",
) -> Raw:
    """
    Return a NodeClaim of a pool; `labels` are those of its node.

    `machines` are the instance types on which the pods fit, the chosen one first.
    """
    template = pool.spec.template
    values = {key: (value,) for key, value in labels.items() if key in _required_keys(pool)}
    requirements = [
        {"key": key, "operator": "In", "values": list(value)}
        for key, value in sorted({**values, INSTANCE_TYPE: tuple(machines)}.items())
    ]
    annotations = {**template.metadata.annotations, POOL_HASH: template_hash(pool)}
    asked = sorted(set(drivers))
    if asked:
        annotations[DRIVERS] = ",".join(asked)
    if replaces:
        annotations[REPLACES] = replaces
    spec = {
        key: value
        for key, value in to_builtins(template.spec).items()
        if key in ("nodeClassRef", "taints", "startupTaints", "terminationGracePeriod")
    }
    owner = controller_reference(to_builtins(pool), NODE_POOLS)
    del owner["controller"], owner["blockOwnerDeletion"]
    return {
        "metadata": {
            "name": name,
            "labels": dict(labels),
            "annotations": annotations,
            "finalizers": [FINALIZER],
            "ownerReferences": [owner],
        },
        "spec": {
            **spec,
            "expireAfter": template.spec.expire_after,
            "requirements": requirements,
            "resources": {"requests": dict(requests)},
        },
    }


def _required_keys(pool: NodePool) -> set[str]:
    own = {each.key for each in pool.spec.template.spec.requirements}
    return own | {NODE_POOL, INSTANCE_TYPE}


def new_node(claim: Raw, machine: Machine, labels: Mapping[str, str]) -> Raw:
    """Return the Node of a NodeClaim, as it is before it registers."""
    name = claim["metadata"]["name"]
    spec = spec_of(claim)
    taints = [*get(spec, "taints", ()), *get(spec, "startupTaints", ())]
    owner = controller_reference(claim, NODE_CLAIMS)
    del owner["controller"], owner["blockOwnerDeletion"]
    capacity = dict(machine.capacity)
    annotations = {
        key: value
        for key, value in get(claim["metadata"], "annotations", {}).items()
        if key != REPLACES
    }
    return {
        "metadata": {
            "name": name,
            "labels": {
                **labels,
                **labels_of(claim),
                "kubernetes.io/hostname": name,
                KWOK_NODE: "fake",
            },
            "annotations": {**annotations, KWOK_NODE: "fake"},
            "finalizers": [FINALIZER],
            "ownerReferences": [owner],
        },
        "spec": {
            "providerID": provider_id(name),
            "taints": [*taints, {"key": UNREGISTERED_TAINT, "effect": "NoExecute"}],
        },
        "status": {"capacity": capacity, "allocatable": dict(capacity)},
    }


def provider_id(name: str) -> str:
    """Return the provider ID of the node with this name."""
    return f"{PROVIDER}{name}"


def is_node_of(node: Raw, claim: Raw) -> bool:
    """Return whether a node was created for exactly this NodeClaim."""
    owners = get(node["metadata"], "ownerReferences", ())
    return any(each.get("uid") == uid_of(claim) for each in owners)
