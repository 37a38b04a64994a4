"""
EndpointSlices that mirror Endpoints which a person or a program wrote.

Clients read EndpointSlices. A Service without a selector has the Endpoints that a client creates
for it, so each subset of them becomes an EndpointSlice for each address family.
"""

from collections.abc import Iterable, Iterator
from ipaddress import ip_address

from dryrack.client.endpoints import ENDPOINT_SLICES, ENDPOINTS, SERVICES
from dryrack.client.informer import Name, name_of
from dryrack.controllers.endpoints import SERVICE_NAME, SLICE_MANAGER
from dryrack.controllers.objects import (
    annotations_of,
    controller_reference,
    is_deleted,
    labels_of,
    spec_of,
    uid_of,
)
from dryrack.controllers.reconciler import Reconciler
from dryrack.controllers.writes import NOTHING, Create, Delete, EngineContext, Plan, Update, Write
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw

_CONTROLLER = "endpointslicemirroring-controller.k8s.io"
_SKIP = "endpointslice.kubernetes.io/skip-mirror"
_LEADER = "control-plane.alpha.kubernetes.io/leader"
_ADDRESSES_MAX = 1000
_Port = tuple[str, int, str, str]
_Key = tuple[str, tuple[_Port, ...]]
"""The address family and the ports of a slice."""


def plan_mirror(endpoints: Raw, slices: Iterable[Raw]) -> Plan:
    """Return the writes that make the slices equal to the subsets of Endpoints."""
    wanted: dict[_Key, Raw] = {}
    for subset in get(endpoints, "subsets", ()):
        ports = [{"protocol": "TCP", "name": "", **port} for port in get(subset, "ports", ())]
        for address, is_ready in _addresses(subset):
            try:
                family = f"IPv{ip_address(address['ip']).version}"
            except ValueError:
                # The API server stores Endpoints whose addresses it does not check.
                continue
            new = wanted.setdefault(
                (family, _ports_key(ports)),
                {"addressType": family, "ports": ports, "endpoints": []},
            )
            if len(new["endpoints"]) < _ADDRESSES_MAX:
                new["endpoints"].append(_endpoint(address, is_ready=is_ready))
    namespace, name = name_of(endpoints)
    labels = {**labels_of(endpoints), SERVICE_NAME: name, SLICE_MANAGER: _CONTROLLER}
    writes: list[Write] = []
    for old in slices:
        content = wanted.pop((old["addressType"], _ports_key(get(old, "ports", ()))), None)
        if content is None:
            writes.append(Delete(ENDPOINT_SLICES, name_of(old), uid_of(old)))
            continue
        new = {**old, **content, "metadata": {**old["metadata"], "labels": labels}}
        if new != old:
            writes.append(Update(ENDPOINT_SLICES, new))
    for content in wanted.values():
        metadata = {
            "generateName": f"{name}-",
            "namespace": namespace,
            "labels": labels,
            "ownerReferences": [controller_reference(endpoints, ENDPOINTS)],
        }
        writes.append(Create(ENDPOINT_SLICES, {"metadata": metadata, **content}))
    return Plan(tuple(writes))


def _ports_key(ports: Iterable[Raw]) -> tuple[_Port, ...]:
    return tuple(
        (
            each.get("name") or "",
            each.get("port") or 0,
            each.get("protocol") or "TCP",
            each.get("appProtocol") or "",
        )
        for each in ports
    )


def _addresses(subset: Raw) -> Iterator[tuple[Raw, bool]]:
    for each in get(subset, "addresses", ()):
        yield each, True
    for each in get(subset, "notReadyAddresses", ()):
        yield each, False


def _endpoint(address: Raw, *, is_ready: bool) -> Raw:
    endpoint: Raw = {"addresses": [address["ip"]], "conditions": {"ready": is_ready}}
    for key in ("hostname", "nodeName", "targetRef"):
        if key in address:
            endpoint[key] = address[key]
    return endpoint


class EndpointSliceMirroringController(Reconciler[Name]):
    """Mirrors the Endpoints of Services without a selector."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "endpoint-slice-mirroring-controller")
        self._services = self.watch(SERVICES, self._on_change)
        self._endpoints = self.watch(ENDPOINTS, self._on_change)
        self._slices = self.watch(ENDPOINT_SLICES, self._on_slice)
        self._mirrors = self._slices.index("mirrored", _mirror_key)

    def _on_change(self, old: Raw | None, new: Raw | None) -> None:
        obj = new if new is not None else old
        if obj is not None:
            self.queue.add(name_of(obj))

    def _on_slice(self, old: Raw | None, new: Raw | None) -> None:
        for each in filter(None, (old, new)):
            if list(_mirror_key(each)):
                self.queue.add(Name(name_of(each).namespace, labels_of(each)[SERVICE_NAME]))

    async def decide(self, name: Name) -> Plan:
        slices = [each for each in self._mirrors.get("/".join(name)) if not is_deleted(each)]
        service = self._services.objects.get(name)
        endpoints = self._endpoints.objects.get(name)
        is_mirrored = (
            service is not None
            and endpoints is not None
            and not is_deleted(endpoints)
            and not spec_of(service).get("selector")
            and labels_of(endpoints).get(_SKIP) != "true"
            and _LEADER not in annotations_of(endpoints)
        )
        if not is_mirrored or endpoints is None:
            deletions = [Delete(ENDPOINT_SLICES, name_of(each), uid_of(each)) for each in slices]
            return Plan(tuple(deletions)) if deletions else NOTHING
        return plan_mirror(endpoints, slices)


def _mirror_key(obj: Raw) -> Iterable[str]:
    labels = labels_of(obj)
    is_mirror = labels.get(SLICE_MANAGER) == _CONTROLLER and SERVICE_NAME in labels
    return (f"{obj['metadata']['namespace']}/{labels[SERVICE_NAME]}",) if is_mirror else ()
