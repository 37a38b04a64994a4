"""Validation of services, in the order of the API server."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from dryrack.kinds.paths import get
from dryrack.kinds.rules import checks
from dryrack.kinds.rules.pods.network import address
from dryrack.kinds.rules.services import needs
from dryrack.kinds.validation.names import checked, label, subdomain
from dryrack.kinds.validation.problems import (
    Token,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem


_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_AFFINITIES = ("ClientIP", "None")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_TRAFFIC = ("Cluster", "Local")
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_DAY_SECONDS = 86_400
_ONLY_BALANCED = "may only be used when `type` is 'LoadBalancer'"


FAMILIES = ("IPv4", "IPv6")
_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_IPS = "spec.clusterIPs"


def problems(service: Raw) -> Iterator[FieldProblem]:
    """Yield the problems of a service with all defaults set."""
    spec = service["spec"]
    annotations = get(service["metadata"], "annotations", {})
    yield from _by_type(spec)
    yield from _ports(get(spec, "ports", []))
    yield from checks.labels_of("spec.selector", spec.get("selector"))
    yield from _affinity(spec)
    yield from related_problems(spec)
    for position, text in enumerate(get(spec, "externalIPs", ())):
        yield from address(f"spec.externalIPs[{position}]", text)
    yield from checks.one_of("spec.type", spec.get("type") or "", _TYPES)
    yield from _node_ports(spec)
    yield from _repeated_ports(get(spec, "ports", ()))
    yield from _sources(spec, annotations)
    kind = spec.get("loadBalancerClass")
    if spec.get("type") != "LoadBalancer":
        for key in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
            if spec.get(key) is not None:
                yield forbidden(f"spec.{key}", _ONLY_BALANCED)
    elif kind is not None:
        yield from checks.qualified_name("spec.loadBalancerClass", kind)
    policy = spec.get("externalTrafficPolicy") or ""
    if needs.is_external(spec):
        yield from checks.one_of("spec.externalTrafficPolicy", policy, _TRAFFIC)
    elif policy:
        detail = "may only be set for externally-accessible services"
        yield invalid("spec.externalTrafficPolicy", Token(policy), detail)
    yield from _health(spec)
    inside = spec.get("internalTrafficPolicy")
    if inside is not None and inside not in _TRAFFIC:
        yield not_supported("spec.internalTrafficPolicy", inside, _TRAFFIC)
    wish = spec.get("trafficDistribution")
    if wish is not None and wish not in _DISTRIBUTIONS:
        yield not_supported("spec.trafficDistribution", wish, _DISTRIBUTIONS)


def _by_type(spec: Raw) -> Iterator[FieldProblem]:
    kind = spec.get("type")
    if not spec.get("ports") and not needs.is_headless(spec) and kind != "ExternalName":
        yield required("spec.ports")
    if kind in ("LoadBalancer", "NodePort") and needs.is_headless(spec):
        detail = f"may not be set to 'None' for {kind} services"
        yield invalid("spec.clusterIPs[0]", needs.NONE, detail)
    if kind != "ExternalName":
        return
    for key in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(key):
            yield forbidden(f"spec.{key}", "may not be set for ExternalName services")
    name = (spec.get("externalName") or "").removesuffix(".")
    path = "spec.externalName"
    yield from checked(path, name, subdomain) if name else (required(path),)


def _ports(given: Sequence[Raw]) -> Iterator[FieldProblem]:
    seen: set[str] = set()
    for position, port in enumerate(given):
        at = f"spec.ports[{position}]"
        name = port.get("name") or ""
        if name:
            yield from checked(f"{at}.name", name, label)
            if name in seen:
                yield duplicate(f"{at}.name", name)
            seen.add(name)
        elif len(given) > 1:
            yield required(f"{at}.name")
        yield from checks.port_number(f"{at}.port", port.get("port", 0))
        yield from checks.one_of(f"{at}.protocol", port.get("protocol") or "", _PROTOCOLS)
        yield from checks.port(f"{at}.targetPort", port.get("targetPort", 0))
        if port.get("appProtocol") is not None:
            yield from checks.qualified_name(f"{at}.appProtocol", port["appProtocol"])


def _affinity(spec: Raw) -> Iterator[FieldProblem]:
    affinity = spec.get("sessionAffinity") or ""
    yield from checks.one_of("spec.sessionAffinity", affinity, _AFFINITIES)
    if affinity != "ClientIP":
        return
    client = get(spec, "sessionAffinityConfig.clientIP", {})
    seconds = client.get("timeoutSeconds", 0)
    if not 0 < seconds <= _DAY_SECONDS:
        path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
        yield invalid(path, seconds, f"must be greater than 0 and less than {_DAY_SECONDS}")


def _node_ports(spec: Raw) -> Iterator[FieldProblem]:
    seen: set[tuple[str, int]] = set()
    repeated: list[FieldProblem] = []
    for position, port in enumerate(get(spec, "ports", ())):
        opened = port.get("nodePort")
        path = f"spec.ports[{position}].nodePort"
        if not opened:
            continue
        if spec.get("type") == "ClusterIP":
            yield forbidden(path, "may not be used when `type` is 'ClusterIP'")
        known = (port.get("protocol") or "", opened)
        if known in seen:
            repeated.append(duplicate(path, opened))
        seen.add(known)
    yield from repeated


def _repeated_ports(ports: Sequence[Raw]) -> Iterator[FieldProblem]:
    seen: set[tuple[str, int]] = set()
    for position, port in enumerate(ports):
        protocol = port.get("protocol") or ""
        number = port.get("port", 0)
        if (protocol, number) in seen:
            yield duplicate(f"spec.ports[{position}]", port)
        seen.add((protocol, number))


def _sources(spec: Raw, annotations: Raw) -> Iterator[FieldProblem]:
    is_balancer = spec.get("type") == "LoadBalancer"
    given = get(spec, "loadBalancerSourceRanges", ())
    if given:
        at = "spec.LoadBalancerSourceRanges"
        if not is_balancer:
            yield forbidden(at, _ONLY_BALANCED)
        for position, text in enumerate(given):
            yield from source_range(f"{at}[{position}]", text.strip())
    elif _RANGES in annotations:
        at = f"metadata.annotations[{_RANGES}]"
        if not is_balancer:
            yield forbidden(at, _ONLY_BALANCED)
        for text in annotations[_RANGES].strip().split(",") if annotations[_RANGES].strip() else ():
            yield from source_range(at, text.strip())


def _health(spec: Raw) -> Iterator[FieldProblem]:
    path = "spec.healthCheckNodePort"
    port = spec.get("healthCheckNodePort") or 0
    if needs.has_health_check_port(spec):
        yield from checks.port_number(path, port) if port else (required(path),)
    elif port:
        detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is"
        yield invalid(path, port, f"{detail} 'Local'")


def related_problems(spec: Raw) -> Iterator[FieldProblem]:
    """Yield the problems of clusterIP, clusterIPs and the IP families."""
    if not needs.has_cluster_ip(spec):
        return
    addresses = get(spec, "clusterIPs", [])
    first = spec.get("clusterIP") or ""
    if first and not addresses:
        yield required(_IPS)
    elif first and addresses[0] != first:
        yield invalid(_IPS, addresses, "first value must match `clusterIP`")
    elif not first and addresses:
        yield invalid(_IPS, addresses, "must be empty when `clusterIP` is not specified")
    yield from _families(spec)
    for position, text in enumerate(addresses):
        if position == 0 and text == needs.NONE:
            if len(addresses) > 1:
                yield invalid(_IPS, addresses, "'None' must be the first and only value")
        else:
            yield from address(f"{_IPS}[{position}]", text)
    if len(addresses) > len(FAMILIES):
        yield invalid(_IPS, addresses, "may only hold up to 2 values")


def _families(spec: Raw) -> Iterator[FieldProblem]:
    seen: set[str] = set()
    for position, family in enumerate(get(spec, "ipFamilies", ())):
        path = f"spec.ipFamilies[{position}]"
        if family not in FAMILIES:
            yield not_supported(path, family, FAMILIES)
        if family in seen:
            yield duplicate(path, Token(family))
        seen.add(family)
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _POLICIES:
        yield not_supported("spec.ipFamilyPolicy", policy, _POLICIES)


def source_range(at: str, text: str) -> Iterator[FieldProblem]:
    """Check a CIDR."""
    try:
        ipaddress.ip_network(text)
        is_range = "/" in text
    except ValueError:
        is_range = False
    if not is_range:
        detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
        yield invalid(at, text, detail)
