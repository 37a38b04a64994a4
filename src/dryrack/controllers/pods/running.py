"""
The kubelet of every virtual node: it runs bound pods through their lives.

The run of each pod is kept in memory, and can be read back from the pod's status after a restart.
A write always has the whole status at the revision that it was made from, so writes of others in
between are never overwritten: the pod is decided again.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from dryrack.client.endpoints import CLAIMS, CONFIG_MAPS, NODES, PODS, SECRETS
from dryrack.client.informer import Name, name_of
from dryrack.controllers.claims.references import claims_of_pod, is_reserved_for
from dryrack.controllers.containers.probes import POST_START_FAILED
from dryrack.controllers.containers.sandboxes import Sandboxes
from dryrack.controllers.objects import (
    annotations_of,
    is_deleted,
    is_terminal,
    node_names,
    spec_of,
    status_of,
    uid_of,
)
from dryrack.controllers.pods.configuration import (
    CONFIG_MAP,
    SECRET,
    index_key,
    keys_of,
    missing_configuration,
    mount_problem,
    reference_keys,
)
from dryrack.controllers.pods.drivers import (
    RETRY_SECONDS,
    PrepareCalls,
    Unprepared,
    device_health,
    has_devices,
    present_claims,
    unprepared,
)
from dryrack.controllers.pods.lifecycle import (
    KILLED,
    REFUSED_BY_RUNTIME,
    TERMINATED,
    Container,
    ContainerKey,
    Deleted,
    End,
    Event,
    Missing,
    Passed,
    Prepared,
    Probed,
    Rebooted,
    Remove,
    Run,
    Running,
    Waiting,
    WakeAt,
    step,
)
from dryrack.controllers.pods.logs import claims_in_use
from dryrack.controllers.pods.rendering import (
    DEADLINE_EXCEEDED,
    DEADLINE_MESSAGE,
    is_of_other_boot,
    new_run,
    render,
    resume,
)
from dryrack.controllers.pods.virtual import (
    host_address,
    is_run_elsewhere,
    pod_address,
)
from dryrack.controllers.reconciler import Reconciler
from dryrack.controllers.writes import (
    NOTHING,
    Delete,
    EngineContext,
    Plan,
    Report,
    Update,
    Write,
)
from dryrack.hardware import NO_FAULTS, faults_of
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw

# The limit of the API.
_EVENT_BYTES_MAX = 1024


@dataclass(frozen=True, slots=True)
class PodInputs:
    """Everything that the decision about one pod depends on."""

    pod: Raw
    run: Run
    unprepared: Unprepared | None
    """The reason why no container can start yet."""
    missing: Mapping[str, str]
    """By container: what it cannot be created without."""
    address: str
    host: str
    now: float
    boot: str = ""
    """The boot ID of the node, if it is not the first."""
    reported: Unprepared | None = None
    """The reason that the last event has."""
    health: Mapping[str, Sequence[Raw]] = field(default_factory=dict)
    """By container: the health of its devices."""
    expires_at: float | None = None
    """The time at which a fault of the node ends."""
    injected: Mapping[str, str] = field(default_factory=dict)
    """By container: the CDI devices that driver programs have prepared."""
    programs: "Programs | None" = None
    """Runs the programs of containers; None: only the script of the pod counts."""


class Programs(Protocol):
    """Runs the programs of the containers of one pod."""

    def run_until(self, run: Run, now: float) -> Run:
        """Start the programs of running containers, and return the run with the known ends."""
        ...

    @property
    def wakes_at(self) -> float:
        """Return when a program can end by itself."""
        ...


def plan(inputs: PodInputs) -> tuple[Run, Plan]:
    """Return the next state of a run, and what to write about it."""
    pod = inputs.pod
    now = inputs.now
    run = inputs.run
    if inputs.missing != run.missing:
        run, _ = step(run, Missing(now, inputs.missing))
    event: Event = Passed(now)
    if is_deleted(pod):
        event = Deleted(now, float(pod["metadata"].get("deletionGracePeriodSeconds") or 0))
    elif run.prepared_at is None and not inputs.unprepared:
        event = Prepared(now)
    run, effects = step(run, event)
    if inputs.programs is not None:
        # The end of one program lets the next container start, at the same time.
        while (known := inputs.programs.run_until(run, now)) != run:
            run, effects = step(known, Passed(now))
    # Events come first: they are written once, and a status that is refused is written again.
    writes: list[Write] = [*_reports(inputs, run)]
    status = render(
        run,
        pod,
        address=inputs.address,
        host=inputs.host,
        boot=inputs.boot,
        health=inputs.health,
    )
    if status != status_of(pod):
        writes.append(Update(PODS, pod | {"status": status}, "status"))
    wakes = [each.when for each in effects if isinstance(each, WakeAt)]
    if inputs.programs is not None and inputs.programs.wakes_at < math.inf:
        wakes.append(inputs.programs.wakes_at)
    if inputs.expires_at is not None:
        wakes.append(inputs.expires_at)
    if inputs.unprepared is not None and inputs.unprepared.retry_seconds is not None:
        wakes.append(now + inputs.unprepared.retry_seconds)
    if any(isinstance(each, Remove) for each in effects):
        # The status changes the revision, so only the UID identifies the pod here.
        writes.append(Delete(PODS, name_of(pod), uid_of(pod), grace_seconds=0))
    return run, Plan(tuple(writes), max(0.0, min(wakes) - now) if wakes else None)


def _reports(inputs: PodInputs, run: Run) -> Sequence[Report]:
    """Return events about what has just happened to the pod, with the kubelet's texts."""

    def warning(problem: Unprepared) -> Report:
        # The same problem is one event, also after a restart.
        return Report(inputs.pod, "Warning", problem.reason, problem.message, problem.message)

    before = {each.name: each for each in inputs.run.containers}
    reports = []
    if run.prepared_at is not None and inputs.run.prepared_at is None:
        for name, text in inputs.injected.items():
            whole = f"Container {name} has {text}".encode()
            message = whole[:_EVENT_BYTES_MAX].decode(errors="ignore")
            reports.append(Report(inputs.pod, "Normal", "CDIDevicesInjected", message, message))
    for container in run.containers:
        old = before[container.name]
        state = container.state
        has_started = not isinstance(state, Waiting) and (
            isinstance(old.state, Waiting) or old.restarts != container.restarts
        )
        if has_started:
            reports.append(Report(inputs.pod, "Normal", "Started", "Container started"))
        if isinstance(state, Waiting) and state.message and state != old.state:
            reports.append(warning(Unprepared("Failed", f"Error: {state.message}")))
        probed = run.probed.get(old.key)
        was = inputs.run.probed.get(old.key)
        if probed is None or probed == was:
            continue
        if probed.failure == POST_START_FAILED:
            reports.append(warning(Unprepared(POST_START_FAILED, probed.problem)))
        elif probed.problem and (was is None or probed.problem != was.problem):
            reports.append(warning(Unprepared("Unhealthy", probed.problem)))
        if probed.failure and (was is None or not was.failure):
            why = (
                "FailedPostStartHook"
                if probed.failure == POST_START_FAILED
                else (f"Container {container.name} {probed.failure}, will be restarted")
            )
            reports.append(Report(inputs.pod, "Normal", "Killing", why))
    problem = inputs.unprepared
    is_new = problem != inputs.reported
    if problem is not None and problem.message and is_new and not run.is_stopping:
        reports.append(warning(problem))
    if run.is_expired and not inputs.run.is_expired:
        reports.append(Report(inputs.pod, "Normal", DEADLINE_EXCEEDED, DEADLINE_MESSAGE))
    return reports


