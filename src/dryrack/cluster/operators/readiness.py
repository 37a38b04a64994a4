"""Probes of a local program, and the status of the pod that it stands for."""

from __future__ import annotations

import asyncio
import http.client
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.kinds.paths import get, status_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.kinds.raw import Raw

# The interval between probes of a program that is not ready yet.
FIRST_SECONDS = 0.5
# A program that closes a connection does it by then.
_SILENCE_SECONDS = 0.1
_LOOPBACK = "127.0.0.1"


@dataclass(slots=True)
class Probe:
    """A readiness or liveness probe, and its last results."""

    spec: Raw
    container: Raw
    ports: Mapping[int, int]
    """By the port of the container: the local one, if they differ."""
    next_at: float = 0.0
    failures: int = 0
    has_succeeded: bool = False
    problem: str = ""

    @property
    def is_passing(self) -> bool:
        return self.has_succeeded and self.failures < int(self.spec.get("failureThreshold") or 3)

    async def run_if_due(self, now: float) -> None:
        """Ask the program if the period is over."""
        if now < self.next_at:
            return
        period = float(self.spec.get("periodSeconds") or 10)
        self.problem = await self._ask()
        self.failures = self.failures + 1 if self.problem else 0
        self.has_succeeded = self.has_succeeded or not self.problem
        self.next_at = now + (period if self.has_succeeded else min(period, FIRST_SECONDS))

    async def _ask(self) -> str:
        """Return the reason why the probe fails, or ""."""
        seconds = float(self.spec.get("timeoutSeconds") or 1)
        handler = next(
            self.spec[each] for each in ("httpGet", "tcpSocket", "grpc") if each in self.spec
        )
        number = port_number(handler.get("port"), self.container)
        port = self.ports.get(number, number)
        if "httpGet" not in self.spec:
            return await asyncio.to_thread(connect, port, seconds)
        return await asyncio.to_thread(_get, handler, port, seconds)


def probe_of(container: Raw, name: str, ports: Mapping[int, int]) -> Probe | None:
    """Return a probe of the container; None if it has none that can ask a local program."""
    spec = get(container, name, {})
    if not {"httpGet", "tcpSocket", "grpc"} & spec.keys():
        return None
    return Probe(spec, container, ports)


def port_number(port: object, container: Raw) -> int:
    """Return the number of a port, which may be the name of one of the container's; 0: none."""
    if isinstance(port, int):
        return port
    for each in get(container, "ports", ()):
        if each.get("name") == port:
            return int(each["containerPort"])
    return int(port) if isinstance(port, str) and port.isdecimal() else 0


def connect(port: int, seconds: float) -> str:
    """Return the reason why no program listens at a port of this machine, or ""."""
    try:
        with socket.create_connection((_LOOPBACK, port), seconds) as connection:
            # A relay accepts the connection before the program listens, and then closes it.
            connection.settimeout(_SILENCE_SECONDS)
            with suppress(TimeoutError):
                if connection.recv(1) == b"":
                    return f"port {port}: connection closed"
    except OSError as error:
        return f"port {port}: {error.strerror or error}".lower()
    return ""


def _get(handler: Raw, port: int, seconds: float) -> str:
    path = handler.get("path") or "/"
    headers = {each["name"]: each["value"] for each in get(handler, "httpHeaders", ())}
    connection: http.client.HTTPConnection
    if handler.get("scheme") == "HTTPS":
        # As the kubelet: a probe does not verify the certificate.
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection = http.client.HTTPSConnection(_LOOPBACK, port, timeout=seconds, context=context)
    else:
        connection = http.client.HTTPConnection(_LOOPBACK, port, timeout=seconds)
    try:
        connection.request("GET", path, headers=headers)
        code = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "strerror", None) or error
        return f"GET port {port} {path}: {reason}".lower()
    finally:
        connection.close()
    return "" if 200 <= code < 400 else f"GET port {port} {path}: status {code}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerStatus:
    """The state of the container that runs as a local process."""

    name: str
    state: Raw
    last: Raw
    restarts: int
    is_ready: bool = False
    is_over: bool = False
    """True if the container has exited and does not start again."""


def status_with(pod: Raw, container: ContainerStatus, now: str) -> Raw:
    """Return the status of the pod with the state of one container, and the conditions."""
    status = status_of(pod)
    ours = {
        "state": container.state,
        "lastState": container.last,
        "ready": container.is_ready,
        "started": "running" in container.state,
        "restartCount": container.restarts,
    }
    containers: list[Raw] = [
        {**each, **ours} if each.get("name") == container.name else each
        for each in get(status, "containerStatuses", ())
    ]
    unready = [each["name"] for each in containers if not each.get("ready")]
    readiness: Raw = {"status": "False" if unready else "True"}
    if unready:
        readiness["reason"] = "ContainersNotReady"
        readiness["message"] = f"containers with unready status: [{' '.join(unready)}]"
    conditions = []
    for each in get(status, "conditions", ()):
        if each.get("type") in ("Ready", "ContainersReady"):
            has_changed = each.get("status") != readiness["status"]
            since = now if has_changed else each.get("lastTransitionTime")
            rest = {key: value for key, value in each.items() if key not in ("reason", "message")}
            conditions.append({**rest, **readiness, "lastTransitionTime": since})
        else:
            conditions.append(each)
    made = {**status, "containerStatuses": containers, "conditions": conditions}
    if container.is_over:
        code = container.state["terminated"]["exitCode"]
        made["phase"] = "Failed" if code else "Succeeded"
    return made
