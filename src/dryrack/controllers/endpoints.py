"""
Endpoints and EndpointSlices of Services with a selector.

Both follow the pods that a Service selects: a pod with an address is an endpoint until it has
ended, and is ready if its condition Ready is true. A pod keeps its slice, so that one change of a
pod writes one slice. The objects of the Service `kubernetes` belong to the API server.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from dryrack.client.endpoints import ENDPOINT_SLICES, ENDPOINTS, NODES, PODS, SERVICES
from dryrack.client.informer import Index, Name, name_of
from dryrack.controllers.objects import (
    annotations_of,
    controller_reference,
    is_controlled_by,
    is_deleted,
    is_ready,
    is_terminal,
    labels_of,
    spec_of,
    status_of,
    uid_of,
    with_metadata,
)
from dryrack.controllers.reconciler import Reconciler
from dryrack.controllers.workloads import pace
from dryrack.controllers.writes import (
    NOTHING,
    Create,
    Delete,
    EngineContext,
    Plan,
    Update,
    Write,
)
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw

SLICE_SIZE_MAX = 100
ADDRESSES_MAX = 1000
SERVICE_NAME = "kubernetes.io/service-name"
SLICE_MANAGER = "endpointslice.kubernetes.io/managed-by"
_SLICE_CONTROLLER = "endpointslice-controller.k8s.io"
_ENDPOINTS_MANAGER = "endpoints.kubernetes.io/managed-by"
_ENDPOINTS_CONTROLLER = "endpoint-controller"
_HEADLESS = "service.kubernetes.io/headless"
_OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"
_ZONE = "topology.kubernetes.io/zone"

Ports = tuple[tuple[str, int, str, str], ...]
"""The name, number, protocol and application protocol of each port of an endpoint."""


def has_endpoints(service: Raw) -> bool:
    """Return True if the controllers follow the pods of a Service."""
    spec = spec_of(service)
    return bool(spec.get("selector")) and spec.get("type") != "ExternalName"


def is_headless(service: Raw) -> bool:
    return spec_of(service).get("clusterIP") == "None"


def ports_of(service: Raw, pod: Raw) -> Ports:
    """Return the ports of a Service on a pod, without those whose name the pod does not have."""
    ports = []
    for port in get(service, "spec.ports", ()):
        protocol = port.get("protocol") or "TCP"
        target = port.get("targetPort") or port["port"]
        number = _named_port(pod, target, protocol) if isinstance(target, str) else target
        if number is not None:
            ports.append((port.get("name") or "", number, protocol, port.get("appProtocol") or ""))
    return tuple(ports)


def _named_port(pod: Raw, name: str, protocol: str) -> int | None:
    sidecars = [
        each
        for each in get(pod, "spec.initContainers", ())
        if each.get("restartPolicy") == "Always"
    ]
    for container in (*get(pod, "spec.containers", ()), *sidecars):
        for port in get(container, "ports", ()):
            if port.get("name") == name and (port.get("protocol") or "TCP") == protocol:
                return int(port["containerPort"])
    return None


def address_of(pod: Raw, family: str) -> str:
    """Return the address of a pod in a family of addresses, or ""."""
    status = status_of(pod)
    addresses = [each["ip"] for each in get(status, "podIPs", ())] or [status.get("podIP") or ""]
    return next((each for each in addresses if (":" in each) == (family == "IPv6")), "")


def _hostname(pod: Raw, service: Raw) -> Raw:
    spec = spec_of(pod)
    name = spec.get("hostname")
    is_named = name and spec.get("subdomain") == service["metadata"]["name"]
    return {"hostname": name} if is_named else {}


def _reference(pod: Raw) -> Raw:
    namespace, name = name_of(pod)
    return {"kind": "Pod", "namespace": namespace, "name": name, "uid": uid_of(pod)}


def _families(service: Raw) -> Sequence[str]:
    families: Sequence[str] = get(service, "spec.ipFamilies", ())
    return families or ("IPv4",)


def _labels(service: Raw, **own: str) -> Raw:
    headless = {_HEADLESS: ""} if is_headless(service) else {}
    return {**labels_of(service), **headless, **own}


def plan_slices(
    service: Raw, pods: Sequence[Raw], slices: Sequence[Raw], zone_of: Callable[[str], str]
) -> Plan:
    """Return the writes of the slices of a Service; `slices` are those that exist."""
    families = _families(service)
    writes: list[Write] = []
    for family in families:
        groups: dict[Ports, dict[str, Raw]] = {}
        for pod in pods:
            address = address_of(pod, family)
            if address and not is_terminal(pod):
                endpoint = _endpoint(service, pod, address, zone_of)
                groups.setdefault(ports_of(service, pod), {})[uid_of(pod)] = endpoint
        existing = [each for each in slices if each["addressType"] == family]
        writes += _plan_family(service, family, groups, existing)
    writes += [_deletion(each) for each in slices if each["addressType"] not in families]
    return Plan(tuple(writes))


def _endpoint(service: Raw, pod: Raw, address: str, zone_of: Callable[[str], str]) -> Raw:
    is_serving = is_ready(pod)
    is_published = bool(spec_of(service).get("publishNotReadyAddresses"))
    node = spec_of(pod).get("nodeName")
    zone = zone_of(node) if node else ""
    conditions = {
        "ready": is_published or (is_serving and not is_deleted(pod)),
        "serving": is_serving,
        "terminating": is_deleted(pod),
    }
    return {
        "addresses": [address],
        "conditions": conditions,
        "targetRef": _reference(pod),
        **_hostname(pod, service),
        **({"nodeName": node} if node else {}),
        **({"zone": zone} if zone else {}),
    }


def _plan_family(
    service: Raw, family: str, groups: dict[Ports, dict[str, Raw]], existing: Sequence[Raw]
) -> Iterator[Write]:
    """
    Yield the writes of the slices of one address family.

    Endpoints stay in their slices; new ones go where there is room, and then into slices that are
    no longer needed. A Service without endpoints has one empty slice.
    """
    spare = list(existing)
    new: list[tuple[list[Raw], list[Raw]]] = []
    for ports, wanted in groups.items():
        shown = _slice_ports(ports)
        left = dict(wanted)
        kept = []
        for each in existing:
            if get(each, "ports", []) == shown:
                uids = [get(old, "targetRef.uid", "") for old in get(each, "endpoints", ())]
                kept.append((each, [left.pop(uid) for uid in uids if uid in left]))
        added = list(left.values())
        for each, endpoints in sorted(kept, key=lambda pair: -len(pair[1])):
            if endpoints:
                room = SLICE_SIZE_MAX - len(endpoints)
                spare.remove(each)
                yield from _change(service, each, shown, [*endpoints, *added[:room]])
                added = added[room:]
        starts = range(0, len(added), SLICE_SIZE_MAX)
        new += [(shown, added[start : start + SLICE_SIZE_MAX]) for start in starts]
    for shown, endpoints in new if groups else [([], [])]:
        if spare:
            yield from _change(service, spare.pop(0), shown, endpoints)
            continue
        metadata = {
            "generateName": f"{service['metadata']['name']}-",
            "namespace": service["metadata"]["namespace"],
            "labels": _slice_labels(service),
            "ownerReferences": [controller_reference(service, SERVICES)],
        }
        yield Create(
            ENDPOINT_SLICES,
            {"metadata": metadata, "addressType": family, "endpoints": endpoints, "ports": shown},
        )
    for each in spare:
        yield _deletion(each)


def _slice_labels(service: Raw) -> Raw:
    own = {SERVICE_NAME: service["metadata"]["name"], SLICE_MANAGER: _SLICE_CONTROLLER}
    return _labels(service, **own)


def _slice_ports(ports: Ports) -> list[Raw]:
    return [
        {"name": name, "port": number, "protocol": protocol}
        | ({"appProtocol": application} if application else {})
        for name, number, protocol, application in ports
    ]


def _change(service: Raw, old: Raw, ports: list[Raw], endpoints: list[Raw]) -> Iterator[Write]:
    new = with_metadata(old, labels=_slice_labels(service))
    new = new | {"endpoints": endpoints, "ports": ports}
    if new != old:
        yield Update(ENDPOINT_SLICES, new)


def _deletion(old: Raw) -> Write:
    return Delete(ENDPOINT_SLICES, name_of(old), uid_of(old))


def plan_endpoints(service: Raw, pods: Sequence[Raw], endpoints: Raw | None) -> Plan:
    """Return the write of the Endpoints of a Service."""
    subsets, is_truncated = _subsets(service, pods)
    labels = _labels(service, **{_ENDPOINTS_MANAGER: _ENDPOINTS_CONTROLLER})
    old = endpoints or {"metadata": dict(zip(("namespace", "name"), name_of(service), strict=True))}
    annotations = {key: old for key, old in annotations_of(old).items() if key != _OVER_CAPACITY}
    if is_truncated:
        annotations[_OVER_CAPACITY] = "truncated"
    new = with_metadata(old, labels=labels, annotations=annotations or None)
    new = {key: value for key, value in new.items() if key != "subsets"}
    if subsets:
        new["subsets"] = subsets
    if endpoints is None:
        return Plan((Create(ENDPOINTS, new),))
    return Plan((Update(ENDPOINTS, new),)) if new != endpoints else NOTHING


def _subsets(service: Raw, pods: Iterable[Raw]) -> tuple[list[Raw], bool]:
    """Return the addresses by their ports, ready ones first, and True if some do not fit."""
    is_published = bool(spec_of(service).get("publishNotReadyAddresses"))
    family = _families(service)[0]
    found: list[tuple[bool, str, Raw, Ports]] = []
    for pod in pods:
        address = address_of(pod, family)
        ports = ports_of(service, pod)
        if not address or is_terminal(pod) or (is_deleted(pod) and not is_published):
            continue
        if not ports and not is_headless(service):
            continue
        node = spec_of(pod).get("nodeName")
        entry = {"ip": address, **_hostname(pod, service), **({"nodeName": node} if node else {})}
        entry["targetRef"] = _reference(pod)
        found.append((not (is_published or is_ready(pod)), address, entry, ports))
    found.sort(key=lambda each: each[:2])
    subsets: dict[Ports, dict[str, Any]] = {}
    for is_waiting, _, entry, ports in found[:ADDRESSES_MAX]:
        key = "notReadyAddresses" if is_waiting else "addresses"
        subsets.setdefault(ports, {}).setdefault(key, []).append(entry)
    shown = []
    for ports in sorted(subsets):
        listed = [
            {key: value for key, value in port.items() if value} for port in _slice_ports(ports)
        ]
        shown.append(subsets[ports] | ({"ports": listed} if listed else {}))
    return shown, len(found) > ADDRESSES_MAX


class ServiceReconciler(Reconciler[Name]):
    """Decides a Service when it changes, or a pod that it selects; for others to derive from."""

    def __init__(self, context: EngineContext, name: str) -> None:
        super().__init__(context, name)
        self.services = self.watch(SERVICES)
        # By one label of the selector: a pod finds its Services without reading all of them.
        self._selecting = self.services.index("one label of selector", _selector_key)
        self._pods = self.watch(PODS)
        self.services.listen(self._on_service)
        self._pods.listen(self._on_pod)

    @property
    def _labelled(self) -> Index:
        # The index is created when the first Service with a selector needs it.
        return self._pods.index("labels", _label_keys)

    def pods_of(self, service: Raw) -> list[Raw]:
        selector = spec_of(service)["selector"]
        key = min(_keys(service, selector), key=self._labelled.count)
        pods = self._labelled.get(key)
        return [pod for pod in pods if selector.items() <= labels_of(pod).items()]

    def enqueue(self, name: Name) -> None:
        """Queue a Service; one of many pods is decided after a while, for all changes at once."""
        service = self.services.objects.get(name)
        size = 0
        if service is not None and has_endpoints(service):
            selector = spec_of(service)["selector"]
            size = min(self._labelled.count(key) for key in _keys(service, selector))
        self.queue.add_after(name, pace(size))

    def _on_service(self, old: Raw | None, new: Raw | None) -> None:
        service = new if new is not None else old
        if service is not None:
            self.queue.add(name_of(service))

    def _on_pod(self, old: Raw | None, new: Raw | None) -> None:
        if old is not None and new is not None and _traits(old) == _traits(new):
            return
        names: dict[Name, None] = {}
        for pod in filter(None, (old, new)):
            labels = labels_of(pod)
            for key in _keys(pod, labels):
                for service in self._selecting.get(key):
                    if spec_of(service)["selector"].items() <= labels.items():
                        names[name_of(service)] = None
        for name in names:
            self.enqueue(name)


def _keys(obj: Raw, labels: Any) -> list[str]:
    namespace = obj["metadata"]["namespace"]
    return [f"{namespace}/{key}={value}" for key, value in labels.items()]


def _label_keys(pod: Raw) -> Iterable[str]:
    return _keys(pod, labels_of(pod))


def _selector_key(service: Raw) -> Iterable[str]:
    return (
        sorted(_keys(service, spec_of(service)["selector"]))[:1] if has_endpoints(service) else ()
    )


def _traits(pod: Raw) -> tuple[Any, ...]:
    """Return what endpoints depend on."""
    spec = spec_of(pod)
    status = status_of(pod)
    return (
        uid_of(pod),
        is_ready(pod),
        is_terminal(pod),
        is_deleted(pod),
        status.get("podIP"),
        status.get("podIPs"),
        spec.get("nodeName"),
        labels_of(pod),
    )


class EndpointSliceController(ServiceReconciler):
    """Keeps the EndpointSlices of Services; the garbage collector deletes them."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "endpoint-slice-controller")
        self._nodes = self.watch(NODES)
        self._slices = self.watch(ENDPOINT_SLICES, self._on_slice)
        self._of_service = self._slices.index("service", _slice_key)

    def _on_slice(self, old: Raw | None, new: Raw | None) -> None:
        for each in filter(None, (old, new)):
            if old is not None and list(_slice_key(each)):
                self.enqueue(Name(name_of(each).namespace, labels_of(each)[SERVICE_NAME]))

    async def decide(self, name: Name) -> Plan:
        service = self.services.objects.get(name)
        if service is None or is_deleted(service) or not has_endpoints(service):
            return NOTHING
        slices = self._of_service.get("/".join(name))
        own = [each for each in slices if is_controlled_by(each, service) and not is_deleted(each)]
        return plan_slices(service, self.pods_of(service), own, self._zone_of)

    def _zone_of(self, node: str) -> str:
        found = self._nodes.get("", node)
        return labels_of(found).get(_ZONE, "") if found is not None else ""


