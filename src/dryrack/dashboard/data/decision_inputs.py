"""
The fields of objects on which a decision of the scheduler's code depends.

An explanation stays true while these fields are the same: the heartbeat of a node, the restart of a
container, and the event of another pod are no reason to decide again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.client.endpoints import CLAIMS, EVENTS, NODES, PODS
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from dryrack.client.endpoints import Endpoint
    from dryrack.kinds.raw import Raw

_OF_METADATA = ("name", "namespace", "uid", "labels", "deletionTimestamp", "ownerReferences")
_OF_HEARTBEAT = ("conditions", "addresses", "nodeInfo", "daemonEndpoints")
_OF_POD_STATUS = ("nominatedNodeName", "resourceClaimStatuses", "extendedResourceClaimStatus")
_ENDED = ("Succeeded", "Failed")
# The events that explanations quote: why claims are not created or prepared.
_QUOTED = ("FailedResourceClaimCreation", "FailedPrepareDynamicResources")


def decides(kind: Endpoint, old: Raw | None, new: Raw | None) -> bool:
    """Return whether the change of an object can change a decision."""
    return _inputs(kind, old) != _inputs(kind, new)


def _inputs(kind: Endpoint, raw: Raw | None) -> object:
    if raw is None:
        return None
    if kind == EVENTS:
        return (raw["metadata"].get("name"), raw.get("message")) if _is_quoted(raw) else None
    names = _OF_METADATA if kind == NODES else (*_OF_METADATA, "annotations")
    metadata = [raw["metadata"].get(each) for each in names]
    status = get(raw, "status", {})
    rest = {key: each for key, each in raw.items() if key not in ("metadata", "status")}
    if kind == PODS:
        conditions = get(raw, "status.conditions", ())
        scheduled = [
            (each.get("status"), each.get("reason"), each.get("message"))
            for each in conditions
            if each.get("type") == "PodScheduled"
        ]
        has_ended = status.get("phase") in _ENDED
        return metadata, rest, has_ended, scheduled, [status.get(each) for each in _OF_POD_STATUS]
    if kind == NODES:
        status = {key: each for key, each in status.items() if key not in _OF_HEARTBEAT}
    if kind == CLAIMS:
        status = {key: each for key, each in status.items() if key != "devices"}
    return metadata, rest, status


def _is_quoted(raw: Raw) -> bool:
    return raw.get("reason") in _QUOTED
