"""
A run as a pod's status, and a status as a run.

`render` writes what the kubelet would report; conditions and fields of others stay as they are.
`resume` reads it back, so that a run goes on when its engine was away; only fractions of seconds
are lost on that way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from dryrack.client.timekeeping import seconds_of, timestamp
from dryrack.controllers.objects import (
    annotations_of,
    condition_of,
    controller_of,
    spec_of,
    status_of,
    uid_of,
    with_condition,
)
from dryrack.controllers.pods.lifecycle import (
    RUN_SECONDS,
    Container,
    Exited,
    Role,
    Run,
    Running,
    State,
    Waiting,
    script_of,
)
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw

RUNTIME = "dryrack"
# On a pod of its own: Helm waits until it has succeeded, as `helm test` does.
HELM_HOOK = "helm.sh/hook"
TERMINATION_SECONDS = 30.0

DEADLINE_EXCEEDED = "DeadlineExceeded"
DEADLINE_MESSAGE = "Pod was active on the node longer than the specified deadline"


def new_run(pod: Raw, now: float) -> Run:
    """The run of a pod that has just come to its node."""
    spec = spec_of(pod)
    script = script_of(annotations_of(pod), run_seconds=RUN_SECONDS if _completes(pod) else None)
    return Run(
        script=script,
        restart_policy=spec.get("restartPolicy") or "Always",
        containers=tuple(_containers(spec, script.waiting)),
        started_at=now,
        at=now,
        deadline_seconds=spec.get("activeDeadlineSeconds"),
        termination_seconds=spec.get("terminationGracePeriodSeconds", TERMINATION_SECONDS),
    )


def _completes(pod: Raw) -> bool:
    """Whether somebody waits for its end: a Job, or Helm; of no other pod anybody says it ends."""
    owner = controller_of(pod)
    if owner is None:
        return HELM_HOOK in annotations_of(pod) and spec_of(pod).get("restartPolicy") != "Always"
    return (owner["kind"], owner["apiVersion"]) == ("Job", "batch/v1")


def _containers(spec: Raw, reason: str) -> Sequence[Container]:
    """Those that would start first wait for the reason, if there is one."""
    inits = get(spec, "initContainers", ())
    initializing = "PodInitializing"
    first = [
        Container(
            each["name"],
            Role.SIDECAR if each.get("restartPolicy") == "Always" else Role.INIT,
            Waiting(initializing if number else reason or initializing),
        )
        for number, each in enumerate(inits)
    ]
    waiting = initializing if inits else reason or "ContainerCreating"
    mains = [
        Container(each["name"], Role.MAIN, Waiting(waiting)) for each in get(spec, "containers", ())
    ]
    return first + mains


def resume(pod: Raw, now: float) -> Run:
    """
    Return the run that the status of a pod describes.

    A pod whose phase is final never starts a container again, whatever its restart policy is.
    """
    run = new_run(pod, now)
    status = status_of(pod)
    told = {
        each["name"]: each
        for key in ("initContainerStatuses", "containerStatuses")
        for each in status.get(key) or ()
    }
    if "startTime" not in status or not told:
        return run
    started = seconds_of(status["startTime"])
    containers = tuple(_resumed(each, told.get(each.name)) for each in run.containers)
    begun = any(not isinstance(each.state, Waiting) or each.last for each in containers)
    return replace(
        run,
        containers=containers,
        started_at=started,
        at=started,
        prepared_at=started if begun else None,
        stops_at=started if status.get("phase") in ("Failed", "Succeeded") else None,
    )


def is_of_other_boot(pod: Raw, boot: str) -> bool:
    """Whether containers are said to run that a start of their node has ended since."""
    return any(
        each.get("containerID", "").startswith(f"{RUNTIME}://")
        and each["containerID"] != _identity(pod, each["name"], each["restartCount"], boot)
        for key in ("initContainerStatuses", "containerStatuses")
        for each in status_of(pod).get(key) or ()
        if "running" in get(each, "state", {})
    )


def _resumed(container: Container, told: Raw | None) -> Container:
    if told is None:
        return container
    last = _state(get(told, "lastState", {}), is_ready=False)
    return Container(
        container.name,
        container.role,
        _state(get(told, "state", {}), is_ready=bool(told.get("ready"))),
        restarts=told.get("restartCount", 0),
        last=last if isinstance(last, Exited) else None,
    )


def _state(told: Raw, *, is_ready: bool) -> State:
    if "running" in told:
        return Running(seconds_of(told["running"]["startedAt"]), is_ready)
    if "terminated" in told:
        ended = told["terminated"]
        finished = seconds_of(ended["finishedAt"])
        since = seconds_of(ended["startedAt"]) if ended.get("startedAt") else finished
        return Exited(since, finished, ended["exitCode"])
    waiting = get(told, "waiting", {})
    return Waiting(waiting.get("reason", "ContainerCreating"), waiting.get("message", ""))


_NO_HEALTH: Mapping[str, Sequence[Raw]] = {}


def render(
    run: Run,
    pod: Raw,
    *,
    address: str,
    host: str,
    boot: str = "",
    health: Mapping[str, Sequence[Raw]] = _NO_HEALTH,
) -> Raw:
    """
    The pod's status as of this run; equal to the present one if nothing has changed.

    `health` is what is told of the devices of each container, once they are prepared. `boot` tells
    the times apart that the node has been started.
    """
    old = status_of(pod)
    specs = _specs(spec_of(pod))
    status = old | {
        "phase": phase_of(run),
        "startTime": old.get("startTime") or timestamp(run.started_at),
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "containerStatuses": [_container(each, pod, specs, boot) for each in run.mains],
    }
    for each in status["containerStatuses"] if health and run.prepared_at is not None else ():
        if each["name"] in health:
            each["allocatedResourcesStatus"] = health[each["name"]]
    first = [each for each in run.containers if each.role is not Role.MAIN]
    if first:
        status["initContainerStatuses"] = [_container(each, pod, specs, boot) for each in first]
    debuggers = _debuggers(run, pod, boot)
    if debuggers:
        status["ephemeralContainerStatuses"] = debuggers
    if run.prepared_at is not None and not run.script.waiting:
        status |= {"podIP": address, "podIPs": [{"ip": address}]}
    if "generation" in pod["metadata"]:
        status["observedGeneration"] = pod["metadata"]["generation"]
    if run.is_expired and run.is_over:
        status |= {"reason": DEADLINE_EXCEEDED, "message": DEADLINE_MESSAGE}
    status["conditions"] = _conditions(run, pod)
    return status


def phase_of(run: Run) -> str:
    """As the kubelet tells it; a pod that was stopped before all of it had succeeded has failed."""
    if run.is_expired and run.is_over:
        return "Failed"
    if run.is_over:
        codes = [each.state.code if isinstance(each.state, Exited) else None for each in run.mains]
        return "Failed" if any(code != 0 for code in codes) else "Succeeded"
    started = (each.last or not isinstance(each.state, Waiting) for each in run.mains)
    return "Running" if all(started) else "Pending"


def _specs(spec: Raw) -> dict[str, Raw]:
    every = [*get(spec, "initContainers", ()), *get(spec, "containers", ())]
    return {each["name"]: each for each in every}


def _debuggers(run: Run, pod: Raw, boot: str) -> list[Raw]:
    """Containers put into the pod while it runs: they start with it, and end with it."""
    specs = {each["name"]: each for each in get(pod, "spec.ephemeralContainers", ())}
    started = [each.state.since for each in run.mains if isinstance(each.state, Running)]
    state: State = Running(max(started), False) if started else Waiting("ContainerCreating")
    made = (Container(name, Role.MAIN, state) for name in specs)
    return [_container(each, pod, specs, boot) | {"ready": False} for each in made]


def _container(container: Container, pod: Raw, specs: dict[str, Raw], boot: str) -> Raw:
    state = container.state
    is_running = isinstance(state, Running)
    spec = specs.get(container.name, {})
    image = spec.get("image", "")
    identity = _identity(pod, container.name, container.restarts, boot)
    told: Raw = {
        "name": container.name,
        "state": _told(state, identity),
        "lastState": _told(container.last, identity) if container.last else {},
        "ready": _is_ready(container),
        "restartCount": container.restarts,
        "image": image,
        "imageID": f"{RUNTIME}://{image}" if not isinstance(state, Waiting) else "",
        "started": is_running,
    }
    if not isinstance(state, Waiting):
        told["containerID"] = identity
    if is_running:
        told["resources"] = _amounts(spec)
        if told["resources"].get("requests"):
            told["allocatedResources"] = told["resources"]["requests"]
    return told


def _identity(pod: Raw, name: str, restarts: int, boot: str) -> str:
    return "-".join(filter(None, (f"{RUNTIME}://{uid_of(pod)}", name, str(restarts), boot)))


def _amounts(spec: Raw) -> Raw:
    given = get(spec, "resources", {})
    return {part: given[part] for part in ("limits", "requests") if given.get(part)}


def _is_ready(container: Container) -> bool:
    match container.state:
        case Running(_, is_ready):
            return is_ready
        case Exited(_, _, code):
            return container.role is Role.INIT and code == 0
        case Waiting():
            return False
        case _:
            assert_never(container.state)


def _told(state: State, identity: str) -> Raw:
    match state:
        case Waiting(reason, message):
            return {"waiting": {"reason": reason} | ({"message": message} if message else {})}
        case Running(since):
            return {"running": {"startedAt": timestamp(since)}}
        case Exited(since, at, code):
            ended = {
                "exitCode": code,
                "reason": "Error" if code else "Completed",
                "startedAt": timestamp(since),
                "finishedAt": timestamp(at),
                "containerID": identity,
            }
            return {"terminated": ended}
        case _:
            assert_never(state)


def _conditions(run: Run, pod: Raw) -> list[Raw]:
    conditions: list[Raw] = list(get(pod, "status.conditions", ()))
    for kind, (is_true, reason, message) in _judged(run, pod).items():
        found: Raw = {"type": kind, "status": "True" if is_true else "False"}
        if "generation" in pod["metadata"]:
            found["observedGeneration"] = pod["metadata"]["generation"]
        found |= {"lastProbeTime": None, "lastTransitionTime": timestamp(run.at)}
        if reason:
            found["reason"] = reason
        if message:
            found["message"] = message
        conditions = with_condition(conditions, found)
    if condition_of(pod, "PodScheduled") is None:
        # A pod that was put on its node by hand has met no scheduler.
        found = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
        conditions.append(found | {"lastTransitionTime": timestamp(run.at)})
    return conditions


_Judgement = tuple[bool, str, str]


def _judged(run: Run, pod: Raw) -> dict[str, _Judgement]:
    phase = phase_of(run)
    ready = _containers_ready(run, phase)
    has_sandbox = run.prepared_at is not None and phase not in ("Succeeded", "Failed")
    return {
        "PodReadyToStartContainers": (has_sandbox, "", ""),
        "Initialized": _initialized(run, phase),
        "Ready": _ready(ready, pod),
        "ContainersReady": ready,
    }


def _initialized(run: Run, phase: str) -> _Judgement:
    if run.is_initialized:
        return True, "PodCompleted" if phase == "Succeeded" else "", ""
    names = [
        each.name
        for each in run.containers
        if each.role is not Role.MAIN and not isinstance(each.state, Exited)
    ]
    message = f"containers with incomplete status: [{' '.join(names)}]"
    return False, "ContainersNotInitialized", message


def _containers_ready(run: Run, phase: str) -> _Judgement:
    if phase == "Succeeded":
        return False, "PodCompleted", ""
    if phase == "Failed":
        return False, "PodFailed", ""
    watched = [each for each in run.containers if each.role is not Role.INIT]
    unready = [each.name for each in watched if not _is_ready(each)]
    if unready:
        message = f"containers with unready status: [{' '.join(unready)}]"
        return False, "ContainersNotReady", message
    return True, "", ""


def _ready(containers: _Judgement, pod: Raw) -> _Judgement:
    if not containers[0]:
        return containers
    for gate in get(pod, "spec.readinessGates", ()):
        kind = gate["conditionType"]
        condition = condition_of(pod, kind)
        if condition is None:
            message = f'corresponding condition of pod readiness gate "{kind}" does not exist.'
            return False, "ReadinessGatesNotReady", message
        if condition["status"] != "True":
            said = condition["status"]
            message = f'the status of pod readiness gate "{kind}" is not "True", but {said}'
            return False, "ReadinessGatesNotReady", message
    return True, "", ""
