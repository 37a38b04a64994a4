"""
The life of a NodeClaim: it is launched, registers, and becomes ready; and it is removed.

A NodeClaim that is deleted stays until its node is gone: its finalizer is removed last. The node
has a finalizer too. It is removed when the pods that can move have left. So whatever stops the
provisioner, and whenever, no node is left without a NodeClaim, and no NodeClaim without an owner of
its node.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dryrack.base.durations import seconds_in
from dryrack.client.endpoints import NODE_CLAIMS, NODES
from dryrack.client.informer import name_of
from dryrack.client.timekeeping import seconds_of, timestamp
from dryrack.controllers.objects import (
    annotations_of,
    finalizers_of,
    has_condition,
    is_deleted,
    is_ready,
    labels_of,
    spec_of,
    uid_of,
    with_condition,
)
from dryrack.controllers.provisioning.node_bodies import (
    is_node_of,
    new_node,
    provider_id,
)
from dryrack.controllers.writes import (
    NOTHING,
    Create,
    Delete,
    Patch,
    Plan,
    Report,
    Write,
    without_finalizer,
)
from dryrack.kinds.paths import get
from dryrack.kinds.provisioning import (
    DISRUPTED_TAINT,
    DRIVERS,
    FINALIZER,
    INITIALIZED,
    NEVER,
    REGISTERED,
    UNREGISTERED_TAINT,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from dryrack.controllers.provisioning.machines import Machine
    from dryrack.kinds.raw import Raw

REGISTRATION_SECONDS_MAX = 15 * 60.0
"""A node that has not registered by then is given up."""
READY = "Ready"
LAUNCHED = "Launched"
REGISTERED_CONDITION = "Registered"
INITIALIZED_CONDITION = "Initialized"
DRAINED = "Drained"
_STEPS = (LAUNCHED, REGISTERED_CONDITION, INITIALIZED_CONDITION)
# Taints that a node loses by itself while it starts.
_PASSING_TAINTS = (
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.cloudprovider.kubernetes.io/uninitialized",
    UNREGISTERED_TAINT,
)


@dataclass(frozen=True, slots=True)
class NodeState:
    """The node of a NodeClaim, and what is known about it."""

    node: Raw | None = None
    draining: Sequence[Raw] = ()
    """The pods that have to leave before the node can go."""
    published: Collection[str] = field(default_factory=frozenset)
    """The drivers that have published a complete pool for the node."""


@dataclass(frozen=True, slots=True)
class Launching:
    """The instance type of a NodeClaim and the labels that its node gets; or why there is none."""

    machine: Machine | None
    labels: Mapping[str, str] = field(default_factory=dict)
    failure: str = ""


def plan(claim: Raw, state: NodeState, launching: Launching, now: float) -> Plan:
    """Return what a NodeClaim needs now."""
    if is_deleted(claim):
        return _plan_removal(claim, state, now)
    if FINALIZER not in finalizers_of(claim):
        identity = {"uid": uid_of(claim), "resourceVersion": claim["metadata"]["resourceVersion"]}
        finalizers = [*finalizers_of(claim), FINALIZER]
        patch = {"metadata": {**identity, "finalizers": finalizers}}
        return Plan((Patch(NODE_CLAIMS, name_of(claim), patch),))
    expires = expiry_of(claim)
    if expires is not None and expires <= now:
        message = f"the node is older than expireAfter ({spec_of(claim)['expireAfter']})"
        return _give_up(claim, "Expired", message, type="Normal")
    if not has_condition(claim, LAUNCHED):
        return _launch(claim, state.node, launching, now)
    lost = _loss(claim, state.node, now)
    if lost is not None:
        return _give_up(claim, *lost)
    assert state.node is not None or not has_condition(claim, REGISTERED_CONDITION)
    writes = _advance(claim, state, now)
    ends = [expires] if expires is not None else []
    if not has_condition(claim, REGISTERED_CONDITION):
        ends.append(_creation_time(claim) + REGISTRATION_SECONDS_MAX)
    return Plan(tuple(writes), max(0.05, min(ends) - now) if ends else None)


def expiry_of(claim: Raw) -> float | None:
    """Return the time at which a NodeClaim expires, None if it never does."""
    after = spec_of(claim).get("expireAfter") or NEVER
    seconds = None if after == NEVER else seconds_in(after)
    return None if seconds is None else _creation_time(claim) + seconds


def _creation_time(claim: Raw) -> float:
    return seconds_of(claim["metadata"]["creationTimestamp"])


def _give_up(claim: Raw, reason: str, message: str, type: str = "Warning") -> Plan:
    """Delete a NodeClaim; its node follows."""
    report = Report(claim, type, reason, message, once=message)
    return Plan((report, Delete(NODE_CLAIMS, name_of(claim), uid_of(claim))))


def _loss(claim: Raw, node: Raw | None, now: float) -> tuple[str, str] | None:
    """Return why a launched NodeClaim has no future: the reason, and a message."""
    name = claim["metadata"]["name"]
    if node is None:
        if has_condition(claim, REGISTERED_CONDITION):
            return "NodeGone", f"node {name} was deleted; the NodeClaim is deleted"
        if now >= _creation_time(claim) + REGISTRATION_SECONDS_MAX:
            minutes = round(REGISTRATION_SECONDS_MAX / 60)
            return "RegistrationTimeout", f"node {name} did not register in {minutes} minutes"
        return None
    if is_deleted(node):
        return "NodeDeleted", f"node {name} is being deleted; the NodeClaim is deleted"
    return None


def _launch(claim: Raw, node: Raw | None, launching: Launching, now: float) -> Plan:
    """Create the node, or adopt the one that a former life of the provisioner created."""
    machine = launching.machine
    if machine is None:
        return _give_up(claim, "InsufficientCapacityError", launching.failure)
    name = claim["metadata"]["name"]
    if node is not None and not is_node_of(node, claim):
        message = f"a node named {name} exists that is not of this NodeClaim; delete one of the two"
        return _give_up(claim, "LaunchFailed", message)
    writes: list[Write] = []
    if node is None:
        writes.append(Create(NODES, new_node(claim, machine, launching.labels)))
    elif is_deleted(node):
        return _give_up(claim, "NodeDeleted", f"node {name} is being deleted")
    labels = {
        key: value for key, value in launching.labels.items() if labels_of(claim).get(key) != value
    }
    if labels:
        patch = {"metadata": {"uid": uid_of(claim), "labels": labels}}
        writes.append(Patch(NODE_CLAIMS, name_of(claim), patch))
    conditions = _with(claim, LAUNCHED, "True", "Launched", "", now)
    for kind in (REGISTERED_CONDITION, INITIALIZED_CONDITION, READY):
        waiting = _condition(
            claim, kind, "Unknown", "NodeNotFound", "the node has not registered", now
        )
        conditions = with_condition(conditions, waiting)
    status: Raw = {
        "providerID": provider_id(name),
        "capacity": dict(machine.capacity),
        "allocatable": dict(machine.capacity),
        "conditions": conditions,
    }
    patch = {"metadata": {"uid": uid_of(claim)}, "status": status}
    writes.append(Patch(NODE_CLAIMS, name_of(claim), patch, "status"))
    return Plan(tuple(writes))


def _advance(claim: Raw, state: NodeState, now: float) -> list[Write]:
    """Return the writes for a launched NodeClaim: it registers, and becomes ready."""
    node = state.node
    if node is None:
        return []
    writes: list[Write] = []
    taints = get(node, "spec.taints", ())
    labels = labels_of(node)
    status: dict[str, Any] = {}
    conditions: Sequence[Raw] = get(claim, "status.conditions", ())
    if not has_condition(claim, REGISTERED_CONDITION) or labels.get(REGISTERED) != "true":
        left = [each for each in taints if each.get("key") != UNREGISTERED_TAINT]
        patch: Raw = {"metadata": {"uid": uid_of(node), "labels": {REGISTERED: "true"}}}
        if len(left) != len(taints):
            patch["metadata"]["resourceVersion"] = node["metadata"]["resourceVersion"]
            patch["spec"] = {"taints": left or None}
        writes.append(Patch(NODES, name_of(node), patch))
        status["nodeName"] = node["metadata"]["name"]
        conditions = _set(
            conditions,
            _condition(claim, REGISTERED_CONDITION, "True", REGISTERED_CONDITION, "", now),
        )
    if not has_condition(claim, INITIALIZED_CONDITION):
        waiting = _find_lack(claim, state)
        if waiting is None:
            if labels.get(INITIALIZED) != "true":
                patch = {"metadata": {"uid": uid_of(node), "labels": {INITIALIZED: "true"}}}
                writes.append(Patch(NODES, name_of(node), patch))
            new = _condition(claim, INITIALIZED_CONDITION, "True", INITIALIZED_CONDITION, "", now)
            ready = _condition(claim, READY, "True", READY, "", now)
        else:
            new = _condition(claim, INITIALIZED_CONDITION, "Unknown", *waiting, now)
            ready = _condition(claim, READY, "Unknown", *waiting, now)
        conditions = _set(_set(conditions, new), ready)
        capacity = get(node, "status.capacity", {})
        allocatable = get(node, "status.allocatable", {})
        if waiting is None:
            status |= {"capacity": dict(capacity), "allocatable": dict(allocatable)}
    if conditions != get(claim, "status.conditions", ()):
        status["conditions"] = conditions
    if status:
        patch = {"metadata": {"uid": uid_of(claim)}, "status": status}
        writes.append(Patch(NODE_CLAIMS, name_of(claim), patch, "status"))
    return writes


def _find_lack(claim: Raw, state: NodeState) -> tuple[str, str] | None:
    """Return what a registered node lacks to be initialized: a reason, and a message."""
    node = state.node
    assert node is not None, "a registered NodeClaim has a node"
    if not is_ready(node):
        return "NodeNotReady", "the node is not Ready"
    startup = [(each["key"], each["effect"]) for each in get(spec_of(claim), "startupTaints", ())]
    taints = get(node, "spec.taints", ())
    for each in taints:
        if (each["key"], each["effect"]) in startup:
            return "StartupTaintsExist", f"the startup taint {each['key']} has not been removed"
        if each["key"] in _PASSING_TAINTS and each["key"] != UNREGISTERED_TAINT:
            return "KnownEphemeralTaintsExist", f"the node has the taint {each['key']}"
    asked = annotations_of(claim).get(DRIVERS, "")
    missing = [each for each in asked.split(",") if each and each not in state.published]
    if missing:
        names = ", ".join(missing)
        return "DRADriverPoolsNotPublished", f"the node has no complete pool of {names}"
    return None


def _plan_removal(claim: Raw, state: NodeState, now: float) -> Plan:
    """Return the next step of removing the node, or release the NodeClaim when it is gone."""
    if FINALIZER not in finalizers_of(claim):
        return NOTHING
    node = state.node
    if node is None or not is_node_of(node, claim):
        return Plan((without_finalizer(NODE_CLAIMS, claim, FINALIZER),))
    writes: list[Write] = []
    taints = get(node, "spec.taints", ())
    if all(each.get("key") != DISRUPTED_TAINT for each in taints):
        taint = {"key": DISRUPTED_TAINT, "effect": "NoSchedule"}
        metadata = {"uid": uid_of(node), "resourceVersion": node["metadata"]["resourceVersion"]}
        patch = {"metadata": metadata, "spec": {"taints": [*taints, taint]}}
        writes.append(Patch(NODES, name_of(node), patch))
    if not is_deleted(node):
        # The pods are asked to leave only after this, so they cannot come back to the node.
        return Plan((*writes, Delete(NODES, name_of(node), uid_of(node))))
    if state.draining:
        count = len(state.draining)
        message = f"{count} pod{'s' if count > 1 else ''} must leave the node"
        drained = _condition(claim, DRAINED, "Unknown", "Draining", message, now)
    else:
        drained = _condition(claim, DRAINED, "True", DRAINED, "", now)
    conditions = _set(get(claim, "status.conditions", ()), drained)
    if conditions != get(claim, "status.conditions", ()):
        patch = {"metadata": {"uid": uid_of(claim)}, "status": {"conditions": conditions}}
        writes.append(Patch(NODE_CLAIMS, name_of(claim), patch, "status"))
    if not state.draining and FINALIZER in finalizers_of(node):
        writes.append(without_finalizer(NODES, node, FINALIZER))
    return Plan(tuple(writes))


def drain_deadline(claim: Raw) -> float | None:
    """Return the time at which pods are deleted instead of evicted, None if that never happens."""
    period = seconds_in(spec_of(claim).get("terminationGracePeriod") or "")
    deleted = claim["metadata"].get("deletionTimestamp")
    return None if period is None or not deleted else seconds_of(deleted) + period


def _condition(claim: Raw, kind: str, status: str, reason: str, message: str, now: float) -> Raw:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": claim["metadata"].get("generation", 1),
        "lastTransitionTime": timestamp(now),
    }


def _with(claim: Raw, kind: str, status: str, reason: str, message: str, now: float) -> list[Raw]:
    conditions = get(claim, "status.conditions", ())
    return with_condition(conditions, _condition(claim, kind, status, reason, message, now))


def _set(conditions: Sequence[Raw], new: Raw) -> list[Raw]:
    """Return the conditions with one set; nothing changes if it says the same already."""
    old = next((each for each in conditions if each["type"] == new["type"]), None)
    same = ("status", "reason", "message")
    if old is not None and all(old.get(key, "") == new[key] for key in same):
        return list(conditions)
    return with_condition(conditions, new)
