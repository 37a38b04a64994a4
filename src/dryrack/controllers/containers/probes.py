"""
The `postStart` hook and the exec probes of one run of a container, in virtual time.

They follow the kubelet: no probe runs before the hook has ended, only the startup probe runs before
the container has started, and a result counts after as many equal results as the threshold says.

A probe whose last result counts runs again only after something has changed that it can read.
So a container in which nothing happens needs no work.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw
from dryrack.shell.process import Process

# The reason of the event when the hook of a container fails.
POST_START_FAILED = "FailedPostStartHook"
_PERIOD_SECONDS = 10.0
_TIMEOUT_SECONDS = 1.0
_FAILURE_THRESHOLD = 3
_STARTUP, _LIVENESS, _READINESS = "Startup", "Liveness", "Readiness"
_OUTPUT_CHARACTERS_MAX = 1024


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result of one command of a probe."""

    message: str | None = None
    """The output of a failure; None is a success."""
    reads_clock: bool = False


RunProbe = Callable[[Sequence[str], float, float], ProbeResult]
"""Runs a command at a time, and gives it a number of seconds."""


@dataclass(frozen=True, slots=True)
class ProbedHealth:
    """The state of a container by its hook and its probes."""

    is_started: bool
    is_ready: bool
    changed_at: float
    problem: str = ""
    """The message of the probe that ran last, if it failed."""
    failed_at: float | None = None
    """The time at which the container has to stop."""
    failure: str = ""
    """The reason why it has to stop."""
    grace_seconds: float | None = None
    """How long it may take to stop, if its probe says so."""


class _Probe:
    """One exec probe, with its results so far."""

    def __init__(self, kind: str, spec: Raw, since: float) -> None:
        self.kind = kind
        self.words: Sequence[str] = get(spec, "exec.command", ())
        self.grace_seconds: float | None = spec.get("terminationGracePeriodSeconds")
        self.next_at = since + float(spec.get("initialDelaySeconds") or 0)
        self.is_passing = kind == _LIVENESS
        self.is_failed = False
        self._period = float(spec.get("periodSeconds") or _PERIOD_SECONDS)
        self._timeout = float(spec.get("timeoutSeconds") or _TIMEOUT_SECONDS)
        self._failures_min = spec.get("failureThreshold") or _FAILURE_THRESHOLD
        self._successes_min = spec.get("successThreshold") or 1
        self._last: bool | None = None
        self._count = 0
        self._is_counted = False
        """True if the last results have reached their threshold."""
        self._changes = -1
        self._reads_clock = False

    def due_at(self, changes: int, now: float, next_change_at: float) -> float:
        """Return when the probe runs next; infinity if nothing can change its result."""
        if not self._is_counted or self._reads_clock:
            return self.next_at
        start = now if changes != self._changes else next_change_at
        if start <= self.next_at or start == math.inf:
            return max(start, self.next_at)
        return self.next_at + math.ceil((start - self.next_at) / self._period) * self._period

    def run(self, at: float, changes: int, run_probe: RunProbe) -> str:
        """Run the probe, and return the message of a failure."""
        # A probe that writes files has changed something itself.
        self._changes = changes
        result = run_probe(self.words, at, self._timeout)
        is_success = result.message is None
        self._reads_clock = result.reads_clock
        self._count = self._count + 1 if is_success == self._last else 1
        self._last = is_success
        threshold = self._successes_min if is_success else self._failures_min
        self._is_counted = self._count >= threshold
        if self._is_counted:
            self.is_passing = is_success
            self.is_failed = not is_success
        self.next_at = at + self._period
        if is_success:
            return ""
        message = (result.message or "")[:_OUTPUT_CHARACTERS_MAX]
        return f"{self.kind} probe failed: {message}"


class Probes:
    """The `postStart` hook and the exec probes of one run of a container."""

    def __init__(self, container: Raw, since: float, hook: Process | None) -> None:
        self._probes = {
            kind: _Probe(kind, get(container, path, {}), since)
            for kind, path in (
                (_STARTUP, "startupProbe"),
                (_LIVENESS, "livenessProbe"),
                (_READINESS, "readinessProbe"),
            )
            if get(container, f"{path}.exec.command", ())
        }
        self._hook = hook
        self.health = ProbedHealth(is_started=False, is_ready=False, changed_at=since)
        if hook is None:
            self._update(since, "")

    def due_at(self, changes: int, now: float, next_change_at: float) -> float:
        """Return when the hook ends or the next probe runs; infinity if neither is known."""
        if self._hook is not None:
            return self._hook.wakes_at if self._hook.ended_at is None else self._hook.ended_at
        times = (each.due_at(changes, now, next_change_at) for each in self._active())
        return min(times, default=math.inf)

    def run(self, at: float, changes: int, run_probe: RunProbe) -> None:
        """Run the probes that are due at this time."""
        if self._hook is not None:
            if self._hook.ended_at is not None:
                self._end_hook(self._hook)
            return
        for probe in self._active():
            if probe.due_at(changes, at, math.inf) <= at and self.health.failed_at is None:
                self._update(at, probe.run(at, changes, run_probe))
                if probe.is_failed and probe.kind != _READINESS:
                    self.health = replace(
                        self.health,
                        failed_at=at,
                        failure=f"failed {probe.kind.lower()} probe",
                        grace_seconds=probe.grace_seconds,
                    )

    def _end_hook(self, hook: Process) -> None:
        self._hook = None
        at = hook.now if hook.ended_at is None else hook.ended_at
        for each in self._probes.values():
            each.next_at = max(each.next_at, at)
        self._update(at, "")
        if hook.exit_code:
            output = b"".join(each.data for each in hook.output).decode(errors="replace").strip()
            problem = f"PostStartHookError: command exited with {hook.exit_code}: {output}"
            self.health = ProbedHealth(
                is_started=False,
                is_ready=False,
                changed_at=at,
                problem=problem,
                failed_at=at,
                failure=POST_START_FAILED,
            )

    def _active(self) -> Sequence[_Probe]:
        if self.health.failed_at is not None:
            return ()
        startup = self._probes.get(_STARTUP)
        if startup is not None and not startup.is_passing:
            return (startup,)
        return tuple(each for each in self._probes.values() if each is not startup)

    def _update(self, at: float, problem: str) -> None:
        startup, readiness = self._probes.get(_STARTUP), self._probes.get(_READINESS)
        is_started = startup is None or startup.is_passing
        is_ready = is_started and (readiness is None or readiness.is_passing)
        old = self.health
        if (is_started, is_ready, problem) != (old.is_started, old.is_ready, old.problem):
            has_turned = (is_started, is_ready) != (old.is_started, old.is_ready)
            self.health = ProbedHealth(
                is_started, is_ready, at if has_turned else old.changed_at, problem
            )


def is_probed(container: Raw, *, is_executed: bool) -> bool:
    """
    Return True if commands decide whether a container has started and is ready.

    Probes of a program that dryrack does not run always succeed.
    """
    if is_executed and any(
        get(container, f"{each}.exec.command", ())
        for each in ("startupProbe", "livenessProbe", "readinessProbe")
    ):
        return True
    return post_start_command(container) is not None


def post_start_command(container: Raw) -> Sequence[str] | None:
    """Return the command of the `postStart` hook; a request to a server is not sent."""
    hook = get(container, "lifecycle.postStart", {})
    if "sleep" in hook:
        return ("sleep", str(get(hook, "sleep.seconds", 0)))
    return get(hook, "exec.command", ()) or None
