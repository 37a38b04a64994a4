"""
DRA drivers of virtual nodes, as the virtual kubelet calls them.

Only a driver knows what containers get with its devices, and whether it can prepare them. Without
one, devices are counted, and every claim that is allocated is ready.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from dryrack.client.informer import Name
from dryrack.controllers.claims.references import claims_of, claims_of_pod
from dryrack.controllers.objects import spec_of, status_of, uid_of
from dryrack.hardware import Health, NodeFaults
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw

# The kubelet's: how long it waits for an answer of a driver, and until it syncs a pod again.
CALL_SECONDS_MAX = 45.0

RETRY_SECONDS = 10.0

_TIMED_OUT = "NodePrepareResources: rpc error: code = DeadlineExceeded desc = "


DeviceKey = tuple[str, str, str, str, str]

"""Driver, pool, device, request and share of a device that is allocated."""


class Injection(Protocol):
    """What a container gets with its devices of one driver."""

    @property
    def env(self) -> Sequence[tuple[str, str]]: ...

    @property
    def mounts(self) -> Sequence[str]:
        """Paths in the container."""
        ...

    @property
    def lines(self) -> Sequence[tuple[str, str]]:
        """Paths of mounted files, and a line that is in them."""
        ...

    @property
    def error(self) -> str:
        """Why there is nothing of it; "" if there is."""
        ...


class Drivers(Protocol):
    """The drivers of virtual nodes."""

    @property
    def names(self) -> Collection[str]: ...

    def injections(
        self, node: str, claims: Sequence[Raw], uses: Sequence[tuple[Raw, str]]
    ) -> Iterable[Injection]:
        """
        What a container gets: `uses` are its claims, each with a request or with "" for all.

        `claims` are all claims of its pod, in their order.
        """
        ...

    def call_seconds(self, node: Raw, now: float) -> float:
        """How long a call takes on a node; infinite if it is never answered."""
        ...

    def is_registered(self, node: Raw, now: float) -> bool:
        """Whether the kubelet of a node knows the drivers."""
        ...

    def prepare(self, node: Raw, claims: Sequence[Raw], now: float) -> Mapping[str, str]:
        """Why claims cannot be prepared, by their names; one that is prepared stays so."""
        ...

    def restore(self, node: str, claims: Sequence[Raw]) -> None:
        """Prepares the claims of a pod that runs, as a driver's checkpoint would have kept them."""
        ...

    def cdi_ids(self, node: str, uid: str) -> Mapping[DeviceKey, str]:
        """The CDI devices of a claim that is prepared on a node."""
        ...

    def prepared(self) -> Collection[str]:
        """The UIDs of claims that are prepared on any node."""
        ...

    def unprepare(self, uid: str) -> None:
        """A claim has no user any more, or is gone."""
        ...


@dataclass(frozen=True, slots=True)
class Unprepared:
    """Why a pod cannot begin: the reason and the message of the event that says so."""

    reason: str
    message: str
    """"" if there is nothing to say yet."""
    retry_seconds: float | None = None
    """When to look again; None: when something changes."""


# What the API takes; a kubelet cuts longer ones.
MESSAGE_BYTES_MAX = 1024


CdiIds = Callable[[str, str], Mapping[DeviceKey, str]]


class PrepareCalls:
    """The calls of NodePrepareResources for pods that wait for it."""

    def __init__(self, drivers: Drivers) -> None:
        self._drivers = drivers
        self._began: dict[str, float] = {}
        """By the UIDs of pods, when the call began that is not answered yet."""

    def problem(self, pod: Raw, node: Raw, claims: Sequence[Raw], now: float) -> Unprepared | None:
        """Why the devices of a pod are not ready; None if they are."""
        needed = [name for each in claims for name in _drivers_of(each)]
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
        """A pod is gone, or its call answered."""
        self._began.pop(uid, None)

    def start(self, claims: Iterable[Raw]) -> None:
        """Claims that were given up while the kubelet was away are given back."""
        used = {uid_of(each) for each in claims if status_of(each).get("reservedFor")}
        for uid in sorted(set(self._drivers.prepared()) - used):
            self._drivers.unprepare(uid)

    def on_claim(self, old: Raw | None, new: Raw | None) -> None:
        """A claim that nobody uses any more is given back."""
        if new is None or not status_of(new).get("reservedFor"):
            self._drivers.unprepare(uid_of(new or old or {}))


