"""
DRA drivers of virtual nodes, as the virtual kubelet calls them, and the health of devices.

Only a driver knows what containers get with its devices, and whether it can prepare them. Without a
driver, devices are numbered, and every allocated claim is ready.

Drivers report the health of devices to a kubelet, which writes it to the status of each container
(`allocatedResourcesStatus`): an entry for each claim that the container names, with all devices of
the claim. For a virtual node, annotations of the Node define the health. The health of devices of a
driver that is gone is unknown.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from dryrack.client.client import Client
from dryrack.client.informer import Informers, Name
from dryrack.controllers.claims.references import claims_of, claims_of_pod
from dryrack.controllers.objects import spec_of, status_of, uid_of
from dryrack.hardware import Health, NodeFaults
from dryrack.kinds.expansion.pod_claims import skips_prepare
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw

# As in a kubelet: the timeout of a call, and the time until it syncs a pod again.
CALL_SECONDS_MAX = 45.0
RETRY_SECONDS = 10.0
_TIMED_OUT = "NodePrepareResources: rpc error: code = DeadlineExceeded desc = "


DeviceKey = tuple[str, str, str, str, str]
"""Driver, pool, device, request and share of a device that is allocated."""


class Injection(Protocol):
    """The changes to a container that has devices of one driver."""

    @property
    def env(self) -> Sequence[tuple[str, str]]: ...

    @property
    def mounts(self) -> Sequence[str]:
        """Paths in the container."""
        ...

    @property
    def device_nodes(self) -> Sequence[str]:
        """Paths of devices in the container."""
        ...

    @property
    def lines(self) -> Sequence[tuple[str, str]]:
        """Paths of mounted files, and a line that is in them."""
        ...

    @property
    def error(self) -> str:
        """The reason why there is no injection, or ""."""
        ...


class CdiInjection(Injection, Protocol):
    """The changes to a container that come from CDI specs."""

    def describe(self) -> str:
        """Return the devices and their changes in one line."""
        ...


class PreparedDevice(Protocol):
    """A device of a claim that a driver program has prepared."""

    @property
    def requests(self) -> Sequence[str]:
        """The requests of the claim; empty for all of them."""
        ...

    @property
    def identity(self) -> str:
        """The first CDI device, or driver, pool, and device."""
        ...

    @property
    def name(self) -> str: ...

    @property
    def health(self) -> tuple[str, str]:
        """The health that the driver reports, and its message."""
        ...


class DriverProcesses(Protocol):
    """Drivers that are programs; the virtual kubelet calls their sockets, as a kubelet does."""

    def serves(self, driver: str) -> bool:
        """Return True if a driver is a program."""
        ...

    def injections(self, node: str, uses: Sequence[tuple[Raw, str]]) -> Iterable[CdiInjection]:
        """Return what a container gets with its claims, each with a request or ""."""
        ...

    def devices(self, node: str, claim: str) -> Sequence[PreparedDevice]:
        """Return the devices that programs have prepared for a claim, by its UID."""
        ...

    def call(self, pod: Raw, node: str, claims: Sequence[Raw]) -> str | None:
        """
        Return why the claims of a pod are not prepared; None if they are.

        The text is empty while a call is under way.
        """
        ...

    def release(self, uid: str, node: str) -> bool:
        """Return whether no claim is prepared for a pod; unprepare its claims otherwise."""
        ...

    def abandon(self, claim: str) -> None:
        """Unprepare a claim without users, by its UID."""
        ...

    def reboot(self, node: str) -> None:
        """Lose what a reboot of a node loses, and restart its kubelet and its drivers."""
        ...

    def listen(self, listener: Callable[[str], None]) -> None:
        """Call the listener with a node whenever a call for one of its pods has ended."""
        ...

    def listen_to_health(self, listener: Callable[[str], None]) -> None:
        """Call the listener with a node whenever the health of its devices has changed."""
        ...

    async def run(
        self, client: Client, informers: Informers, is_virtual: Callable[[Raw], bool]
    ) -> None:
        """Serve every virtual node until the task is cancelled."""
        ...


class Drivers(Protocol):
    """The drivers of virtual nodes."""

    @property
    def processes(self) -> DriverProcesses | None:
        """The drivers that are programs, if there are any."""
        ...

    @property
    def names(self) -> Collection[str]: ...

    def injections(
        self, node: str, claims: Sequence[Raw], uses: Sequence[tuple[Raw, str]]
    ) -> Iterable[Injection]:
        """
        Return what a container gets with its devices.

        `uses` are its claims, each with a request, or "" for all requests. `claims` are all claims
        of its pod, in their order.
        """
        ...

    def call_seconds(self, node: Raw, now: float) -> float:
        """Return the duration of a call on a node; infinity if it is never answered."""
        ...

    def is_registered(self, node: Raw, now: float) -> bool:
        """Return True if the drivers are registered with the kubelet of a node."""
        ...

    def prepare(self, node: Raw, claims: Sequence[Raw], now: float) -> Mapping[str, str]:
        """Prepare claims; return the errors of those that cannot be prepared, by their names."""
        ...

    def restore(self, node: str, claims: Sequence[Raw]) -> None:
        """Prepare the claims of a running pod again, which a real driver has in its checkpoint."""
        ...

    def host_files(self, node: str) -> Mapping[str, Sequence[str]]:
        """Return the lines of the files that the drivers keep on a node, by path."""
        ...

    def cdi_ids(self, node: str, uid: str) -> Mapping[DeviceKey, str]:
        """Return the CDI devices of a claim that is prepared on a node."""
        ...

    def prepared(self) -> Collection[str]:
        """Return the UIDs of claims that are prepared on any node."""
        ...

    def unprepare(self, uid: str) -> None:
        """Unprepare a claim without users."""
        ...


@dataclass(frozen=True, slots=True)
class Unprepared:
    """The reason why a pod cannot start, as the reason and the message of an event."""

    reason: str
    message: str
    """"" as long as no event is written."""
    retry_seconds: float | None = None
    """The time until the next try; None: until something changes."""


# The limit of the API; a kubelet cuts longer messages.
MESSAGE_BYTES_MAX = 1024


CdiIds = Callable[[str, str], Mapping[DeviceKey, str]]


class PrepareCalls:
    """The calls of NodePrepareResources that pods wait for."""

    def __init__(self, drivers: Drivers) -> None:
        self._drivers = drivers
        self._began: dict[str, float] = {}
        """By the UID of a pod: the time at which the unanswered call began."""

    def problem(self, pod: Raw, node: Raw, claims: Sequence[Raw], now: float) -> Unprepared | None:
        """Return why the devices of a pod are not ready, or None."""
        problem = self._problem_of_simulated(pod, node, claims, now)
        if problem is not None or self._drivers.processes is None:
            return problem
        error = self._drivers.processes.call(pod, node["metadata"]["name"], claims)
        return None if error is None else unprepared(error, RETRY_SECONDS if error else None)

    def _problem_of_simulated(
        self, pod: Raw, node: Raw, claims: Sequence[Raw], now: float
    ) -> Unprepared | None:
        results = (get(each, "status.allocation.devices.results", ()) for each in claims)
        needed = [
            result["driver"] for each in results for result in each if not skips_prepare(result)
        ]
        known = [name for name in needed if name in self._drivers.names]
        if not known:
            return None
        if not self._drivers.is_registered(node, now):
            return unprepared(f"DRA driver {known[0]} is not registered", RETRY_SECONDS)
        seconds = self._drivers.call_seconds(node, now)
        passed = now - self._began.setdefault(uid_of(pod), now)
        if passed < min(seconds, CALL_SECONDS_MAX):
            left = min(seconds, CALL_SECONDS_MAX) - passed
            return unprepared("", left)
        self.forget(uid_of(pod))
        if seconds > CALL_SECONDS_MAX:
            return unprepared(f"{_TIMED_OUT}context deadline exceeded", RETRY_SECONDS)
        for name, error in self._drivers.prepare(node, claims, now).items():
            what = f"NodePrepareResources failed for ResourceClaim {name}: {error}"
            return unprepared(what, RETRY_SECONDS)
        return None

    def forget(self, uid: str) -> None:
        """Forget the call of a pod that is deleted, or whose call is answered."""
        self._began.pop(uid, None)

    def start(self, claims: Iterable[Raw]) -> None:
        """Unprepare the claims that lost their users while the kubelet was not running."""
        used = {uid_of(each) for each in claims if status_of(each).get("reservedFor")}
        for uid in sorted(set(self._drivers.prepared()) - used):
            self._drivers.unprepare(uid)

    def on_claim(self, old: Raw | None, new: Raw | None) -> None:
        """Unprepare a claim without users."""
        if new is None or not status_of(new).get("reservedFor"):
            uid = uid_of(new or old or {})
            self._drivers.unprepare(uid)
            if self._drivers.processes is not None:
                self._drivers.processes.abandon(uid)


def unprepared(message: str, retry_seconds: float | None = None) -> Unprepared:
    """Return the reason with the kubelet's text for a claim that is not prepared."""
    text = f"Failed to prepare dynamic resources: prepare dynamic resources: {message}"
    return Unprepared("FailedPrepareDynamicResources", text if message else "", retry_seconds)


