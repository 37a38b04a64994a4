"""
Run the program of a pod as a local process, with what its container would have.

`run_operator` is the whole life: it waits for a pod of the workload, marks it, so that the virtual
kubelet leaves it alone, runs the program until the pod is deleted or a signal comes, and removes
all that it wrote. If the workload has another pod by then, it starts again with that one.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dryrack.client.client import Client, Selection
from dryrack.client.endpoints import CONFIG_MAPS, NODES, PODS, SECRETS, SERVICE_ACCOUNTS, SERVICES
from dryrack.client.errors import ApiError, ConflictError, NotFoundError, TransportError
from dryrack.client.timekeeping import timestamp
from dryrack.cluster.operators.readiness import (
    ContainerStatus,
    Probe,
    connect,
    port_number,
    probe_of,
    status_with,
)
from dryrack.cluster.operators.sandbox import Machine, Sandbox, plan_of
from dryrack.cluster.operators.volumes import (
    Contents,
    TokenRequest,
    container_names,
    container_of,
    references_of,
    token_requests,
)
from dryrack.cluster.operators.workloads import (
    OperatorError,
    Workload,
    check_exists,
    pod_of,
    reason_to_wait,
)
from dryrack.cluster.ports import SystemClock
from dryrack.controllers import RUN_BY, is_virtual
from dryrack.kinds.paths import get, metadata_of, spec_of, status_of

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Callable, Mapping

    from dryrack.client.transport import Transport
    from dryrack.kinds.raw import Raw

AGENT = "dryrack-run"
ADDRESS = "dryrack.dev/address"
_TICK_SECONDS = 0.5
_REFRESH_SECONDS = 1.0
# A cluster that is started again is back by then; one that was deleted does not come back.
_SILENCE_SECONDS_MAX = 30.0
# As the kubelet: the first wait, the longest one, and the run time that is long enough to forget.
_BACK_OFF_SECONDS = 10.0
_BACK_OFF_SECONDS_MAX = 300.0
_FORGIVEN_SECONDS = 600.0
# Tokens are refreshed after this part of their life, as the kubelet does.
_TOKEN_LIFE = 0.8
_HTTPS = 443


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRequest:
    """A workload, and where the parts of its program go on this machine."""

    workload: Workload
    container: str
    machine: Machine
    ports: Mapping[int, int]
    """By the port of the container: the port on this machine."""


class Signals:
    """The signals that stop the program; the second one kills it."""

    def __init__(self) -> None:
        self.stop = asyncio.Event()
        self.kill = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self._on_signal)

    def _on_signal(self) -> None:
        if self.stop.is_set():
            self.kill.set()
        self.stop.set()


async def run_operator(
    transport: Transport,
    request: OperatorRequest,
    report: Callable[[str], None],
    on_ready: Callable[[], None],
) -> bool:
    """Run the program until it is stopped; return whether it ended as it should."""
    client = Client(transport, agent=AGENT)
    signals = Signals()
    workload = request.workload
    await check_exists(client, workload)
    while not signals.stop.is_set():
        try:
            pod = await _wait_for_pod(client, workload, signals, report)
        except NotFoundError:
            report(f"{workload} was deleted")
            return True
        if pod is None:
            break
        local = LocalPod(client, request, pod, signals, report, on_ready)
        try:
            await local.start()
            code = await local.run()
        finally:
            await local.close()
        if code is not None:
            return code == 0
    return True


async def _wait_for_pod(
    client: Client, workload: Workload, signals: Signals, report: Callable[[str], None]
) -> Raw | None:
    """Return a running pod of the workload; None if a signal came."""
    told = ""
    while not signals.stop.is_set():
        pod = await pod_of(client, workload)
        if pod is not None:
            phase = status_of(pod).get("phase")
            if phase == "Running" and "deletionTimestamp" not in metadata_of(pod):
                return pod
            if phase in ("Succeeded", "Failed"):
                name = pod["metadata"]["name"]
                raise OperatorError(
                    f"pod {workload.namespace}/{name}: is over ({phase}); create it again"
                )
        # Most pods run at once, so the reason comes only if it lasts.
        with suppress(TimeoutError):
            await asyncio.wait_for(signals.stop.wait(), _REFRESH_SECONDS)
        reason = await reason_to_wait(client, pod, workload)
        if reason != told:
            still = await pod_of(client, workload)
            if still is None or status_of(still).get("phase") != "Running":
                report(reason)
                told = reason
    return None


@dataclass(slots=True)
class LocalPod:
    """One pod whose container runs as a local process."""

    client: Client
    request: OperatorRequest
    pod: Raw
    signals: Signals
    report: Callable[[str], None]
    on_ready: Callable[[], None]
    container: Raw = field(default_factory=dict)
    ports: Mapping[int, int] = field(default_factory=dict)
    sandbox: Sandbox | None = None
    objects: dict[tuple[str, str, str], Raw] = field(default_factory=dict)
    tokens: dict[TokenRequest, str] = field(default_factory=dict)
    token_ends: dict[TokenRequest, float] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)
    """By Service: the address in its annotation."""
    webhook_ports: set[int] = field(default_factory=set)
    """The ports on this machine to which Services with port 443 lead."""
    is_marked: bool = False
    has_served: bool = False
    """True since the program was ready, and its webhooks answered, for the first time."""
    process: Process | None = None
    started_at: float = 0.0
    restarts: int = 0
    back_off: float = 0.0
    last: Raw = field(default_factory=dict)
    clock: SystemClock = field(default_factory=SystemClock)

    @property
    def namespace(self) -> str:
        return str(self.pod["metadata"]["namespace"])

    @property
    def name(self) -> str:
        return str(self.pod["metadata"]["name"])

    @property
    def _what(self) -> str:
        return f"pod {self.namespace}/{self.name}"

    async def start(self) -> None:
        """Check everything, mark the pod, and write the files."""
        container = container_of(self.pod, self.request.container)
        if container is None:
            names = ", ".join(container_names(self.pod))
            raise OperatorError(
                f"{self._what}: has no container {self.request.container!r}; it has: {names}; "
                "name one with -c"
            )
        self.container = container
        node = await self.client.get(NODES, spec_of(self.pod)["nodeName"])
        if not is_virtual(node):
            raise OperatorError(
                f"{self._what}: runs on the real node {node['metadata']['name']}; dryrack run is "
                "for pods on virtual nodes, for example of: dryrack up --nodes 1"
            )
        self._check_mark()
        await self._refresh()
        plan = plan_of(self._contents(), self.request.machine, self.request.ports)
        self.ports = plan.ports
        await self._mark(f"{socket.gethostname()}/{os.getpid()}")
        self.is_marked = True
        await self._connect_services()
        self.sandbox = await Sandbox.prepare(plan, self.request.machine, self._contents())
        for line in self.sandbox.description():
            self.report(line)

    def _check_mark(self) -> None:
        """Raise if another process on this machine stands for the pod."""
        host, _, text = get(self.pod, "metadata.annotations", {}).get(RUN_BY, "").rpartition("/")
        if host != socket.gethostname() or not text.isdecimal() or int(text) == os.getpid():
            return
        with suppress(ProcessLookupError, PermissionError):
            os.kill(int(text), 0)
            raise OperatorError(
                f"{self._what}: process {text} runs it already; stop that one first, for "
                f"example: kill {text}"
            )

    async def _mark(self, value: str | None) -> None:
        patch = {"metadata": {"uid": self.pod["metadata"]["uid"], "annotations": {RUN_BY: value}}}
        await self.client.patch(PODS, self.name, patch, namespace=self.namespace)

    def _contents(self) -> Contents:
        return Contents(
            self.pod,
            self.container,
            lambda resource, namespace, name: self.objects.get((resource, namespace, name)),
            self.tokens,
            self.request.machine.authority,
        )

    async def run(self) -> int | None:
        """Run the program until the pod is gone (None), a signal comes, or it is over."""
        assert self.sandbox is not None, "start() comes first"
        while True:
            code = await self._run_once(self.sandbox)
            if code is None:
                return None
            if self.signals.stop.is_set():
                return 0
            policy = spec_of(self.pod).get("restartPolicy", "Always")
            ended = self.clock.now()
            terminated = {
                "exitCode": code,
                "reason": "Error" if code else "Completed",
                "startedAt": timestamp(self.started_at),
                "finishedAt": timestamp(ended),
            }
            self.last = {"terminated": terminated}
            if policy == "Never" or (policy == "OnFailure" and code == 0):
                await self._write_status(self.last, is_over=True)
                self.report(f"{self._what}: the program ended with exit status {code}")
                return code
            # As a virtual pod: at once the first time, then after twice as long each time.
            if self.restarts == 0 or ended - self.started_at >= _FORGIVEN_SECONDS:
                self.back_off = 0.0
            else:
                longer = max(_BACK_OFF_SECONDS, self.back_off * 2)
                self.back_off = min(longer, _BACK_OFF_SECONDS_MAX)
            when = f"in {self.back_off:.0f}s" if self.back_off else "now"
            self.report(
                f"{self._what}: the program ended with exit status {code}; it starts again {when}"
            )
            message = f"back-off {self.back_off:.0f}s restarting failed container={self._part}"
            waiting = {"reason": "CrashLoopBackOff", "message": message}
            if self.back_off:
                await self._write_status({"waiting": waiting})
            if not await self._wait_out(self.back_off):
                return None if not self.signals.stop.is_set() else 0
            self.restarts += 1

    @property
    def _part(self) -> str:
        return str(self.container["name"])

    async def _wait_out(self, seconds: float) -> bool:
        """Wait for the next start; return False if the pod is gone or a signal came."""
        until = self.clock.now() + seconds
        while not self.signals.stop.is_set() and await self._is_there():
            if self.clock.now() >= until:
                return True
            with suppress(TimeoutError):
                await asyncio.wait_for(self.signals.stop.wait(), _TICK_SECONDS)
        return False

    async def _run_once(self, sandbox: Sandbox) -> int | None:
        """Start the program, and watch it until it ends; return None if the pod is gone."""
        self.process = process = await sandbox.launch()
        self.started_at = self.clock.now()
        running = {"running": {"startedAt": timestamp(self.started_at)}}
        self.report(f"{self._what}: runs as process {process.pid}: {sandbox.command}")
        readiness = probe_of(self.container, "readinessProbe", self.ports)
        liveness = probe_of(self.container, "livenessProbe", self.ports)
        is_ready = readiness is None
        await self._write_status(running, is_ready=is_ready)
        ends = asyncio.create_task(process.wait())
        stops = asyncio.create_task(self.signals.stop.wait())
        refresh_at = self.clock.now() + _REFRESH_SECONDS
        answered_at = self.clock.now()
        try:
            while True:
                await asyncio.wait(
                    (ends, stops), timeout=_TICK_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
                if ends.done():
                    code = ends.result()
                    # A shell reports the end by a signal in the same way.
                    return code if code >= 0 else 128 - code
                if stops.done():
                    return await self._stop_process()
                now = self.clock.now()
                try:
                    if readiness is not None:
                        await readiness.run_if_due(now)
                        if readiness.is_passing != is_ready:
                            is_ready = readiness.is_passing
                            await self._write_status(running, is_ready=is_ready)
                            self._tell_readiness(readiness)
                    if is_ready:
                        await self._report_service(now)
                    if now >= refresh_at:
                        refresh_at = now + _REFRESH_SECONDS
                        if not await self._is_there():
                            await self._stop_process()
                            return None
                        await self._refresh()
                        sandbox.write(self._contents())
                        answered_at = now
                except (ApiError, TransportError) as error:
                    if now - answered_at > _SILENCE_SECONDS_MAX:
                        raise OperatorError(
                            f"{error}; so for {_SILENCE_SECONDS_MAX:.0f}s, so the program was "
                            "stopped; check that the cluster runs, then run the command again"
                        ) from None
                if liveness is not None and is_ready:
                    await liveness.run_if_due(now)
                    if liveness.failures and not liveness.is_passing and liveness.has_succeeded:
                        self.report(f"{self._what}: liveness probe failed: {liveness.problem}")
                        return await self._stop_process()
        finally:
            for task in (ends, stops):
                task.cancel()

    def _tell_readiness(self, readiness: Probe) -> None:
        if readiness.is_passing:
            self.report(f"{self._what}: is ready")
        else:
            self.report(f"{self._what}: is not ready: {readiness.problem}")

    async def _connect_services(self) -> None:
        """
        Let the API server call the webhooks of the Services that select the pod.

        Until the program listens, the calls fail, as on a cluster whose pod is not ready.
        """
        labels = get(self.pod, "metadata.labels", {})
        listing = await self.client.list(SERVICES, Selection(namespace=self.namespace))
        for service in listing.items:
            selector = get(service, "spec.selector", {})
            name = service["metadata"]["name"]
            if not selector or not selector.items() <= labels.items() or name in self.addresses:
                continue
            port = self._target_of(service)
            if not port:
                continue
            local = self.ports.get(port, port)
            if any(each.get("port") == _HTTPS for each in get(service, "spec.ports", ())):
                self.webhook_ports.add(local)
            address = f"127.0.0.1:{local}"
            patch = {"metadata": {"annotations": {ADDRESS: address}}}
            self.addresses[name] = address
            await self.client.patch(SERVICES, name, patch, namespace=self.namespace)
            self.report(f"service {self.namespace}/{name}: annotated with {ADDRESS}={address}")

    async def _report_service(self, now: float) -> None:
        """Call `on_ready` once webhooks answer; readiness probes of some programs are earlier."""
        if self.has_served:
            return
        if now - self.started_at < _SILENCE_SECONDS_MAX:
            for port in self.webhook_ports:
                if await asyncio.to_thread(connect, port, _TICK_SECONDS):
                    return
        self.has_served = True
        self.on_ready()

    def _target_of(self, service: Raw) -> int:
        """Return the port of the container that a Service leads to, or 0."""
        ports = get(service, "spec.ports", ())
        # An annotation names one address; webhooks are called at port 443 by default.
        chosen: Raw = min(
            ports,
            key=lambda each: (each.get("port") != _HTTPS, "webhook" not in each.get("name", "")),
            default={},
        )
        return port_number(chosen.get("targetPort", chosen.get("port")), self.container)

    async def _is_there(self) -> bool:
        try:
            pod = await self.client.get(PODS, self.name, self.namespace)
        except NotFoundError:
            return False
        metadata = metadata_of(pod)
        if metadata["uid"] != self.pod["metadata"]["uid"] or "deletionTimestamp" in metadata:
            return False
        self.pod = pod
        return True

    async def _write_status(
        self, state: Raw, *, is_ready: bool = False, is_over: bool = False
    ) -> None:
        if not await self._is_there():
            return
        status = ContainerStatus(
            name=self._part,
            state=state,
            last=self.last,
            restarts=self.restarts,
            is_ready=is_ready,
            is_over=is_over,
        )
        patch = {"status": status_with(self.pod, status, timestamp(self.clock.now()))}
        with suppress(NotFoundError):
            await self.client.patch(
                PODS, self.name, patch, namespace=self.namespace, subresource="status"
            )

    async def _refresh(self) -> None:
        """Read ConfigMaps and Secrets again, and get tokens before the old ones expire."""
        endpoints = {"configmaps": CONFIG_MAPS, "secrets": SECRETS}
        for resource, name in sorted(set(references_of(self.pod, self.container))):
            key = (resource, self.namespace, name)
            try:
                obj = await self.client.get(endpoints[resource], name, self.namespace)
            except NotFoundError:
                self.objects.pop(key, None)
            else:
                self.objects[key] = obj
        node = spec_of(self.pod)["nodeName"]
        if ("nodes", "", node) not in self.objects:
            self.objects["nodes", "", node] = await self.client.get(NODES, node)
        for wanted in set(token_requests(self.pod)):
            if self.clock.now() < self.token_ends.get(wanted, 0.0):
                continue
            self.tokens[wanted] = await self._token(wanted)
            self.token_ends[wanted] = self.clock.now() + wanted.seconds * _TOKEN_LIFE

    async def _token(self, wanted: TokenRequest) -> str:
        account = spec_of(self.pod).get("serviceAccountName") or "default"
        bound = {"apiVersion": "v1", "kind": "Pod", "name": self.name}
        spec: Raw = {
            "audiences": [wanted.audience] if wanted.audience else [],
            "expirationSeconds": wanted.seconds,
            "boundObjectRef": {**bound, "uid": self.pod["metadata"]["uid"]},
        }
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "metadata": {"name": account, "namespace": self.namespace},
            "spec": spec,
        }
        answer = await self.client.create(SERVICE_ACCOUNTS, body, subresource="token")
        return str(status_of(answer)["token"])

    async def _stop_process(self) -> int:
        """End the program as the kubelet does: SIGTERM, the grace period, SIGKILL."""
        process = self.process
        if process is None:
            return 0
        if process.returncode is None:
            _send(process.pid, signal.SIGTERM)
            grace = float(spec_of(self.pod).get("terminationGracePeriodSeconds") or 0)
            waits = (
                asyncio.create_task(process.wait()),
                asyncio.create_task(self.signals.kill.wait()),
            )
            await asyncio.wait(waits, timeout=grace, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()
        # Also what the program has started and left behind.
        _send(process.pid, signal.SIGKILL)
        code = await process.wait()
        return code if code >= 0 else 128 - code

    async def close(self) -> None:
        """Stop the program, and remove everything that was written."""
        await self._stop_process()
        if self.process is not None:
            self.report(f"{self._what}: stopped")
        if self.sandbox is not None:
            self.sandbox.remove()
        try:
            for name, address in self.addresses.items():
                await self._remove_address(name, address)
            if self.is_marked:
                # A pod with the same name can have taken its place.
                with suppress(NotFoundError, ConflictError):
                    await self._mark(None)
        except (ApiError, TransportError) as error:
            self.report(f"{self._what}: its annotations stay in the cluster: {error}")

    async def _remove_address(self, name: str, address: str) -> None:
        with suppress(NotFoundError):
            service = await self.client.get(SERVICES, name, self.namespace)
            if get(service, "metadata.annotations", {}).get(ADDRESS) == address:
                patch = {"metadata": {"annotations": {ADDRESS: None}}}
                await self.client.patch(SERVICES, name, patch, namespace=self.namespace)


def _send(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
