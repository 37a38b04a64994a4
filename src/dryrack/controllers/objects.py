"""Read and change parts that all kinds have: owners, conditions, deletion."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dryrack.client.endpoints import Endpoint
from dryrack.hardware import DEVICE_FAULT, NODE_FAULT
from dryrack.kinds.paths import get
from dryrack.kinds.paths import spec_of as spec_of
from dryrack.kinds.paths import status_of as status_of
from dryrack.kinds.raw import Raw

FAULTS = (DEVICE_FAULT, NODE_FAULT)


def in_version_of(endpoint: Endpoint, obj: Raw) -> Endpoint:
    """Return the endpoint of a kind in the API version in which an object was read."""
    version = str(obj.get("apiVersion") or endpoint.version).rpartition("/")[2]
    return replace(endpoint, version=version)


def uid_of(obj: Raw) -> str:
    return str(obj["metadata"].get("uid", ""))


def labels_of(obj: Raw) -> Mapping[str, str]:
    return get(obj["metadata"], "labels", {})


def annotations_of(obj: Raw) -> Mapping[str, str]:
    return get(obj["metadata"], "annotations", {})


def fault_annotations(node: Raw | None) -> Mapping[str, str]:
    """Return the annotations of a node that describe faults."""
    annotations = annotations_of(node) if node is not None else {}
    return {key: annotations[key] for key in annotations if key.startswith(FAULTS)}


def finalizers_of(obj: Raw) -> Sequence[str]:
    return get(obj["metadata"], "finalizers", ())


def is_deleted(obj: Raw) -> bool:
    """Return True if the deletion of an object has begun."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def owners_of(obj: Raw) -> Sequence[Raw]:
    return get(obj["metadata"], "ownerReferences", ())


def controller_of(obj: Raw) -> Raw | None:
    """Return the reference to the owner that controls an object."""
    return next((owner for owner in owners_of(obj) if owner.get("controller")), None)


def controller_uids(obj: Raw) -> Iterable[str]:
    """Return the index key of objects by their controller."""
    owner = controller_of(obj)
    return (owner["uid"],) if owner else ()


def is_controlled_by(obj: Raw, owner: Raw) -> bool:
    controller = controller_of(obj)
    return controller is not None and controller["uid"] == uid_of(owner)


def controller_reference(owner: Raw, endpoint: Endpoint) -> Raw:
    """Return a reference to a controller, whose deletion waits for the owned object."""
    return {
        "apiVersion": endpoint.api_version,
        "kind": endpoint.kind,
        "name": owner["metadata"]["name"],
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def condition_of(obj: Raw, kind: str) -> Raw | None:
    conditions: Sequence[Raw] = get(obj, "status.conditions", ())
    return next((each for each in conditions if each.get("type") == kind), None)


def has_condition(obj: Raw, kind: str) -> bool:
    """Return True if a condition exists and is true."""
    condition = condition_of(obj, kind)
    return condition is not None and condition.get("status") == "True"


def with_condition(conditions: Sequence[Raw], new: Raw) -> list[Raw]:
    """Return the conditions with one set; an unchanged status keeps its transition time."""
    old = next((each for each in conditions if each["type"] == new["type"]), None)
    if old is None:
        return [*conditions, new]
    if old.get("status") == new.get("status") and "lastTransitionTime" in old:
        new = new | {"lastTransitionTime": old["lastTransitionTime"]}
    return [new if each["type"] == new["type"] else each for each in conditions]


def is_same_but_status(old: Raw | None, new: Raw) -> bool:
    """Return True if only the status has changed, as after a controller's own write."""
    if old is None or "generation" not in new["metadata"]:
        return False
    keys = ("uid", "generation", "labels", "annotations", "ownerReferences", "deletionTimestamp")
    return all(old["metadata"].get(key) == new["metadata"].get(key) for key in keys)


def is_terminal(pod: Raw) -> bool:
    """Return True if a pod has ended."""
    return status_of(pod).get("phase") in ("Succeeded", "Failed")


def node_names(pod: Raw) -> Iterable[str]:
    """Return the index key of pods by their node."""
    node = spec_of(pod).get("nodeName")
    return (node,) if node else ()


def namespaces(obj: Raw) -> Iterable[str]:
    """Return the index key of objects by their namespace."""
    return (obj["metadata"].get("namespace") or "",)


def is_ready(obj: Raw) -> bool:
    return has_condition(obj, "Ready")


def with_metadata(obj: Raw, **parts: Any) -> Raw:
    """Return a copy with changed metadata; parts that are None are removed."""
    metadata = obj["metadata"] | parts
    return obj | {"metadata": {key: each for key, each in metadata.items() if each is not None}}