def _slice_key(obj: Raw) -> Iterable[str]:
    labels = labels_of(obj)
    is_ours = labels.get(SLICE_MANAGER) == _SLICE_CONTROLLER and SERVICE_NAME in labels
    return (f"{obj['metadata']['namespace']}/{labels[SERVICE_NAME]}",) if is_ours else ()


class EndpointsController(ServiceReconciler):
    """Keeps the Endpoints of Services, and deletes those whose Service no longer exists."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, _ENDPOINTS_CONTROLLER)
        self._endpoints = self.watch(ENDPOINTS, self._on_endpoints)

    def _on_endpoints(self, old: Raw | None, new: Raw | None) -> None:
        # Also existing ones are decided: their Service may be gone since the last start.
        for each in filter(None, (old, new)):
            if labels_of(each).get(_ENDPOINTS_MANAGER) == _ENDPOINTS_CONTROLLER:
                self.enqueue(name_of(each))

    async def decide(self, name: Name) -> Plan:
        service = self.services.objects.get(name)
        endpoints = self._endpoints.objects.get(name)
        if service is None:
            is_ours = (
                endpoints is not None
                and labels_of(endpoints).get(_ENDPOINTS_MANAGER) == _ENDPOINTS_CONTROLLER
            )
            if endpoints is None or not is_ours:
                return NOTHING
            return Plan((Delete(ENDPOINTS, name, uid_of(endpoints)),))
        if is_deleted(service) or not has_endpoints(service):
            return NOTHING
        return plan_endpoints(service, self.pods_of(service), endpoints)
