"""
The life of a pod on a node, as a function.

`step` is the only way a run changes. It takes an event with its time, and returns the new run and
the effects: to wake the run at a time, or to remove the pod. It follows the kubelet's rules: init
containers run one after another, sidecars beside them, restarts follow the policy with a growing
wait, and the pod ends when no container is left to restart, or at its deadline.

Invariants: time never runs backwards; a container that has exited and is not restarted never runs
again; nothing starts after a deletion or the deadline, however long a finalizer keeps the pod;
`Remove` is returned only after a deletion, when no container runs.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple, assert_never

# The kubelet's waits between restarts, and the run time after which the wait starts anew.
RESTART_SECONDS_MIN = 10.0
RESTART_SECONDS_MAX = 300.0
FORGIVEN_SECONDS = 600.0


# The exit codes of a process without signal handlers: 128 plus SIGTERM or SIGKILL.
# The beginning of the errors of a container runtime, as the kubelet passes them on.
REFUSED_BY_RUNTIME = "failed to create containerd container: "
TERMINATED = 143
KILLED = 137
PREFIX = "dryrack.dev/"
INIT_SECONDS = PREFIX + "init-seconds"
READY_SECONDS = PREFIX + "ready-seconds"


# Long enough to be seen running, and short enough that waiting for a job is no burden.
RUN_SECONDS = 5.0
# A container without a handler for SIGTERM takes so long to stop.
STOP_SECONDS = 1.0
_OUTCOMES = ("run-seconds", "exit-code", "failures")


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """
    The behavior of a pod on a virtual node, as its annotations describe it.

    No program runs on a virtual node, so annotations of the pod state what a program would do:

    | annotation                  | meaning                                                      |
    |-----------------------------|--------------------------------------------------------------|
    | `dryrack.dev/start-seconds` | from the pod's arrival on the node to its first container    |
    | `dryrack.dev/init-seconds`  | run time of each init container                              |
    | `dryrack.dev/ready-seconds` | from a container's start to its readiness                    |
    | `dryrack.dev/run-seconds`   | run time; default: 5 for pods of Jobs and Helm hooks, no end |
    | `dryrack.dev/exit-code`     | exit code                                                    |
    | `dryrack.dev/failures`      | number of first runs of a container that exit with 1         |
    | `dryrack.dev/stop-seconds`  | time that a container takes to stop when the pod is deleted  |
    | `dryrack.dev/waiting`       | a reason (`ImagePullBackOff`) why no container ever starts   |

    Values that are negative or not numbers are ignored. `run_seconds` is None for a container that
    never ends.
    """

    start_seconds: float = 0.0
    init_seconds: float = 0.0
    ready_seconds: float = 0.0
    run_seconds: float | None = None
    exit_code: int = 0
    failures: int = 0
    stop_seconds: float = STOP_SECONDS
    waiting: str = ""
    decides_end: bool = False
    """True if an annotation says how containers end; their programs do not count then."""
    decides_stop: bool = False


@dataclass(frozen=True, slots=True)
class Waiting:
    """Not running yet, or not again."""

    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Running:
    """Running since a time; ready or not yet."""

    since: float
    is_ready: bool = False
    is_started: bool = True


@dataclass(frozen=True, slots=True)
class Exited:
    """Exited with a code."""

    since: float
    at: float
    code: int
    message: str = ""


State = Waiting | Running | Exited


class Role(Enum):
    """The role of a container."""

    INIT = "init"
    SIDECAR = "sidecar"
    MAIN = "main"


class ContainerKey(NamedTuple):
    """One run of a container: its name, and how often it was restarted before."""

    name: str
    restarts: int


@dataclass(frozen=True, slots=True)
class End:
    """When and with which code the program of a container ended."""

    at: float
    code: int
    message: str = ""


@dataclass(frozen=True, slots=True)
class Probed:
    """The state of a running container by its hook and its probes."""

    at: float
    is_started: bool
    is_ready: bool
    problem: str = ""
    """The message of the probe that ran last, if it failed."""
    failure: str = ""
    """The reason why the container has to stop."""


@dataclass(frozen=True, slots=True)
class Container:
    """One container's part of a run."""

    name: str
    role: Role
    state: State = Waiting("ContainerCreating")
    restarts: int = 0
    last: Exited | None = None
    waits_seconds: float = 0.0
    """The wait before the next restart."""
    is_executed: bool = False
    """True if its program decides when it ends, and not the script."""
    is_probed: bool = False
    """True if its hook and its probes decide whether it has started and is ready."""

    @property
    def key(self) -> ContainerKey:
        return ContainerKey(self.name, self.restarts)


