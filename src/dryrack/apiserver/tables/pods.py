"""
The row of a pod.

Its status is a word that no field holds: it is found by walking the containers, first the
initialising ones and then, in reverse, the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dryrack.apiserver.tables.ages import age, since
from dryrack.apiserver.tables.columns import AGE, NAME, Shape, dig, name_of, plain, wide
from dryrack.apiserver.tables.labels import NONE

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
        finished = dig(status, "lastState", "terminated", "finishedAt", default="")
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
        containers = dig(self.pod, "spec", "initContainers", default=())
        restartable = {entry["name"] for entry in containers if _restartable(entry)}
        statuses = dig(self.pod, "status", "initContainerStatuses", default=())
        for index, status in enumerate(statuses):
            self.restarts.add(status)
            is_sidecar = status.get("name") in restartable
            if is_sidecar:
                self.sidecars.add(status)
            if dig(status, "state", "terminated", "exitCode", default=-1) == 0:
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
        for status in reversed(dig(self.pod, "status", "containerStatuses", default=())):
            self.restarts.add(status)
            terminated = dig(status, "state", "terminated")
            if waiting := dig(status, "state", "waiting", "reason"):
                self.reason = waiting
            elif terminated is not None:
                self.reason = _terminated_reason(terminated)
                error = self.reason if terminated.get("exitCode") else error
            elif status.get("ready") and dig(status, "state", "running") is not None:
                has_running = True
                self.ready += 1
        if self.reason == "Completed":
            self.reason = self._after_completion(error, has_running=has_running)

    def _after_completion(self, error: str, *, has_running: bool) -> str:
        if has_running and _is_true(self.pod, "Ready"):
            return "Running"
        return error or ("NotReady" if has_running else self.reason)


def _initial_reason(status: JsonObject, progress: str) -> str:
    terminated = dig(status, "state", "terminated")
    if terminated is not None:
        return f"Init:{_terminated_reason(terminated)}"
    waiting = dig(status, "state", "waiting", "reason", default="")
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
    found: list[JsonObject] = dig(pod, "status", "conditions", default=[])
    return next((entry for entry in found if entry.get("type") == kind), {})


def _is_true(pod: JsonObject, kind: str) -> bool:
    return _condition(pod, kind).get("status") == "True"


def _deletion_reason(status: JsonObject, reason: str) -> str:
    if status.get("reason") == _UNREACHABLE:
        return "Unknown"
    return reason if status.get("phase") in _TERMINAL else "Terminating"


def _containers(pod: JsonObject) -> int:
    sidecars = [c for c in dig(pod, "spec", "initContainers", default=()) if _restartable(c)]
    return len(dig(pod, "spec", "containers", default=())) + len(sidecars)


def _readiness_gates(pod: JsonObject) -> str:
    gates = dig(pod, "spec", "readinessGates", default=())
    fulfilled = sum(_is_true(pod, gate["conditionType"]) for gate in gates)
    return f"{fulfilled}/{len(gates)}" if gates else NONE


def _cells(pod: JsonObject, now: float) -> list[Any]:
    status = dig(pod, "status", default={})
    reason = status.get("reason") or status.get("phase") or ""
    if _condition(pod, "PodScheduled").get("reason") == "SchedulingGated":
        reason = "SchedulingGated"
    walk = _Walk(pod, reason)
    walk.initial()
    if not walk.initializing or _is_true(pod, "Initialized"):
        walk.running()
    if dig(pod, "metadata", "deletionTimestamp"):
        walk.reason = _deletion_reason(status, walk.reason)
    addresses = dig(pod, "status", "podIPs", default=())
    return [
        name_of(pod),
        f"{walk.ready}/{_containers(pod)}",
        walk.reason,
        walk.restarts.text(now),
        age(pod, now),
        (addresses[0].get("ip") if addresses else "") or NONE,
        dig(pod, "spec", "nodeName", default="") or NONE,
        dig(pod, "status", "nominatedNodeName", default="") or NONE,
        _readiness_gates(pod),
    ]


def _conditions(pod: JsonObject) -> list[dict[str, str]]:
    phase = dig(pod, "status", "phase", default="")
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
