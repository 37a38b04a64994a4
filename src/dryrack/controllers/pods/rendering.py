"""
Convert a run to the status of a pod, and back.

`render` returns what a kubelet would report; conditions and fields of others stay as they are.
`resume` reads it back, so that a run continues after a restart; only fractions of seconds are lost.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from dryrack.client.timekeeping import seconds_of, timestamp
from dryrack.controllers.containers.probes import is_probed
from dryrack.controllers.containers.programs import is_known, is_server
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
    INIT_SECONDS,
    READY_SECONDS,
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
# Helm waits until a pod with this annotation has succeeded, as `helm test` does.
HELM_HOOK = "helm.sh/hook"
TERMINATION_SECONDS = 30.0
DEADLINE_EXCEEDED = "DeadlineExceeded"
DEADLINE_MESSAGE = "Pod was active on the node longer than the specified deadline"


def new_run(pod: Raw, now: float) -> Run:
    """Return the run of a pod that was just bound to its node."""
    spec = spec_of(pod)
    policy = spec.get("restartPolicy") or "Always"
    owner = controller_of(pod)
    # Only pods of Jobs and of Helm hooks are expected to end.
    ends = HELM_HOOK in annotations_of(pod) and spec.get("restartPolicy") != "Always"
    if owner is not None:
        ends = (owner["kind"], owner["apiVersion"]) == ("Job", "batch/v1")
    script = script_of(annotations_of(pod), run_seconds=RUN_SECONDS if ends else None)
    inits = get(spec, "initContainers", ())
    initializing = "PodInitializing"
    # The containers that would start first wait for the reason of the script, if it has one.
    has_init_seconds = INIT_SECONDS in annotations_of(pod)
    has_ready_seconds = READY_SECONDS in annotations_of(pod)
    first: list[Container] = []
    for number, each in enumerate(inits):
        role = Role.SIDECAR if each.get("restartPolicy") == "Always" else Role.INIT
        waiting = Waiting(initializing if number else script.waiting or initializing)
        is_executed = is_known(each) and (role is Role.SIDECAR or not has_init_seconds)
        container = Container(each["name"], role, waiting, is_executed=is_executed)
        if role is Role.SIDECAR and not has_ready_seconds:
            container = replace(container, is_probed=is_probed(each, is_executed=is_executed))
        first.append(container)
    waiting = Waiting(initializing if inits else script.waiting or "ContainerCreating")
    mains: list[Container] = []
    for each in get(spec, "containers", ()):
        decides = is_known(each) and not script.decides_end
        container = Container(each["name"], Role.MAIN, waiting)
        mains.append(
            replace(
                container,
                is_executed=decides or (is_server(each) and not script.decides_end),
                is_probed=not has_ready_seconds and is_probed(each, is_executed=decides),
            )
        )
    return Run(
        script=script,
        restart_policy=policy,
        containers=(*first, *mains),
        started_at=now,
        at=now,
        deadline_seconds=spec.get("activeDeadlineSeconds"),
        termination_seconds=spec.get("terminationGracePeriodSeconds", TERMINATION_SECONDS),
        graceful=frozenset(
            each["name"]
            for each in get(spec, "containers", ())
            if {"exec", "sleep"} & get(each, "lifecycle.preStop", {}).keys()
        ),
    )


def resume(pod: Raw, now: float) -> Run:
    """
    Return the run that the status of a pod describes.

    A pod whose phase is final never starts a container again, whatever its restart policy is.
    """
    run = new_run(pod, now)
    status = status_of(pod)
    reported = {
        each["name"]: each
        for key in ("initContainerStatuses", "containerStatuses")
        for each in status.get(key) or ()
    }
    if "startTime" not in status or not reported:
        return run
    started = seconds_of(status["startTime"])
    containers = []
    for container in run.containers:
        known = reported.get(container.name)
        if known is not None:
            last = _state(get(known, "lastState", {}), is_ready=False)
            container = replace(
                container,
                state=_state(
                    get(known, "state", {}),
                    is_ready=bool(known.get("ready")),
                    is_started=known.get("started") is not False,
                ),
                restarts=known.get("restartCount", 0),
                last=last if isinstance(last, Exited) else None,
            )
        containers.append(container)
    has_begun = any(not isinstance(each.state, Waiting) or each.last for each in containers)
    return replace(
        run,
        containers=tuple(containers),
        started_at=started,
        at=started,
        prepared_at=started if has_begun else None,
        stops_at=started if status.get("phase") in ("Failed", "Succeeded") else None,
    )


def is_of_other_boot(pod: Raw, boot: str) -> bool:
    """Return True if the status has running containers that a reboot of the node has ended."""
    return any(
        each.get("containerID", "").startswith(f"{RUNTIME}://")
        and each["containerID"] != _identity(pod, each["name"], each["restartCount"], boot)
        for key in ("initContainerStatuses", "containerStatuses")
        for each in status_of(pod).get(key) or ()
        if "running" in get(each, "state", {})
    )


def _state(state: Raw, *, is_ready: bool, is_started: bool = True) -> State:
    if "running" in state:
        return Running(seconds_of(state["running"]["startedAt"]), is_ready, is_started)
    if "terminated" in state:
        ended = state["terminated"]
        finished = seconds_of(ended["finishedAt"])
        since = seconds_of(ended["startedAt"]) if ended.get("startedAt") else finished
        return Exited(since, finished, ended["exitCode"], ended.get("message", ""))
    waiting = get(state, "waiting", {})
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
    Return the pod's status for this run; it equals the present one if nothing has changed.

    `health` has entries for the devices of each container, once they are prepared. `boot`
    identifies the present boot of the node.
    """
    old = status_of(pod)
    spec = spec_of(pod)
    every = [*get(spec, "initContainers", ()), *get(spec, "containers", ())]
    specs = {each["name"]: each for each in every}
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
    ephemeral = {each["name"]: each for each in get(spec, "ephemeralContainers", ())}
    if ephemeral:
        # Containers that were added while the pod runs start and end with it.
        started = [each.state.since for each in run.mains if isinstance(each.state, Running)]
        state: State = Running(max(started), False) if started else Waiting("ContainerCreating")
        status["ephemeralContainerStatuses"] = [
            _container(Container(name, Role.MAIN, state), pod, ephemeral, boot) | {"ready": False}
            for name in ephemeral
        ]
    if run.prepared_at is not None and not run.script.waiting:
        status |= {"podIP": address, "podIPs": [{"ip": address}]}
    if "generation" in pod["metadata"]:
        status["observedGeneration"] = pod["metadata"]["generation"]
    if run.is_expired and run.is_over:
        status |= {"reason": DEADLINE_EXCEEDED, "message": DEADLINE_MESSAGE}
    status["conditions"] = _conditions(run, pod)
    return status


