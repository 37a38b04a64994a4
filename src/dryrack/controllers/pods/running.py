"""
The kubelet of every virtual node: bound pods run through their lives.

The run of each pod is kept here while it lasts, and can be read back from its status after a
restart. What is written is always the whole status at the revision it was made from, so whoever
wrote in between is never overwritten: the pod is looked at anew.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from dryrack.client.endpoints import CLAIMS, CONFIG_MAPS, NODES, PODS, SECRETS
from dryrack.client.informer import Name, name_of
from dryrack.controllers.claims.references import claims_of_pod, is_reserved_for
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
    missing,
    referred,
    unmounted,
)
from dryrack.controllers.pods.drivers import (
    PrepareCalls,
    Unprepared,
    device_health,
    has_devices,
    present_claims,
    unprepared,
)
from dryrack.controllers.pods.lifecycle import (
    Deleted,
    Event,
    Missing,
    Passed,
    Prepared,
    Rebooted,
    Remove,
    Run,
    Running,
    Waiting,
    WakeAt,
    step,
)
from dryrack.controllers.pods.rendering import (
    DEADLINE_EXCEEDED,
    DEADLINE_MESSAGE,
    is_of_other_boot,
    new_run,
    render,
    resume,
)
from dryrack.controllers.pods.virtual import host_address, is_played, pod_address
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
from dryrack.hardware import NO_FAULTS, NodeFaults, faults_of
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw


@dataclass(frozen=True, slots=True)
class Scene:
    """All that decides about one pod at one time."""

    pod: Raw
    run: Run
    unprepared: Unprepared | None
    """Why nothing of it can start yet."""
    missing: Mapping[str, str]
    """What its containers cannot be created without."""
    address: str
    host: str
    now: float
    boot: str = ""
    """The boot ID of its node, if it is not the first."""
    told: Unprepared | None = None
    """What was last said about it."""
    health: Mapping[str, Sequence[Raw]] = field(default_factory=dict)
    """What is told of the devices of its containers, by their names."""
    expires_at: float | None = None
    """When that may be different by itself."""


def plan(scene: Scene) -> tuple[Run, Plan]:
    """The run as it goes on, and what is to be written about it."""
    run = scene.run
    if scene.missing != run.missing:
        run, _ = step(run, Missing(scene.now, scene.missing))
    run, effects = step(run, _event(scene))
    # Events come first: they are told once, and a status that is refused is written anew.
    writes: list[Write] = [*_reports(scene, run)]
    status = render(
        run,
        scene.pod,
        address=scene.address,
        host=scene.host,
        boot=scene.boot,
        health=scene.health,
    )
    if status != status_of(scene.pod):
        writes.append(Update(PODS, scene.pod | {"status": status}, "status"))
    wakes = [each.when for each in effects if isinstance(each, WakeAt)]
    if scene.expires_at is not None:
        wakes.append(scene.expires_at)
    if scene.unprepared is not None and scene.unprepared.retry_seconds is not None:
        wakes.append(scene.now + scene.unprepared.retry_seconds)
    again = max(0.0, min(wakes) - scene.now) if wakes else None
    if any(isinstance(each, Remove) for each in effects):
        # The server raises the revision with the status; the uid alone names the pod here.
        writes.append(Delete(PODS, name_of(scene.pod), uid_of(scene.pod), grace_seconds=0))
    return run, Plan(tuple(writes), again)


def _event(scene: Scene) -> Event:
    if is_deleted(scene.pod):
        grace = scene.pod["metadata"].get("deletionGracePeriodSeconds") or 0
        return Deleted(scene.now, float(grace))
    if scene.run.prepared_at is None and not scene.unprepared:
        return Prepared(scene.now)
    return Passed(scene.now)


def _warning(pod: Raw, problem: Unprepared) -> Report:
    """The same problem is one event, also when it is met again after a restart."""
    return Report(pod, "Warning", problem.reason, problem.message, problem.message)


def _reports(scene: Scene, run: Run) -> Sequence[Report]:
    """Events for what has just happened to containers and the pod, in the kubelet's words."""
    before = {each.name: each for each in scene.run.containers}
    found = []
    for container in run.containers:
        old = before[container.name]
        state = container.state
        is_new = isinstance(state, Running) and (
            not isinstance(old.state, Running) or old.restarts != container.restarts
        )
        if is_new:
            found.append(Report(scene.pod, "Normal", "Started", "Container started"))
        if isinstance(state, Waiting) and state.message and state != old.state:
            found.append(_warning(scene.pod, Unprepared("Failed", f"Error: {state.message}")))
    problem = scene.unprepared
    if problem is not None and problem.message and problem != scene.told and not run.is_stopping:
        found.append(_warning(scene.pod, problem))
    if run.is_expired and not scene.run.is_expired:
        found.append(Report(scene.pod, "Normal", DEADLINE_EXCEEDED, DEADLINE_MESSAGE))
    return found


