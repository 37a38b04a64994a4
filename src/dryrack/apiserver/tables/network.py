"""Rows of network kinds: services, endpoints, ingresses, network policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.apiserver.tables.columns import (
    AGE,
    NAME,
    NONE,
    Shape,
    age,
    labels_text,
    name_of,
    plain,
    selector_text,
    wide,
)
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.apiserver.tables.columns import JsonObject

_DEFAULT_CLASS = "ingressclass.kubernetes.io/is-default-class"
_HOSTS_MAX = 3
_LISTED_MAX = 3
_UNSET = "<unset>"


def _hosts(rules: Sequence[JsonObject]) -> str:
    named = [rule["host"] for rule in rules if rule.get("host")]
    more = len(rules) - _HOSTS_MAX
    shown = ",".join(named[:_HOSTS_MAX]) or "*"
    return f"{shown} + {more} more..." if len(named) >= _HOSTS_MAX and more > 0 else shown


def _ingress(obj: JsonObject, now: float) -> list[Any]:
    spec = get(obj, "spec", {})
    points = get(obj, "status.loadBalancer.ingress", ())
    addresses = {entry.get("ip") or entry.get("hostname") or "" for entry in points} - {""}
    return [
        name_of(obj),
        spec.get("ingressClassName") or NONE,
        _hosts(get(spec, "rules", ())),
        ",".join(sorted(addresses)),
        "80, 443" if spec.get("tls") else "80",
        age(obj, now),
    ]


INGRESSES = Shape((NAME, *plain("Class", "Hosts", "Address", "Ports"), AGE), _ingress)


def _ingress_class(obj: JsonObject, now: float) -> list[Any]:
    notes = get(obj, "metadata.annotations", {})
    parameters = get(obj, "spec.parameters", {})
    kind = parameters.get("kind", "")
    group = parameters.get("apiGroup")
    named = f"{kind}.{group}" if group else kind
    return [
        name_of(obj) + (" (default)" if notes.get(_DEFAULT_CLASS) == "true" else ""),
        get(obj, "spec.controller", ""),
        f"{named}/{parameters.get('name', '')}" if parameters else NONE,
        age(obj, now),
    ]


INGRESS_CLASSES = Shape((NAME, *plain("Controller", "Parameters"), AGE), _ingress_class)


def _network_policy(obj: JsonObject, now: float) -> list[Any]:
    selector = selector_text(get(obj, "spec.podSelector"))
    return [name_of(obj), selector or NONE, age(obj, now)]


NETWORK_POLICIES = Shape((NAME, *plain("Pod-Selector"), AGE), _network_policy)


def _external(service: JsonObject) -> str:
    spec = get(service, "spec", {})
    external = list(get(spec, "externalIPs", ()))
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return ",".join(external) or NONE
        case "LoadBalancer":
            return ",".join([*_balancers(service), *external]) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName") or "")
        case _:
            return "<unknown>"


def _balancers(service: JsonObject) -> list[str]:
    entries = get(service, "status.loadBalancer.ingress", ())
    return sorted({entry.get("ip") or entry.get("hostname") or "" for entry in entries} - {""})


def _port(port: JsonObject) -> str:
    node = port.get("nodePort")
    number = f"{port['port']}:{node}" if node else port["port"]
    return f"{number}/{port.get('protocol') or ''}"


def _service(obj: JsonObject, now: float) -> list[Any]:
    addresses = get(obj, "spec.clusterIPs", ())
    ports = ",".join(_port(port) for port in get(obj, "spec.ports", ()))
    return [
        name_of(obj),
        get(obj, "spec.type", ""),
        addresses[0] if addresses else NONE,
        _external(obj),
        ports or NONE,
        age(obj, now),
        labels_text(get(obj, "spec.selector")),
    ]


SERVICES = Shape(
    (
        NAME,
        *plain("Type", "Cluster-IP", "External-IP", "Port(s)"),
        AGE,
        *wide("Selector"),
    ),
    _service,
)


def _join(words: Sequence[str], *, none: str) -> str:
    shown = ",".join(words[:_LISTED_MAX])
    more = len(words) - _LISTED_MAX
    return f"{shown} + {more} more..." if more > 0 else shown or none


def _subset(subset: JsonObject) -> Iterator[str]:
    addresses = [entry["ip"] for entry in get(subset, "addresses", ())]
    ports = get(subset, "ports", ())
    if not ports:
        yield from addresses
    for port in ports:
        for address in addresses:
            host = f"[{address}]" if ":" in address else address
            yield f"{host}:{port['port']}"


def _endpoints(obj: JsonObject, now: float) -> list[Any]:
    found = [text for subset in get(obj, "subsets", ()) for text in _subset(subset)]
    return [name_of(obj), _join(found, none=NONE), age(obj, now)]


ENDPOINTS = Shape((NAME, *plain("Endpoints"), AGE), _endpoints)


def _endpoint_slice(obj: JsonObject, now: float) -> list[Any]:
    ports = [str(port.get("port") or port.get("name") or "*") for port in get(obj, "ports", ())]
    addresses = [a for entry in get(obj, "endpoints", ()) for a in get(entry, "addresses", ())]
    return [
        name_of(obj),
        obj.get("addressType") or "",
        _join(ports, none=_UNSET),
        _join(addresses, none=_UNSET),
        age(obj, now),
    ]


ENDPOINT_SLICES = Shape((NAME, *plain("AddressType", "Ports", "Endpoints"), AGE), _endpoint_slice)