def undelivered(pod: Raw, claims: Mapping[Name, Raw]) -> str:
    """Return why the claims of a pod cannot be prepared, with the kubelet's text, or ""."""
    name = pod["metadata"]["name"]
    for reference in claims_of_pod(pod):
        if reference.claim is None:
            return f'pod "{pod["metadata"]["namespace"]}/{name}": ResourceClaim not created yet'
        if not reference.claim:
            continue
        claim = claims.get(Name(pod["metadata"]["namespace"], reference.claim))
        if claim is None:
            what = f'resourceclaims.resource.k8s.io "{reference.claim}" not found'
            return f"fetch ResourceClaim {reference.claim}: {what}"
        if not is_reserved_for(claim, pod):
            return (
                f"pod {name} ({uid_of(pod)}) is not allowed to use ResourceClaim "
                f"{reference.claim} ({uid_of(claim)})"
            )
        if not status_of(claim).get("allocation"):
            return f"ResourceClaim {reference.claim}: not allocated"
    return ""


@dataclass(frozen=True, slots=True)
class PodPrograms:
    """The programs of one pod."""

    sandboxes: Sandboxes
    pod: Raw

    def run_until(self, run: Run, now: float) -> Run:
        for container in run.containers:
            if not isinstance(container.state, Running):
                continue
            if container.is_executed:
                self.sandboxes.start(self.pod, container.key, container.state.since)
            if container.is_probed:
                self.sandboxes.start_probes(self.pod, container.key, container.state.since)
        self.sandboxes.run(self.pod, now)
        graceful = set(run.graceful)
        ends = dict(run.ends)
        probed = dict(run.probed)
        for container in run.containers:
            if not isinstance(container.state, Running):
                continue
            process = self.sandboxes.process(self.pod, container.key)
            if process is not None and process.handles_signals:
                graceful.add(container.name)
            if container.is_probed and self._read_probes(run, container, now, ends, probed):
                continue
            if run.is_stopping and container.name in graceful and not run.script.decides_stop:
                end = self.sandboxes.stop(self.pod, container.key, run.stop_began_at, now)
                if end is not None:
                    ends.setdefault(container.key, End(end, TERMINATED))
            if process is not None and process.exit_code is not None and container.is_executed:
                assert process.ended_at is not None, "a process with an exit code has ended"
                message = self.sandboxes.termination_message(self.pod, container.key)
                ends[container.key] = End(process.ended_at, process.exit_code, message)
        return replace(run, ends=ends, graceful=frozenset(graceful), probed=probed)

    def _read_probes(
        self,
        run: Run,
        container: Container,
        now: float,
        ends: dict[ContainerKey, End],
        probed: dict[ContainerKey, Probed],
    ) -> bool:
        """Add the results of the probes of a container; return True if they have ended it."""
        key = container.key
        if key in ends and key in probed and probed[key].failure:
            return True
        health = self.sandboxes.health(self.pod, key)
        if health is None:
            return False
        probed[key] = Probed(
            health.changed_at, health.is_started, health.is_ready, health.problem, health.failure
        )
        if health.failed_at is None:
            return False
        seconds = run.termination_seconds
        limit = health.failed_at + (health.grace_seconds or seconds)
        end = self.sandboxes.stop(self.pod, key, health.failed_at, now)
        if end is None and now >= limit:
            end = limit
        if end is not None:
            ends[key] = End(min(end, limit), TERMINATED if end < limit else KILLED)
            self.sandboxes.kill(self.pod, key, ends[key].code)
        return end is not None

    @property
    def wakes_at(self) -> float:
        return self.sandboxes.wakes_at(self.pod)


