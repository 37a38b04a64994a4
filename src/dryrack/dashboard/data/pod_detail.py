"""The details of a pod and of a gang, with a timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.dashboard.data.tracked import Tracked
    from dryrack.kinds.core import Pod

Document = dict[str, Any]
# The text of the timeline for a condition that became true.
_STEPS = {
    "PodScheduled": "scheduled",
    "PodReadyToStartContainers": "devices and network prepared",
    "Initialized": "initialized",
    "Ready": "ready",
    "DisruptionTarget": "disrupted",
}


def pod_document(tracked: Tracked, name: str) -> Document | None:
    """Return the details of a pod; None if no pod has this name."""
    pod = tracked.pod(name)
    row = tracked.pods.current.get(name)
    if pod is None or row is None:
        return None
    namespace = pod.metadata.namespace
    claims = (tracked.claims.current.get(f"{namespace}/{each}") for each in row["claims"])
    return {
        **row,
        "schedulerName": pod.spec.scheduler_name or "default-scheduler",
        "nominatedNode": pod.status.nominated_node_name,
        "priority": pod.spec.priority,
        "priorityClassName": pod.spec.priority_class_name,
        "preemptionPolicy": pod.spec.preemption_policy,
        "claimsOf": [each for each in claims if each is not None],
        "conditions": [
            {
                "type": each.type,
                "status": each.status,
                "reason": each.reason,
                "message": each.message,
                "since": each.last_transition_time or "",
            }
            for each in pod.status.conditions
        ],
        "timeline": _in_order([*_steps(pod), *_events(tracked, [name])]),
    }


def gang_document(tracked: Tracked, namespace: str, name: str) -> Document | None:
    """Return the details of a gang; None if no gang has this name."""
    for definition, rows in tracked.gangs.current.items():
        if definition.namespace != namespace:
            continue
        for row in rows:
            if row["name"] == name:
                names = [f"{row['namespace']}/{each}" for each in (*row["placed"], *row["waiting"])]
                pods = [pod for each in names if (pod := tracked.pod(each)) is not None]
                members = [_member(tracked, pod) for pod in pods]
                steps = [step for pod in pods for step in _steps(pod)]
                missing = max(0, (row["minCount"] or 0) - len(names))
                return {
                    **row,
                    "members": members,
                    "missing": missing,
                    "timeline": _in_order([*steps, *_events(tracked, names)]),
                }
    return None


def _member(tracked: Tracked, pod: Pod) -> Document:
    name = pod.full_name
    row = tracked.pods.current.get(name, {"claims": []})
    claims = (
        tracked.claims.current.get(f"{pod.metadata.namespace}/{each}") for each in row["claims"]
    )
    return {**row, "claimsOf": [each for each in claims if each is not None]}


def _steps(pod: Pod) -> Iterator[Document]:
    """Yield the steps that are recorded in the pod itself."""
    name = pod.full_name
    if pod.metadata.creation_timestamp:
        yield _step(pod.metadata.creation_timestamp, name, "created", "")
    for each in pod.status.conditions:
        what = _STEPS.get(each.type)
        if what is not None and each.status == "True" and each.last_transition_time:
            on_node = f"on node {pod.spec.node_name}" if each.type == "PodScheduled" else ""
            yield _step(each.last_transition_time, name, what, each.message or on_node)
    if pod.metadata.deletion_timestamp:
        yield _step(pod.metadata.deletion_timestamp, name, "deleted", "")


def _step(time: str, pod: str, what: str, message: str) -> Document:
    return {"time": time, "pod": pod, "what": what, "message": message, "count": 1, "by": ""}


def _events(tracked: Tracked, pods: Sequence[str]) -> Iterator[Document]:
    for each in tracked.events_about("Pod", pods):
        about = each["object"]
        step = _step(
            each["time"], f"{about['namespace']}/{about['name']}", each["reason"], each["message"]
        )
        yield step | {"count": each["count"], "by": each["by"]}


def _in_order(steps: Sequence[Document]) -> list[Document]:
    return sorted(steps, key=lambda each: (each["time"], each["pod"], each["what"]))
