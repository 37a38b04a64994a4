"""
The processes of all containers on virtual nodes.

The virtual kubelet starts processes and asks when they end; the API server reads their output and
runs commands in the containers. Both use one `Sandboxes`, which keeps everything in memory: after a
restart, a process is computed again from the start of its container.
"""

import math
import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from dryrack.client.timekeeping import seconds_of
from dryrack.controllers.containers.environment import (
    Find,
    command_of,
    environment_of,
    host_name_of,
)
from dryrack.controllers.containers.file_system import Mint, Volumes, container_of, root_of
from dryrack.controllers.containers.probes import (
    ProbedHealth,
    ProbeResult,
    Probes,
    post_start_command,
)
from dryrack.controllers.containers.programs import is_known, is_silent
from dryrack.controllers.objects import uid_of
from dryrack.controllers.pods.drivers import Drivers, Injection
from dryrack.controllers.pods.lifecycle import STOP_SECONDS, ContainerKey, unknown_seconds
from dryrack.controllers.pods.logs import (
    claims_in_use,
    existing_claims,
    log_of,
    numbered_devices,
)
from dryrack.controllers.pods.rendering import new_run
from dryrack.kinds.paths import get, spec_of, status_of
from dryrack.kinds.raw import Raw
from dryrack.shell.files import FileError, Files, Mount, Volume
from dryrack.shell.interpreter import ProgramFunction, Running, Shell
from dryrack.shell.process import KILLED, Chunk, Process, Sleep
from dryrack.shell.streams import Call, Pipe, Streams

TERMINATION_LOG = "/dev/termination-log"
_TERMINATION_BYTES_MAX = 4096
_FALLBACK_LINES_MAX = 80
_FALLBACK_BYTES_MAX = 2048


@dataclass(slots=True)
class _Machine:
    """The parts of a container besides its files."""

    host_name: str
    address: str
    user_id: int
    unknown_seconds: float | None
    """How long an unknown program runs; None in a command that a person runs."""
    unknown: set[str] = field(default_factory=set)
    """The unknown programs that were started."""

    def find_program(self, name: str) -> ProgramFunction | None:
        return None

    def run_unknown(self, words: Sequence[str], streams: Streams) -> Running:
        name = words[0]
        if self.unknown_seconds is None:
            streams.error.write(f"{name}: dryrack does not run this program\n".encode())
            return 127
        if name not in self.unknown:
            self.unknown.add(name)
            streams.error.write(f"# dryrack does not run {name}\n".encode())
        yield Sleep(self.unknown_seconds)
        return 0


@dataclass(slots=True)
class _Container:
    """One run of a container."""

    process: Process
    shell: Shell
    input: Pipe
    machine: _Machine


RunProbeIn = Callable[[ContainerKey, Sequence[str], float, float], ProbeResult]
"""Runs a command of a probe in a container, at a time, and gives it a number of seconds."""