@dataclass(frozen=True, slots=True)
class Run:
    """One pod on its node."""

    script: Script
    restart_policy: str
    containers: tuple[Container, ...]
    started_at: float
    """The time at which the pod was bound to its node."""
    at: float
    """The time of the last change."""
    deadline_seconds: float | None = None
    """The limit of its time on the node."""
    termination_seconds: float = 30.0
    """The grace period of the pod's spec."""
    prepared_at: float | None = None
    missing: Mapping[str, str] = field(default_factory=dict)
    """By container: what it cannot be created without."""
    is_deleted: bool = False
    is_expired: bool = False
    stops_at: float | None = None
    grace_seconds: float = 0.0
    stop_began_at: float = 0.0
    ends: Mapping[ContainerKey, End] = field(default_factory=dict)
    """How programs ended."""
    probed: Mapping[ContainerKey, Probed] = field(default_factory=dict)
    graceful: frozenset[str] = frozenset()
    """Containers with a preStop hook or a handler for SIGTERM: they decide when they stop."""

    @property
    def mains(self) -> tuple[Container, ...]:
        return tuple(each for each in self.containers if each.role is Role.MAIN)

    @property
    def is_initialized(self) -> bool:
        return all(_allows_next(each) for each in self.containers if each.role is not Role.MAIN)

    @property
    def is_over(self) -> bool:
        """True if no container will run again."""
        if self.is_stopping and self.is_stopped:
            return True
        if self.restart_policy == "Never" and any(_has_failed(each) for each in self.containers):
            return True
        return all(self._is_finished(each) for each in self.mains)

    @property
    def is_stopping(self) -> bool:
        return self.stops_at is not None

    @property
    def is_stopped(self) -> bool:
        return not any(isinstance(each.state, Running) for each in self.containers)

    def _is_finished(self, container: Container) -> bool:
        state = container.state
        return isinstance(state, Exited) and not restarts(self.restart_policy, state.code)


@dataclass(frozen=True, slots=True)
class Prepared:
    """The devices and volumes of the pod are ready."""

    at: float


@dataclass(frozen=True, slots=True)
class Missing:
    """The missing objects of containers from now on, by their names."""

    at: float
    missing: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Passed:
    """Time has passed."""

    at: float


@dataclass(frozen=True, slots=True)
class Deleted:
    """The pod was deleted; its containers have a grace period to stop."""

    at: float
    grace_seconds: float


@dataclass(frozen=True, slots=True)
class Rebooted:
    """The node has rebooted: no container runs, and nothing is prepared."""

    at: float


Event = Prepared | Missing | Passed | Deleted | Rebooted


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Pass `Passed` to the run at a time."""

    when: float


@dataclass(frozen=True, slots=True)
class Remove:
    """The pod can be removed."""


Effect = WakeAt | Remove


_Change = tuple[float, Run]


def restarts(policy: str, code: int) -> bool:
    """Return True if the policy restarts a container that exited with a code."""
    return policy == "Always" or (policy == "OnFailure" and code != 0)


def step(run: Run, event: Event) -> tuple[Run, tuple[Effect, ...]]:
    """Return the run after an event, and the effects."""
    match event:
        case Prepared(at):
            run = run if run.prepared_at is not None else replace(run, prepared_at=at)
        case Deleted(at, grace_seconds):
            run = replace(_let_pass(run, at)[0], is_deleted=True)
            run = _begin_stop(run, at, grace_seconds)
        case Missing(at, missing):
            run = _let_pass(run, at)[0]
            run = replace(run, missing=missing, at=max(run.at, at))
        case Rebooted(at):
            run = _end_all(_let_pass(run, at)[0], at, KILLED)
            run = replace(run, prepared_at=None, at=max(run.at, at))
        case Passed():
            pass
        case _:
            assert_never(event)
    return _let_pass(run, event.at)


def _begin_stop(run: Run, at: float, grace_seconds: float) -> Run:
    waits = run.graceful and not run.script.decides_stop
    seconds = grace_seconds if waits else min(run.script.stop_seconds, grace_seconds)
    if run.stops_at is not None and run.stops_at <= at + seconds:
        return run
    began_at = run.stop_began_at if run.is_stopping else at
    return replace(run, stops_at=at + seconds, grace_seconds=grace_seconds, stop_began_at=began_at)


def _let_pass(run: Run, now: float) -> tuple[Run, tuple[Effect, ...]]:
    while (change := _next_change(run)) is not None and change[0] <= now:
        when, run = change
        run = replace(run, at=max(run.at, when))
    if run.is_deleted and run.is_stopped:
        return run, (Remove(),)
    return run, (WakeAt(change[0]),) if change is not None else ()


def _next_change(run: Run) -> _Change | None:
    """Return the earliest change that time alone causes, and the run after it."""
    stop = _stop(run) or _expiry(run)
    changes = [change for change in _changes(run) if stop is None or change[0] < stop[0]]
    if stop is not None:
        changes.append(stop)
    return min(changes, key=lambda change: change[0], default=None)


def _expiry(run: Run) -> _Change | None:
    """Return the change at the pod's deadline, which stops all containers."""
    if run.deadline_seconds is None or run.is_stopping or run.is_over:
        return None
    at = max(run.started_at + run.deadline_seconds, run.at)
    return at, _begin_stop(replace(run, is_expired=True), at, run.termination_seconds)