def present_claims(pod: Raw, claims: Mapping[Name, Raw]) -> list[Raw]:
    """Return the claims of a pod that exist, in their order."""
    namespace = pod["metadata"].get("namespace", "")
    names = dict.fromkeys(each.claim for each in claims_of_pod(pod) if each.claim)
    return [claims[key] for name in names if (key := Name(namespace, name)) in claims]


def has_devices(pod: Raw) -> bool:
    """Return True if a pod has claims of its own; a kubelet reports no others."""
    return bool(spec_of(pod).get("resourceClaims"))


def device_health(
    pod: Raw,
    claims: Mapping[Name, Raw],
    faults: NodeFaults,
    cdi_ids: CdiIds | None = None,
    processes: DriverProcesses | None = None,
) -> Mapping[str, Sequence[Raw]]:
    """
    Return the health entries of a pod's containers, by container; empty ones are left out.

    Devices have the names of their CDI devices if `cdi_ids`, by node and claim, knows them. Drivers
    that are programs report the health of their devices themselves; a fault takes precedence.
    """
    namespace = pod["metadata"].get("namespace", "")
    node = spec_of(pod).get("nodeName", "")
    # By the name of the claim in the pod: the request of each device, and its health.
    devices: dict[str, list[tuple[str, Raw]]] = {}
    for reference in claims_of(pod):
        claim = claims.get(Name(namespace, reference.claim or ""))
        if claim is None:
            continue
        known = cdi_ids(node, uid_of(claim)) if cdi_ids is not None else {}
        devices[reference.name] = []
        if processes is not None:
            for each in processes.devices(node, uid_of(claim)):
                is_faulty = each.name in faults.devices
                state = faults.health_of(each.name) if is_faulty else each.health
                entry = _entry(each.identity, *state)
                devices[reference.name] += [(name, entry) for name in each.requests or ("",)]
        for result in get(claim, "status.allocation.devices.results", ()):
            if processes is not None and processes.serves(result["driver"]):
                continue
            device = result["driver"], result["pool"], result["device"]
            # A result of a request with alternatives has the name request/alternative.
            request = result["request"].partition("/")[0]
            key = (*device, request, result.get("shareID") or "")
            health = _health(known.get(key, "/".join(device)), result["device"], faults)
            devices[reference.name].append((request, health))
    entries: dict[str, list[Raw]] = {}
    for container in get(pod, "spec.containers", ()):
        for use in get(container, "resources.claims", ()):
            wanted = use.get("request", "")
            resources = {
                each["resourceID"]: each
                for request, each in devices.get(use["name"], ())
                if not wanted or request in ("", wanted)
            }
            if resources:
                name = f"claim:{use['name']}/{wanted}" if wanted else f"claim:{use['name']}"
                entry = {"name": name, "resources": list(resources.values())}
                entries.setdefault(container["name"], []).append(entry)
    return entries


def _health(identity: str, device: str, faults: NodeFaults) -> Raw:
    if faults.is_driver_gone:
        return _entry(identity, Health.UNKNOWN, "")
    return _entry(identity, *faults.health_of(device))


def _entry(identity: str, health: str, message: str) -> Raw:
    if not message:
        return {"resourceID": identity, "health": str(health)}
    if len(message.encode()) > MESSAGE_BYTES_MAX:
        message = message.encode()[: MESSAGE_BYTES_MAX - 3].decode(errors="ignore") + "..."
    return {"resourceID": identity, "health": str(health), "message": message}