class _Sandbox:
    """The containers of one pod, with the volumes that they share."""

    def __init__(self, pod: Raw, volumes: Volumes) -> None:
        self.pod = pod
        self.volumes = volumes
        self.containers: dict[ContainerKey, _Container] = {}
        self.files: dict[ContainerKey, Files] = {}
        self.hooks: dict[tuple[ContainerKey, str], Process] = {}
        self.probes: dict[ContainerKey, Probes] = {}
        self.touches = 0
        """How often an object changed whose content the containers see as files."""
        self._changes = 0
        self.ran_until = 0.0

    @property
    def processes(self) -> Iterator[Process]:
        for each in self.containers.values():
            yield each.process
        yield from self.hooks.values()

    @property
    def changes(self) -> int:
        """Return a number that grows when something changes that a probe can read."""
        changes = self.touches
        for files in self.files.values():
            changes += sum(each.volume.changes for each in files.mounts)
        return changes + sum(len(each.machine.unknown) for each in self.containers.values())

    def forget_runs(self, name: str, restarts: int) -> None:
        """Remove the runs of a container before the last one, which `kubectl logs -p` shows."""
        runs: tuple[dict[ContainerKey, Any], ...] = (self.containers, self.files, self.probes)
        for kept in runs:
            for each in [each for each in kept if each.name == name]:
                if each.restarts < restarts - 1:
                    del kept[each]

    def probe_at(self, now: float) -> tuple[float, ContainerKey | None]:
        """Return when the next hook ends or the next probe runs, and in which container."""
        if not self.probes:
            return math.inf, None
        changes = self.changes
        next_change_at = min((each.wakes_at for each in self.processes), default=math.inf)
        at, key = min(
            (each.due_at(changes, now, next_change_at), key) for key, each in self.probes.items()
        )
        return at, key

    def run(self, now: float, run_probe: RunProbeIn) -> None:
        """Let time pass for all processes and probes, in order: they share files."""
        # A command that a person ran can have written files since the last time.
        at = now if self.changes != self._changes else self.ran_until
        while True:
            due, key = self.probe_at(at)
            if key is None or due > now:
                break
            at = max(at, due)
            self._run_processes(at)
            self.probes[key].run(at, self.changes, partial(run_probe, key))
        self._run_processes(now)
        self._changes = self.changes
        self.ran_until = max(self.ran_until, now)

    def _run_processes(self, now: float) -> None:
        while True:
            waiting = [each for each in self.processes if each.wakes_at <= now]
            if not waiting:
                break
            first = min(waiting, key=lambda it: it.wakes_at)
            if len(waiting) == 1:
                first.run(now)
            else:
                first.run(first.wakes_at)
        for each in self.processes:
            each.run(now)