def _stop(run: Run) -> _Change | None:
    """Return the change at the end of the grace period, which ends all containers."""
    if run.stops_at is None or run.is_stopped:
        return None
    is_killed = run.graceful or run.script.stop_seconds > run.grace_seconds
    code = KILLED if is_killed else TERMINATED
    at = max(run.stops_at, run.at)
    return at, _end_all(run, at, code)


def _changes(run: Run) -> Iterator[_Change]:
    if run.prepared_at is None or run.script.waiting:
        return
    begin = max(run.prepared_at + run.script.start_seconds, run.at)
    if run.is_over:
        if not run.is_stopped:
            yield run.at, _end_all(run, run.at, 0)
        return
    for position, container in enumerate(run.containers):
        if container.role is Role.MAIN and not run.is_initialized:
            return
        found = _change_of(run, container, begin)
        if found is not None:
            before = run.containers[:position]
            after = run.containers[position + 1 :]
            yield found[0], replace(run, containers=(*before, found[1], *after))
        if not _allows_next(container):
            return


def _allows_next(container: Container) -> bool:
    """Return True if the containers after it may start."""
    match container.role:
        case Role.INIT:
            return isinstance(container.state, Exited) and container.state.code == 0
        case Role.SIDECAR:
            if isinstance(container.state, Running) and not container.state.is_started:
                # The containers after a sidecar wait for its hook and its startup probe.
                return container.restarts > 0
            return not isinstance(container.state, Waiting) or container.restarts > 0
        case Role.MAIN:
            return True


def _has_failed(container: Container) -> bool:
    """Return True for an init container that failed."""
    state = container.state
    return container.role is Role.INIT and isinstance(state, Exited) and state.code != 0


def _end_all(run: Run, at: float, code: int) -> Run:
    end = End(at, code)
    return replace(run, containers=tuple(_end(each, end) for each in run.containers))


def _change_of(run: Run, container: Container, begin: float) -> tuple[float, Container] | None:
    match container.state:
        case Waiting() | Exited() if run.is_stopping:
            return None
        case Waiting():
            at = begin
            if container.last is not None:
                at = max(at, container.last.at + container.waits_seconds)
            if container.name not in run.missing:
                return at, _start(container, at)
            problem = run.missing[container.name]
            is_refused = problem.startswith(REFUSED_BY_RUNTIME)
            reason = "CreateContainerError" if is_refused else "CreateContainerConfigError"
            waiting = Waiting(reason, problem)
            return None if container.state == waiting else (at, replace(container, state=waiting))
        case Running(since, is_ready):
            turn = None
            if container.is_probed:
                turn = _follow_probes(run, container, container.state)
            elif not is_ready and container.role is not Role.INIT:
                state = Running(since, is_ready=True)
                turn = since + run.script.ready_seconds, replace(container, state=state)
            end = _end_of(run, container, since)
            if end is not None and (turn is None or end.at < turn[0]):
                turn = end.at, _end(container, end)
            return turn
        case Exited(code=code):
            if not restarts(_policy(run, container), code):
                return None
            return run.at, _wait_for_restart(container)
        case _:
            assert_never(container.state)


