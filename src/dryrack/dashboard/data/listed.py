"""The rows of nodes, pods and events."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dryrack.kinds.expansion.pod_claims import named_claim
from dryrack.kinds.paths import get
from dryrack.placement import Membership, membership, scheduler_message_of

if TYPE_CHECKING:
    from dryrack.kinds.core import Node, Pod
    from dryrack.kinds.raw import Raw

_ZONE = "topology.kubernetes.io/zone"
_TYPE = "node.kubernetes.io/instance-type"
_OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
_RACK = re.compile(r"(.*[/.-])?rack", re.IGNORECASE)
_ENDED = ("Succeeded", "Failed")
# Where Kueue and Volcano find the queue of a pod.
_KUEUE = "kueue.x-k8s.io/queue-name"
_VOLCANO = "scheduling.volcano.sh/queue-name"


def node_row(node: Node) -> dict[str, Any]:
    """Return the fields of a node that the map shows."""
    labels = node.metadata.labels
    ready = next((each.status for each in node.status.conditions if each.type == "Ready"), "")
    return {
        "name": node.metadata.name,
        "zone": labels.get(_ZONE) or labels.get(_OLD_ZONE, ""),
        "rack": next((labels[each] for each in sorted(labels) if _RACK.fullmatch(each)), ""),
        "instanceType": labels.get(_TYPE, ""),
        "ready": ready == "True",
        "cordoned": node.spec.unschedulable,
    }


def pod_row(pod: Pod) -> dict[str, Any]:
    """Return a pod; `why` is the message of the scheduler while the pod is pending."""
    said = scheduler_message_of(pod)
    group = membership(pod)
    claims = (named_claim(pod, entry) for entry in pod.spec.resource_claims)
    return {
        "namespace": pod.metadata.namespace,
        "name": pod.metadata.name,
        "phase": pod.status.phase,
        "node": pod.spec.node_name,
        "pending": not pod.spec.node_name and pod.status.phase not in _ENDED,
        "deleting": pod.metadata.deletion_timestamp is not None,
        "claims": [name for name in claims if name],
        "gang": group.key.name if isinstance(group, Membership) else "",
        "queue": pod.metadata.labels.get(_KUEUE) or pod.metadata.annotations.get(_VOLCANO, ""),
        "schedulingGates": [each.name for each in pod.spec.scheduling_gates],
        "why": said.message if said is not None and not pod.spec.node_name else "",
        "created": pod.metadata.creation_timestamp or "",
        "scheduled": _scheduled_time(pod),
        "disruption": next(
            (
                each.reason
                for each in pod.status.conditions
                if each.type == "DisruptionTarget" and each.status == "True"
            ),
            "",
        ),
    }


def _scheduled_time(pod: Pod) -> str:
    """Return when the pod got its node; empty if it has none, or if the time is unknown."""
    times = (
        each.last_transition_time
        for each in pod.status.conditions
        if each.type == "PodScheduled" and each.status == "True"
    )
    return (next(times, None) or "") if pod.spec.node_name else ""


def unhealthy_resources(pod: Raw) -> dict[str, str]:
    """Return messages by unhealthy device of a pod: driver/pool/name, or a CDI device."""
    containers = get(pod, "status.containerStatuses", ())
    resources = (each for one in containers for each in get(one, "allocatedResourcesStatus", ()))
    return {
        each.get("resourceID", ""): each.get("message") or ""
        for entry in resources
        for each in get(entry, "resources", ())
        if each.get("health") == "Unhealthy"
    }


def event_row(raw: Raw) -> dict[str, Any]:
    """Return an Event, which may have the fields of either API group."""
    metadata = raw["metadata"]
    about = raw.get("involvedObject") or raw.get("regarding") or {}
    series = get(raw, "series", {})
    source = get(raw, "source", {})
    last = series.get("lastObservedTime") or raw.get("lastTimestamp") or raw.get("eventTime")
    return {
        "namespace": metadata.get("namespace", ""),
        "name": metadata["name"],
        "type": raw.get("type", ""),
        "reason": raw.get("reason", ""),
        "message": raw.get("message") or raw.get("note") or "",
        "object": {
            "kind": about.get("kind", ""),
            "namespace": about.get("namespace", ""),
            "name": about.get("name", ""),
        },
        "by": raw.get("reportingComponent") or source.get("component") or "",
        "count": series.get("count") or raw.get("count") or 1,
        "time": last or metadata.get("creationTimestamp") or "",
    }