class Sandboxes:
    """The containers of all pods on virtual nodes."""

    def __init__(
        self, find: Find, drivers: Drivers | None = None, mint: Mint | None = None
    ) -> None:
        self._find = find
        self._drivers = drivers
        self._mint = mint
        self._sandboxes: dict[str, _Sandbox] = {}
        self._node_files: dict[str, Volume] = {}
        self._listeners: list[Callable[[Raw], None]] = []

    def listen(self, listener: Callable[[Raw], None]) -> None:
        """Add a listener for pods whose state can have changed by what a person did in them."""
        self._listeners.append(listener)

    def forget(self, uid: str) -> None:
        """Remove the containers of a pod that no longer exists."""
        self._sandboxes.pop(uid, None)

    def start(self, pod: Raw, key: ContainerKey, at: float) -> Process | None:
        """
        Start a container, or return its process if it runs already.

        The result is None if dryrack does not know the program of the container.
        """
        sandbox = self._sandbox(pod)
        if key in sandbox.containers:
            return sandbox.containers[key].process
        container = container_of(pod, key.name)
        if container is None or not is_known(container):
            return None
        sandbox.forget_runs(key.name, key.restarts)
        process = Process(at)
        process.is_terminal = bool(container.get("tty"))
        run = new_run(pod, at)
        part = next((each for each in run.containers if each.name == key.name), None)
        seconds = math.inf if part is None else unknown_seconds(run.script, part)
        shell, machine = self._shell(pod, container, process, key, seconds)
        words = command_of(container, shell.variables) or ["sh"]
        source = Pipe()
        source.is_complete = not container.get("stdin")
        streams = Streams(
            source,
            Call(lambda data: process.write(1, data)),
            Call(lambda data: process.write(2, data)),
        )
        process.start(shell.run_words(words, streams))
        sandbox.containers[key] = _Container(process, shell, source, machine)
        return process

    def start_probes(self, pod: Raw, key: ContainerKey, at: float) -> None:
        """Start the `postStart` hook of a container, and its probes after that."""
        sandbox = self._sandbox(pod)
        if key in sandbox.probes:
            return
        container = container_of(pod, key.name) or {}
        words = post_start_command(container)
        hook = None
        if words is not None:
            hook = self._command(pod, key, words, at, Pipe.of(b""), unknown_seconds=0.0)
            sandbox.hooks[key, "postStart"] = hook
        sandbox.probes[key] = Probes(container, at, hook)

    def health(self, pod: Raw, key: ContainerKey) -> ProbedHealth | None:
        """Return the state of a container by its hook and probes, if these decide it."""
        sandbox = self._sandboxes.get(uid_of(pod))
        probes = None if sandbox is None else sandbox.probes.get(key)
        return None if probes is None else probes.health

    def kill(self, pod: Raw, key: ContainerKey, code: int) -> None:
        """End a container that did not pass its probes."""
        sandbox = self._sandbox(pod)
        sandbox.probes.pop(key, None)
        processes = [sandbox.hooks.pop((key, each), None) for each in ("preStop", "postStart")]
        processes.append(self.process(pod, key))
        for process in processes:
            if process is not None:
                process.kill(code)

    def process(self, pod: Raw, key: ContainerKey) -> Process | None:
        sandbox = self._sandboxes.get(uid_of(pod))
        container = None if sandbox is None else sandbox.containers.get(key)
        return None if container is None else container.process

    def run(self, pod: Raw, now: float) -> None:
        """Let time pass for the containers of a pod."""
        sandbox = self._sandboxes.get(uid_of(pod))
        if sandbox is not None:
            sandbox.pod = pod
            sandbox.run(now, partial(self._run_probe, sandbox))

    def touch(self, uid: str) -> None:
        """Let the probes of a pod run again: an object changed whose content they can read."""
        sandbox = self._sandboxes.get(uid)
        if sandbox is not None:
            sandbox.touches += 1

    def notice(self, pod: Raw) -> None:
        """Look at a pod again: a person ran a command in a container, or wrote to its input."""
        sandbox = self._sandboxes.get(uid_of(pod))
        if sandbox is None:
            return
        if sandbox.probes or any(each.exit_code is not None for each in sandbox.processes):
            for listener in self._listeners:
                listener(pod)

    def _run_probe(
        self,
        sandbox: _Sandbox,
        key: ContainerKey,
        words: Sequence[str],
        at: float,
        seconds: float,
    ) -> ProbeResult:
        container = sandbox.containers.get(key)
        if container is None or container.machine.unknown:
            # The program that would make the probe succeed does not run here.
            return ProbeResult()
        source = Pipe.of(b"")
        process = self._command(sandbox.pod, key, words, at, source, unknown_seconds=0.0)
        process.run(at + seconds)
        if process.exit_code is None:
            process.kill(KILLED)
            return ProbeResult(f"command timed out: {' '.join(words)} timed out after {seconds:g}s")
        if process.exit_code == 0:
            return ProbeResult(reads_clock=process.has_read_clock)
        output = b"".join(each.data for each in process.output).decode(errors="replace")
        return ProbeResult(output, reads_clock=process.has_read_clock)

    def wakes_at(self, pod: Raw) -> float:
        """Return when a container can end by itself or a probe runs; infinity if none does."""
        sandbox = self._sandboxes.get(uid_of(pod))
        if sandbox is None:
            return math.inf
        ends = [each.wakes_at for each in sandbox.processes if not each.is_endless]
        return min(sandbox.probe_at(sandbox.ran_until)[0], *ends, math.inf)

    def command(
        self, pod: Raw, name: str, words: Sequence[str], *, at: float, source: Pipe
    ) -> Process:
        """Start a command in a running container, as `kubectl exec` does."""
        self._sandbox(pod)
        self.run(pod, at)
        key = ContainerKey(name, _status_of(pod, name).get("restartCount", 0))
        return self._command(pod, key, words, at, source, unknown_seconds=None)

    def _command(
        self,
        pod: Raw,
        key: ContainerKey,
        words: Sequence[str],
        at: float,
        source: Pipe,
        *,
        unknown_seconds: float | None,
    ) -> Process:
        """Start a command that sees the files of a container, not the variables of its script."""
        container = container_of(pod, key.name) or {}
        process = Process(at)
        shell, _ = self._shell(pod, container, process, key, unknown_seconds)
        streams = Streams(
            source,
            Call(lambda data: process.write(1, data)),
            Call(lambda data: process.write(2, data)),
        )
        process.start(shell.run_words(words, streams))
        return process

    def attach(self, pod: Raw, name: str, now: float) -> tuple[Process, Pipe] | None:
        """Return the process of a running container with its input."""
        status = _status_of(pod, name)
        key = ContainerKey(name, status.get("restartCount", 0))
        if self._restore(pod, key, get(status, "state", {}), now) is None:
            return None
        container = self._sandbox(pod).containers[key]
        return container.process, container.input

    def log(self, pod: Raw, name: str, *, is_previous: bool, now: float) -> Sequence[Chunk]:
        """Return the output of a container: what its program wrote, or a description."""
        status = _status_of(pod, name)
        restarts = status.get("restartCount", 0)
        state = get(status, "state", {})
        if is_previous or ("waiting" in state and "lastState" in status):
            # A container that waits for its next run shows the log of the last one.
            restarts = max(0, restarts - is_previous)
            state = get(status, "lastState", {})
        key = ContainerKey(name, restarts)
        process = self._restore(pod, key, state, now)
        if process is None or (not process.output and is_silent(container_of(pod, name) or {})):
            text = log_of(pod, name, self._claim, drivers=self._drivers)
            return (Chunk(_start_of(state), 1, text.encode()),) if text else ()
        ended = get(state, "terminated.finishedAt")
        if ended is None:
            return tuple(process.output)
        # Times in a status have no fractions of seconds.
        end = seconds_of(ended) + 1
        return tuple(each for each in process.output if each.at < end)

    def _restore(self, pod: Raw, key: ContainerKey, state: Raw, now: float) -> Process | None:
        """Return the process of a container, started again if this program was restarted."""
        process = self.process(pod, key)
        if process is None:
            process = self.start(pod, key, _start_of(state))
        if process is not None:
            ended = get(state, "terminated.finishedAt")
            if ended is None:
                self.run(pod, now)
            else:
                process.run(seconds_of(ended))
        return process

    def termination_message(self, pod: Raw, key: ContainerKey) -> str:
        """Return what a container that ended left for `terminated.message`."""
        sandbox = self._sandboxes.get(uid_of(pod))
        container = None if sandbox is None else sandbox.containers.get(key)
        if container is None:
            return ""
        spec = container_of(pod, key.name) or {}
        path = spec.get("terminationMessagePath") or TERMINATION_LOG
        try:
            message = container.shell.files.read(path)[-_TERMINATION_BYTES_MAX:]
        except FileError:
            message = b""
        falls_back = spec.get("terminationMessagePolicy") == "FallbackToLogsOnError"
        if not message and falls_back and container.process.exit_code:
            output = b"".join(each.data for each in container.process.output)
            lines = output.splitlines(keepends=True)[-_FALLBACK_LINES_MAX:]
            message = b"".join(lines)[-_FALLBACK_BYTES_MAX:]
        return message.decode(errors="replace")

    def stop(self, pod: Raw, key: ContainerKey, began_at: float, now: float) -> float | None:
        """
        Run the hook of a container that stops, then send SIGTERM.

        Return when the container ends, if it does not handle the signal.
        """
        hook_ended_at = self.stop_hook(pod, key, began_at)
        if hook_ended_at is None or hook_ended_at > now:
            return None if hook_ended_at is None else hook_ended_at + STOP_SECONDS
        process = self.process(pod, key)
        if process is None or not process.handles_signals:
            return hook_ended_at + STOP_SECONDS
        if not process.is_signaled:
            process.signal("TERM")
            process.run(now)
        return None

    def stop_hook(self, pod: Raw, key: ContainerKey, at: float) -> float | None:
        """
        Run the `preStop` hook of a container, and return when it ends.

        The result is None as long as the end is not known.
        """
        container = container_of(pod, key.name) or {}
        hook = get(container, "lifecycle.preStop", {})
        if "sleep" in hook:
            return at + float(hook["sleep"].get("seconds", 0))
        words = get(hook, "exec.command", ())
        if not words:
            return at
        sandbox = self._sandbox(pod)
        process = sandbox.hooks.get((key, "preStop"))
        if process is None:
            self.run(pod, at)
            source = Pipe.of(b"")
            process = self._command(pod, key, words, at, source, unknown_seconds=None)
            sandbox.hooks[key, "preStop"] = process
        return process.ended_at

    def _sandbox(self, pod: Raw) -> _Sandbox:
        uid = uid_of(pod)
        sandbox = self._sandboxes.get(uid)
        if sandbox is None:
            node = spec_of(pod).get("nodeName", "")
            node_files = self._node_files.setdefault(node, Volume())
            volumes = Volumes(pod, self._find, self._mint, node_files)
            sandbox = self._sandboxes[uid] = _Sandbox(pod, volumes)
        return sandbox

    def _shell(
        self,
        pod: Raw,
        container: Raw,
        process: Process,
        key: ContainerKey,
        unknown_seconds: float | None,
    ) -> tuple[Shell, _Machine]:
        injections = list(self.injections(pod, container))
        uses = claims_in_use(pod, container, self._claim)
        devices = [*numbered_devices(uses, self._drivers)]
        devices += [pair for each in injections for pair in each.env]
        variables = environment_of(pod, container, self._find, devices)
        sandbox = self._sandbox(pod)
        files = sandbox.files.get(key)
        if files is None:
            nodes = [path for each in injections for path in each.device_nodes]
            log = container.get("terminationMessagePath") or TERMINATION_LOG
            mounts = [
                *sandbox.volumes.mounts(container),
                *self._host_files(pod, container),
                *self._device_mounts(pod, container),
            ]
            files = sandbox.files[key] = Files(root_of(pod, nodes, log), tuple(mounts))
        user = get(container, "securityContext.runAsUser")
        if user is None:
            user = get(pod, "spec.securityContext.runAsUser", 0)
        machine = _Machine(
            host_name_of(pod), status_of(pod).get("podIP", ""), int(user), unknown_seconds
        )
        directory = container.get("workingDir") or "/"
        shell = Shell(
            process, files, machine, variables, exported=set(variables), directory=directory
        )
        shell.variables["PWD"] = directory
        return shell, machine

    def injections(self, pod: Raw, container: Raw) -> Iterator[Injection]:
        """Yield what a container gets from the drivers of its devices."""
        if self._drivers is None:
            return
        node = spec_of(pod).get("nodeName", "")
        claims = list(existing_claims(pod, self._claim))
        uses = list(claims_in_use(pod, container, self._claim))
        yield from self._drivers.injections(node, claims, uses)

    def _host_files(self, pod: Raw, container: Raw) -> Iterator[Mount]:
        """Yield the files of drivers that the container reaches through its hostPath volumes."""
        if self._drivers is None:
            return
        drivers = self._drivers
        node = spec_of(pod).get("nodeName", "")
        paths = {
            each["name"]: each["hostPath"].get("path", "").rstrip("/")
            for each in get(pod, "spec.volumes", ())
            if "hostPath" in each
        }

        def read(path: str) -> Mapping[str, bytes | None]:
            lines = drivers.host_files(node).get(path, ())
            return {posixpath.basename(path): "".join(f"{each}\n" for each in lines).encode()}

        for mount in get(container, "volumeMounts", ()):
            host = paths.get(mount["name"])
            for path in sorted(drivers.host_files(node)) if host is not None else ():
                if path.startswith(f"{host}/"):
                    place = mount["mountPath"].rstrip("/") + path[len(host or "") :]
                    source = partial(read, path)
                    yield Mount(place, Volume(source=source), posixpath.basename(path), True)

    def _device_mounts(self, pod: Raw, container: Raw) -> Iterator[Mount]:
        """Yield the files that come with devices; their content is always current."""
        for path in sorted(
            {path for each in self.injections(pod, container) for path in each.mounts}
        ):
            name = posixpath.basename(path)
            source = partial(self._device_file, pod, container, path)
            yield Mount(path, Volume(source=source), name, is_read_only=True)

    def _device_file(self, pod: Raw, container: Raw, path: str) -> Mapping[str, bytes | None]:
        lines = [
            text
            for each in self.injections(pod, container)
            for place, text in each.lines
            if place == path
        ]
        return {posixpath.basename(path): "".join(f"{each}\n" for each in lines).encode()}

    def _claim(self, namespace: str, name: str) -> Raw | None:
        return self._find("resourceclaims.resource.k8s.io", namespace, name)


def _status_of(pod: Raw, name: str) -> Raw:
    for part in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for each in get(pod, f"status.{part}", ()):
            if each["name"] == name:
                found: Raw = each
                return found
    return {}


def _start_of(state: Raw) -> float:
    """Return when a container started, by its state."""
    started = get(state, "running.startedAt") or get(state, "terminated.startedAt")
    return seconds_of(started) if started else 0.0