def _follow_probes(
    run: Run, container: Container, state: Running
) -> tuple[float, Container] | None:
    """Return the state that the hook and the probes of a container have last found."""
    probed = run.probed.get(container.key, Probed(state.since, is_started=False, is_ready=False))
    is_ready = probed.is_ready and container.role is not Role.INIT
    new = Running(state.since, is_ready, probed.is_started)
    return None if new == state else (probed.at, replace(container, state=new))


def _end_of(run: Run, container: Container, since: float) -> End | None:
    """Return when a running container ends by itself, as far as that is known."""
    end = run.ends.get(container.key)
    if end is None and run.is_stopping and run.graceful and container.name not in run.graceful:
        end = End(run.stop_began_at + run.script.stop_seconds, TERMINATED)
    if end is None and not container.is_executed:
        seconds = _duration(run.script, container)
        end = None if seconds is None else End(since + seconds, _code(run.script, container))
    return end


def _policy(run: Run, container: Container) -> str:
    match container.role:
        case Role.SIDECAR:
            return "Always"
        case Role.INIT:
            # An init container that has succeeded is done, also if others run forever.
            return "Never" if run.restart_policy == "Never" else "OnFailure"
        case Role.MAIN:
            return run.restart_policy


def _duration(script: Script, container: Container) -> float | None:
    match container.role:
        case Role.INIT:
            return script.init_seconds
        case Role.SIDECAR:
            return None
        case Role.MAIN:
            return script.run_seconds


def unknown_seconds(script: Script, container: Container) -> float:
    """Return how long a program runs that dryrack does not know."""
    seconds = _duration(script, container)
    return math.inf if seconds is None else seconds


def _code(script: Script, container: Container) -> int:
    if container.role is Role.INIT:
        return 0
    return 1 if container.restarts < script.failures else script.exit_code


def _start(container: Container, at: float) -> Container:
    again = 1 if container.last is not None else 0
    return replace(container, state=Running(at), restarts=container.restarts + again)


def _end(container: Container, end: End) -> Container:
    if not isinstance(container.state, Running):
        return container
    state = Exited(container.state.since, end.at, end.code, end.message)
    return replace(container, state=state)


def _wait_for_restart(container: Container) -> Container:
    """Restart at once the first time, and each time after twice as long a wait as before."""
    exited = container.state
    assert isinstance(exited, Exited), "only an exited container waits for a restart"
    ran_long = exited.at - exited.since >= FORGIVEN_SECONDS
    if container.last is None or ran_long:
        seconds = 0.0
    else:
        seconds = min(max(RESTART_SECONDS_MIN, container.waits_seconds * 2), RESTART_SECONDS_MAX)
    waiting = Waiting("CrashLoopBackOff" if seconds else "ContainerCreating")
    return replace(container, state=waiting, last=exited, waits_seconds=seconds)


def script_of(annotations: Mapping[str, str], *, run_seconds: float | None) -> Script:
    """Read the annotations of a pod; `run_seconds` is the default run time."""
    stop_seconds = _optional_number(annotations, "stop-seconds", None)
    return Script(
        start_seconds=_number(annotations, "start-seconds"),
        init_seconds=_number(annotations, "init-seconds"),
        ready_seconds=_number(annotations, "ready-seconds"),
        run_seconds=_optional_number(annotations, "run-seconds", run_seconds),
        exit_code=int(_number(annotations, "exit-code")) & 0xFF,
        failures=int(_number(annotations, "failures")),
        stop_seconds=STOP_SECONDS if stop_seconds is None else stop_seconds,
        waiting=annotations.get(PREFIX + "waiting", ""),
        decides_end=any(PREFIX + each in annotations for each in _OUTCOMES),
        decides_stop=stop_seconds is not None,
    )


def _number(annotations: Mapping[str, str], name: str) -> float:
    return _optional_number(annotations, name, None) or 0.0


def _optional_number(
    annotations: Mapping[str, str], name: str, usual: float | None
) -> float | None:
    try:
        number = float(annotations[PREFIX + name])
    except (KeyError, ValueError):
        return usual
    return number if math.isfinite(number) and number >= 0 else usual
