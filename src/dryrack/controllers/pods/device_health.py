"""
The health of allocated devices in the status of a pod: `allocatedResourcesStatus`.

A kubelet is told by drivers how their devices are, and writes it into the status of each container
that has some: an entry for each claim that the container names, with all devices of it. What is
wrong with the devices of a virtual node is in the annotations of the Node. A driver that is gone
tells nothing, so that the health of its devices is unknown.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from dryrack.client.informer import Name
from dryrack.controllers.claims.references import claims_of
from dryrack.controllers.objects import spec_of, uid_of
from dryrack.controllers.pods.drivers import DeviceKey
from dryrack.hardware import Health, NodeFaults
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw

# What the API takes; a kubelet cuts longer ones.
MESSAGE_BYTES_MAX = 1024


def has_devices(pod: Raw) -> bool:
    """Whether a pod has claims of its own; a kubelet tells of no others."""
    return bool(spec_of(pod).get("resourceClaims"))


CdiIds = Callable[[str, str], Mapping[DeviceKey, str]]


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