def phase_of(run: Run) -> str:
    """Return the phase; a pod that was stopped before all of it had succeeded has failed."""
    if run.is_expired and run.is_over:
        return "Failed"
    if run.is_over:
        codes = [each.state.code if isinstance(each.state, Exited) else None for each in run.mains]
        return "Failed" if any(code != 0 for code in codes) else "Succeeded"
    started = (each.last or not isinstance(each.state, Waiting) for each in run.mains)
    return "Running" if all(started) else "Pending"


def _container(container: Container, pod: Raw, specs: dict[str, Raw], boot: str) -> Raw:
    state = container.state
    is_running = isinstance(state, Running)
    spec = specs.get(container.name, {})
    image = spec.get("image", "")
    identity = _identity(pod, container.name, container.restarts, boot)
    status: Raw = {
        "name": container.name,
        "state": _state_of(state, identity),
        "lastState": _state_of(container.last, identity) if container.last else {},
        "ready": _is_ready(container),
        "restartCount": container.restarts,
        "image": image,
        "imageID": f"{RUNTIME}://{image}" if not isinstance(state, Waiting) else "",
        "started": isinstance(state, Running) and state.is_started,
    }
    if not isinstance(state, Waiting):
        status["containerID"] = identity
    if is_running:
        given = get(spec, "resources", {})
        status["resources"] = {
            part: given[part] for part in ("limits", "requests") if given.get(part)
        }
        if status["resources"].get("requests"):
            status["allocatedResources"] = status["resources"]["requests"]
    return status


def _identity(pod: Raw, name: str, restarts: int, boot: str) -> str:
    return "-".join(filter(None, (f"{RUNTIME}://{uid_of(pod)}", name, str(restarts), boot)))


def _is_ready(container: Container) -> bool:
    match container.state:
        case Running(_, is_ready):
            return is_ready
        case Exited(code=code):
            return container.role is Role.INIT and code == 0
        case Waiting():
            return False
        case _:
            assert_never(container.state)


def _state_of(state: State, identity: str) -> Raw:
    match state:
        case Waiting(reason, message):
            return {"waiting": {"reason": reason} | ({"message": message} if message else {})}
        case Running(since):
            return {"running": {"startedAt": timestamp(since)}}
        case Exited(since, at, code, message):
            ended = {
                "exitCode": code,
                "reason": "Error" if code else "Completed",
                "startedAt": timestamp(since),
                "finishedAt": timestamp(at),
                "containerID": identity,
            }
            if message:
                ended["message"] = message
            return {"terminated": ended}
        case _:
            assert_never(state)


def _conditions(run: Run, pod: Raw) -> list[Raw]:
    phase = phase_of(run)
    ready = _containers_ready(run, phase)
    has_sandbox = run.prepared_at is not None and phase not in ("Succeeded", "Failed")
    initialized: _Judgement = (True, "PodCompleted" if phase == "Succeeded" else "", "")
    if not run.is_initialized:
        names = [
            each.name
            for each in run.containers
            if each.role is not Role.MAIN and not isinstance(each.state, Exited)
        ]
        message = f"containers with incomplete status: [{' '.join(names)}]"
        initialized = (False, "ContainersNotInitialized", message)
    conditions: list[Raw] = list(get(pod, "status.conditions", ()))
    for kind, (is_true, reason, message) in {
        "PodReadyToStartContainers": (has_sandbox, "", ""),
        "Initialized": initialized,
        "Ready": _ready(ready, pod),
        "ContainersReady": ready,
    }.items():
        condition: Raw = {"type": kind, "status": "True" if is_true else "False"}
        if "generation" in pod["metadata"]:
            condition["observedGeneration"] = pod["metadata"]["generation"]
        condition |= {"lastProbeTime": None, "lastTransitionTime": timestamp(run.at)}
        if reason:
            condition["reason"] = reason
        if message:
            condition["message"] = message
        conditions = with_condition(conditions, condition)
    # A pod that was bound by hand has not been scheduled.
    scheduled = condition_of(pod, "PodScheduled") or {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": timestamp(run.at),
    }
    if "generation" in pod["metadata"]:
        scheduled = {**scheduled, "observedGeneration": pod["metadata"]["generation"]}
    return with_condition(conditions, scheduled)


_Judgement = tuple[bool, str, str]
"""Whether a condition is true, its reason and its message."""


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
            status = condition["status"]
            message = f'the status of pod readiness gate "{kind}" is not "True", but {status}'
            return False, "ReadinessGatesNotReady", message
    return True, "", ""
