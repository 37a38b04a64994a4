"""
The row of a pod.

Its status is a word that no field holds: it is found by walking the containers, first the
initialising ones and then, in reverse, the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dryrack.apiserver.tables.columns import (
    AGE,
    NAME,
    NONE,
    Shape,
    age,
    name_of,
    plain,
    since,
    wide,
)
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from dryrack.apiserver.tables.columns import JsonObject

_TERMINAL = ("Succeeded", "Failed")
_UNREACHABLE = "NodeLost"
_MESSAGES = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


@dataclass(slots=True)
class _Restarts:
    count: int = 0
    last: str = ""

    def add(self, status: JsonObject) -> None:
        self.count += status.get("restartCount") or 0
        # Times of one form compare as text.
        finished = get(status, "lastState.terminated.finishedAt", "")
        self.last = max(self.last, finished)

    def text(self, now: float) -> str:
        if self.count and self.last:
            return f"{self.count} ({since(self.last, now)} ago)"
        return str(self.count)


@dataclass(slots=True)
class _Walk:
    """The state of a pod's containers, summarized for the status column."""

    pod: JsonObject
    reason: str
    ready: int = 0
    initializing: bool = False
    restarts: _Restarts = field(default_factory=_Restarts)
    # Restarts of sidecars count for as long as the pod lives.
    sidecars: _Restarts = field(default_factory=_Restarts)

    def initial(self) -> None:
        containers = get(self.pod, "spec.initContainers", ())
        restartable = {entry["name"] for entry in containers if _restartable(entry)}
        statuses = get(self.pod, "status.initContainerStatuses", ())
        for index, status in enumerate(statuses):
            self.restarts.add(status)
            is_sidecar = status.get("name") in restartable
            if is_sidecar:
                self.sidecars.add(status)
            if get(status, "state.terminated.exitCode", -1) == 0:
                continue
            if is_sidecar and status.get("started"):
                self.ready += bool(status.get("ready"))
                continue
            self.reason = _initial_reason(status, f"Init:{index}/{len(containers)}")
            self.initializing = True
            return

    def running(self) -> None:
        self.restarts = self.sidecars
        has_running = False
        error = ""
        for status in reversed(get(self.pod, "status.containerStatuses", ())):
            self.restarts.add(status)
            terminated = get(status, "state.terminated")
            if waiting := get(status, "state.waiting.reason"):
                self.reason = waiting
            elif terminated is not None:
                self.reason = _terminated_reason(terminated)
                error = self.reason if terminated.get("exitCode") else error
            elif status.get("ready") and get(status, "state.running") is not None:
                has_running = True
                self.ready += 1
        if self.reason == "Completed":
            self.reason = self._after_completion(error, has_running=has_running)

    def _after_completion(self, error: str, *, has_running: bool) -> str:
        if has_running and _is_true(self.pod, "Ready"):
            return "Running"
        return error or ("NotReady" if has_running else self.reason)


def _initial_reason(status: JsonObject, progress: str) -> str:
    terminated = get(status, "state.terminated")
    if terminated is not None:
        return f"Init:{_terminated_reason(terminated)}"
    waiting = get(status, "state.waiting.reason", "")
    return f"Init:{waiting}" if waiting and waiting != "PodInitializing" else progress


def _terminated_reason(terminated: JsonObject) -> str:
    if reason := terminated.get("reason"):
        return str(reason)
    if signal := terminated.get("signal"):
        return f"Signal:{signal}"
    return f"ExitCode:{terminated.get('exitCode') or 0}"


def _restartable(container: JsonObject) -> bool:
    return container.get("restartPolicy") == "Always"


def _condition(pod: JsonObject, kind: str) -> JsonObject:
    found: list[JsonObject] = get(pod, "status.conditions", [])
    return next((entry for entry in found if entry.get("type") == kind), {})


def _is_true(pod: JsonObject, kind: str) -> bool:
    return _condition(pod, kind).get("status") == "True"


def _deletion_reason(status: JsonObject, reason: str) -> str:
    if status.get("reason") == _UNREACHABLE:
        return "Unknown"
    return reason if status.get("phase") in _TERMINAL else "Terminating"


def _containers(pod: JsonObject) -> int:
    sidecars = [c for c in get(pod, "spec.initContainers", ()) if _restartable(c)]
    return len(get(pod, "spec.containers", ())) + len(sidecars)


def _readiness_gates(pod: JsonObject) -> str:
    gates = get(pod, "spec.readinessGates", ())
    fulfilled = sum(_is_true(pod, gate["conditionType"]) for gate in gates)
    return f"{fulfilled}/{len(gates)}" if gates else NONE


def _cells(pod: JsonObject, now: float) -> list[Any]:
    status = get(pod, "status", {})
    reason = status.get("reason") or status.get("phase") or ""
    if _condition(pod, "PodScheduled").get("reason") == "SchedulingGated":
        reason = "SchedulingGated"
    walk = _Walk(pod, reason)
    walk.initial()
    if not walk.initializing or _is_true(pod, "Initialized"):
        walk.running()
    if get(pod, "metadata.deletionTimestamp"):
        walk.reason = _deletion_reason(status, walk.reason)
    addresses = get(pod, "status.podIPs", ())
    return [
        name_of(pod),
        f"{walk.ready}/{_containers(pod)}",
        walk.reason,
        walk.restarts.text(now),
        age(pod, now),
        (addresses[0].get("ip") if addresses else "") or NONE,
        get(pod, "spec.nodeName", "") or NONE,
        get(pod, "status.nominatedNodeName", "") or NONE,
        _readiness_gates(pod),
    ]


def _conditions(pod: JsonObject) -> list[dict[str, str]]:
    phase = get(pod, "status.phase", "")
    if phase not in _TERMINAL:
        return []
    message = _MESSAGES[phase]
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}]


PODS = Shape(
    (
        NAME,
        *plain("Ready", "Status", "Restarts"),
        AGE,
        *wide("IP", "Node", "Nominated Node", "Readiness Gates"),
    ),
    _cells,
    _conditions,
)