class VirtualKubelet(Reconciler[Name]):
    """Runs the pods of all virtual nodes."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "kubelet")
        self._drivers = context.drivers
        self._calls = None if context.drivers is None else PrepareCalls(context.drivers)
        self._sandboxes = context.sandboxes or Sandboxes(self._find_resource, context.drivers)
        self._sandboxes.listen(lambda pod: self.queue.add(name_of(pod)))
        self._processes = None if context.drivers is None else context.drivers.processes
        if self._processes is not None:
            self._processes.listen(self._on_call)
            self._processes.listen_to_health(self._on_health)
        self._runs: dict[str, Run] = {}
        self._rebooted: set[str] = set()
        """The UIDs of pods whose node has rebooted since they were decided."""
        self._reported: dict[str, Unprepared] = {}
        """By the UID of a pod: the reason in its last event."""
        self._pods = self.watch(PODS, self._on_pod)
        self._by_node = self._pods.index("node", node_names)
        self._by_configuration = self._pods.index("configuration", reference_keys)
        self._by_address = self._pods.index("address", _address_keys)
        self._claims = self.watch(CLAIMS, self._on_claim)
        self._nodes = self.watch(NODES, self._on_node)
        kinds = ((CONFIG_MAP, CONFIG_MAPS), (SECRET, SECRETS))
        self._configuration = {
            kind: self.watch(endpoint, partial(self._on_configuration, kind))
            for kind, endpoint in (kinds if context.reads_configuration else ())
        }

    async def run(self) -> None:
        if self._calls is not None:
            await self._claims.synced.wait()
            self._calls.start(self._claims.objects.values())
        await super().run()

    def _on_pod(self, old: Raw | None, new: Raw | None) -> None:
        if new is None:
            uid = uid_of(old or {"metadata": {}})
            self._runs.pop(uid, None)
            self._rebooted.discard(uid)
            self._reported.pop(uid, None)
            self._sandboxes.forget(uid)
            if self._calls is not None:
                self._calls.forget(uid)
            if old is not None and spec_of(old).get("nodeName"):
                # A pod that was deleted by force has left its claims prepared.
                self._release(old)
        elif spec_of(new).get("nodeName"):
            self.queue.add(name_of(new))

    def _on_node(self, old: Raw | None, new: Raw | None) -> None:
        if new is None:
            return
        if old is not None and _boot_of(old) not in ("", _boot_of(new)):
            self._reboot(new)
        has_turned = self._context.plays(new) != self._context.plays(old)
        if not has_turned and (old is None or annotations_of(new) == annotations_of(old)):
            return
        # Annotations of a node describe the faults of the node and of its devices.
        for pod in self._by_node.get(new["metadata"]["name"]):
            if has_turned or has_devices(pod) or self._is_unprepared(uid_of(pod)):
                self.queue.add(name_of(pod))

    def _on_call(self, node: str) -> None:
        """Decide the pods of a node that wait for a driver."""
        for pod in self._by_node.get(node):
            if self._is_unprepared(uid_of(pod)) or is_deleted(pod) or is_terminal(pod):
                self.queue.add(name_of(pod))

    def _on_health(self, node: str) -> None:
        """Decide the pods of a node with devices again: their status has the health."""
        for pod in self._by_node.get(node):
            if has_devices(pod):
                self.queue.add(name_of(pod))

    def _reboot(self, node: Raw) -> None:
        """Forget what is prepared on the node, and start its pods again, as a reboot does."""
        if self._processes is not None:
            self._processes.reboot(node["metadata"]["name"])
        for pod in self._by_node.get(node["metadata"]["name"]):
            self._rebooted.add(uid_of(pod))
            self.queue.add(name_of(pod))
            if self._drivers is not None:
                for claim in present_claims(pod, self._claims.objects):
                    # A claim of a finished pod can be in use on another node by now.
                    if is_reserved_for(claim, pod):
                        self._drivers.unprepare(uid_of(claim))

    def _on_claim(self, old: Raw | None, new: Raw | None) -> None:
        if self._calls is not None:
            self._calls.on_claim(old, new)
        if new is None:
            return
        namespace = new["metadata"]["namespace"]
        for consumer in get(new, "status.reservedFor", ()):
            if consumer.get("resource") == "pods" and self._is_unprepared(consumer["uid"]):
                self.queue.add(Name(namespace, consumer["name"]))

    def _on_configuration(self, kind: str, old: Raw | None, new: Raw | None) -> None:
        if old is not None and new is not None and keys_of(old) == keys_of(new):
            return
        for pod in self._by_configuration.get(index_key(kind, *name_of(new or old or {}))):
            if spec_of(pod).get("nodeName"):
                # A probe can read the files of the object.
                self._sandboxes.touch(uid_of(pod))
                self.queue.add(name_of(pod))

    def _is_unprepared(self, uid: str) -> bool:
        run = self._runs.get(uid)
        return run is None or run.prepared_at is None

    async def decide(self, name: Name) -> Plan:
        pod = self._pods.objects.get(name)
        if pod is None or not spec_of(pod).get("nodeName"):
            return NOTHING
        node = self._nodes.get("", spec_of(pod)["nodeName"])
        if node is None or not self._context.plays(node):
            return NOTHING
        if is_run_elsewhere(pod) and not is_deleted(pod):
            return NOTHING
        if is_terminal(pod):
            is_released = self._release(pod)
            # It stays until it is deleted, and until its finalizers are removed.
            if not is_deleted(pod) or pod["metadata"].get("deletionGracePeriodSeconds") == 0:
                return NOTHING
            if not is_released:
                return NOTHING
            return Plan((Delete(PODS, name_of(pod), uid_of(pod), grace_seconds=0),))
        now = self._clock.now()
        uid = uid_of(pod)
        boot = _boot_of(node)
        # The boot ID of the first boot is the UID of the node.
        boot = "" if boot == uid_of(node) else boot
        run = self._runs.get(uid) or self._begin(pod, node, boot)
        if uid in self._rebooted:
            self._rebooted.discard(uid)
            run, _ = step(run, Rebooted(now))
        faults = NO_FAULTS
        health: Mapping[str, Sequence[Raw]] = {}
        if has_devices(pod):
            faults = faults_of(annotations_of(node), now)
            cdi_ids = None if self._drivers is None else self._drivers.cdi_ids
            health = device_health(pod, self._claims.objects, faults, cdi_ids, self._processes)
        problem = self._preparation_problem(pod, node) if run.prepared_at is None else None
        missing = missing_configuration(pod, self._find) if self._configuration else {}
        injected: Mapping[str, str] = {}
        expires_at = faults.next_expiry
        is_running = all(isinstance(each.state, Running) for each in run.containers)
        if problem is None and self._processes is not None and not is_running:
            refused, injected = self._read_cdi_devices(pod)
            missing = {**refused, **missing}
            if refused:
                expires_at = min(expires_at or math.inf, now + RETRY_SECONDS)
        host = host_address(node)
        address = host if spec_of(pod).get("hostNetwork") else status_of(pod).get("podIP")
        inputs = PodInputs(
            pod,
            replace(run, deadline_seconds=spec_of(pod).get("activeDeadlineSeconds")),
            problem,
            missing,
            address=address or pod_address(uid, lambda it: bool(self._by_address.get(it))),
            host=host,
            now=now,
            boot=boot,
            reported=self._reported.pop(uid, None),
            health=health,
            expires_at=expires_at,
            injected=injected,
            programs=PodPrograms(self._sandboxes, pod),
        )
        self._runs[uid], answer = plan(inputs)
        if any(isinstance(each, Delete) for each in answer.writes) and not self._release(pod):
            # The pod is deleted when the drivers have unprepared its claims.
            kept = tuple(each for each in answer.writes if not isinstance(each, Delete))
            answer = replace(answer, writes=kept)
        if inputs.unprepared is not None:
            self._reported[uid] = inputs.unprepared
        return answer

    def _release(self, pod: Raw) -> bool:
        """Return whether no driver has prepared claims for a pod whose containers have ended."""
        node = spec_of(pod)["nodeName"]
        return self._processes is None or self._processes.release(uid_of(pod), node)

    def _read_cdi_devices(self, pod: Raw) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """Return the error, or the description, of the CDI devices of each container, by name."""
        assert self._processes is not None, "the caller checks it"
        refused: dict[str, str] = {}
        injected: dict[str, str] = {}
        for container in (*get(pod, "spec.initContainers", ()), *get(pod, "spec.containers", ())):
            uses = list(claims_in_use(pod, container, self._claims.get))
            for each in self._processes.injections(spec_of(pod)["nodeName"], uses):
                if each.error:
                    problem = f"CDI device injection failed: {each.error}"
                    refused[container["name"]] = REFUSED_BY_RUNTIME + problem
                else:
                    injected[container["name"]] = each.describe()
        return refused, injected

    def _begin(self, pod: Raw, node: Raw, boot: str) -> Run:
        """Return a new run, or the run that the status of the pod describes."""
        now = self._clock.now()
        if not status_of(pod).get("startTime"):
            return new_run(pod, now)
        run = resume(pod, now)
        if is_of_other_boot(pod, boot):
            self._rebooted.add(uid_of(pod))
        elif self._drivers is not None and run.prepared_at is not None:
            claims = present_claims(pod, self._claims.objects)
            self._drivers.restore(node["metadata"]["name"], claims)
        return run

    def _preparation_problem(self, pod: Raw, node: Raw) -> Unprepared | None:
        problem = undelivered(pod, self._claims.objects)
        if problem:
            return unprepared(problem)
        problem = mount_problem(pod, self._find) if self._configuration else ""
        if problem:
            return Unprepared("FailedMount", problem)
        if self._calls is None or is_deleted(pod):
            return None
        claims = present_claims(pod, self._claims.objects)
        return self._calls.problem(pod, node, claims, self._clock.now()) if claims else None

    def _find_resource(self, resource: str, namespace: str, name: str) -> Raw | None:
        match resource:
            case "configmaps":
                return self._find(CONFIG_MAP, namespace, name)
            case "secrets":
                return self._find(SECRET, namespace, name)
            case "nodes":
                return self._nodes.get("", name)
            case "resourceclaims.resource.k8s.io":
                return self._claims.get(namespace, name)
        return None

    def _find(self, kind: str, namespace: str, name: str) -> Raw | None:
        informer = self._configuration.get(kind)
        return None if informer is None else informer.get(namespace, name)


def _boot_of(node: Raw) -> str:
    return str(get(node, "status.nodeInfo.bootID", ""))


def _address_keys(pod: Raw) -> Sequence[str]:
    address = status_of(pod).get("podIP")
    return (address,) if address and not is_terminal(pod) else ()