def unprepared(message: str, retry_seconds: float | None = None) -> Unprepared:
    """A claim is not prepared, in the kubelet's words."""
    said = f"Failed to prepare dynamic resources: prepare dynamic resources: {message}"
    return Unprepared("FailedPrepareDynamicResources", said if message else "", retry_seconds)


def present_claims(pod: Raw, claims: Mapping[Name, Raw]) -> list[Raw]:
    """The claims of a pod that are there, in their order."""
    namespace = pod["metadata"].get("namespace", "")
    names = dict.fromkeys(each.claim for each in claims_of_pod(pod) if each.claim)
    return [claims[key] for name in names if (key := Name(namespace, name)) in claims]


def _drivers_of(claim: Raw) -> Iterator[str]:
    devices = get(claim, "status.allocation.devices", {})
    for result in get(devices, "results", ()):
        yield result["driver"]


def has_devices(pod: Raw) -> bool:
    """Whether a pod has claims of its own; a kubelet tells of no others."""
    return bool(spec_of(pod).get("resourceClaims"))


def device_health(
    pod: Raw, claims: Mapping[Name, Raw], faults: NodeFaults, cdi_ids: CdiIds | None = None
) -> Mapping[str, Sequence[Raw]]:
    """
    By container, the entries for its claims; containers without any are left out.

    Devices are named by their CDI devices where `cdi_ids`, by node and claim, knows them.
    """
    namespace = pod["metadata"].get("namespace", "")
    node = spec_of(pod).get("nodeName", "")
    allocated: dict[str, list[tuple[str, Raw]]] = {}
    for reference in claims_of(pod):
        claim = claims.get(Name(namespace, reference.claim or ""))
        if claim is not None:
            known = cdi_ids(node, uid_of(claim)) if cdi_ids is not None else {}
            allocated[reference.name] = list(_devices(claim, known, faults))
    found = {
        container["name"]: list(_entries(container, allocated))
        for container in get(pod, "spec.containers", ())
    }
    return {name: entries for name, entries in found.items() if entries}


def _entries(container: Raw, allocated: Mapping[str, Sequence[tuple[str, Raw]]]) -> Iterator[Raw]:
    for named in get(container, "resources.claims", ()):
        name = named["name"]
        request = named.get("request", "")
        resources = {
            each["resourceID"]: each
            for of, each in allocated.get(name, ())
            if not request or of == request
        }
        if resources:
            said = f"claim:{name}/{request}" if request else f"claim:{name}"
            yield {"name": said, "resources": list(resources.values())}


def _devices(
    claim: Raw, cdi_ids: Mapping[DeviceKey, str], faults: NodeFaults
) -> Iterator[tuple[str, Raw]]:
    """The request of each device, and what is told of it."""
    allocation = get(claim, "status.allocation", {})
    for result in get(allocation, "devices.results", ()):
        device = result["driver"], result["pool"], result["device"]
        # A result of a request with alternatives is named request/alternative.
        request = result["request"].partition("/")[0]
        identity = cdi_ids.get((*device, request, result.get("shareID") or ""), "/".join(device))
        yield request, _resource(identity, result["device"], faults)


def _resource(identity: str, device: str, faults: NodeFaults) -> Raw:
    health, message = faults.health_of(device)
    if faults.is_driver_gone:
        health = Health.UNKNOWN
        message = ""
    told = {"resourceID": identity, "health": str(health)}
    if message:
        told["message"] = _cut(message)
    return told


def _cut(message: str) -> str:
    if len(message.encode()) <= MESSAGE_BYTES_MAX:
        return message
    return message.encode()[: MESSAGE_BYTES_MAX - 3].decode(errors="ignore") + "..."