def undelivered(pod: Raw, claims: Mapping[Name, Raw]) -> str:
    """Why the claims of a pod cannot be prepared on its node, in the kubelet's words, or ""."""
    for reference in claims_of_pod(pod):
        if reference.claim is None:
            return f"podclaim {reference.name}: not yet created"
        if not reference.claim:
            continue
        claim = claims.get(Name(pod["metadata"]["namespace"], reference.claim))
        if claim is None:
            return f'resourceclaim "{reference.claim}" not found'
        if not status_of(claim).get("allocation"):
            return f"ResourceClaim {reference.claim}: not allocated"
        if not is_reserved_for(claim, pod):
            return f"pod {uid_of(pod)} is not allowed to use ResourceClaim {reference.claim}"
    return ""


class VirtualKubelet(Reconciler[Name]):
    """Runs the pods of all virtual nodes."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "kubelet")
        self._drivers = context.drivers
        self._calls = None if context.drivers is None else PrepareCalls(context.drivers)
        self._runs: dict[str, Run] = {}
        self._rebooted: set[str] = set()
        """The UIDs of pods whose node has rebooted since they were decided."""
        self._told: dict[str, Unprepared] = {}
        self._pods = self.watch(PODS, self._on_pod)
        self._by_node = self._pods.index("node", node_names)
        self._by_configuration = self._pods.index("configuration", referred)
        self._by_address = self._pods.index("address", _address_keys)
        self._claims = self.watch(CLAIMS, self._on_claim)
        self._nodes = self.watch(NODES, self._on_node)
        self._configuration = {
            kind: self.watch(endpoint, partial(self._on_configuration, kind))
            for kind, endpoint in ((CONFIG_MAP, CONFIG_MAPS), (SECRET, SECRETS))
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
            self._told.pop(uid, None)
            if self._calls is not None:
                self._calls.forget(uid)
        elif spec_of(new).get("nodeName"):
            self.queue.add(name_of(new))

    def _on_node(self, old: Raw | None, new: Raw | None) -> None:
        if new is None:
            return
        if old is not None and _boot_of(old) not in ("", _boot_of(new)):
            self._reboot(new)
        has_turned = is_played(new) != is_played(old)
        if not has_turned and (old is None or annotations_of(new) == annotations_of(old)):
            return
        # What is wrong with a node, and with its devices, is on it as annotations.
        for pod in self._by_node.get(new["metadata"]["name"]):
            if has_turned or has_devices(pod) or self._is_unprepared(uid_of(pod)):
                self.queue.add(name_of(pod))

    def _reboot(self, node: Raw) -> None:
        """Forget what is prepared on the node, and start its pods again, as a reboot does."""
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
            if consumer.get("resource") == "pods":
                name = Name(namespace, consumer["name"])
                if self._is_unprepared(consumer["uid"]):
                    self.queue.add(name)

    def _on_configuration(self, kind: str, old: Raw | None, new: Raw | None) -> None:
        if old is not None and new is not None and keys_of(old) == keys_of(new):
            return
        for pod in self._by_configuration.get(index_key(kind, *name_of(new or old or {}))):
            if spec_of(pod).get("nodeName"):
                self.queue.add(name_of(pod))

    def _is_unprepared(self, uid: str) -> bool:
        run = self._runs.get(uid)
        return run is None or run.prepared_at is None

    async def decide(self, name: Name) -> Plan:
        pod = self._pods.objects.get(name)
        if pod is None or not spec_of(pod).get("nodeName"):
            return NOTHING
        node = self._nodes.get("", spec_of(pod)["nodeName"])
        if node is None or not is_played(node):
            return NOTHING
        if is_terminal(pod):
            return _farewell(pod)
        now = self._clock.now()
        uid = uid_of(pod)
        run = self._runs.get(uid) or self._begun(pod, node, now)
        if uid in self._rebooted:
            self._rebooted.discard(uid)
            run, _ = step(run, Rebooted(now))
        faults = faults_of(annotations_of(node), now) if has_devices(pod) else NO_FAULTS
        scene = Scene(
            pod,
            replace(run, deadline_seconds=spec_of(pod).get("activeDeadlineSeconds")),
            self._unprepared(pod, node) if run.prepared_at is None else None,
            missing(pod, self._find),
            address=self._address(pod, node),
            host=host_address(node),
            now=now,
            boot=_later_boot_of(node),
            told=self._told.pop(uid, None),
            health=self._health(pod, faults) if has_devices(pod) else {},
            expires_at=faults.next_expiry,
        )
        self._runs[uid], answer = plan(scene)
        if scene.unprepared is not None:
            self._told[uid] = scene.unprepared
        return answer

    def _begun(self, pod: Raw, node: Raw, now: float) -> Run:
        if not status_of(pod).get("startTime"):
            return new_run(pod, now)
        run = resume(pod, now)
        if is_of_other_boot(pod, _later_boot_of(node)):
            self._rebooted.add(uid_of(pod))
        elif self._drivers is not None and run.prepared_at is not None:
            claims = present_claims(pod, self._claims.objects)
            self._drivers.restore(node["metadata"]["name"], claims)
        return run

    def _unprepared(self, pod: Raw, node: Raw) -> Unprepared | None:
        lacking = undelivered(pod, self._claims.objects)
        if lacking:
            return unprepared(lacking)
        lacking = unmounted(pod, self._find)
        if lacking:
            return Unprepared("FailedMount", lacking)
        if self._calls is None or is_deleted(pod):
            return None
        claims = present_claims(pod, self._claims.objects)
        return self._calls.problem(pod, node, claims, self._clock.now()) if claims else None

    def _health(self, pod: Raw, faults: NodeFaults) -> Mapping[str, Sequence[Raw]]:
        cdi_ids = None if self._drivers is None else self._drivers.cdi_ids
        return device_health(pod, self._claims.objects, faults, cdi_ids)

    def _find(self, kind: str, namespace: str, name: str) -> Raw | None:
        return self._configuration[kind].get(namespace, name)

    def _address(self, pod: Raw, node: Raw) -> str:
        if spec_of(pod).get("hostNetwork"):
            return host_address(node)
        known = status_of(pod).get("podIP")
        return known or pod_address(uid_of(pod), lambda it: bool(self._by_address.get(it)))


def _boot_of(node: Raw) -> str:
    return str(get(node, "status.nodeInfo", {}).get("bootID", ""))


def _later_boot_of(node: Raw) -> str:
    """The boot ID, unless it is that of the first boot, which is the node's UID."""
    boot = _boot_of(node)
    return "" if boot == uid_of(node) else boot


def _farewell(pod: Raw) -> Plan:
    """A pod that has ended stays for people to see until it is deleted, and its finalizers gone."""
    if not is_deleted(pod) or pod["metadata"].get("deletionGracePeriodSeconds") == 0:
        return NOTHING
    return Plan((Delete(PODS, name_of(pod), uid_of(pod), grace_seconds=0),))


def _address_keys(pod: Raw) -> Sequence[str]:
    address = status_of(pod).get("podIP")
    return (address,) if address and not is_terminal(pod) else ()
