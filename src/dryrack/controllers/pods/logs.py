"""
What `kubectl logs` answers for a container that was never executed.

Nothing ran, and the log does not pretend otherwise: it says what would have been executed, with
which environment and which devices. The environment that a driver would add comes from a
`Devices` seam, because only the driver knows it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from dryrack.controllers.claims.references import claims_of_pod
from dryrack.controllers.objects import spec_of, status_of
from dryrack.kinds.raw import Raw


class Claims(Protocol):
    """Finds a claim by namespace and name."""

    def __call__(self, namespace: str, name: str) -> Raw | None: ...


class Devices(Protocol):
    """The environment that allocated devices bring into a container."""

    def __call__(self, devices: Sequence[str]) -> Mapping[str, str]: ...


def numbered_devices(devices: Sequence[str]) -> Mapping[str, str]:
    """What a container gets where no driver says better: its devices, counted."""
    return {f"DRYRACK_DEVICE_{number}": device for number, device in enumerate(devices)}


def log_of(
    pod: Raw, container: str, claims: Claims, *, environment: Devices = numbered_devices
) -> str:
    """The log of a container, whose name is known to be right; "" if it never started."""
    spec = next(each for each in _containers(pod) if each["name"] == container)
    if not _has_started(pod, container):
        return ""
    devices = list(devices_of(pod, spec, claims))
    lines = [
        f"command: {' '.join(map(str, (*_list(spec, 'command'), *_list(spec, 'args'))))}".rstrip(),
        *(f"env: {key}={value}" for key, value in _environment(pod, spec)),
        *(f"env: {key}={value}" for key, value in environment(devices).items()),
        *(f"device: {device}" for device in devices),
    ]
    return "".join(f"{line}\n" for line in lines)


def devices_of(pod: Raw, container: Raw, claims: Claims) -> Iterator[str]:
    """The devices of a container, as driver/pool/device; those of extended resources come last."""
    names = {each.name: each.claim for each in claims_of_pod(pod)}
    namespace = pod["metadata"].get("namespace", "")
    for wanted in _list(container.get("resources") or {}, "claims"):
        claim = claims(namespace, names.get(wanted["name"]) or "")
        yield from _allocated(claim, wanted.get("request", "")) if claim else ()
    extended = status_of(pod).get("extendedResourceClaimStatus") or {}
    for mapping in _list(extended, "requestMappings"):
        if mapping["containerName"] == container["name"]:
            claim = claims(namespace, extended["resourceClaimName"])
            yield from _allocated(claim, mapping["requestName"]) if claim else ()


def _allocated(claim: Raw, request: str) -> Iterator[str]:
    allocation = status_of(claim).get("allocation") or {}
    for result in _list(allocation.get("devices") or {}, "results"):
        # A result of a request with alternatives is named request/alternative.
        if not request or result["request"].split("/")[0] == request:
            yield f"{result['driver']}/{result['pool']}/{result['device']}"


def _environment(pod: Raw, container: Raw) -> Iterable[tuple[str, str]]:
    """The plain values, and those that the pod itself knows."""
    for variable in _list(container, "env"):
        source = variable.get("valueFrom") or {}
        if "fieldRef" in source:
            yield variable["name"], _field(pod, source["fieldRef"].get("fieldPath", ""))
        elif not source:
            yield variable["name"], variable.get("value", "")
        else:
            yield variable["name"], f"<from {next(iter(source))}>"


def _field(pod: Raw, path: str) -> str:
    value: Any = pod
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return "" if value is None else str(value)


def _has_started(pod: Raw, container: str) -> bool:
    status = status_of(pod)
    told = [*_list(status, "containerStatuses"), *_list(status, "initContainerStatuses")]
    mine: Raw = next((each for each in told if each["name"] == container), {})
    return "waiting" not in mine.get("state", {"waiting": {}}) or bool(mine.get("lastState"))


def _containers(pod: Raw) -> Iterator[Raw]:
    for key in ("containers", "initContainers", "ephemeralContainers"):
        yield from _list(spec_of(pod), key)


def _list(holder: Raw, key: str) -> Sequence[Any]:
    return holder.get(key) or ()
