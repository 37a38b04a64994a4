"""What all kinds have: owners, conditions, deletion; read from raw objects."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dryrack.client.endpoints import Endpoint
from dryrack.hardware import DEVICE_FAULT, NODE_FAULT
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw

FAULTS = (DEVICE_FAULT, NODE_FAULT)


def uid_of(obj: Raw) -> str:
    return str(obj["metadata"].get("uid", ""))


def labels_of(obj: Raw) -> Mapping[str, str]:
    return get(obj["metadata"], "labels", {})


def annotations_of(obj: Raw) -> Mapping[str, str]:
    return get(obj["metadata"], "annotations", {})


def fault_annotations(node: Raw | None) -> Mapping[str, str]:
    """What a node says about its faults."""
    annotations = annotations_of(node) if node is not None else {}
    return {key: annotations[key] for key in annotations if key.startswith(FAULTS)}


def finalizers_of(obj: Raw) -> Sequence[str]:
    return get(obj["metadata"], "finalizers", ())


def is_deleted(obj: Raw) -> bool:
    """Whether its deletion has begun."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def spec_of(obj: Raw) -> Raw:
    return obj.get("spec") or {}


def status_of(obj: Raw) -> Raw:
    return obj.get("status") or {}


def owners_of(obj: Raw) -> Sequence[Raw]:
    return get(obj["metadata"], "ownerReferences", ())


def controller_of(obj: Raw) -> Raw | None:
    """The reference to the one owner that controls it."""
    return next((owner for owner in owners_of(obj) if owner.get("controller")), None)


def controller_uids(obj: Raw) -> Iterable[str]:
    """For an index of what somebody controls."""
    owner = controller_of(obj)
    return (owner["uid"],) if owner else ()


def is_controlled_by(obj: Raw, owner: Raw) -> bool:
    controller = controller_of(obj)
    return controller is not None and controller["uid"] == uid_of(owner)


def controller_reference(owner: Raw, endpoint: Endpoint) -> Raw:
    """A reference that makes `owner` the controller and its deletion wait for the owned one."""
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
    """Whether a condition is there and true."""
    condition = condition_of(obj, kind)
    return condition is not None and condition.get("status") == "True"


def with_condition(conditions: Sequence[Raw], new: Raw) -> list[Raw]:
    """The conditions with one set; its transition time is kept if its status is."""
    old = next((each for each in conditions if each["type"] == new["type"]), None)
    if old is None:
        return [*conditions, new]
    if old.get("status") == new.get("status") and "lastTransitionTime" in old:
        new = new | {"lastTransitionTime": old["lastTransitionTime"]}
    return [new if each["type"] == new["type"] else each for each in conditions]


def is_same_but_status(old: Raw | None, new: Raw) -> bool:
    """Whether nothing but the status has changed, as after a controller's own report."""
    if old is None or "generation" not in new["metadata"]:
        return False
    keys = ("uid", "generation", "labels", "annotations", "ownerReferences", "deletionTimestamp")
    return all(old["metadata"].get(key) == new["metadata"].get(key) for key in keys)


def is_terminal(pod: Raw) -> bool:
    """Whether a pod has run to its end."""
    return status_of(pod).get("phase") in ("Succeeded", "Failed")


def node_names(pod: Raw) -> Iterable[str]:
    """For an index of the pods of a node."""
    node = spec_of(pod).get("nodeName")
    return (node,) if node else ()


def namespaces(obj: Raw) -> Iterable[str]:
    """For an index of what is in a namespace."""
    return (obj["metadata"].get("namespace") or "",)


def is_ready(obj: Raw) -> bool:
    return has_condition(obj, "Ready")


def with_metadata(obj: Raw, **parts: Any) -> Raw:
    """A copy with other metadata; a part that is None is left out."""
    metadata = obj["metadata"] | parts
    kept = {key: value for key, value in metadata.items() if value is not None}
    return obj | {"metadata": kept}
